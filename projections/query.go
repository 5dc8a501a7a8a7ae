package projections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
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

// Query selects rows of a view. A zero field selects all.
type Query struct {
	Where map[Filterable]string // values of filters that the view has
	Since time.Time             // by the writer's clock
	Until time.Time             // before this time
	Sort  string                // a column; with a minus before it, from large to small; empty: the view's own order
	Limit int                   // at most so many
}

// Filterable names a filter.
type Filterable string

const (
	ByAttempt Filterable = "attempt"
	ByChange  Filterable = "change"
	ByStream  Filterable = "stream"
	ByType    Filterable = "type"
	ByActor   Filterable = "actor"
	ByRuntime Filterable = "runtime"
	ByState   Filterable = "state" // of custody: open, closed, abandoned
	ByKind    Filterable = "kind"
	ByStands  Filterable = "stands" // of an admission: yes, no
)

// View is a view that can be asked by filters.
type View struct {
	Name    string
	sql     string // without conditions
	order   string
	filters map[Filterable]string // condition with one parameter; "" in the value stands for none
	time    string                // column of ns, for since and until
	columns []string
}

// Views that can be asked. The columns are those of schema.sql.
var (
	CustodyView = View{
		Name: "custody", sql: "SELECT * FROM custody", order: "last_index DESC, attempt, handle",
		filters: map[Filterable]string{
			ByAttempt: "attempt = ?", ByKind: "kind = ?",
			ByState: "CASE WHEN open = 1 THEN 'open' WHEN abandoned = 1 THEN 'abandoned' ELSE 'closed' END = ?",
		},
		columns: []string{"attempt", "handle", "kind", "name", "container", "request", "engine", "state", "open", "abandoned", "unconfirmed", "last_index"},
	}
	ChangesView = View{
		Name: "changes", sql: "SELECT * FROM changes", order: "first_index",
		filters: map[Filterable]string{ByChange: "change_id = ?"},
		columns: []string{"change_id", "repository", "version", "revision", "context", "policy", "epoch", "attempts", "approvals", "integrated_version",
			"first_index", "last_index", "problem"},
	}
	AdmissionsView = View{
		Name: "admissions", sql: `SELECT * FROM admissions WHERE "index" IN (SELECT idx FROM admission_rows r WHERE %s)`, order: `"index" DESC`,
		filters: map[Filterable]string{
			ByChange: "r.change_id = ?", ByActor: "r.actor = ?", ByKind: "r.kind = ?",
			ByStands: "CASE WHEN r.void_index IS NULL THEN 'yes' ELSE 'no' END = ?",
		},
		time:    "r.time",
		columns: []string{"index", "change_id", "change_version", "context", "kind", "attempts", "void_index", "stands", "time", "actor"},
	}
	RuntimesView = View{
		Name: "runtimes", sql: "SELECT * FROM runtimes", order: "first_index",
		filters: map[Filterable]string{ByRuntime: "runtime = ?"},
		columns: []string{"runtime", "engine", "machine", "version", "api", "kernel", "os", "arch", "runner", "first_index", "probed", "attempts", "qualification"},
	}
	TimelineView = View{
		Name: "timeline", sql: `SELECT * FROM timeline WHERE "index" IN (SELECT idx FROM timeline_rows r WHERE %s ORDER BY idx DESC%s)`, order: `"index"`,
		filters: map[Filterable]string{
			ByStream:  inStream,
			ByAttempt: inStream,
			ByChange:  inStream,
			ByType:    "r.type = (SELECT id FROM words WHERE word = ?)",
			ByActor:   "r.actor = (SELECT id FROM words WHERE word = ?)",
		},
		time:    "r.time",
		columns: []string{"index", "stream", "version", "type", "time", "actor", "bytes"},
	}
)

// Filters lists what a view can be asked by, sorted.
func (v View) Filters() []Filterable {
	var out []Filterable
	for f := range v.filters {
		out = append(out, f)
	}
	slices.Sort(out)
	return out
}

// Timed reports whether a view can be asked by time.
func (v View) Timed() bool { return v.time != "" }

// Ask answers a question about a view. It fails when the view has no such filter or column.
func (p *Projections) Ask(ctx context.Context, v View, q Query) (Table, error) {
	if v.Name == TimelineView.Name {
		var err error
		if q, err = p.streamOf(ctx, q); err != nil {
			return Table{}, err
		}
	}
	sql, args, err := v.compile(q)
	if err != nil {
		return Table{}, err
	}
	return p.table(ctx, sql, args)
}

