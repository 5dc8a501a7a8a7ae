package projections

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/evidence"
)

// Filter selects attempts. A zero field selects all.
type Filter struct {
	Outcome  evidence.Outcome
	State    evidence.State
	Change   evidence.ChangeID
	Revision string    // of a commit or a manifest: whole, or its first hex digits
	Since    time.Time // registered then or later, by the writer's clock
	Limit    int       // at most so many, the latest
}

// Attempts lists attempts, the latest registered first.
func (p *Projections) Attempts(ctx context.Context, f Filter) ([]AttemptRow, error) {
	if f.Limit < 0 {
		return nil, fmt.Errorf("a limit of %d attempts; use 0 for all", f.Limit)
	}
	var where []string
	var args []any
	add := func(cond string, vs ...any) {
		where = append(where, cond)
		args = append(args, vs...)
	}
	if f.Outcome != "" {
		add("outcome = ?", string(f.Outcome))
	}
	if f.State != "" {
		add("state = ?", string(f.State))
	}
	if f.Change != "" {
		add("change_id = ?", string(f.Change))
	}
	if f.Revision != "" {
		low, high := prefixRange(f.Revision)
		hex := strings.TrimPrefix(f.Revision, "sha256:")
		manifestLow, manifestHigh := prefixRange("sha256:" + hex)
		add("(revision >= ? AND revision < ? OR revision >= ? AND revision < ?)", low, high, manifestLow, manifestHigh)
	}
	if !f.Since.IsZero() {
		add("registered >= ?", f.Since.UnixNano())
	}
	sql := selectRows
	if len(where) > 0 {
		sql += " WHERE " + strings.Join(where, " AND ")
	}
	sql += " ORDER BY first_index DESC"
	if f.Limit > 0 {
		sql += " LIMIT ?"
		args = append(args, int64(f.Limit))
	}
	return p.rows(ctx, sql, args...)
}

// OpenAttempts lists the attempts that aren't finished, the oldest first.
func (p *Projections) OpenAttempts(ctx context.Context) ([]AttemptRow, error) {
	return p.rows(ctx, selectRows+" WHERE state <> 'finished' ORDER BY first_index")
}

func (p *Projections) rows(ctx context.Context, sql string, args ...any) ([]AttemptRow, error) {
	rows := []AttemptRow{}
	err := p.with(ctx, func(c *conn) error {
		rows = rows[:0]
		return c.each(func(s *sqlite3.Stmt) error {
			rows = append(rows, scan(s))
			return nil
		}, sql, args...)
	})
	return rows, err
}

// prefixRange bounds the texts that begin with a prefix of ASCII: from low on, below high.
func prefixRange(prefix string) (low, high string) { return prefix, prefix + "\x7f" }

// tables lists every table of rows with the order of its rows.
var tables = []string{
	selectRows + " ORDER BY attempt",
	"SELECT * FROM words ORDER BY id",
	"SELECT * FROM timeline_rows ORDER BY idx",
	"SELECT * FROM custody_rows ORDER BY attempt, handle",
	"SELECT * FROM change_rows ORDER BY change_id",
	"SELECT * FROM admission_rows ORDER BY idx",
	"SELECT * FROM runtime_rows ORDER BY runtime",
}

// Digest is the SHA-256, in hex, over every value of every table of rows, ordered. Two files made
// of the same log have the same one.
func (p *Projections) Digest(ctx context.Context) (string, error) {
	h := sha256.New()
	err := p.with(ctx, func(c *conn) error {
		h.Reset()
		for _, table := range tables {
			fmt.Fprintln(h, table)
			err := c.each(func(s *sqlite3.Stmt) error {
				for i := range s.ColumnCount() {
					v := s.ColumnText(i)
					var head [9]byte
					head[0] = byte(s.ColumnType(i))
					binary.BigEndian.PutUint64(head[1:], uint64(len(v)))
					h.Write(head[:])
					h.Write([]byte(v))
				}
				return nil
			}, table)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
