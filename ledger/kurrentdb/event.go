package kurrentdb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
)

// An event's data on the server is its leaf, byte for byte, its ID the first 16 bytes of its leaf
// hash. The ID says stream, version, predecessor and content: a retry carries the IDs of the first
// try, and nothing else does.
//
// A leaf that would make an append too large is kept in chunks beside it. The event then holds the
// leaf hash and the leaf's length (4 bytes, big-endian), and says so in its metadata.
const spillMark = "baildock.spilled/v1"

const spillBytes = len(ledger.Hash{}) + 4

// roomOf is what an event adds to a request, at most.
func roomOf(data, typ int) int { return data + typ + len(spillMark) + 128 }

// proposal is an event ready to be sent.
type proposal struct {
	data esdb.EventData
	leaf ledger.Hash
	kept []byte // the whole leaf's bytes, where they are to be spilled
}

// propose makes proposals of events, spilling the largest until the request is small enough.
func propose(events []ledger.Event, leaves []ledger.Hash) []proposal {
	out := make([]proposal, len(events))
	total := 0
	for i, e := range events {
		out[i] = proposal{leaf: leaves[i], data: esdb.EventData{
			EventID: idOf(leaves[i]), EventType: e.Type, ContentType: esdb.ContentTypeBinary, Data: ledger.MarshalLeaf(e),
		}}
		total += roomOf(len(out[i].data.Data), len(e.Type))
	}
	for total > maxRequest {
		largest := 0
		for i := range out {
			if len(out[i].data.Data) > len(out[largest].data.Data) {
				largest = i
			}
		}
		p := &out[largest]
		total -= len(p.data.Data) - spillBytes
		p.kept = p.data.Data
		p.data.Data = binary.BigEndian.AppendUint32(bytes.Clone(p.leaf[:]), uint32(len(p.kept)))
		p.data.Metadata = []byte(spillMark)
	}
	return out
}

func idOf(leaf ledger.Hash) uuid.UUID { return uuid.UUID(leaf.EventID()) }

// misplaced says what is wrong with an event that stands in one of our streams.
type misplaced struct {
	where string
	what  string
}

func (e *misplaced) Error() string { return e.where + ": " + e.what }

// decode reads an event of one of the ledger's streams and checks all that it says of itself. It
// fails with *misplaced.
func (s *Store) decode(ctx context.Context, r *esdb.RecordedEvent) (ledger.Event, ledger.Hash, error) {
	bad := func(format string, args ...any) (ledger.Event, ledger.Hash, error) {
		where := fmt.Sprintf("stream %s, revision %d", r.StreamID, r.EventNumber)
		return ledger.Event{}, ledger.Hash{}, &misplaced{where, fmt.Sprintf(format, args...)}
	}
	stream, ok := s.names.stream(r.StreamID)
	if !ok {
		return bad("this is no stream of the ledger")
	}
	if r.EventType == "$streamDeleted" {
		return bad("the stream was deleted for ever (tombstone)")
	}
	data, claimed := r.Data, ledger.Hash{}
	if string(r.UserMetadata) == spillMark {
		if len(data) != spillBytes {
			return bad("a large event is named with %d bytes, not %d", len(data), spillBytes)
		}
		claimed = ledger.Hash(data[:len(claimed)])
		whole, err := s.readObject(ctx, s.names.spill(claimed), int(binary.BigEndian.Uint32(data[len(claimed):])))
		if err != nil {
			if kindOf(err) == notFound || kindOf(err) == deleted {
				return bad("the bytes of a large event are gone: %v", err)
			}
			return ledger.Event{}, ledger.Hash{}, err
		}
		data = whole
	}
	e, ok := parseLeaf(data)
	if !ok {
		var err error
		if e, err = ledger.UnmarshalLeaf(data); err != nil {
			return bad("this event isn't one of the ledger's, or was changed: %v", err)
		}
	}
	h := sha256.New()
	h.Write([]byte{0})
	h.Write(data)
	leaf := ledger.Hash(h.Sum(nil))
	switch {
	case claimed != ledger.Hash{} && claimed != leaf:
		return bad("the bytes of a large event were changed")
	case e.Stream != stream:
		return bad("the event says it belongs to stream %s", e.Stream)
	case uint64(e.Version) != r.EventNumber:
		return bad("the event says it has version %s; events before it are hidden, lost or foreign", e.Version)
	case e.Type != r.EventType:
		return bad("the event's type is %q, not %q", e.Type, r.EventType)
	case idOf(leaf) != r.EventID:
		return bad("the event's ID is %s, not %s: it was changed", r.EventID, idOf(leaf))
	}
	return e, leaf, nil
}
