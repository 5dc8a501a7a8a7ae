package projections

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// tables lists every table of rows with the order of its rows. Only position, which says where the file
// stands, is none.
var tables = map[string]string{
	"attempt_rows":       "attempt",
	"words":              "id",
	"timeline_rows":      "idx",
	"timeline_spans":     "span",
	"custody_rows":       "attempt, handle",
	"change_rows":        "change_id",
	"policy_rows":        "policy",
	"admission_rows":     "idx",
	"runtime_rows":       "runtime",
	"qualification_rows": "idx",
}

// Digests are the SHA-256, in hex, over every value of each table's ordered rows, by the table's name. Two
// files made of the same log have the same ones (req S1).
func (p *Projections) Digests(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	err := p.with(ctx, func(c *conn) error {
		clear(out)
		for _, table := range slices.Sorted(maps.Keys(tables)) {
			h := sha256.New()
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
			}, fmt.Sprintf("SELECT * FROM %s ORDER BY %s", table, tables[table]))
			if err != nil {
				return err
			}
			out[table] = hex.EncodeToString(h.Sum(nil))
		}
		return nil
	})
	return out, err
}
