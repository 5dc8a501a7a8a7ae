package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"
)

// Exhibit is how a backend shows an audit what it keeps, as it keeps it. None of its methods
// checks, repairs or leaves out anything: a reader of the Ledger trusts the backend's own places,
// an auditor must not. Bytes that can't be read at all because the store is damaged are a
// *DamagedError; every other error says that the audit couldn't be done.
type Exhibit interface {
	// Size returns the number of events, as in Tree.
	Size(ctx context.Context) (uint64, error)
	// Stored yields every stored event in the order of the stored indexes, up to and without index
	// `end`; those that claim to stand before index 0 too.
	Stored(ctx context.Context, end Index) iter.Seq2[StoredEvent, error]
	// StoredCheckpoints yields every kept checkpoint by ascending size.
	StoredCheckpoints(ctx context.Context) iter.Seq2[StoredCheckpoint, error]
	// BlobFacts hashes a stored blob as it streams by. It fails with *BlobAbsentError when its bytes
	// aren't here.
	BlobFacts(ctx context.Context, key BlobKey) (BlobFacts, error)
	// Get is that of Blobs.
	Get(ctx context.Context, key BlobKey) (Blob, error)
	// CheckStorage checks what only the backend knows: its own indexes, tables and limits. It fails
	// with *DamagedError.
	CheckStorage(ctx context.Context) error
}

// StoredEvent is an event with the tree nodes that lie beside it.
type StoredEvent struct {
	Event
	Nodes []byte // the hashes of the subtrees its leaf completes, its own first, 32 bytes each; nil: none are kept
}

// StoredCheckpoint is a kept checkpoint, as its columns say.
type StoredCheckpoint struct {
	Size   uint64
	Origin string
	Root   []byte
	Note   []byte
}

// BlobFacts is what hashing a stored blob tells.
type BlobFacts struct {
	Key    BlobKey // SHA-256(salt ‖ data): another than asked for, if the blob was changed
	Salt   []byte
	Length uint64
	Plain  [sha256.Size]byte // SHA-256 of the data alone
}

// DamagedError says that a store's own structure is broken or isn't what it should be.
type DamagedError struct {
	What string // where and how
	Err  error  // the cause, where there is one
}

func (e *DamagedError) Error() string { return e.What }
func (e *DamagedError) Unwrap() error { return e.Err }

// Finding is what an audit found wrong first: at which event, which of its fields, what should be
// there and what is.
type Finding struct {
	Index    Index
	Stream   StreamID // empty when there is no event
	Version  Version  // NoStream when there is no event
	Field    string
	Expected string
	Found    string
}

func (f *Finding) Error() string {
	where := fmt.Sprintf("index %d", f.Index)
	if f.Stream != "" {
		where += fmt.Sprintf(" (stream %s, version %s)", f.Stream, f.Version)
	}
	return fmt.Sprintf("%s: %s is %s, expected %s", where, f.Field, f.Found, f.Expected)
}

// Found makes the finding about an event that stands, or should stand, at `index`.
func (e Event) Found(index Index, field, expected, found string) *Finding {
	return &Finding{Index: index, Stream: e.Stream, Version: e.Version, Field: field, Expected: expected, Found: found}
}

// Auditor checks the bytes of a whole ledger in one pass: what Checker checks, each event's shape,
// and that the stored tree nodes are those recomputed. It keeps one head per stream and the
// tree's right edge. What events mean isn't its part.
type Auditor struct {
	checker *Checker
	last    Event // its place only
}

// NewAuditor returns an auditor that expects index 0.
func NewAuditor() *Auditor { return &Auditor{checker: NewChecker()} }

// Visit takes the next event and its leaf hash, which the caller computes with Leaf, where it
// likes. It fails with *Finding; the auditor is then of no more use.
func (a *Auditor) Visit(e StoredEvent, leaf Hash) error {
	at := Index(a.checker.Size())
	if e.Index != at {
		return e.Found(at, "index", decimal(uint64(at)), decimal(uint64(e.Index)))
	}
	if field, err := e.misshapen(); err != nil {
		return e.Found(at, field, "a legal one", err.Error())
	}
	if err := a.checker.follows(&e.Event); err != nil {
		chain := err.(*ChainError) // follows returns no other
		return e.Found(at, chain.Field, quoteEmpty(chain.Expected), quoteEmpty(chain.Found))
	}
	nodes := a.checker.take(&e.Event, leaf)
	a.last = Event{Index: e.Index, Stream: e.Stream, Version: e.Version}
	if e.Nodes == nil {
		return nil
	}
	return e.compareNodes(nodes)
}

