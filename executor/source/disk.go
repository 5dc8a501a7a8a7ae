package source

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// Modes of a snapshot: everyone may read, since the container's user owns nothing in it, and
// nobody may write.
const (
	frozenDirectory = 0o555
	frozenFile      = 0o444
	frozenExec      = 0o555
	whileWriting    = 0o700
)

// disk writes a tree into a new directory, through handles only.
type disk struct {
	stack dirStack
}

var _ sink = (*disk)(nil)

func newDisk(parent int, name string) (*disk, error) {
	if err := unix.Mkdirat(parent, name, whileWriting); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return nil, refuse(CodeExists, "", "the snapshot's directory %q exists already", name)
		}
		return nil, fmt.Errorf("create snapshot %q: %w", name, err)
	}
	root, err := openat(parent, name, openDirectory, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open snapshot %q: %w", name, err), unix.Unlinkat(parent, name, unix.AT_REMOVEDIR))
	}
	d := &disk{stack: newDirStack(root)}
	d.stack.open = func(parent int, name, path string) (int, error) {
		if err := unix.Mkdirat(parent, name, whileWriting); err != nil {
			return -1, fmt.Errorf("create snapshot directory %q: %w", path, err)
		}
		return openat(parent, name, openDirectory, 0)
	}
	d.stack.leave = func(fd int, path string) error {
		if err := unix.Fchmod(fd, frozenDirectory); err != nil {
			return fmt.Errorf("freeze snapshot directory %q: %w", path, err)
		}
		return nil
	}
	return d, nil
}

func (d *disk) file(e evidence.ManifestEntry) (io.WriteCloser, error) {
	dir, name := evidence.SplitPath(e.Path)
	parent, err := d.stack.enter(dir)
	if err != nil {
		return nil, err
	}
	mode := uint32(frozenFile)
	if e.Mode == evidence.ModeExecutable {
		mode = frozenExec
	}
	fd, err := openat(parent, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, mode)
	if err != nil {
		return nil, fmt.Errorf("create snapshot file %q: %w", e.Path, err)
	}
	// The umask may have taken bits away.
	if err := unix.Fchmod(fd, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("freeze snapshot file %q: %w", e.Path, err), unix.Close(fd))
	}
	return fdFile(fd), nil
}

func (d *disk) link(e evidence.ManifestEntry) error {
	dir, name := evidence.SplitPath(e.Path)
	parent, err := d.stack.enter(dir)
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(e.Target, parent, name); err != nil {
		return fmt.Errorf("create snapshot link %q: %w", e.Path, err)
	}
	return nil
}

func (d *disk) finish() error { return d.stack.finish() }
func (d *disk) close()        { d.stack.close() }
