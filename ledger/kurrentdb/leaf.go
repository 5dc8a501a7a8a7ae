package kurrentdb

import (
	"encoding/binary"
	"math"

	"github.com/baildock/baildock/ledger"
)

// parseLeaf reads a leaf as ledger.UnmarshalLeaf does, without a CBOR library: each event is decoded
// twice on its way, and nine items in one order need no reflection. It accepts nothing else; what it
// refuses, UnmarshalLeaf is asked about, for its words. The event shares its bytes with b.
func parseLeaf(b []byte) (ledger.Event, bool) {
	r := items{b: b, ok: len(b) <= ledger.MaxLeaf}
	if r.head(4) != 9 || r.head(0) != 1 {
		return ledger.Event{}, false
	}
	e := ledger.Event{
		Stream: ledger.StreamID(r.bytes(3)), Version: ledger.Version(r.head(0) & math.MaxInt64), Type: string(r.bytes(3)), Time: r.integer(),
		Prev: r.bytes(2), Media: string(r.bytes(3)), Meta: r.bytes(2), Data: r.bytes(2),
	}
	return e, r.ok && len(r.b) == 0 && ledger.CheckEvent(e) == nil
}

// items reads CBOR items (RFC 8949 §3), each with its head in the shortest form.
type items struct {
	b  []byte
	ok bool
}

// head reads a head of a major type and returns its argument.
func (r *items) head(major byte) uint64 {
	if !r.ok || len(r.b) == 0 || r.b[0]>>5 != major {
		r.ok = false
		return 0
	}
	info := r.b[0] & 31
	r.b = r.b[1:]
	if info < 24 {
		return uint64(info)
	}
	size := 1 << (info - 24)
	if info > 27 || len(r.b) < size {
		r.ok = false
		return 0
	}
	var n, least uint64
	switch size {
	case 1:
		n, least = uint64(r.b[0]), 24
	case 2:
		n, least = uint64(binary.BigEndian.Uint16(r.b)), 1<<8
	case 4:
		n, least = uint64(binary.BigEndian.Uint32(r.b)), 1<<16
	default:
		n, least = binary.BigEndian.Uint64(r.b), 1<<32
	}
	r.b = r.b[size:]
	r.ok = n >= least && n <= math.MaxInt64
	return n
}

// bytes reads a byte or text string.
func (r *items) bytes(major byte) []byte {
	n := r.head(major)
	if !r.ok || n > uint64(len(r.b)) {
		r.ok = false
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// integer reads an integer of either sign.
func (r *items) integer() int64 {
	if len(r.b) > 0 && r.b[0]>>5 == 1 {
		return -1 - int64(r.head(1))
	}
	return int64(r.head(0))
}
