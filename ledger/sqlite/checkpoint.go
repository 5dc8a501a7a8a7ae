package sqlite

import (
	"context"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/ledger"
)

// SignCheckpoint implements ledger.Checkpoints. It refuses to sign a tree that the last kept
// checkpoint isn't a prefix of.
func (s *Store) SignCheckpoint(ctx context.Context, signer ledger.CheckpointSigner) (ledger.Checkpoint, error) {
	var out ledger.Checkpoint
	err := s.submit(ctx, &job{do: func(w *writer) (verdict, failure error) {
		last, ok, err := w.conn.lastCheckpoint()
		if err != nil {
			return nil, err
		}
		size := w.tree.Size()
		if ok {
			if last.Origin != signer.Origin {
				return &ledger.OriginError{Kept: last.Origin, Asked: signer.Origin}, nil
			}
			if last.Size > size {
				return fmt.Errorf("the last checkpoint covers %d events, but the ledger has only %d: it was shortened or replaced", last.Size, size), nil
			}
			root, err := ledger.RootFrom(last.Size, w.conn.readNodes)
			if err != nil {
				return nil, err
			}
			if root != last.Root {
				return fmt.Errorf("the first %d events no longer have the root of the last checkpoint (%s, now %s): the ledger was changed", last.Size, last.Root, root), nil
			}
			if last.Size == size {
				out = last
				return nil, nil
			}
		}
		if out, verdict = signer.Sign(size, w.tree.Root()); verdict != nil {
			return verdict, nil
		}
		return nil, w.conn.run("INSERT INTO checkpoints (size, origin, root, note) VALUES (?, ?, ?, ?)",
			int64(out.Size), out.Origin, out.Root[:], out.Note)
	}})
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	return out, nil
}

// LastCheckpoint implements ledger.Checkpoints.
func (s *Store) LastCheckpoint(ctx context.Context) (c ledger.Checkpoint, ok bool, err error) {
	err = s.read(ctx, func(db *conn) (err error) { c, ok, err = db.lastCheckpoint(); return err })
	return c, ok, err
}

func (c *conn) lastCheckpoint() (out ledger.Checkpoint, ok bool, err error) {
	ok, err = c.one(func(s *sqlite3.Stmt) error {
		root := s.ColumnRawBlob(2)
		if len(root) != len(out.Root) {
			return fmt.Errorf("the last checkpoint's root has %d bytes; the file is damaged", len(root))
		}
		out = ledger.Checkpoint{
			Size: uint64(s.ColumnInt64(0)), Origin: s.ColumnText(1),
			Root: ledger.Hash(root), Note: s.ColumnBlob(3, nil),
		}
		return s.Err()
	}, "SELECT size, origin, root, note FROM checkpoints ORDER BY size DESC LIMIT 1")
	return out, ok && err == nil, err
}