func quoteEmpty(s string) string {
	if s == "" {
		return "empty"
	}
	return s
}

// misshapen names the first field that no store would have accepted.
func (e StoredEvent) misshapen() (field string, err error) {
	if _, err := ParseStreamID(string(e.Stream)); err != nil {
		return "stream", err
	}
	if err := checkType(e.Type); err != nil {
		return "type", err
	}
	if err := checkMedia(e.Media); err != nil {
		return "media", err
	}
	if len(e.Meta) > MaxMeta {
		return "meta", fmt.Errorf("%d bytes; at most %d are allowed", len(e.Meta), MaxMeta)
	}
	if len(e.Data) > MaxData {
		return "data", fmt.Errorf("%d bytes; at most %d are allowed", len(e.Data), MaxData)
	}
	return "", nil
}

// compareNodes compares the stored tree nodes with those recomputed.
func (e StoredEvent) compareNodes(nodes []Hash) error {
	if want := len(nodes) * len(Hash{}); len(e.Nodes) != want {
		return e.Found(e.Index, "nodes", fmt.Sprintf("%d bytes", want), fmt.Sprintf("%d bytes", len(e.Nodes)))
	}
	for level := range nodes {
		stored := e.Nodes[level*len(Hash{}):][:len(Hash{})]
		if bytes.Equal(stored, nodes[level][:]) {
			continue
		}
		field := fmt.Sprintf("tree node of level %d", level)
		if level == 0 {
			field = "leaf hash"
		}
		return e.Found(e.Index, field, nodes[level].String(), Hash(stored).String())
	}
	return nil
}

// Size returns the number of events visited.
func (a *Auditor) Size() uint64 { return a.checker.Size() }

// Root returns the root of the tree over the events visited.
func (a *Auditor) Root() Hash { return a.checker.Root() }

// Streams returns the number of streams visited.
func (a *Auditor) Streams() int { return len(a.checker.heads) }

// Opener opens a checkpoint's note under the keys that were live at its size.
type Opener func(note []byte) (Checkpoint, error)

// VisitCheckpoint takes a kept checkpoint whose size is the number of events visited. `what` names
// it in findings. Since every root is compared with the one recomputed over the same leaves, each
// checkpoint that holds is consistent with every other. It fails with *Finding.
func (a *Auditor) VisitCheckpoint(what string, c StoredCheckpoint, open Opener) error {
	found := func(field, expected, found string) error {
		return a.found(what+" "+field, expected, found)
	}
	cp, err := open(c.Note)
	switch {
	case err != nil:
		return found("signature", "one by a key live at its size", err.Error())
	case cp.Size != c.Size:
		return found("size", decimal(cp.Size), decimal(c.Size))
	case cp.Origin != c.Origin:
		return found("origin", cp.Origin, c.Origin)
	case !bytes.Equal(cp.Root[:], c.Root):
		return found("root as stored", cp.Root.String(), "sha256:"+hex.EncodeToString(c.Root))
	case cp.Root != a.Root():
		return found("root", a.Root().String(), cp.Root.String())
	}
	return nil
}

// Missing is the finding that a checkpoint covers more events than there are: the ledger was cut.
func (a *Auditor) Missing(what string, size uint64) *Finding {
	return &Finding{
		Index: Index(a.Size()), Version: NoStream, Field: what + " size",
		Expected: fmt.Sprintf("at least %d events, which it covers", size), Found: fmt.Sprintf("%d events", a.Size()),
	}
}

// found is about the last event visited, the last one a checkpoint of this size covers.
func (a *Auditor) found(field, expected, found string) *Finding {
	if a.Size() == 0 {
		return &Finding{Version: NoStream, Field: field, Expected: expected, Found: found}
	}
	return a.last.Found(a.last.Index, field, expected, oneLine(found))
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }

// HashLeaves computes the leaf hashes of events, into leaves, which has room for all of them. It
// needs no order, so that several goroutines may share the work.
func HashLeaves(leaves []Hash, events []StoredEvent) {
	var hasher leafHasher
	for i := range events {
		leaves[i] = hasher.sum(&events[i].Event)
	}
}
