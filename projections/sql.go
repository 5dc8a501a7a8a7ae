package projections

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

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
// fails with *QueryError for a statement that can't be answered, and for one that would make a value,
// an answer or a wait beyond the bounds of a statement.
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
		limited, cancel := context.WithTimeout(ctx, p.patience)
		defer cancel()
		db.SetInterrupt(limited)
		t, err = answer(db, text)
		if err != nil && limited.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("it took longer than %v: ask for less, or check that it ends", p.patience)
		}
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
	db.Limit(sqlite3.LIMIT_LENGTH, maxCell)
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
