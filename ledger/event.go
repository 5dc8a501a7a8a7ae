package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Version is an event's place in its stream; the first event has version 0.
// NoStream is the expected version of a stream that must not exist yet.
type Version int64

// NoStream is the expected version that asserts a stream is empty.
const NoStream Version = -1

func (v Version) String() string {
	if v == NoStream {
		return "none"
	}
	return fmt.Sprintf("%d", int64(v))
}

// Index is an event's dense 0-based place in the ledger's one order. It is the leaf number in
// the Merkle tree and the only public position; backends keep their own cursors private.
type Index uint64

// Hash is a SHA-256 node of the Merkle tree: a leaf, an inner node or a root (RFC 6962 §2.1).
type Hash [sha256.Size]byte

func (h Hash) String() string { return "sha256:" + hex.EncodeToString(h[:]) }

// EventID is the first 16 bytes of an event's leaf hash. It is derived, never stored in the leaf.
type EventID [16]byte

func (id EventID) String() string { return hex.EncodeToString(id[:]) }

// Prepared is what a writer decides about an event. It is prepared once; a retry sends the same
// bytes. Stream, version and prev are filled in by the store, which compares these five fields
// on a retry.
type Prepared struct {
	Type  string // 1..64 bytes, see CheckPrepared
	Time  int64  // writer's UTC wall time, ns since the Unix epoch; a claim, never used for order
	Media string // media type of Data, 1..128 bytes; product events use application/cbor
	Meta  []byte // opaque to the ledger; product events hold CBOR {1 schema, 2 actor, 3 cause, 4 nonce}
	Data  []byte // the payload, at most MaxData bytes
}

// Event is one stored event.
type Event struct {
	Index   Index
	Stream  StreamID
	Version Version
	Type    string
	Time    int64  // ns since the Unix epoch, UTC, as claimed by the writer
	Prev    []byte // leaf hash of the stream's previous event; empty for version 0
	Media   string
	Meta    []byte
	Data    []byte
}

// Appended is the result of a successful append.
type Appended struct {
	Events []Event // as stored, in order, each with its index
}

// Last returns the last event of the append.
func (a Appended) Last() Event { return a.Events[len(a.Events)-1] }
