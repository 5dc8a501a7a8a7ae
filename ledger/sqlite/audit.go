package sqlite

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"iter"
	"math"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/ledger"
)

var _ ledger.Exhibit = (*Store)(nil)

const (
	selectStored = "SELECT idx, stream, version, type, time, media, prev, meta, data, nodes FROM events " +
		"WHERE idx >= ? AND idx < ? ORDER BY idx"
	selectCheckpoints = "SELECT size, origin, root, note FROM checkpoints WHERE size > ? ORDER BY size LIMIT 64"
)

// Stored implements ledger.Exhibit.
func (s *Store) Stored(ctx context.Context, end ledger.Index) iter.Seq2[ledger.StoredEvent, error] {
	limit := int64(min(uint64(end), math.MaxInt64))
	return func(yield func(ledger.StoredEvent, error) bool) {
		var (
			r     reader
			page  []ledger.StoredEvent
			next  = int64(math.MinInt64) // whatever was smuggled in before index 0 comes first
			ended bool
		)
		for !ended {
			page = page[:0]
			err := s.read(ctx, func(c *conn) (err error) {
				page, err = c.storedPage(&r, page, next, limit)
				return err
			})
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				next = int64(e.Index) + 1
			}
			if err != nil {
				yield(ledger.StoredEvent{}, err)
				return
			}
			ended = len(page) == 0
		}
	}
}

// storedPage appends to page the rows from `from` up to `limit`, as many as fit.
func (c *conn) storedPage(r *reader, page []ledger.StoredEvent, from, limit int64) ([]ledger.StoredEvent, error) {
	var nodes []byte // of the whole page
	bytes := 0
	err := c.each(func(s *sqlite3.Stmt) (bool, error) {
		e, err := r.event(s)
		if err != nil {
			return false, err
		}
		at := len(nodes)
		nodes = append(nodes, s.ColumnRawBlob(9)...)
		page = append(page, ledger.StoredEvent{Event: e, Nodes: nodes[at:len(nodes):len(nodes)]})
		bytes += eventBytes(&e)
		return len(page) < readPage.events && bytes < readPage.bytes, s.Err()
	}, selectStored, from, limit)
	return page, err
}

// StoredCheckpoints implements ledger.Exhibit.
func (s *Store) StoredCheckpoints(ctx context.Context) iter.Seq2[ledger.StoredCheckpoint, error] {
	return func(yield func(ledger.StoredCheckpoint, error) bool) {
		for last := int64(math.MinInt64); ; {
			var page []ledger.StoredCheckpoint
			err := s.read(ctx, func(c *conn) error {
				return c.each(func(s *sqlite3.Stmt) (bool, error) {
					page = append(page, ledger.StoredCheckpoint{
						Size: uint64(s.ColumnInt64(0)), Origin: s.ColumnText(1),
						Root: s.ColumnBlob(2, nil), Note: s.ColumnBlob(3, nil),
					})
					last = s.ColumnInt64(0)
					return true, s.Err()
				}, selectCheckpoints, last)
			})
			for _, c := range page {
				if !yield(c, nil) {
					return
				}
			}
			if err != nil {
				yield(ledger.StoredCheckpoint{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// BlobFacts implements ledger.Exhibit. It holds one chunk of the blob at a time.
func (s *Store) BlobFacts(ctx context.Context, key ledger.BlobKey) (ledger.BlobFacts, error) {
	var facts ledger.BlobFacts
	err := s.read(ctx, func(c *conn) error {
		// One snapshot, so that a Forget between the two reads can't look like damage.
		if err := c.run("BEGIN"); err != nil {
			return err
		}
		err := c.blobFacts(key, &facts)
		if end := c.exec("ROLLBACK"); err == nil {
			err = end
		}
		return err
	})
	return facts, err
}

func (c *conn) blobFacts(key ledger.BlobKey, facts *ledger.BlobFacts) error {
	row, ok, err := c.blob(key)
	if err != nil {
		return err
	}
	if !ok || row.forgotten {
		return &ledger.BlobAbsentError{Key: key, Forgotten: ok}
	}
	facts.Salt = row.salt
	named, plain := sha256.New(), sha256.New()
	named.Write(row.salt)
	first := row.id * chunksPerBlob
	err = c.each(func(s *sqlite3.Stmt) (bool, error) {
		chunk := s.ColumnRawBlob(0)
		facts.Length += uint64(len(chunk))
		for _, h := range []hash.Hash{named, plain} {
			h.Write(chunk)
		}
		return true, s.Err()
	}, "SELECT data FROM blob_chunks WHERE id BETWEEN ? AND ? ORDER BY id", first, first+chunksPerBlob-1)
	if err != nil {
		return err
	}
	if row.size < 0 || facts.Length != uint64(row.size) {
		return &ledger.BlobDamagedError{Key: key, How: fmt.Sprintf("its size is given as %d, but it has %d bytes", row.size, facts.Length)}
	}
	facts.Key, facts.Plain = ledger.BlobKey(named.Sum(nil)), [sha256.Size]byte(plain.Sum(nil))
	return nil
}

// CheckStorage implements ledger.Exhibit. It checks that the tables, indexes and triggers are
// those of the store form, and lets SQLite compare every index with its table: an index that
// leaves an event out would hide it from those who read its stream.
func (s *Store) CheckStorage(ctx context.Context) error {
	want, err := freshSchema()
	if err != nil {
		return err
	}
	err = s.read(ctx, func(c *conn) error {
		have, err := c.schema()
		if err != nil {
			return err
		}
		if i, ok := firstDifference(want, have); !ok {
			return &ledger.DamagedError{What: fmt.Sprintf("the tables aren't those of store form %d: expected %s, found %s", form, at(want, i), at(have, i))}
		}
		before := c.db.SetInterrupt(ctx) // it may take long, and its result may no longer matter
		defer c.db.SetInterrupt(before)
		var said string
		if _, err := c.one(func(s *sqlite3.Stmt) error { said = s.ColumnText(0); return s.Err() }, "PRAGMA integrity_check(1)"); err != nil {
			return err
		}
		if said != "ok" {
			return &ledger.DamagedError{What: "the file contradicts itself: " + said}
		}
		return nil
	})
	if ctx.Err() != nil {
		return ctx.Err() // rather than SQLite's word for it
	}
	return err
}

// schema lists every object of the file, as its statement.
func (c *conn) schema() (objects []string, err error) {
	err = c.each(func(s *sqlite3.Stmt) (bool, error) {
		objects = append(objects, s.ColumnText(0))
		return true, s.Err()
	}, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY sql")
	return objects, err
}

// freshSchema is the schema of a file that was just made.
func freshSchema() (objects []string, err error) {
	db, err := sqlite3.Open(":memory:")
	if err != nil {
		return nil, fmt.Errorf("open a database in memory: %w", err)
	}
	c := &conn{db: db, stmts: make(map[string]*sqlite3.Stmt)}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.exec(schema); err != nil {
		return nil, fmt.Errorf("make the tables in memory: %w", err)
	}
	return c.schema()
}

// firstDifference finds where two sorted lists part.
func firstDifference(a, b []string) (at int, equal bool) {
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	return at, slices.Equal(a, b)
}

func at(list []string, i int) string {
	if i >= len(list) {
		return "no more"
	}
	return fmt.Sprintf("%q", list[i])
}
