package kurrentdb

import (
	"context"
	"fmt"

	"github.com/baildock/baildock/ledger"
)

// at runs f for a size the tree has reached.
func (s *Store) at(ctx context.Context, size uint64, f func() error) error {
	limited, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	now, err := s.cache.size()
	if err == nil && size > now {
		if err = s.catchUp(limited); err == nil {
			now, err = s.cache.size()
		}
	}
	if err == nil && size > now {
		err = fmt.Errorf("the ledger has %d events, not yet %d", now, size)
	}
	if err == nil {
		err = f()
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Size implements ledger.Tree.
func (s *Store) Size(ctx context.Context) (uint64, error) {
	limited, end, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	if err := s.catchUp(limited); err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, s.explain(err)
	}
	return s.cache.size()
}

// Root implements ledger.Tree.
func (s *Store) Root(ctx context.Context, size uint64) (root ledger.Hash, err error) {
	err = s.at(ctx, size, func() (err error) { root, err = ledger.RootFrom(size, s.cache.read); return err })
	return root, err
}

// ProveInclusion implements ledger.Tree.
func (s *Store) ProveInclusion(ctx context.Context, index ledger.Index, size uint64) (proof []ledger.Hash, err error) {
	err = s.at(ctx, size, func() (err error) { proof, err = ledger.InclusionFrom(index, size, s.cache.read); return err })
	return proof, err
}

// ProveConsistency implements ledger.Tree.
func (s *Store) ProveConsistency(ctx context.Context, old, size uint64) (proof []ledger.Hash, err error) {
	err = s.at(ctx, size, func() (err error) { proof, err = ledger.ConsistencyFrom(old, size, s.cache.read); return err })
	return proof, err
}
