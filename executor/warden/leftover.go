package warden

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// clear removes every entry of execution/<attempt>/<generation>/, for every generation, and the
// empty directories above (req G7). It opens each directory by its handle, follows no link and takes
// no path from anywhere but the home. It returns how many entries went.
func (h Home) clear(id evidence.AttemptID) (removed int, err error) {
	attempt, err := h.openExecution(id)
	if attempt == nil || err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, attempt.Close()) }()
	names, err := attempt.Readdirnames(-1)
	if err != nil {
		return 0, fmt.Errorf("read the execution directory of %s: %w", id, err)
	}
	var errs []error
	for _, name := range names {
		n, err := clearGeneration(attempt, name)
		removed += n
		if err != nil {
			errs = append(errs, fmt.Errorf("clear generation %q of %s: %w", name, id, err))
		}
	}
	h.rmdirExecution(id)
	return removed, errors.Join(errs...)
}

// openExecution opens execution/<attempt> through the home's own handle; nil when there is none.
func (h Home) openExecution(id evidence.AttemptID) (*os.File, error) {
	if _, err := evidence.ParseAttemptID(string(id)); err != nil {
		return nil, err
	}
	dir, err := openDirectory(unix.AT_FDCWD, h.Dir)
	for _, name := range []string{executionName, string(id)} {
		if err != nil {
			break
		}
		parent := dir
		dir, err = openDirectory(int(parent.Fd()), name)
		err = errors.Join(err, parent.Close())
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("open the execution directory of %s: %w", id, err)
	}
	return dir, nil
}

// openDirectory opens a directory that is no link. The result is nil on an error.
func openDirectory(parent int, name string) (*os.File, error) {
	for {
		fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), name), nil
		case unix.EINTR:
		default:
			return nil, err
		}
	}
}

func clearGeneration(attempt *os.File, name string) (removed int, err error) {
	dir, err := openDirectory(int(attempt.Fd()), name)
	if errors.Is(err, unix.ENOENT) {
		return 0, nil // somebody else clears it too
	}
	if err != nil {
		return 0, err
	}
	removed, err = source.RemoveEntries(dir)
	if err = errors.Join(err, dir.Close()); err != nil {
		return removed, err
	}
	err = unix.Unlinkat(int(attempt.Fd()), name, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOENT) {
		err = nil
	}
	return removed, err
}

// rmdirExecution removes the attempt's own directory if it is empty; what isn't empty stays.
func (h Home) rmdirExecution(id evidence.AttemptID) {
	execution, err := openDirectory(unix.AT_FDCWD, h.Dir+"/"+executionName)
	if err != nil {
		return
	}
	unix.Unlinkat(int(execution.Fd()), string(id), unix.AT_REMOVEDIR) //nolint:errcheck // it stays then
	execution.Close()                                                 //nolint:errcheck // a read-only handle
}

// leftovers lists the attempts that have a directory in the home's execution directory.
func (h Home) leftovers() ([]evidence.AttemptID, error) { return h.named(executionName) }

// locked lists the attempts that have a lock file, held or not.
func (h Home) locked() ([]evidence.AttemptID, error) { return h.named(locksName) }

func (h Home) named(directory string) ([]evidence.AttemptID, error) {
	entries, err := os.ReadDir(h.Dir + "/" + directory)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the home's %s: %w", directory, err)
	}
	var ids []evidence.AttemptID
	for _, e := range entries {
		// Whatever else lies there is nobody's attempt.
		if id, err := evidence.ParseAttemptID(e.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
