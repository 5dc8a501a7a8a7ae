package projections

import (
	"context"

	"github.com/ncruces/go-sqlite3"
)

// Named is a kind of thing that goes by an ID.
type Named string

const (
	AttemptNames Named = "attempts" // the latest registered first
	ChangeNames  Named = "changes"
	PolicyNames  Named = "policies"
)

var names = map[Named]string{
	AttemptNames: "SELECT attempt FROM attempt_rows WHERE attempt >= ? AND attempt < ? ORDER BY first_index DESC LIMIT ?",
	ChangeNames:  "SELECT change_id FROM change_rows WHERE change_id >= ? AND change_id < ? ORDER BY change_id LIMIT ?",
	PolicyNames:  "SELECT policy FROM policy_rows WHERE policy >= ? AND policy < ? ORDER BY policy LIMIT ?",
}

// Names lists the IDs of a kind that begin with a prefix, at most so many.
func (p *Projections) Names(ctx context.Context, of Named, prefix string, most int) ([]string, error) {
	low, high := prefixRange(prefix)
	found := []string{}
	err := p.with(ctx, func(c *conn) error {
		found = found[:0]
		return c.each(func(s *sqlite3.Stmt) error {
			found = append(found, s.ColumnText(0))
			return nil
		}, names[of], low, high, int64(most))
	})
	return found, err
}