// Admissions answers a question about approvals and integrations.
func (p *Projections) Admissions(ctx context.Context, q Query) ([]Row, error) {
	t, err := p.Ask(ctx, AdmissionsView, q)
	return t.ByName(), err
}

// inStream selects events by a JSON list of their indexes. The ledger knows a stream's events; an
// index over a million rows here would only repeat it.
const inStream = "r.idx IN (SELECT value FROM json_each(?))"

// streamOf turns filters by stream into the indexes of the stream's events.
func (p *Projections) streamOf(ctx context.Context, q Query) (Query, error) {
	out := q
	out.Where = map[Filterable]string{}
	for f, value := range q.Where {
		prefix, stream := map[Filterable]string{ByAttempt: evidence.AttemptPrefix, ByChange: evidence.ChangePrefix}[f], f == ByStream
		if prefix == "" && !stream {
			out.Where[f] = value
			continue
		}
		list := []ledger.Index{}
		name, err := ledger.ParseStreamID(prefix + value)
		if err != nil {
			return q, err
		}
		for e, err := range p.led.ReadStream(ctx, name, 0) {
			if err != nil {
				return q, fmt.Errorf("read %s: %w", name, err)
			}
			list = append(list, e.Index)
		}
		text, err := json.Marshal(list)
		if err != nil {
			return q, err
		}
		out.Where[f] = string(text)
	}
	return out, nil
}

// Check refuses a question that the view can't answer.
func (v View) Check(q Query) error {
	_, _, err := v.compile(q)
	return err
}

func (v View) compile(q Query) (sql string, args []any, err error) {
	where := []string{"1"}
	for _, f := range v.Filters() {
		if value, ok := q.Where[f]; ok {
			where, args = append(where, v.filters[f]), append(args, value)
		}
	}
	for f := range q.Where {
		if _, ok := v.filters[f]; !ok {
			return "", nil, fmt.Errorf("%s can't be asked by %s; it can by %v", v.Name, f, v.Filters())
		}
	}
	if (!q.Since.IsZero() || !q.Until.IsZero()) && !v.Timed() {
		return "", nil, fmt.Errorf("%s has no time to ask by", v.Name)
	}
	if !q.Since.IsZero() {
		where, args = append(where, v.time+" >= ?"), append(args, q.Since.UnixNano())
	}
	if !q.Until.IsZero() {
		where, args = append(where, v.time+" < ?"), append(args, q.Until.UnixNano())
	}
	cond, limit := strings.Join(where, " AND "), ""
	if q.Limit < 0 {
		return "", nil, fmt.Errorf("a limit of %d rows; use 0 for all", q.Limit)
	}
	if q.Limit > 0 {
		limit = fmt.Sprintf(" LIMIT %d", q.Limit)
	}
	switch strings.Count(v.sql, "%s") {
	case 2: // the latest so many, in the view's own order
		sql = fmt.Sprintf(v.sql, cond, limit)
	case 1:
		sql = fmt.Sprintf(v.sql, cond)
	default:
		sql = v.sql + " WHERE " + cond
	}
	order := v.order
	if q.Sort != "" {
		column, desc := strings.CutPrefix(q.Sort, "-")
		if !slices.Contains(v.columns, column) {
			return "", nil, fmt.Errorf("%s has no column %q; it has %s", v.Name, column, strings.Join(v.columns, ", "))
		}
		order = `"` + column + `"`
		if desc {
			order += " DESC"
		}
		order += ", " + v.order
	}
	return sql + " ORDER BY " + order + limit, args, nil
}

// Period is how outcomes are summed up.
type Period string

const (
	PerHour  Period = "hour"
	PerDay   Period = "day"
	PerMonth Period = "month"
)

// OutcomeQuery selects finished attempts.
type OutcomeQuery struct {
	Period       Period
	Change       string
	Since, Until time.Time
}

// digitsOf is how much of a time in RFC 3339 names a period.
var digitsOf = map[Period]int64{PerHour: 13, PerDay: 10, PerMonth: 7}

