package sqlite

import (
	"context"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/ledger"
)

const (
	chunkBytes    = 1 << 20 // so that no copy of a whole blob passes through SQLite's memory
	chunksPerBlob = 1024    // chunk IDs a blob's ID leaves room for; MaxBlob needs 512
)

// blobRow is what the blobs table says about a key.
type blobRow struct {
	id, size  int64
	salt      []byte
	forgotten bool
}

func (c *conn) blob(key ledger.BlobKey) (row blobRow, ok bool, err error) {
	ok, err = c.one(func(s *sqlite3.Stmt) error {
		row = blobRow{id: s.ColumnInt64(0), size: s.ColumnInt64(1), salt: s.ColumnBlob(2, nil), forgotten: s.ColumnInt64(3) != 0}
		return s.Err()
	}, "SELECT id, size, salt, forgotten FROM blobs WHERE key = ?", key[:])
	return row, ok, err
}

// Put implements ledger.Blobs.
func (s *Store) Put(ctx context.Context, blobs ...ledger.Blob) error {
	keys, bytes := make([]ledger.BlobKey, len(blobs)), 0
	for i, b := range blobs {
		if err := ledger.CheckBlob(b); err != nil {
			return err
		}
		keys[i] = b.Key()
		bytes += len(b.Data)
	}
	return s.submit(ctx, &job{bytes: bytes, do: func(w *writer) (verdict, failure error) {
		for i, b := range blobs {
			if err := w.conn.putBlob(keys[i], b); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}})
}

func (c *conn) putBlob(key ledger.BlobKey, b ledger.Blob) error {
	row, ok, err := c.blob(key)
	if err != nil || ok && !row.forgotten {
		return err
	}
	if ok {
		err = c.run("UPDATE blobs SET salt = ?, size = ?, forgotten = 0 WHERE id = ?", b.Salt, int64(len(b.Data)), row.id)
	} else {
		err = c.run("INSERT INTO blobs (key, salt, size, forgotten) VALUES (?, ?, ?, 0)", key[:], b.Salt, int64(len(b.Data)))
		row.id = c.db.LastInsertRowID()
	}
	for n, rest := int64(0), b.Data; err == nil && len(rest) > 0; n++ {
		chunk := rest[:min(len(rest), chunkBytes)]
		rest = rest[len(chunk):]
		err = c.run("INSERT INTO blob_chunks (id, data) VALUES (?, ?)", row.id*chunksPerBlob+n, chunk)
	}
	return err
}

// Get implements ledger.Blobs.
func (s *Store) Get(ctx context.Context, key ledger.BlobKey) (ledger.Blob, error) {
	var out ledger.Blob
	err := s.read(ctx, func(c *conn) error {
		// One snapshot, so that a Forget between the two reads can't look like damage.
		if err := c.run("BEGIN"); err != nil {
			return err
		}
		err := c.getBlob(key, &out)
		if end := c.exec("ROLLBACK"); err == nil {
			err = end
		}
		return err
	})
	if err != nil {
		return ledger.Blob{}, err
	}
	if out.Key() != key {
		return ledger.Blob{}, &ledger.BlobDamagedError{Key: key, How: "its bytes hash to " + out.Key().String()}
	}
	return out, nil
}

func (c *conn) getBlob(key ledger.BlobKey, out *ledger.Blob) error {
	row, ok, err := c.blob(key)
	if err != nil {
		return err
	}
	if !ok || row.forgotten {
		return &ledger.BlobAbsentError{Key: key, Forgotten: ok}
	}
	if row.size < 0 || row.size > ledger.MaxBlob {
		return &ledger.BlobDamagedError{Key: key, How: fmt.Sprintf("its size is given as %d", row.size)}
	}
	*out = ledger.Blob{Salt: row.salt, Data: make([]byte, 0, row.size)}
	first := row.id * chunksPerBlob
	return c.each(func(s *sqlite3.Stmt) (bool, error) {
		chunk := s.ColumnRawBlob(0)
		if int64(len(out.Data)+len(chunk)) > row.size {
			return false, &ledger.BlobDamagedError{Key: key, How: fmt.Sprintf("it has more than its %d bytes", row.size)}
		}
		out.Data = append(out.Data, chunk...)
		return true, s.Err()
	}, "SELECT data FROM blob_chunks WHERE id BETWEEN ? AND ? ORDER BY id", first, first+chunksPerBlob-1)
}

// Forget implements ledger.Blobs. The bytes are overwritten in the file, and the log that may
// still hold them is emptied. If another process reads for so long that the log can't be emptied,
// Forget says so: the blob is forgotten, and forgetting it again empties the log.
func (s *Store) Forget(ctx context.Context, key ledger.BlobKey) error {
	var absent error
	err := s.submit(ctx, &job{do: func(w *writer) (verdict, failure error) {
		row, ok, err := w.conn.blob(key)
		if err != nil {
			return nil, err
		}
		if !ok {
			return &ledger.BlobAbsentError{Key: key}, nil
		}
		if row.forgotten {
			absent = &ledger.BlobAbsentError{Key: key, Forgotten: true}
			return nil, nil
		}
		first := row.id * chunksPerBlob
		if err := w.conn.run("DELETE FROM blob_chunks WHERE id BETWEEN ? AND ?", first, first+chunksPerBlob-1); err != nil {
			return nil, err
		}
		return nil, w.conn.run("UPDATE blobs SET salt = x'', size = 0, forgotten = 1 WHERE id = ?", row.id)
	}, then: func(w *writer) error {
		if err := w.emptyLog(); err != nil {
			return fmt.Errorf("blob %s is forgotten, but its bytes are still in the write-ahead log; forget it again when no other process reads: %w", key, err)
		}
		return nil
	}})
	if err != nil {
		return err
	}
	return absent
}

// emptyLog folds the whole write-ahead log back into the file and truncates it.
func (w *writer) emptyLog() error {
	_, _, err := w.conn.db.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	return err
}
