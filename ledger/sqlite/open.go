package sqlite

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/ledger"
)

const (
	// applicationID marks the file as a Baildock ledger: "Bail" in ASCII.
	applicationID = 0x4261696c
	// form is the store form this program reads and writes, kept as the file's user_version.
	form = 1
)

//go:embed schema.sql
var schema string

// FormError says that a file holds a ledger in a form this program doesn't know.
type FormError struct {
	Path         string
	Found, Known int64
}

func (e *FormError) Error() string {
	return fmt.Sprintf("%s holds a ledger in store form %d, but this program knows form %d; use the version of baildock that wrote it, or a newer one",
		e.Path, e.Found, e.Known)
}

// prepareFile resolves the path, refuses network file systems and files that aren't ledgers without
// touching them, and creates an empty file if there is none.
func prepareFile(path string, opts Options) (string, error) {
	path, err := realPath(path)
	if err != nil {
		return "", fmt.Errorf("open ledger: %w", err)
	}
	if err := RefuseNetwork(filepath.Dir(path)); err != nil {
		return "", err
	}
	flags := os.O_RDWR | os.O_CREATE
	if opts.MustExist {
		flags = os.O_RDWR
	}
	f, err := os.OpenFile(path, flags, 0o600)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no ledger at %s; create one with: baildock init (%w)", path, fs.ErrNotExist)
	case err != nil:
		return "", fmt.Errorf("the ledger can't be opened for writing; check the permissions, and that the file system isn't mounted read-only: %w", err)
	}
	err = checkFile(f, path)
	return path, errors.Join(err, f.Close())
}

// realPath follows every link: SQLite keeps its companions beside the real file and follows no
// link at the end of a path.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// Where a SQLite file says what it is (SQLite's file format, section 1.3).
const (
	headerBytes = 100
	headerMagic = "SQLite format 3\x00"
	headerAppID = 68 // big-endian, 4 bytes
)

// checkFile refuses anything but an empty file and a ledger, by reading the header alone.
func checkFile(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open ledger: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("open ledger: %s is not a regular file", path)
	}
	if err := RefuseNetwork(path); err != nil { // a file may be a mount point of its own
		return err
	}
	if info.Size() == 0 {
		return nil
	}
	var header [headerBytes]byte
	if _, err := f.ReadAt(header[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("open ledger: %w", err)
	}
	if header == [headerBytes]byte{} {
		return nil // perhaps another process is just creating it; SQLite looks again, under its lock
	}
	if string(header[:len(headerMagic)]) != headerMagic {
		return &ledger.DamagedError{What: path + " is not a Baildock ledger: it isn't a SQLite file, or its start is damaged"}
	}
	if app := binary.BigEndian.Uint32(header[headerAppID:]); app != applicationID {
		return &ledger.DamagedError{What: fmt.Sprintf("%s is a SQLite file but not a Baildock ledger (application ID %#x, expected %#x)", path, app, applicationID)}
	}
	return nil
}

// openReady opens the writing connection and makes sure the file has the known form.
func openReady(ctx context.Context, path string, opts Options) (*conn, error) {
	var c *conn
	err := patiently(ctx, opts.BusyTimeout, func() (err error) {
		if c, err = openConn(ctx, path, opts); err != nil {
			return err
		}
		if err = c.ready(path); err != nil {
			return errors.Join(err, c.close())
		}
		return nil
	})
	if err != nil {
		return nil, explain(err, path, "open the ledger")
	}
	return c, nil
}

// ready creates the tables in an empty file, checks the form and switches to the write-ahead log.
//
// The tables come first, so that every state of the file after its first byte says what it is.
func (c *conn) ready(path string) error {
	made, err := c.formNow(path)
	if err != nil {
		return err
	}
	if !made {
		if err := c.create(path); err != nil {
			return err
		}
	}
	var mode string
	if _, err := c.one(func(s *sqlite3.Stmt) error { mode = s.ColumnText(0); return s.Err() }, "PRAGMA journal_mode=WAL"); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file system of %s doesn't support SQLite's write-ahead log (journal mode is %q); keep the ledger on a local disk", path, mode)
	}
	// The log and the journal take the file's mode by themselves. The shared memory, which the
	// first read makes, doesn't.
	if _, err := c.size(); err != nil {
		return err
	}
	if err := os.Chmod(path+"-shm", 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open ledger: %w", err)
	}
	return nil
}

func (c *conn) create(path string) error {
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	made, err := c.checkForm(path) // another process may have been faster
	if err == nil && !made {
		err = c.exec(fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d; %s", applicationID, form, schema))
	}
	if err == nil {
		err = c.exec("COMMIT")
	}
	if err != nil {
		if !c.db.GetAutocommit() {
			err = errors.Join(err, c.exec("ROLLBACK"))
		}
		return err
	}
	return syncDir(filepath.Dir(path))
}

// formNow is checkForm over one state of the file: its questions apart could see both sides of
// another process's create.
func (c *conn) formNow(path string) (made bool, err error) {
	if err := c.exec("BEGIN"); err != nil {
		return false, err
	}
	made, err = c.checkForm(path)
	return made, errors.Join(err, c.exec("ROLLBACK"))
}

// checkForm tells whether the file has the tables of the known form (true) or is empty (false).
// Anything else is refused.
func (c *conn) checkForm(path string) (made bool, err error) {
	var app, version, objects int64
	for sql, to := range map[string]*int64{
		"PRAGMA application_id":              &app,
		"PRAGMA user_version":                &version,
		"SELECT count(*) FROM sqlite_schema": &objects,
	} {
		if _, err := c.one(func(s *sqlite3.Stmt) error { *to = s.ColumnInt64(0); return nil }, sql); err != nil {
			return false, err
		}
	}
	switch {
	case app == 0 && version == 0 && objects == 0:
		return false, nil
	case app != applicationID:
		return false, fmt.Errorf("%s is a SQLite file but not a Baildock ledger; name another file", path)
	case version != form:
		return false, &FormError{Path: path, Found: version, Known: form}
	}
	return true, nil
}

// syncDir makes new names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
