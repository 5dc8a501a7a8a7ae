package kurrentdb

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"

	"github.com/google/uuid"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
)

// Checkpoints lie in a stream of their own, outside what they commit to: a note is an event's data.
// The stream's expected revision makes signing one at a time.
const checkpointType = "BaildockCheckpoint"

// kept is a kept checkpoint with its place.
type kept struct {
	ledger.Checkpoint
	revision uint64
}

// SignCheckpoint implements ledger.Checkpoints. It refuses to sign a tree that the last kept
// checkpoint isn't a prefix of.
func (s *Store) SignCheckpoint(ctx context.Context, signer ledger.CheckpointSigner) (ledger.Checkpoint, error) {
	limited, end, err := s.begin(ctx)
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	defer end()
	if err := s.catchUp(limited); err != nil {
		return ledger.Checkpoint{}, refusal(ctx, s.explain(err))
	}
	for {
		last, ok, err := s.lastCheckpoint(limited)
		if err != nil {
			return ledger.Checkpoint{}, refusal(ctx, s.explain(err))
		}
		size, err := s.cache.size()
		if err != nil {
			return ledger.Checkpoint{}, err
		}
		if ok {
			if err := s.continues(last.Checkpoint, size, signer.Origin); err != nil {
				return ledger.Checkpoint{}, err
			}
			if last.Size == size {
				return last.Checkpoint, nil
			}
		}
		root, err := ledger.RootFrom(size, s.cache.read)
		if err != nil {
			return ledger.Checkpoint{}, err
		}
		c, err := signer.Sign(size, root)
		if err != nil {
			return ledger.Checkpoint{}, err
		}
		err = s.keep(limited, c, last.revision, ok)
		if err == nil {
			return c, nil
		}
		if kindOf(err) != wrongRevision { // somebody else signed meanwhile: theirs may do
			return ledger.Checkpoint{}, refusal(ctx, s.explain(err))
		}
		if err := s.catchUp(limited); err != nil { // theirs may cover more
			return ledger.Checkpoint{}, refusal(ctx, s.explain(err))
		}
	}
}

// continues checks that the tree continues the last kept checkpoint.
func (s *Store) continues(last ledger.Checkpoint, size uint64, origin string) error {
	if last.Origin != origin {
		return &ledger.OriginError{Kept: last.Origin, Asked: origin}
	}
	if last.Size > size {
		return fmt.Errorf("the last checkpoint covers %d events, but the ledger has only %d: it was shortened or replaced", last.Size, size)
	}
	root, err := ledger.RootFrom(last.Size, s.cache.read)
	if err != nil {
		return err
	}
	if root != last.Root {
		return fmt.Errorf("the first %d events no longer have the root of the last checkpoint (%s, now %s): the ledger was changed", last.Size, last.Root, root)
	}
	return nil
}

func (s *Store) keep(ctx context.Context, c ledger.Checkpoint, last uint64, ok bool) error {
	id := sha256.Sum256(c.Note)
	opts := esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}, RequiresLeader: true}
	if ok {
		opts.ExpectedRevision = esdb.Revision(last)
	}
	e := esdb.EventData{EventID: uuid.UUID(id[:16]), EventType: checkpointType, ContentType: esdb.ContentTypeBinary, Data: c.Note}
	return s.link.retrying(ctx, func(ctx context.Context, db *esdb.Client) error {
		_, err := db.AppendToStream(ctx, s.names.checkpoints(), opts, e)
		return err
	})
}

// LastCheckpoint implements ledger.Checkpoints.
func (s *Store) LastCheckpoint(ctx context.Context) (ledger.Checkpoint, bool, error) {
	limited, end, err := s.begin(ctx)
	if err != nil {
		return ledger.Checkpoint{}, false, err
	}
	defer end()
	c, ok, err := s.lastCheckpoint(limited)
	if err != nil {
		return ledger.Checkpoint{}, false, refusal(ctx, s.explain(err))
	}
	return c.Checkpoint, ok, nil
}

func (s *Store) lastCheckpoint(ctx context.Context) (kept, bool, error) {
	r, err := s.readOne(ctx, s.names.checkpoints(), esdb.Backwards, esdb.End{})
	if err != nil && kindOf(err) == notFound || err == nil && r == nil {
		return kept{}, false, nil
	}
	if err != nil {
		return kept{}, false, err
	}
	c, err := ledger.ReadCheckpoint(r.Data)
	if err != nil {
		return kept{}, false, &ledger.DamagedError{What: fmt.Sprintf("revision %d of stream %s is no checkpoint: %v", r.EventNumber, r.StreamID, err), Err: err}
	}
	return kept{c, r.EventNumber}, true, nil
}

// StoredCheckpoints implements ledger.Exhibit. What a note says of itself is all that is kept of
// it; one that says nothing is shown as such.
func (s *Store) StoredCheckpoints(ctx context.Context) iter.Seq2[ledger.StoredCheckpoint, error] {
	return func(yield func(ledger.StoredCheckpoint, error) bool) {
		for next := uint64(0); ; next++ {
			r, err := s.readOne(ctx, s.names.checkpoints(), esdb.Forwards, esdb.Revision(next))
			if err != nil && kindOf(err) == notFound || err == nil && r == nil {
				return
			}
			switch {
			case err != nil && kindOf(err) == deleted:
				err = &ledger.DamagedError{What: "the checkpoints were deleted for ever (tombstone)", Err: err}
			case err == nil && r.EventNumber != next:
				err = &ledger.DamagedError{What: fmt.Sprintf("checkpoint %d is hidden or lost; the next is %d", next, r.EventNumber)}
			}
			if err != nil {
				yield(ledger.StoredCheckpoint{}, s.explain(err))
				return
			}
			out := ledger.StoredCheckpoint{Note: r.Data}
			if c, err := ledger.ReadCheckpoint(r.Data); err == nil {
				out.Size, out.Origin, out.Root = c.Size, c.Origin, c.Root[:]
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}
