package warden

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// Lock is the lock of one attempt: a flock on a file of the home. It is held until it is closed or
// the process ends, whatever ends it. No child inherits it.
type Lock struct {
	path string
	file *os.File
}

// HeldError says that another process holds the lock of an attempt: its runner lives.
type HeldError struct {
	Attempt evidence.AttemptID
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("attempt %s is in the hands of another process of this home; wait for it, or stop that process", e.Attempt)
}

// Lock takes the lock of an attempt. It fails with *HeldError while another process has it.
func (h Home) Lock(id evidence.AttemptID) (*Lock, error) {
	if _, err := evidence.ParseAttemptID(string(id)); err != nil {
		return nil, err
	}
	dir := filepath.Join(h.Dir, locksName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of locks: %w", err)
	}
	path := filepath.Join(dir, string(id))
	for range maxLockRaces {
		l, err := tryLock(path)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &HeldError{Attempt: id}
		}
		if err != nil {
			return nil, fmt.Errorf("lock attempt %s: %w", id, err)
		}
		if l != nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("lock attempt %s: its file was replaced %d times; somebody deletes it in a loop", id, maxLockRaces)
}

// tryLock returns nil when the file that was locked isn't the one that lies there any more: its
// last holder deleted it in between.
func tryLock(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	l := &Lock{path: path, file: f}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	same, err := l.lies()
	if err != nil || !same {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// lies reports whether the file held is the one at its path.
func (l *Lock) lies() (bool, error) {
	var held, there unix.Stat_t
	if err := unix.Fstat(int(l.file.Fd()), &held); err != nil {
		return false, err
	}
	err := unix.Lstat(l.path, &there)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil && held.Dev == there.Dev && held.Ino == there.Ino, err
}

// Delete removes the lock file of a finished attempt, by its holder and only if it is the file
// held, and lets go.
func (l *Lock) Delete() error {
	same, err := l.lies()
	if err == nil && same {
		err = os.Remove(l.path)
	}
	return errors.Join(err, l.Close())
}

// Close lets go and leaves the file.
func (l *Lock) Close() error { return l.file.Close() }
