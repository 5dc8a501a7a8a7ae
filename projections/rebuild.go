package projections

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
)

// checkForm compares the form the file was made in with this program's.
func (c *conn) checkForm() error {
	var app int64
	if err := c.each(func(s *sqlite3.Stmt) error { app = s.ColumnInt64(0); return nil }, "PRAGMA application_id"); err != nil {
		return err
	}
	if app != applicationID {
		return errStale
	}
	found := ""
	if err := c.each(func(s *sqlite3.Stmt) error { found = s.ColumnText(0); return nil }, "SELECT form FROM position"); err != nil {
		if errors.Is(err, sqlite3.ERROR) { // a file of ours without the table is of another form
			return errors.Join(errStale, err)
		}
		return err
	}
	if found != form {
		return errStale
	}
	return nil
}

// rebuild makes a new file beside and puts it in place, alone with the lock, which it leaves
// taken. Unless it must, it first looks whether another process has done so meanwhile.
func (p *Projections) rebuild(ctx context.Context, must bool) error {
	before := p.file
	if err := p.drop(); err != nil && !isDamage(err) {
		return err
	}
	if err := p.lock.own(ctx); err != nil {
		return err
	}
	if done, err := p.rebuiltByOther(ctx, before, must); done || err != nil {
		return err
	}
	beside := p.path + ".rebuild"
	if err := removeAll(beside); err != nil {
		return err
	}
	if err := p.build(ctx, beside); err != nil {
		return errors.Join(err, removeAll(beside))
	}
	// What a crash left beside the old file must never be taken for the new one's.
	if err := removeCompanions(p.path); err != nil {
		return err
	}
	if err := os.Rename(beside, p.path); err != nil {
		return err
	}
	return syncFile(filepath.Dir(p.path))
}

// rebuiltByOther reports whether the file in place is good. A damaged one that this process had
// open is good only if it is another file now.
func (p *Projections) rebuiltByOther(ctx context.Context, before os.FileInfo, must bool) (bool, error) {
	now, err := os.Stat(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if must && (before == nil || os.SameFile(before, now)) {
		return false, nil
	}
	if err := p.reopen(); err != nil {
		return false, p.drop()
	}
	if err := p.run.checkPosition(ctx, p.conn); err != nil {
		return false, p.drop()
	}
	return true, nil
}

func (p *Projections) build(ctx context.Context, path string) error {
	c, err := create(path)
	if err != nil {
		return err
	}
	err = newRunner(p.led).catchUp(ctx, c, p.progress)
	if err == nil {
		err = c.db.Exec("BEGIN; " + indexed + "; COMMIT")
	}
	if err != nil {
		return errors.Join(err, c.close())
	}
	if err := c.close(); err != nil {
		return err
	}
	return syncFile(path)
}

func removeAll(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return removeCompanions(path)
}

func removeCompanions(path string) error {
	for _, suffix := range []string{"-journal", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// syncFile makes a file or a directory durable.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
