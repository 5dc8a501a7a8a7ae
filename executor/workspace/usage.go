package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// Usage is what a workspace holds while its agent runs (req N10).
type Usage struct {
	Entries uint64 // files, links, directories and whatever else
	Bytes   uint64 // of each file its size or what it takes on disk, whichever is more
	Free    uint64 // bytes left on its disk: files that were deleted and are still open show only here
	Broken  Bound  // the first bound found broken, where counting ended; empty: none
}

// Bound names what a workspace may not exceed while its agent runs.
type Bound string

const (
	BoundEntries Bound = "workspace_entries" // MaxWorkspaceEntries
	BoundBytes   Bound = "workspace_bytes"   // MaxWorkspaceBytes
	BoundFile    Bound = "workspace_file"    // MaxWorkspaceFile
	BoundDepth   Bound = "workspace_depth"   // MaxPathDepth
	BoundHidden  Bound = "workspace_hidden"  // a directory whose content can't be counted
	BoundDisk    Bound = "workspace_disk"    // less than MinFreeRunning left
)

// Usage counts what lies in the workspace, through handles and without following links, and stops at the
// first bound that is broken; the run is then to be stopped. It may be called from another goroutine while
// the agent runs: what comes and goes meanwhile may or may not be counted. It costs about two
// microseconds an entry, so a caller waits at least ten times as long as the last call took.
func (w *Workspace) Usage() (Usage, error) {
	free, err := freeBytes(w.tree)
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Free: free}
	if free < MinFreeRunning {
		u.Broken = BoundDisk
		return u, nil
	}
	err = u.count(int(w.tree.Fd()), ".", 0)
	return u, err
}

// count adds a directory. One that went away meanwhile adds nothing.
func (u *Usage) count(parent int, name string, depth int) error {
	if depth > evidence.MaxPathDepth {
		u.Broken = BoundDepth
		return nil
	}
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.EACCES):
		u.Broken = BoundHidden
		return nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil
	case err != nil:
		return fmt.Errorf("count the workspace: %w", err)
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close() //nolint:errcheck // a read-only handle
	for u.Broken == "" {
		names, err := dir.Readdirnames(512)
		for _, n := range names {
			if err := u.entry(fd, n, depth); err != nil || u.Broken != "" {
				return err
			}
		}
		if err == io.EOF || errors.Is(err, unix.ENOENT) { // ENOENT: removed since it was opened
			return nil
		}
		if err != nil {
			return fmt.Errorf("count the workspace: %w", err)
		}
	}
	return nil
}

func (u *Usage) entry(parent int, name string, depth int) error {
	var st unix.Stat_t
	err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EACCES):
		u.Broken = BoundHidden
		return nil
	case err != nil:
		return fmt.Errorf("count the workspace: %w", err)
	}
	if u.Entries++; u.Entries > evidence.MaxWorkspaceEntries {
		u.Broken = BoundEntries
		return nil
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return u.count(parent, name, depth+1)
	}
	size := max(uint64(st.Size), uint64(st.Blocks)*512)
	if uint64(st.Size) > evidence.MaxWorkspaceFile {
		u.Broken = BoundFile
	}
	if u.Bytes += size; u.Bytes > evidence.MaxWorkspaceBytes && u.Broken == "" {
		u.Broken = BoundBytes
	}
	return nil
}

// freeBytes is what an ordinary user may still write to a directory's disk.
func freeBytes(dir *os.File) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &fs); err != nil {
		return 0, fmt.Errorf("look at the disk: %w", err)
	}
	return fs.Bavail * uint64(fs.Bsize), nil
}

// FreeBytes is what an ordinary user may still write to the disk of an existing directory.
func FreeBytes(path string) (uint64, error) {
	dir, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("look at the disk: %w", errors.Unwrap(err))
	}
	defer dir.Close() //nolint:errcheck // a read-only handle
	return freeBytes(dir)
}
