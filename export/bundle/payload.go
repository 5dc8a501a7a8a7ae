package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Format is the version of the payload.
const Format = 1

// Payload is what a bundle's signature covers.
type Payload struct {
	Format     uint64    `cbor:"1,keyasint" json:"format"`
	Ledger     Identity  `cbor:"2,keyasint" json:"ledger"`
	At         uint64    `cbor:"3,keyasint" json:"at"`         // index of the last event of the tree; its size is At + 1
	Checkpoint []byte    `cbor:"4,keyasint" json:"checkpoint"` // C2SP signed note of that size, one signature
	Streams    []Stream  `cbor:"5,keyasint" json:"streams"`    // sorted by name
	Blobs      []Blob    `cbor:"6,keyasint" json:"blobs"`      // sorted by digest
	Missing    []Missing `cbor:"7,keyasint" json:"missing"`    // sorted by digest
	Schemas    []Schema  `cbor:"8,keyasint" json:"schemas"`    // sorted by name

	Kept *Kept `cbor:"9,keyasint,omitempty" json:"kept,omitempty"` // nil: no other checkpoint is related to this tree
}

// Kept relates the bundle's tree to another one of the same ledger, whose checkpoint a reader kept:
// the smaller of the two is a prefix of the larger.
type Kept struct {
	Size  uint64        `cbor:"1,keyasint" json:"size"` // leaves of the other tree, at least 1, never At + 1
	Root  ledger.Hash   `cbor:"2,keyasint" json:"root"`
	Proof []ledger.Hash `cbor:"3,keyasint" json:"proof"` // consistency proof (RFC 6962 §2.1.2) between the two sizes
}

// Verify checks the relation to the tree of that size and root.
func (k Kept) Verify(size uint64, root ledger.Hash) error {
	if k.Size < size {
		return ledger.VerifyConsistency(k.Size, k.Root, size, root, k.Proof)
	}
	return ledger.VerifyConsistency(size, root, k.Size, k.Root, k.Proof)
}

// Role says why a stream is in the bundle.
type Role string

const (
	Judged Role = "judged" // what the bundle is about
	Basis  Role = "basis"  // a judgement rests on it
	Cited  Role = "cited"  // a judged stream names one of its events
	// Counted is an attempt that an approval relied on or counted. Its events are there, its blobs aren't.
	Counted Role = "counted"
)

// Stream holds a stream's events from version 0 on, without a gap.
type Stream struct {
	Name   string  `cbor:"1,keyasint" json:"name"`
	Role   Role    `cbor:"2,keyasint" json:"role"`
	Events []Event `cbor:"3,keyasint" json:"events"`
}

// Event is one event: its place, the exact bytes its leaf hash covers, and the audit path of that
// leaf in the tree of the checkpoint (RFC 6962 §2.1.1).
type Event struct {
	Index uint64        `cbor:"1,keyasint" json:"index"`
	Leaf  []byte        `cbor:"2,keyasint" json:"leaf"`
	Proof []ledger.Hash `cbor:"3,keyasint" json:"proof"`
}

// BlobDigest names a blob as an event names it: plain or salted SHA-256.
type BlobDigest [sha256.Size]byte

// String returns `sha256:` and 64 hex digits.
func (d BlobDigest) String() string { return "sha256:" + hex.EncodeToString(d[:]) }

// MarshalText writes what String returns.
func (d BlobDigest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Blob is a blob's bytes.
type Blob struct {
	Digest BlobDigest `cbor:"1,keyasint" json:"digest"`
	Data   []byte     `cbor:"2,keyasint" json:"data"`
}

// Why says why a blob's bytes are missing.
type Why string

const (
	Withheld Why = "withheld" // left out by whoever exported
	Absent   Why = "absent"   // the ledger doesn't have it; it was forgotten or never kept
)

// Missing is a blob that an event names and the bundle doesn't hold.
type Missing struct {
	Digest BlobDigest `cbor:"1,keyasint" json:"digest"`
	Class  Class      `cbor:"2,keyasint" json:"class"`
	Why    Why        `cbor:"3,keyasint" json:"why"`
}

// Schema names one of the CDDL texts the bundle was written under.
type Schema struct {
	Name   string     `cbor:"1,keyasint" json:"name"`
	Digest BlobDigest `cbor:"2,keyasint" json:"digest"` // SHA-256 of the text
}

// Marshal returns the payload's one encoding, after checking what Unmarshal checks.
func (p Payload) Marshal() ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("bundle payload: %w", err)
	}
	b := encode(p)
	if len(b) > MaxPayload {
		return nil, fmt.Errorf("bundle payload has %d bytes; at most %d are allowed (withhold output, or export fewer attempts)", len(b), MaxPayload)
	}
	if err := scan(b); err != nil {
		return nil, fmt.Errorf("bundle payload: %w", err)
	}
	return b, nil
}

// Unmarshal is the inverse of Marshal. It accepts exactly the bytes Marshal writes. Leaves are
// opened by Stream.Open.
func Unmarshal(b []byte) (Payload, error) {
	if len(b) > MaxPayload {
		return Payload{}, fmt.Errorf("bundle payload has %d bytes; at most %d are allowed", len(b), MaxPayload)
	}
	var p Payload
	if err := decode(b, &p); err != nil {
		return Payload{}, fmt.Errorf("bundle payload: %w", err)
	}
	if err := p.check(); err != nil {
		return Payload{}, fmt.Errorf("bundle payload: %w", err)
	}
	return p, nil
}

