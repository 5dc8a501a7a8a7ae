package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// pragmas are set on every connection, after busy_timeout.
//
// The log is folded back every 4,000 pages (16 MiB) rather than every 1,000, which costs a quarter
// of the extra syncs. secure_delete overwrites what Forget removes. trusted_schema and
// cell_size_check make a damaged or hostile file fail early.
const pragmas = `
PRAGMA synchronous=FULL;
PRAGMA wal_autocheckpoint=4000;
PRAGMA cache_size=-16000;
PRAGMA secure_delete=ON;
PRAGMA trusted_schema=OFF;
PRAGMA cell_size_check=ON;`

// conn is one SQLite connection with its prepared statements. It is used by one goroutine at a
// time.
type conn struct {
	db    *sqlite3.Conn
	stmts map[string]*sqlite3.Stmt
}

// openConn opens an existing file.
func openConn(ctx context.Context, path string, opts Options) (*conn, error) {
	query := url.Values{"modeof": {path}} // the log and the journal take the file's own mode
	if opts.vfs != "" {
		query.Set("vfs", opts.vfs)
	}
	escaped := strings.ReplaceAll(query.Encode(), "+", "%20") // SQLite takes a plus for a plus
	name := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: escaped}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db, err := sqlite3.OpenFlags(name.String(), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}
	c := &conn{db: db, stmts: make(map[string]*sqlite3.Stmt)}
	if err := db.BusyTimeout(opts.BusyTimeout); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if err := c.exec(pragmas); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.db.Close())...)
}

// exec runs statements without parameters and results.
func (c *conn) exec(sql string) error { return c.db.Exec(sql) }

// stmt returns the prepared statement for sql, ready to bind.
func (c *conn) stmt(sql string) (*sqlite3.Stmt, error) {
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	s, _, err := c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	c.stmts[sql] = s
	return s, nil
}

// run executes a prepared statement that returns no rows.
func (c *conn) run(sql string, args ...any) error {
	s, err := c.bound(sql, args)
	if err != nil {
		return err
	}
	return s.Exec()
}

// each calls row for every row of the result, until row returns false or an error. Values read
// raw from the statement are valid only until row returns.
func (c *conn) each(row func(*sqlite3.Stmt) (more bool, err error), sql string, args ...any) (err error) {
	s, err := c.bound(sql, args)
	if err != nil {
		return err
	}
	defer func() {
		if reset := s.Reset(); err == nil { // it reports the last step's error again
			err = reset
		}
	}()
	for s.Step() {
		if more, err := row(s); err != nil || !more {
			return err
		}
	}
	return s.Err()
}

// one calls row for the first row, if there is one.
func (c *conn) one(row func(*sqlite3.Stmt) error, sql string, args ...any) (found bool, err error) {
	err = c.each(func(s *sqlite3.Stmt) (bool, error) {
		found = true
		return false, row(s)
	}, sql, args...)
	return found, err
}

func (c *conn) bound(sql string, args []any) (*sqlite3.Stmt, error) {
	s, err := c.stmt(sql)
	if err != nil {
		return nil, err
	}
	for i, arg := range args {
		switch v := arg.(type) {
		case int64:
			err = s.BindInt64(i+1, v)
		case string:
			err = s.BindText(i+1, v)
		case []byte:
			err = bindBytes(s, i+1, v)
		default:
			panic(fmt.Sprintf("sqlite: can't bind a %T", arg))
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// bindBytes binds nil as an empty blob: the tables have no NULL.
func bindBytes(s *sqlite3.Stmt, param int, b []byte) error {
	if len(b) == 0 {
		return s.BindZeroBlob(param, 0)
	}
	return s.BindBlob(param, b)
}

// patiently repeats f while the file is locked, for as long as a write may wait. SQLite's own
// busy handler isn't asked for every lock that opening takes.
func patiently(ctx context.Context, limit time.Duration, f func() error) error {
	for start := time.Now(); ; {
		err := f()
		if !errors.Is(err, sqlite3.BUSY) || time.Since(start) > limit {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
