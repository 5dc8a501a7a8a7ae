package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

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
	r, err := newRemover(dir)
	if err != nil {
		return 0, fmt.Errorf("remove what %q holds: %w", dir.Name(), err)
	}
	removed, err := r.all()
	return removed, err
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
		err = removeRoot(parent, name, uint64(st.Dev))
	}
	if err != nil {
		return fmt.Errorf("remove snapshot %q: %w", name, err)
	}
	return nil
}

func removeRoot(parent int, name string, device uint64) error {
	fd, err := openRemovable(parent, name, device)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	r, err := newRemover(f)
	if err == nil {
		_, err = r.all()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
}

// remover empties one directory. What lies too deep to hold a handle for each level is first moved up
// into it.
type remover struct {
	root   *os.File
	device uint64
	lifted int
}

func newRemover(root *os.File) (*remover, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(root.Fd()), &st)
	return &remover{root: root, device: uint64(st.Dev)}, err
}

// all removes every entry it can and returns how many there were that went.
func (r *remover) all() (int, error) {
	removed := 0
	for {
		if _, err := r.root.Seek(0, io.SeekStart); err != nil {
			return removed, err
		}
		names, err := r.root.Readdirnames(-1)
		if err != nil {
			return removed, err
		}
		var errs []error
		moved := r.lifted
		for _, name := range names {
			if err := r.entry(int(r.root.Fd()), name, 0); err != nil {
				errs = append(errs, fmt.Errorf("remove %q: %w", name, err))
				continue
			}
			removed++
		}
		if len(errs) > 0 || r.lifted == moved {
			return removed - r.lifted, errors.Join(errs...)
		}
	}
}

func (r *remover) tree(parent int, name string, depth int) error {
	fd, err := openRemovable(parent, name, r.device)
	if err != nil {
		return err
	}
	if depth > evidence.MaxPathDepth {
		return errors.Join(r.lift(parent, name), unix.Close(fd))
	}
	f := os.NewFile(uintptr(fd), name)
	err = r.entries(f, depth)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
}

// lift moves a deep directory up to the root under a name that nobody can have taken.
func (r *remover) lift(parent int, name string) error {
	to, err := RandomSuffix()
	if err != nil {
		return err
	}
	if err := unix.Renameat(parent, name, int(r.root.Fd()), to); err != nil {
		return fmt.Errorf("move %q up: %w", name, err)
	}
	r.lifted++
	return nil
}

// openRemovable opens a directory on the root's own filesystem and makes it writable. A directory of
// ours that its owner may not read is opened without reading it first.
func openRemovable(parent int, name string, device uint64) (int, error) {
	fd, err := openat(parent, name, openDirectory, 0)
	if errors.Is(err, unix.EACCES) {
		if err = allowOwner(parent, name); err == nil {
			fd, err = openat(parent, name, openDirectory, 0)
		}
	}
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

// allowOwner makes a directory readable to its owner. A handle that only stands for a path takes no
// chmod itself, so it goes by the handle's own name.
func allowOwner(parent int, name string) error {
	fd, err := openat(parent, name, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), whileWriting), unix.Close(fd))
}

func (r *remover) entries(dir *os.File, depth int) error {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.entry(int(dir.Fd()), name, depth+1); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return nil
}

// entry removes one entry of an open directory; one that is gone already is no error.
func (r *remover) entry(parent int, name string, depth int) error {
	err := unix.Unlinkat(parent, name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		err = r.tree(parent, name, depth)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
