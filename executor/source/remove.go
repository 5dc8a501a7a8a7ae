package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// Remove removes a snapshot, or what an interrupted one left: it makes directories writable and
// deletes them through handles, never through a link and never on another filesystem. Removing
// what isn't there is no error, so that a removal can be repeated.
func Remove(dir string) error {
	parent, name := filepath.Split(filepath.Clean(dir))
	if name == "" || parent == "" {
		return fmt.Errorf("remove snapshot: %q is no absolute path", dir)
	}
	fd, err := openat(unix.AT_FDCWD, filepath.Clean(parent), openDirectory, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove snapshot %q: open its parent: %w", name, err)
	}
	return errors.Join(removeAt(fd, name), unix.Close(fd))
}

// RemoveEntries removes everything in an open directory, whatever it is, through handles: links are
// removed, not followed, and nothing is on another filesystem. It returns how many entries went.
func RemoveEntries(dir *os.File) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return 0, fmt.Errorf("remove what %q holds: %w", dir.Name(), err)
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, fmt.Errorf("remove what %q holds: %w", dir.Name(), err)
	}
	removed := 0
	var errs []error
	for _, name := range names {
		if err := removeEntry(int(dir.Fd()), name, uint64(st.Dev), 0); err != nil {
			errs = append(errs, fmt.Errorf("remove %q: %w", name, err))
			continue
		}
		removed++
	}
	return removed, errors.Join(errs...)
}

// removeAt removes directory name of an open parent.
func removeAt(parent int, name string) error {
	var st unix.Stat_t
	err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = errors.New("it is not a directory")
	}
	if err == nil {
		err = removeTree(parent, name, uint64(st.Dev), 0)
	}
	if err != nil {
		return fmt.Errorf("remove snapshot %q: %w", name, err)
	}
	return nil
}

func removeTree(parent int, name string, device uint64, depth int) error {
	if depth > evidence.MaxPathDepth {
		return fmt.Errorf("deeper than %d directories", evidence.MaxPathDepth)
	}
	fd, err := openRemovable(parent, name, device)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	err = removeEntries(f, device, depth)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
}

// openRemovable opens a directory on the snapshot's own filesystem and makes it writable. Its
// owner can always read it: a snapshot's directories are 0700 or 0555.
func openRemovable(parent int, name string, device uint64) (int, error) {
	fd, err := openat(parent, name, openDirectory, 0)
	if err != nil {
		return -1, fmt.Errorf("open %q: %w", name, err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && uint64(st.Dev) != device {
		err = errors.New("another filesystem is mounted there")
	}
	if err == nil && st.Mode&0o700 != 0o700 {
		err = unix.Fchmod(fd, whileWriting)
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("%q: %w", name, err), unix.Close(fd))
	}
	return fd, nil
}

func removeEntries(dir *os.File, device uint64, depth int) error {
	fd := int(dir.Fd())
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := removeEntry(fd, name, device, depth+1); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return nil
}

// removeEntry removes one entry of an open directory; one that is gone already is no error.
func removeEntry(parent int, name string, device uint64, depth int) error {
	err := unix.Unlinkat(parent, name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		err = removeTree(parent, name, device, depth)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
