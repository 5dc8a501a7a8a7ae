package kurrentdb

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
)

// A blob is an object labelled with its salt. Forgetting it deletes its stream for ever: the
// tombstone is how the cluster remembers, and the bytes leave the disks with the next scavenge of
// each node. A blob stored again gets the next stream.

// Put implements ledger.Blobs. Blobs are stored one after the other; when one fails, none counts as
// stored, and what was written of the others is found again by the next Put.
func (s *Store) Put(ctx context.Context, blobs ...ledger.Blob) error {
	for _, b := range blobs {
		if err := ledger.CheckBlob(b); err != nil {
			return err
		}
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	for _, b := range blobs {
		if err := s.putBlob(ctx, b); err != nil {
			return fmt.Errorf("store blob %s: %w", b.Key(), s.explain(err))
		}
	}
	return nil
}

func (s *Store) putBlob(ctx context.Context, b ledger.Blob) error {
	key := b.Key()
	for n := range maxRestore {
		err := s.writeObject(ctx, s.names.blob(key, n), b.Data, b.Salt)
		if err == nil || kindOf(err) != deleted {
			return err
		}
	}
	return fmt.Errorf("it was forgotten %d times, and can't be stored again", maxRestore)
}

// Get implements ledger.Blobs.
func (s *Store) Get(ctx context.Context, key ledger.BlobKey) (ledger.Blob, error) {
	var out ledger.Blob
	err := s.blob(ctx, key, func(h objectHead, chunk []byte) error {
		if out.Data == nil {
			out = ledger.Blob{Salt: h.label, Data: make([]byte, 0, h.length)}
		}
		if uint64(len(out.Data)+len(chunk)) > h.length {
			return &ledger.BlobDamagedError{Key: key, How: fmt.Sprintf("it has more than its %d bytes", h.length)}
		}
		out.Data = append(out.Data, chunk...)
		return nil
	}, func() { out = ledger.Blob{} })
	if err != nil {
		return ledger.Blob{}, err
	}
	if out.Key() != key {
		return ledger.Blob{}, &ledger.BlobDamagedError{Key: key, How: "its bytes hash to " + out.Key().String()}
	}
	return out, nil
}

// blob reads a blob's chunks. again is called before it starts over.
func (s *Store) blob(ctx context.Context, key ledger.BlobKey, visit func(objectHead, []byte) error, again func()) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	for n := range maxRestore {
		again()
		err := s.eachChunk(ctx, s.names.blob(key, n), visit)
		var damaged *ledger.DamagedError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &damaged):
			return &ledger.BlobDamagedError{Key: key, How: damaged.What}
		case errors.Is(err, errIncomplete), kindOf(err) == notFound:
			return &ledger.BlobAbsentError{Key: key, Forgotten: n > 0}
		case kindOf(err) != deleted:
			return s.explain(err)
		}
	}
	return &ledger.BlobAbsentError{Key: key, Forgotten: true}
}

// Forget implements ledger.Blobs. It needs the right to delete streams. The bytes are out of reach
// when it returns, and leave the disks with the next scavenge.
func (s *Store) Forget(ctx context.Context, key ledger.BlobKey) error {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	for n := range maxRestore {
		stream := s.names.blob(key, n)
		_, err := s.readOne(ctx, stream, esdb.Forwards, esdb.Revision(0))
		switch {
		case err != nil && kindOf(err) == deleted:
			continue
		case err != nil && kindOf(err) == notFound:
			return &ledger.BlobAbsentError{Key: key, Forgotten: n > 0}
		case err != nil:
			return s.explain(err)
		}
		err = s.link.retrying(ctx, func(ctx context.Context, db *esdb.Client) error {
			_, err := db.TombstoneStream(ctx, stream, esdb.TombstoneStreamOptions{ExpectedRevision: esdb.StreamExists{}, RequiresLeader: true})
			return err
		})
		if err != nil && kindOf(err) != deleted { // deleted: the try before was done, and its reply lost
			return fmt.Errorf("forget blob %s: %w", key, s.explain(err))
		}
		return nil
	}
	return &ledger.BlobAbsentError{Key: key, Forgotten: true}
}

// BlobFacts implements ledger.Exhibit. It holds one chunk of the blob at a time.
func (s *Store) BlobFacts(ctx context.Context, key ledger.BlobKey) (ledger.BlobFacts, error) {
	var (
		facts        ledger.BlobFacts
		named, plain hash.Hash
		want         uint64
	)
	err := s.blob(ctx, key, func(h objectHead, chunk []byte) error {
		if named == nil {
			named, plain = sha256.New(), sha256.New()
			named.Write(h.label)
			facts.Salt, want = h.label, h.length
		}
		facts.Length += uint64(len(chunk))
		named.Write(chunk)
		plain.Write(chunk)
		return nil
	}, func() { facts, named = ledger.BlobFacts{}, nil })
	if err != nil {
		return ledger.BlobFacts{}, err
	}
	if facts.Length != want {
		return ledger.BlobFacts{}, &ledger.BlobDamagedError{Key: key, How: fmt.Sprintf("its size is given as %d, but it has %d bytes", want, facts.Length)}
	}
	facts.Key, facts.Plain = ledger.BlobKey(named.Sum(nil)), [sha256.Size]byte(plain.Sum(nil))
	return facts, nil
}