// Outcomes counts finished attempts by period, outcome and detail. Times are their writers' claims, UTC.
func (p *Projections) Outcomes(ctx context.Context, q OutcomeQuery) (Table, error) {
	digits, ok := digitsOf[q.Period]
	if !ok {
		return Table{}, fmt.Errorf("period %q is none of hour, day, month", q.Period)
	}
	sql, args := "SELECT substr(strftime('%Y-%m-%dT%H', finished / 1000000000, 'unixepoch'), 1, ?) AS period, outcome, detail, count(*) AS attempts "+
		"FROM attempt_rows WHERE state = 'finished' AND problem IS NULL", []any{digits}
	if q.Change != "" {
		sql, args = sql+" AND change_id = ?", append(args, q.Change)
	}
	if !q.Since.IsZero() {
		sql, args = sql+" AND finished >= ?", append(args, q.Since.UnixNano())
	}
	if !q.Until.IsZero() {
		sql, args = sql+" AND finished < ?", append(args, q.Until.UnixNano())
	}
	return p.table(ctx, sql+" GROUP BY 1, 2, 3 ORDER BY 1, 2, 3", args)
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

// drain reads a statement's rows; more than most is an error, 0 is no bound.
func drain(s *sqlite3.Stmt, most int) (Table, error) {
	t := Table{Rows: [][]any{}}
	for i := range s.ColumnCount() {
		t.Columns = append(t.Columns, s.ColumnName(i))
	}
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
				row[i] = s.ColumnText(i)
			case sqlite3.BLOB:
				row[i] = s.ColumnBlob(i, nil)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t, s.Err()
}

// Column is a column of a documented view.
type Column struct {
	View string `json:"view"`
	Name string `json:"column"`
	Type string `json:"type"` // INTEGER, TEXT; empty for a computed one
}

// Schema lists the views and their columns.
func (p *Projections) Schema(ctx context.Context) ([]Column, error) {
	var out []Column
	err := p.with(ctx, func(c *conn) error {
		out = nil
		return c.each(func(s *sqlite3.Stmt) error {
			out = append(out, Column{View: s.ColumnText(0), Name: s.ColumnText(1), Type: s.ColumnText(2)})
			return nil
		}, "SELECT m.name, x.name, x.type FROM sqlite_schema m JOIN pragma_table_info(m.name) x WHERE m.type = 'view' ORDER BY m.name, x.cid")
	})
	return out, err
}

// QueryError says that a statement can't be answered: it isn't SQL, asks for what isn't there, or
// would do more than read.
type QueryError struct{ Err error }

func (e *QueryError) Error() string { return e.Err.Error() }
func (e *QueryError) Unwrap() error { return e.Err }

// SQL answers one statement over the views. The engine itself refuses whatever would do more than
// read: the file is opened for reading alone, and each action of the statement is authorised. It
// fails with *QueryError for a statement that can't be answered.
func (p *Projections) SQL(ctx context.Context, text string) (t Table, err error) {
	if len(text) > maxSQL {
		return t, &QueryError{fmt.Errorf("a statement of %d bytes, at most %d", len(text), maxSQL)}
	}
	err = p.with(ctx, func(*conn) error {
		db, err := openReadOnly(p.path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		db.SetInterrupt(ctx)
		t, err = answer(db, text)
		if err != nil && !isDamage(err) {
			err = &QueryError{err}
		}
		return err
	})
	var asked *QueryError
	if errors.As(err, &asked) {
		return Table{}, asked
	}
	return t, err
}

func openReadOnly(path string) (*sqlite3.Conn, error) {
	name := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "mode=ro"}
	db, err := sqlite3.OpenFlags(name.String(), sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}
	err = db.BusyTimeout(busyTimeout)
	if err == nil {
		err = db.Exec("PRAGMA query_only=ON; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON")
	}
	if err == nil {
		err = db.SetAuthorizer(onlyReads)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// onlyReads authorises nothing but reading.
func onlyReads(action sqlite3.AuthorizerActionCode, _, _, _, _ string) sqlite3.AuthorizerReturnCode {
	switch action {
	case sqlite3.AUTH_SELECT, sqlite3.AUTH_READ, sqlite3.AUTH_FUNCTION, sqlite3.AUTH_RECURSIVE:
		return sqlite3.AUTH_OK
	}
	return sqlite3.AUTH_DENY
}

func answer(db *sqlite3.Conn, text string) (Table, error) {
	s, rest, err := db.Prepare(text)
	if err != nil {
		return Table{}, err
	}
	if s == nil {
		return Table{}, errors.New("there is no statement")
	}
	defer s.Close() //nolint:errcheck // it repeats the error of its last step
	if strings.Trim(rest, " \t\r\n;") != "" {
		return Table{}, errors.New("only one statement is answered at a time")
	}
	return drain(s, maxAnswer)
}
