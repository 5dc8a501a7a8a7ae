package kurrentdb

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// conn is one SQLite connection with its prepared statements, used by one goroutine at a time.
type conn struct {
	db    *sqlite3.Conn
	stmts map[string]*sqlite3.Stmt
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.db.Close())...)
}

func (c *conn) bound(sql string, args []any) (*sqlite3.Stmt, error) {
	s := c.stmts[sql]
	if s == nil {
		var err error
		if s, _, err = c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return nil, err
		}
		c.stmts[sql] = s
	}
	for i, arg := range args {
		var err error
		switch v := arg.(type) {
		case int64:
			err = s.BindInt64(i+1, v)
		case string:
			err = s.BindText(i+1, v)
		case []byte:
			err = s.BindBlob(i+1, v)
		default:
			panic(fmt.Sprintf("kurrentdb: can't bind a %T", arg))
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (c *conn) run(sql string, args ...any) error {
	s, err := c.bound(sql, args)
	if err != nil {
		return err
	}
	return s.Exec()
}

// each calls row for every row of the result until it returns an error.
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
	}
	return s.Err()
}

// one is each for a result of one row at most.
func (c *conn) one(row func(*sqlite3.Stmt) error, sql string, args ...any) (found bool, err error) {
	err = c.each(func(s *sqlite3.Stmt) error {
		found = true
		return row(s)
	}, sql, args...)
	return found, err
}
