package projections

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// applicationID marks the file: "Bproj" shortened to four ASCII bytes.
const applicationID = 0x42707271

// conn is one SQLite connection with its prepared statements, used by one goroutine at a time.
type conn struct {
	db    *sqlite3.Conn
	stmts map[string]*sqlite3.Stmt
}

// openConn opens a file. Its journal is a file of its own that is removed by every commit:
// nothing but a crash leaves something beside the file, which is what lets it be replaced.
func openConn(path string) (*conn, error) {
	name := url.URL{Scheme: "file", OmitHost: true, Path: path,
		RawQuery: strings.ReplaceAll(url.Values{"modeof": {path}}.Encode(), "+", "%20")}
	db, err := sqlite3.OpenFlags(name.String(), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}
	c := &conn{db: db, stmts: map[string]*sqlite3.Stmt{}}
	err = db.BusyTimeout(busyTimeout)
	if err == nil {
		err = db.Exec("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA cache_size=-16000; PRAGMA synchronous=FULL")
	}
	if err != nil {
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

// create makes a new, empty file for its owner alone and opens it for building: no syncs and no
// journal, because nobody reads it before it is complete and synced as a whole.
func create(path string) (*conn, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	c, err := openConn(path)
	if err != nil {
		return nil, err
	}
	err = c.db.EnableChecksums("main")
	if err == nil {
		err = c.db.Exec(fmt.Sprintf("PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF; PRAGMA application_id=%d; BEGIN; %s; COMMIT", applicationID, schema))
	}
	if err == nil {
		err = c.run("INSERT INTO position VALUES (1, ?, 0, x'')", form)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

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

func (c *conn) bound(sql string, args []any) (*sqlite3.Stmt, error) {
	s, err := c.stmt(sql)
	if err != nil {
		return nil, err
	}
	for i, arg := range args {
		switch v := arg.(type) {
		case nil:
			err = s.BindNull(i + 1)
		case int64:
			err = s.BindInt64(i+1, v)
		case string:
			err = s.BindText(i+1, v)
		case []byte:
			err = s.BindBlob(i+1, v)
		default:
			panic(fmt.Sprintf("projections: can't bind a %T", arg))
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// run executes a statement that returns no rows.
func (c *conn) run(sql string, args ...any) error {
	s, err := c.bound(sql, args)
	if err != nil {
		return err
	}
	return s.Exec()
}

// each calls row for every row of the result, until an error.
func (c *conn) each(row func(*sqlite3.Stmt) error, sql string, args ...any) (err error) {
	s, err := c.bound(sql, args)
	if err != nil {
		return err
	}
	defer func() {
		if reset := s.Reset(); err == nil {
			err = reset
		}
	}()
	for s.Step() {
		if err := row(s); err != nil {
			return err
		}
		if err := s.Err(); err != nil {
			return err
		}
	}
	return s.Err()
}

// transact runs f in one write transaction.
func (c *conn) transact(f func() error) error {
	if err := c.db.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = c.db.Exec("COMMIT")
	}
	if err != nil && !c.db.GetAutocommit() {
		interrupt := c.db.SetInterrupt(context.Background()) // a cancelled context must not keep it from ending
		err = errors.Join(err, c.db.Exec("ROLLBACK"))
		c.db.SetInterrupt(interrupt)
	}
	return err
}

// isDamage reports whether an error says that the file is not what was written.
func isDamage(err error) bool {
	for _, code := range []sqlite3.ErrorCode{sqlite3.CORRUPT, sqlite3.NOTADB, sqlite3.CONSTRAINT, sqlite3.MISMATCH} {
		if errors.Is(err, code) {
			return true
		}
	}
	return errors.Is(err, sqlite3.IOERR_DATA) || errors.Is(err, sqlite3.IOERR_SHORT_READ)
}
