package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Store keeps events in streams and in one order. All methods are safe for concurrent use by
// goroutines, and, where the backend says so, by several processes.
type Store interface {
	// Append durably adds events to one stream, all or none, if the stream's last version is
	// `expected` (NoStream for a new stream). It ends in exactly one of:
	//
	//   - nil: every event is durable and has its index;
	//   - *ConflictError: nothing was stored, the stream's last version was another;
	//   - ErrUnknownOutcome (wrapped): the commit or its reply was lost. Read the stream again or
	//     retry the same prepared events at the same place;
	//   - any other error: refused, nothing was stored.
	//
	// Retrying the same prepared events at the same place returns the first result; a batch
	// matches whole or conflicts. A cancelled context refuses only before the append was queued;
	// afterwards Append waits for the result.
	Append(ctx context.Context, stream StreamID, expected Version, events ...Prepared) (Appended, error)

	// ReadStream yields the stream's events from version `from` to its present end.
	ReadStream(ctx context.Context, stream StreamID, from Version) iter.Seq2[Event, error]

	// ReadAll yields all events in index order from `from` to the present end.
	ReadAll(ctx context.Context, from Index) iter.Seq2[Event, error]

	// Subscribe yields all events in index order from `from`, then follows until ctx ends, when it
	// yields ctx's error once and stops. Events of other processes appear within a second.
	Subscribe(ctx context.Context, from Index) iter.Seq2[Event, error]

	// Head returns the stream's last event; ok is false when the stream is empty.
	Head(ctx context.Context, stream StreamID) (last Event, ok bool, err error)

	// Close releases the store. Appends in flight finish first.
	Close() error
}

// Tree answers for the RFC 6962 Merkle tree over all leaves, kept in the transaction that stores
// the events. Sizes are numbers of leaves.
type Tree interface {
	Size(ctx context.Context) (uint64, error)
	// Root returns the root at `size` (0..Size).
	Root(ctx context.Context, size uint64) (Hash, error)
	// ProveInclusion returns the audit path of leaf `index` in the tree of `size` (RFC 6962 §2.1.1).
	ProveInclusion(ctx context.Context, index Index, size uint64) ([]Hash, error)
	// ProveConsistency returns the proof that the tree of `old` is a prefix of that of `size`
	// (RFC 6962 §2.1.2).
	ProveConsistency(ctx context.Context, old, size uint64) ([]Hash, error)
}

// Checkpoints keeps signed tree heads for ever, each consistent with the last.
type Checkpoints interface {
	// SignCheckpoint signs the present tree head, or returns the last kept checkpoint when the
	// tree has not grown since, in one write transaction that also stores it.
	SignCheckpoint(ctx context.Context, s CheckpointSigner) (Checkpoint, error)
	// LastCheckpoint returns the largest kept checkpoint; ok is false when there is none.
	LastCheckpoint(ctx context.Context) (c Checkpoint, ok bool, err error)
}

// Ledger is what a whole backend offers.
type Ledger interface {
	Store
	Tree
	Checkpoints
	Blobs
}

// ErrUnknownOutcome means that an append may or may not have been stored.
var ErrUnknownOutcome = errors.New("append outcome unknown")

// ConflictError says that a stream was not where the writer expected it. Nothing was stored.
type ConflictError struct {
	Stream   StreamID
	Expected Version
	Actual   Version // last version of the stream, NoStream when it is empty
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("version conflict on stream %s: expected %s, actual %s", e.Stream, e.Expected, e.Actual)
}
