package export

import (
	"context"
	"errors"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

// relate shows how the tree of a kept checkpoint relates to the bundle's: nil when they are the
// same, or no note is given.
func (c *collection) relate(ctx context.Context, led ledger.Ledger, cp ledger.Checkpoint, note []byte) (*bundle.Kept, error) {
	if note == nil {
		return nil, nil
	}
	kept, err := c.openKept(note)
	if err != nil {
		return nil, &ForeignError{Err: err}
	}
	size, err := led.Size(ctx)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	if kept.Size > size {
		return nil, &BehindError{Kept: kept.Size, Size: size}
	}
	root, err := led.Root(ctx, kept.Size)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	if root != kept.Root {
		return nil, &BehindError{Kept: kept.Size, Size: size, Rewritten: true}
	}
	if kept.Size == cp.Size {
		return nil, nil
	}
	proof, err := led.ProveConsistency(ctx, min(kept.Size, cp.Size), max(kept.Size, cp.Size))
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return &bundle.Kept{Size: kept.Size, Root: kept.Root, Proof: proof}, nil
}

// openKept opens a note under the checkpoint keys that were live at its size.
func (c *collection) openKept(note []byte) (ledger.Checkpoint, error) {
	claimed, err := ledger.ReadCheckpoint(note)
	if err != nil {
		return claimed, err
	}
	if claimed.Size == 0 {
		return claimed, errors.New("the checkpoint is of an empty tree, which says nothing")
	}
	var keys evidence.Keyring
	for _, h := range c.streams {
		if string(h.events[0].Stream) != evidence.LedgerStream {
			continue
		}
		for _, e := range h.events {
			if uint64(e.Index) >= claimed.Size {
				break
			}
			if err := keys.Apply(e.Payload); err != nil {
				return claimed, fmt.Errorf("stream %s, version %s: %w", e.Stream, e.Version, err)
			}
		}
	}
	if keys.Opened == nil {
		return claimed, errors.New("the checkpoint is of a tree without this ledger's genesis event")
	}
	return journal.OpenCheckpoint(&keys, note)
}
