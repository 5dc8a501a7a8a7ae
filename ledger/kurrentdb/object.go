package kurrentdb

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
)

// An object is a byte string in a stream of its own, in chunks: revision n is chunk n. Its stream is
// named after its content, so that whoever writes it writes the same chunks with the same IDs, and
// writing it again, or going on where somebody stopped, is one and the same.
//
// The metadata of each chunk is a head of 12 bytes, big-endian: the object's length (8) and the
// number of chunks (4). The first chunk's head is followed by the object's label.
const (
	objectType = "BaildockChunk"
	headBytes  = 12
)

type objectHead struct {
	length uint64
	chunks uint32
	label  []byte
}

func (h objectHead) marshal(first bool) []byte {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, h.length), h.chunks)
	if first {
		b = append(b, h.label...)
	}
	return b
}

func headOf(data, label []byte) objectHead {
	n := max((len(data)+chunkBytes-1)/chunkBytes, 1)
	return objectHead{length: uint64(len(data)), chunks: uint32(n), label: label}
}

// writeObject stores an object, or finds it stored. kindOf its error tells a stream that was
// deleted.
func (s *Store) writeObject(ctx context.Context, stream string, data, label []byte) error {
	head := headOf(data, label)
	for i := range int(head.chunks) {
		chunk := data[i*chunkBytes : min(len(data), (i+1)*chunkBytes)]
		e := esdb.EventData{
			EventID: chunkID(stream, i, chunk), EventType: objectType, ContentType: esdb.ContentTypeBinary,
			Data: chunk, Metadata: head.marshal(i == 0),
		}
		var expected esdb.ExpectedRevision = esdb.NoStream{}
		if i > 0 {
			expected = esdb.Revision(uint64(i - 1))
		}
		err := s.link.retrying(ctx, func(ctx context.Context, db *esdb.Client) error {
			_, err := db.AppendToStream(ctx, stream, esdb.AppendToStreamOptions{ExpectedRevision: expected, RequiresLeader: true}, e)
			return err
		})
		if kindOf(err) == wrongRevision && err != nil {
			return &ledger.DamagedError{What: fmt.Sprintf("stream %s holds something else than the bytes it is named after", stream), Err: err}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func chunkID(stream string, n int, chunk []byte) uuid.UUID {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%d\n", stream, n)
	h.Write(chunk)
	return uuid.UUID(h.Sum(nil)[:16])
}

// errIncomplete is an object whose writer hasn't finished, and was never told it had.
var errIncomplete = errors.New("the object isn't complete")

// eachChunk reads an object, a chunk at a time. The head is that of the first chunk.
func (s *Store) eachChunk(ctx context.Context, stream string, visit func(objectHead, []byte) error) error {
	var head objectHead
	for next := uint64(0); next == 0 || next < uint64(head.chunks); next++ {
		r, err := s.readOne(ctx, stream, esdb.Forwards, esdb.Revision(next))
		if err != nil {
			return err
		}
		if r == nil {
			return fmt.Errorf("%w: it has %d of %d chunks", errIncomplete, next, head.chunks)
		}
		m := r.UserMetadata
		if r.EventNumber != next || r.EventType != objectType || len(m) < headBytes {
			return &ledger.DamagedError{What: fmt.Sprintf("stream %s holds no chunk at revision %d", stream, next)}
		}
		if next == 0 {
			head = objectHead{length: binary.BigEndian.Uint64(m), chunks: binary.BigEndian.Uint32(m[8:]), label: m[headBytes:]}
			if head.chunks == 0 || head.chunks > maxChunks || head.length > ledger.MaxBlob {
				return &ledger.DamagedError{What: fmt.Sprintf("stream %s claims %d bytes in %d chunks", stream, head.length, head.chunks)}
			}
		}
		if err := visit(head, r.Data); err != nil {
			return err
		}
	}
	return nil
}

// readObject reads a whole object of a known length.
func (s *Store) readObject(ctx context.Context, stream string, length int) ([]byte, error) {
	if length > ledger.MaxLeaf {
		return nil, &ledger.DamagedError{What: fmt.Sprintf("stream %s is said to hold %d bytes", stream, length)}
	}
	out := make([]byte, 0, length)
	err := s.eachChunk(ctx, stream, func(_ objectHead, chunk []byte) error {
		if len(out)+len(chunk) > length {
			return &ledger.DamagedError{What: fmt.Sprintf("stream %s holds more than its %d bytes", stream, length)}
		}
		out = append(out, chunk...)
		return nil
	})
	return out, err
}

// readOne reads one event of a stream, nil when there is none at that place. kindOf its error
// tells a stream that isn't there or was deleted.
func (s *Store) readOne(ctx context.Context, stream string, direction esdb.Direction, from esdb.StreamPosition) (*esdb.RecordedEvent, error) {
	var out *esdb.RecordedEvent
	err := s.link.retrying(ctx, func(ctx context.Context, db *esdb.Client) error {
		r, err := db.ReadStream(ctx, stream, esdb.ReadStreamOptions{Direction: direction, From: from}, 1)
		if err != nil {
			return err
		}
		defer r.Close() // or its goroutine stays
		out = nil
		for {
			e, err := r.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			out = e.OriginalEvent()
		}
	})
	return out, err
}
