package projections

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Query selects rows of a view. A zero field selects all.
type Query struct {
	Where map[Filterable]string // values of filters that the view has
	Since time.Time             // by the writer's clock
	Until time.Time             // before this time
	Sort  string                // `COLUMN`, `COLUMN:asc` or `COLUMN:desc`; empty: the view's own order
	Limit int                   // at most so many: without Sort the latest, else the first by it
}

// View is a view that can be asked by filters.
type View struct {
	Name    string
	rows    string // a SELECT with one %s for the conditions, and perhaps another for the order and bound of the rows it picks
	order   string // the view's own
	latest  string // the order that picks the latest rows, where rows has a place for it
	ties    string // the view's own order, as it picks rows that are equal by another
	filters map[Filterable]filter
	time    string            // column of ns, for since and until; empty: none
	spans   bool              // timeline_spans bounds where its times lie
	sorts   map[string]string // columns that are another expression in rows; the others go by their own name
	picks   map[string]string // columns by which rows can be picked before they are read
	columns []string
}

// Filters lists what a view can be asked by, sorted.
func (v View) Filters() []Filterable {
	var out []Filterable
	for f := range v.filters {
		out = append(out, f)
	}
	slices.Sort(out)
	return out
}

// Values lists what a filter can be, where that is one of a few words.
func (v View) Values(f Filterable) []string { return slices.Clone(v.filters[f].words) }

// Timed reports whether a view can be asked by time.
func (v View) Timed() bool { return v.time != "" }

// Columns names the columns a view can be sorted by, in their order.
func (v View) Columns() []string { return slices.Clone(v.columns) }

// QuestionError says what about a question a view can't answer: a filter or column it hasn't, or a value
// that is none.
type QuestionError struct {
	View string
	Why  string
}

func (e *QuestionError) Error() string { return e.View + ": " + e.Why }

// Check fails with *QuestionError for a question that the view can't answer.
func (v View) Check(q Query) error {
	_, _, err := v.compile(q)
	return err
}

// Ask answers a question about a view. It fails with *QuestionError when the view can't answer it, and like
// Resolve when it is about an attempt that isn't there.
func (p *Projections) Ask(ctx context.Context, v View, q Query) (Table, error) {
	sql, args, err := p.compile(ctx, v, q)
	if err != nil {
		return Table{}, err
	}
	return p.table(ctx, sql, args)
}

// compile is View.compile with names resolved.
func (p *Projections) compile(ctx context.Context, v View, q Query) (sql string, args []any, err error) {
	if err := v.Check(q); err != nil {
		return "", nil, err
	}
	if name, ok := q.Where[ByAttempt]; ok {
		id, err := p.Resolve(ctx, name)
		if err != nil {
			return "", nil, err
		}
		q.Where = also(q.Where, ByAttempt, string(id))
	}
	if v.Name == TimelineView.Name {
		if q, err = p.inStreams(ctx, q); err != nil {
			return "", nil, err
		}
		v = timelineOfIndexes
	}
	return v.compile(q)
}

// also is a copy of the filters with one more.
func also(where map[Filterable]string, f Filterable, value string) map[Filterable]string {
	out := map[Filterable]string{f: value}
	for k, v := range where {
		if k != f {
			out[k] = v
		}
	}
	return out
}

// streamsBy says which stream a filter of the timeline means.
var streamsBy = map[Filterable]string{
	ByStream: "", ByAttempt: evidence.AttemptPrefix, ByChange: evidence.ChangePrefix, ByPolicy: evidence.PolicyPrefix,
}

// inStreams turns filters by stream into the indexes of the stream's events. The ledger knows them; an
// index over a million rows here would only repeat it.
func (p *Projections) inStreams(ctx context.Context, q Query) (Query, error) {
	for f, prefix := range streamsBy {
		value, ok := q.Where[f]
		if !ok {
			continue
		}
		name, err := ledger.ParseStreamID(prefix + value)
		if err != nil {
			return q, err
		}
		indexes := []ledger.Index{}
		for e, err := range p.led.ReadStream(ctx, name, 0) {
			if err != nil {
				return q, fmt.Errorf("read %s: %w", name, err)
			}
			indexes = append(indexes, e.Index)
		}
		text, err := json.Marshal(indexes)
		if err != nil {
			return q, err
		}
		q.Where = also(q.Where, f, string(text))
	}
	return q, nil
}

func (v View) refuse(format string, args ...any) error {
	return &QuestionError{View: v.Name, Why: fmt.Sprintf(format, args...)}
}

// compile makes a question a statement.
func (v View) compile(q Query) (sql string, args []any, err error) {
	where, args, err := v.conditions(q)
	if err != nil {
		return "", nil, err
	}
	if q.Limit < 0 {
		return "", nil, v.refuse("a limit of %d rows; use 0 for all", q.Limit)
	}
	limit := ""
	if q.Limit > 0 {
		limit = fmt.Sprintf(" LIMIT %d", q.Limit)
	}
	order, pick, err := v.orders(q.Sort)
	if err != nil {
		return "", nil, err
	}
	if strings.Count(v.rows, "%s") == 1 {
		return fmt.Sprintf(v.rows, where) + " ORDER BY " + order + limit, args, nil
	}
	if pick != "" {
		pick = " ORDER BY " + pick + limit
	}
	return fmt.Sprintf(v.rows, where, pick) + " ORDER BY " + order + limit, args, nil
}

// conditions are a question's, joined.
func (v View) conditions(q Query) (sql string, args []any, err error) {
	for f := range q.Where {
		if _, ok := v.filters[f]; !ok {
			return "", nil, v.refuse("it can't be asked by %s; it can by %s", f, list(v.Filters()))
		}
	}
	where := []string{"1"}
	for _, f := range v.Filters() {
		value, ok := q.Where[f]
		if !ok {
			continue
		}
		found, err := v.filters[f].args(value)
		if err != nil {
			return "", nil, v.refuse("by %s: %v", f, err)
		}
		where, args = append(where, v.filters[f].condition), append(args, found...)
	}
	if (!q.Since.IsZero() || !q.Until.IsZero()) && !v.Timed() {
		return "", nil, v.refuse("it has no time to ask by")
	}
	if !q.Since.IsZero() {
		where, args = append(where, v.time+" >= ?"), append(args, q.Since.UnixNano())
		if v.spans {
			where, args = append(where, sinceSpan), append(args, q.Since.UnixNano())
		}
	}
	if !q.Until.IsZero() {
		where, args = append(where, v.time+" < ?"), append(args, q.Until.UnixNano())
		if v.spans {
			where, args = append(where, untilSpan), append(args, q.Until.UnixNano())
		}
	}
	return strings.Join(where, " AND "), args, nil
}

// orders are the order of an answer, and the one that picks its rows where that can be told apart.
func (v View) orders(by string) (order, pick string, err error) {
	if by == "" {
		return v.order, v.latest, nil
	}
	column, direction, given := strings.Cut(by, ":")
	switch {
	case !slices.Contains(v.columns, column):
		return "", "", v.refuse("it has no column %q to sort by; it has %s", column, strings.Join(v.columns, ", "))
	case given && direction != "asc" && direction != "desc":
		return "", "", v.refuse("it is sorted by COLUMN, COLUMN:asc or COLUMN:desc, not %q", by)
	}
	if direction == "desc" {
		direction = " DESC"
	} else {
		direction = ""
	}
	order = `"` + column + `"`
	if other, ok := v.sorts[column]; ok {
		order = other
	}
	if column, ok := v.picks[column]; ok {
		pick = column + direction + ", " + v.ties
	}
	return order + direction + ", " + v.order, pick, nil
}
