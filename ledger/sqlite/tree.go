package sqlite

import (
	"context"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/ledger"
)

// readNodes reads subtree hashes: each lies with the leaf that completed it.
func (c *conn) readNodes(nodes []ledger.Node) ([]ledger.Hash, error) {
	out := make([]ledger.Hash, len(nodes))
	for i, n := range nodes {
		found, err := c.one(func(s *sqlite3.Stmt) error {
			raw, at := s.ColumnRawBlob(0), int(n.Level)*len(ledger.Hash{})
			if len(raw) < at+len(ledger.Hash{}) {
				return fmt.Errorf("the event at index %d lacks the hash of level %d; the file is damaged", n.Completed(), n.Level)
			}
			out[i] = ledger.Hash(raw[at:][:len(ledger.Hash{})])
			return s.Err()
		}, "SELECT nodes FROM events WHERE idx = ?", int64(n.Completed()))
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, fmt.Errorf("the event at index %d is missing; the file is damaged", n.Completed())
		}
	}
	return out, nil
}

// at runs f for a size the tree has reached. Leaves never change, so f needs no snapshot.
func (s *Store) at(ctx context.Context, size uint64, f func(ledger.NodeReader) error) error {
	return s.read(ctx, func(c *conn) error {
		now, err := c.size()
		if err != nil {
			return err
		}
		if size > now {
			return fmt.Errorf("the ledger has %d events, not yet %d", now, size)
		}
		return f(c.readNodes)
	})
}

// Size implements ledger.Tree.
func (s *Store) Size(ctx context.Context) (size uint64, err error) {
	err = s.read(ctx, func(c *conn) (err error) { size, err = c.size(); return err })
	return size, err
}

// Root implements ledger.Tree.
func (s *Store) Root(ctx context.Context, size uint64) (root ledger.Hash, err error) {
	err = s.at(ctx, size, func(r ledger.NodeReader) (err error) { root, err = ledger.RootFrom(size, r); return err })
	return root, err
}

// ProveInclusion implements ledger.Tree.
func (s *Store) ProveInclusion(ctx context.Context, index ledger.Index, size uint64) (proof []ledger.Hash, err error) {
	err = s.at(ctx, size, func(r ledger.NodeReader) (err error) {
		proof, err = ledger.InclusionFrom(index, size, r)
		return err
	})
	return proof, err
}

// ProveConsistency implements ledger.Tree.
func (s *Store) ProveConsistency(ctx context.Context, old, size uint64) (proof []ledger.Hash, err error) {
	err = s.at(ctx, size, func(r ledger.NodeReader) (err error) {
		proof, err = ledger.ConsistencyFrom(old, size, r)
		return err
	})
	return proof, err
}
