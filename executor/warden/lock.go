package warden

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// Lock is the lock of one attempt, or of one custody file: a flock on a file of its own. It is held until it is closed or
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
	l, err := takeLock(filepath.Join(dir, string(id)))
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, &HeldError{Attempt: id}
	}
	if err != nil {
		return nil, fmt.Errorf("lock attempt %s: %w", id, err)
	}
	return l, nil
}

// takeLock takes the lock of a file, which it makes. It fails with unix.EWOULDBLOCK while another
// process has it.
func takeLock(path string) (*Lock, error) {
	for range maxLockRaces {
		l, err := tryLock(path)
		if l != nil || err != nil {
			return l, err
		}
	}
	return nil, fmt.Errorf("its file was replaced %d times; somebody deletes it in a loop", maxLockRaces)
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

// RunnerGone reports whether an attempt was claimed from this home by a process that lives no more:
// its lock is free. It is said of this moment, and of running attempts only.
func (h Home) RunnerGone(a evidence.Attempt) (bool, error) {
	here, err := h.Identity()
	if err != nil || a.State != evidence.StateRunning || a.Claimed == nil || !sameHome(a.Claimed.Home, here) {
		return false, err
	}
	f, err := os.OpenFile(filepath.Join(h.Dir, locksName, string(a.Registered.Attempt)), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the lock of attempt %s: %w", a.Registered.Attempt, err)
	}
	// Shared, so that two who look don't take each other for a runner.
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	closeErr := f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, closeErr
	}
	return err == nil, errors.Join(err, closeErr)
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
