package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// Table is the answer to a question: named columns and rows of nil, int64, float64, string or
// []byte.
type Table struct {
	Columns []string
	Rows    [][]any
}

// Row is one row by column.
type Row map[string]any

// ByName returns the rows as maps.
func (t Table) ByName() []Row {
	out := make([]Row, len(t.Rows))
	for i, r := range t.Rows {
		out[i] = Row{}
		for k, name := range t.Columns {
			out[i][name] = r[k]
		}
	}
	return out
}

func (p *Projections) table(ctx context.Context, sql string, args []any) (t Table, err error) {
	err = p.with(ctx, func(c *conn) error {
		s, err := c.bound(sql, args)
		if err != nil {
			return err
		}
		t, err = drain(s, 0)
		return errors.Join(err, s.Reset())
	})
	return t, err
}

// drain reads a statement's rows; more than most of them, or texts beyond maxText, are an error. 0 is no
// bound of either.
func drain(s *sqlite3.Stmt, most int) (Table, error) {
	t := Table{Rows: [][]any{}}
	for i := range s.ColumnCount() {
		t.Columns = append(t.Columns, s.ColumnName(i))
	}
	text := 0
	for s.Step() {
		if most > 0 && len(t.Rows) == most {
			return t, fmt.Errorf("the answer has more than %d rows; add a LIMIT", most)
		}
		row := make([]any, s.ColumnCount())
		for i := range row {
			switch s.ColumnType(i) {
			case sqlite3.INTEGER:
				row[i] = s.ColumnInt64(i)
			case sqlite3.FLOAT:
				row[i] = s.ColumnFloat(i)
			case sqlite3.TEXT:
				v := s.ColumnText(i)
				row[i], text = v, text+len(v)
			case sqlite3.BLOB:
				v := s.ColumnBlob(i, nil)
				row[i], text = v, text+len(v)
			}
		}
		if most > 0 && text > maxText {
			return t, fmt.Errorf("the answer has more than %d bytes; add a LIMIT, or ask for less of each row", maxText)
		}
		t.Rows = append(t.Rows, row)
	}
	return t, s.Err()
}
