package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// leafFormat is the first item of every leaf.
const leafFormat = 1

// leafPrefix separates leaves from inner nodes (RFC 6962 §2.1).
const leafPrefix = 0x00

// MarshalLeaf returns the bytes a leaf hash covers: the deterministic CBOR (RFC 8949 §4.2.1) of
//
//	[1, stream, version, type, time, prev, media, meta, data]
//
// e.Index is not part of it. MarshalLeaf checks nothing; see UnmarshalLeaf.
func MarshalLeaf(e Event) []byte { return appendLeaf(make([]byte, 0, leafRoom(&e)), &e) }

// Leaf returns the event's leaf hash, SHA-256(0x00 ‖ MarshalLeaf(e)).
func (e Event) Leaf() Hash {
	var h leafHasher
	return h.sum(&e)
}

// ID returns the first 16 bytes of the event's leaf hash.
func (e Event) ID() EventID { return e.Leaf().EventID() }

// EventID returns the identifier of the event whose leaf hash is h.
func (h Hash) EventID() EventID { return EventID(h[:len(EventID{})]) }

// leafHasher keeps its buffer between leaves.
type leafHasher struct{ buf []byte }

func (h *leafHasher) sum(e *Event) Hash {
	if need := 1 + leafRoom(e); cap(h.buf) < need {
		h.buf = make([]byte, 0, need)
	}
	h.buf = appendLeaf(append(h.buf[:0], leafPrefix), e)
	return sha256.Sum256(h.buf)
}

// leafRoom is an upper bound of a leaf's length: 3 bytes of frame, 9 for each head.
func leafRoom(e *Event) int {
	return 3 + 9*8 + len(e.Stream) + len(e.Type) + len(e.Prev) + len(e.Media) + len(e.Meta) + len(e.Data)
}

// appendLeaf writes the nine items by hand: it runs once for every event on replay, and nine
// fixed items need no reflection. UnmarshalLeaf reads them with a CBOR library, so that each
// checks the other.
func appendLeaf(b []byte, e *Event) []byte {
	b = append(b, 0x89, leafFormat)
	b = append(appendHead(b, majorText, uint64(len(e.Stream))), e.Stream...)
	b = appendHead(b, majorUint, uint64(e.Version))
	b = append(appendHead(b, majorText, uint64(len(e.Type))), e.Type...)
	if e.Time >= 0 {
		b = appendHead(b, majorUint, uint64(e.Time))
	} else {
		b = appendHead(b, majorNegative, uint64(-1-e.Time))
	}
	b = append(appendHead(b, majorBytes, uint64(len(e.Prev))), e.Prev...)
	b = append(appendHead(b, majorText, uint64(len(e.Media))), e.Media...)
	b = append(appendHead(b, majorBytes, uint64(len(e.Meta))), e.Meta...)
	return append(appendHead(b, majorBytes, uint64(len(e.Data))), e.Data...)
}

// CBOR major types (RFC 8949 §3.1), already shifted into place.
const (
	majorUint     = 0 << 5
	majorNegative = 1 << 5
	majorBytes    = 2 << 5
	majorText     = 3 << 5
)

// appendHead writes an item's head in its shortest form (RFC 8949 §4.2.1).
func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n <= math.MaxUint8:
		return append(b, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, major|27), n)
	}
}

// leafItems is a leaf as the CBOR library sees it.
type leafItems struct {
	_       struct{} `cbor:",toarray"`
	Format  uint64
	Stream  string
	Version uint64
	Type    string
	Time    int64
	Prev    []byte
	Media   string
	Meta    []byte
	Data    []byte
}

var leafDecoding = sync.OnceValue(func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		UTF8:             cbor.UTF8RejectInvalid,
		MaxArrayElements: 16, // the library's smallest; a leaf has nine
		MaxNestedLevels:  4,  // the library's smallest; a leaf has one
	}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return mode
})

// UnmarshalLeaf is the inverse of MarshalLeaf. It accepts exactly the bytes MarshalLeaf writes
// for an event a store could hold: canonical, nothing behind, and every field in its range. The
// event's Index is 0, because a leaf doesn't hold it.
func UnmarshalLeaf(b []byte) (Event, error) {
	if len(b) > MaxLeaf {
		return Event{}, fmt.Errorf("leaf has %d bytes; at most %d are allowed", len(b), MaxLeaf)
	}
	var it leafItems
	if err := leafDecoding().Unmarshal(b, &it); err != nil {
		return Event{}, fmt.Errorf("leaf is not the expected CBOR: %w", err)
	}
	if it.Format != leafFormat {
		return Event{}, fmt.Errorf("leaf format %d is unknown; this program reads format %d", it.Format, leafFormat)
	}
	if it.Version > math.MaxInt64 {
		return Event{}, fmt.Errorf("leaf version %d is out of range", it.Version)
	}
	e := Event{
		Stream: StreamID(it.Stream), Version: Version(it.Version), Type: it.Type, Time: it.Time,
		Prev: it.Prev, Media: it.Media, Meta: it.Meta, Data: it.Data,
	}
	if err := CheckEvent(e); err != nil {
		return Event{}, fmt.Errorf("leaf: %w", err)
	}
	if !bytes.Equal(MarshalLeaf(e), b) {
		return Event{}, errors.New("leaf is not in its canonical encoding")
	}
	return e, nil
}

// CheckEvent checks an event's own shape, without its predecessor: the stream's name, what
// CheckPrepared checks, and that prev is empty at version 0 and a hash above it.
func CheckEvent(e Event) error {
	if _, err := ParseStreamID(string(e.Stream)); err != nil {
		return err
	}
	want := len(Hash{})
	if e.Version == 0 {
		want = 0
	}
	switch {
	case e.Version < 0:
		return fmt.Errorf("event version %d is negative", int64(e.Version))
	case len(e.Prev) != want:
		return fmt.Errorf("event %s of version %s has a prev of %d bytes; expected %d", e.Type, e.Version, len(e.Prev), want)
	}
	return CheckPrepared(e.Prepared())
}

// Prepared returns the five fields the event's writer decided.
func (e Event) Prepared() Prepared {
	return Prepared{Type: e.Type, Time: e.Time, Media: e.Media, Meta: e.Meta, Data: e.Data}
}