// check holds a payload to the shape that can be checked without opening a leaf.
func (p Payload) check() error {
	if p.Format != Format {
		return fmt.Errorf("format %d is unknown; this program reads format %d", p.Format, Format)
	}
	if err := p.Ledger.Check(); err != nil {
		return err
	}
	if p.At >= 1<<62 {
		return fmt.Errorf("index %d is out of range", p.At)
	}
	if len(p.Checkpoint) == 0 || len(p.Checkpoint) > ledger.MaxNote {
		return fmt.Errorf("checkpoint note has %d bytes; 1 to %d are allowed", len(p.Checkpoint), ledger.MaxNote)
	}
	if err := p.checkStreams(); err != nil {
		return err
	}
	return p.checkLists()
}

func (p Payload) checkStreams() error {
	if len(p.Streams) > MaxStreams {
		return fmt.Errorf("%d streams; at most %d are allowed", len(p.Streams), MaxStreams)
	}
	judged, events := 0, 0
	for i, s := range p.Streams {
		if _, err := ledger.ParseStreamID(s.Name); err != nil {
			return err
		}
		if i > 0 && p.Streams[i-1].Name >= s.Name {
			return fmt.Errorf("stream %s is repeated or out of order", s.Name)
		}
		switch s.Role {
		case Judged:
			judged++
		case Basis, Cited, Counted:
		default:
			return fmt.Errorf("stream %s has the unknown role %q", s.Name, s.Role)
		}
		if len(s.Events) == 0 {
			return fmt.Errorf("stream %s has no events", s.Name)
		}
		if events += len(s.Events); events > MaxEvents {
			return fmt.Errorf("more than %d events", MaxEvents)
		}
		for j, e := range s.Events {
			if e.Index > p.At || j > 0 && s.Events[j-1].Index >= e.Index {
				return fmt.Errorf("stream %s: index %d is out of order or above %d", s.Name, e.Index, p.At)
			}
			if len(e.Leaf) > ledger.MaxLeaf || len(e.Proof) > MaxProof {
				return fmt.Errorf("stream %s: the event at index %d or its proof is too large", s.Name, e.Index)
			}
		}
	}
	if judged == 0 || judged > MaxJudged {
		return fmt.Errorf("%d judged streams; 1 to %d are allowed", judged, MaxJudged)
	}
	return nil
}

func (p Payload) checkLists() error {
	for i, b := range p.Blobs {
		if i > 0 && bytes.Compare(p.Blobs[i-1].Digest[:], b.Digest[:]) >= 0 {
			return errors.New("blobs are repeated or out of order")
		}
	}
	for i, m := range p.Missing {
		if i > 0 && bytes.Compare(p.Missing[i-1].Digest[:], m.Digest[:]) >= 0 {
			return errors.New("missing blobs are repeated or out of order")
		}
		if _, err := ParseClass(string(m.Class)); err != nil {
			return err
		}
		if m.Why != Withheld && m.Why != Absent {
			return fmt.Errorf("a blob is missing for the unknown reason %q", m.Why)
		}
		if _, held := p.Blob(m.Digest); held {
			return errors.New("a blob is both held and missing")
		}
	}
	if len(p.Schemas) > MaxSchemas {
		return fmt.Errorf("%d schemas; at most %d are allowed", len(p.Schemas), MaxSchemas)
	}
	if k := p.Kept; k != nil && (k.Size == 0 || k.Size >= 1<<62 || k.Size == p.At+1 || len(k.Proof) > MaxProof+1) {
		return fmt.Errorf("the relation to a tree of size %d with %d hashes has no legal shape", k.Size, len(k.Proof))
	}
	for i, s := range p.Schemas {
		if s.Name == "" || len(s.Name) > evidence.MaxName || i > 0 && p.Schemas[i-1].Name >= s.Name {
			return errors.New("schemas are unnamed, repeated or out of order")
		}
	}
	return nil
}

// Blob returns the bytes of a blob the bundle holds.
func (p Payload) Blob(d BlobDigest) ([]byte, bool) {
	i, ok := slices.BinarySearchFunc(p.Blobs, d, func(b Blob, d BlobDigest) int { return bytes.Compare(b.Digest[:], d[:]) })
	if !ok {
		return nil, false
	}
	return p.Blobs[i].Data, true
}

// Stream returns the stream of that name.
func (p Payload) Stream(name string) (Stream, bool) {
	i, ok := slices.BinarySearchFunc(p.Streams, name, func(s Stream, n string) int { return strings.Compare(s.Name, n) })
	if !ok {
		return Stream{}, false
	}
	return p.Streams[i], true
}

// Subject returns the judged streams' names joined by commas, as the protected header holds them.
func (p Payload) Subject() string {
	var names []string
	for _, s := range p.Streams {
		if s.Role == Judged {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, ",")
}

// Open decodes the stream's leaves and checks that they are this stream's, from version 0 without
// a gap, each carrying the leaf hash of the one before it. It checks no proof.
func (s Stream) Open() ([]ledger.Event, error) {
	events := make([]ledger.Event, len(s.Events))
	head := ledger.EmptyHead
	for i, held := range s.Events {
		e, err := ledger.UnmarshalLeaf(held.Leaf)
		if err != nil {
			return nil, fmt.Errorf("stream %s, event %d: %w", s.Name, i, err)
		}
		e.Index = ledger.Index(held.Index)
		switch {
		case string(e.Stream) != s.Name:
			return nil, fmt.Errorf("stream %s, event %d: it belongs to stream %s", s.Name, i, e.Stream)
		case e.Version != head.Version+1:
			return nil, fmt.Errorf("stream %s, event %d: it has version %s, expected %s", s.Name, i, e.Version, head.Version+1)
		case i > 0 && !bytes.Equal(e.Prev, head.Leaf[:]):
			return nil, fmt.Errorf("stream %s, version %s: it doesn't follow from the event before it", s.Name, e.Version)
		}
		events[i], head = e, e.Head()
	}
	return events, nil
}
