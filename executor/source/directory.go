package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// directory reads a tree as it lies.
type directory struct {
	guard   guard
	pass    pass
	entries []evidence.ManifestEntry
	skipped []Skipped
	listed  map[string]stamp // every file and directory as it was listed

	directories []string // the root first, as ""
	stack       dirStack // where copying is
	buf         []byte

	// refuseReserved makes a reserved name a refusal: nothing of its kind was there before.
	refuseReserved bool

	// onlyHomes makes listing look for homes alone and pass over everything else it would refuse.
	onlyHomes bool
}

var _ tree = (*directory)(nil)

// stamp is what must be equal when a file is copied and when it was listed.
type stamp struct {
	place        place
	mode         uint32
	size         int64
	mtime, ctime unix.Timespec
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{place: placeOf(st), mode: st.Mode, size: st.Size, mtime: st.Mtim, ctime: st.Ctim}
}

func openDirectoryTree(path string, g guard) (*directory, error) {
	root, err := openat(unix.AT_FDCWD, path, openDirectory, 0)
	if err != nil {
		return nil, refuse(CodeNotFound, "", "the source directory can't be opened: %v", err)
	}
	d := &directory{guard: g, listed: map[string]stamp{}, stack: newDirStack(root), buf: make([]byte, copyBuffer)}
	d.stack.open = d.reopen
	d.stack.leave = d.unchanged
	return d, nil
}

func (d *directory) close()                  { d.stack.close() }
func (d *directory) skippedPaths() []Skipped { return d.skipped }

func (d *directory) list(ctx context.Context, limits Limits) ([]evidence.ManifestEntry, error) {
	d.pass = pass{limits: limits}
	if err := d.visit(ctx, d.stack.fds[0], ""); err != nil {
		return nil, err
	}
	return d.entries, nil
}

// errEnough ends a search for homes at the bounds of a listing, which refuses the source anyway.
var errEnough = errors.New("more entries than any listing accepts")

// refuse passes a refusal on. While only homes are looked for it passes nothing on, and ends the
// search where there are too many entries.
func (d *directory) refuse(err error) error {
	if !d.onlyHomes {
		return err
	}
	var r *RefusedError
	if errors.As(err, &r) && r.Code == CodeTooManyFiles {
		return errEnough
	}
	return nil
}

// visit lists one open directory.
func (d *directory) visit(ctx context.Context, fd int, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.pass.directory(); err != nil {
		return d.refuse(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at source directory %q: %w", path, err)
	}
	d.listed[path] = stampOf(&st)
	d.directories = append(d.directories, path)
	names, err := d.names(fd, path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := d.visitName(ctx, fd, path, name); err != nil {
			return err
		}
	}
	return nil
}

// names reads and sorts a directory. Reading in chunks keeps a huge one from being held whole.
func (d *directory) names(fd int, path string) ([]string, error) {
	dup, err := openat(fd, ".", openDirectory, 0)
	if err != nil {
		return nil, refuse(unreadable(err), path, "the directory can't be read: %v", err)
	}
	f := os.NewFile(uintptr(dup), path)
	defer f.Close()
	var names []string
	for {
		chunk, err := f.Readdirnames(directoryChunk)
		names = append(names, chunk...)
		if err == io.EOF {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read source directory %q: %w", path, err)
		}
		if most := d.pass.limits.Files + d.pass.limits.Directories + d.pass.limits.Skipped; len(names) > most {
			return nil, d.refuse(refuse(CodeTooManyFiles, path, "the directory has more than %d entries: %s", most, d.pass.limits.advice()))
		}
	}
}

func (d *directory) visitName(ctx context.Context, fd int, dir, name string) error {
	path := evidence.JoinPath(dir, name)
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return refuse(unreadable(err), path, "it can't be looked at while the source is listed: %v", err)
	}
	kind := st.Mode & unix.S_IFMT
	if evidence.ReservedName(name) {
		if d.refuseReserved {
			return refuse(CodeReservedPath, path, "the name is reserved")
		}
		if dir != "" && kind == unix.S_IFREG && isGitFile(fd, name) {
			if err := d.refuse(refuse(CodeSubmodule, dir, submoduleText)); err != nil {
				return err
			}
		}
		return d.skip(path, SkippedReservedName)
	}
	if held, reserved := d.guard[placeOf(&st)]; reserved {
		if held == ReservedSocket {
			return d.skip(path, SkippedSocket)
		}
		return refuse(CodeHoldsHome, path, "the source holds the %s in use; keep it outside, or under a name like .baildock", held)
	}
	if kind == unix.S_IFDIR {
		return d.visitDirectory(ctx, fd, path, name)
	}
	if err := d.visitFile(fd, path, name, &st); err != nil {
		return d.refuse(err)
	}
	return nil
}

const submoduleText = "a submodule or another repository inside; its content isn't part of the source: check it by itself or copy it in"

func (d *directory) skip(path string, why SkipReason) error {
	if len(d.skipped) >= d.pass.limits.Skipped {
		return d.refuse(refuse(CodeTooManyFiles, path, "more than %d reserved names in the source: %s", d.pass.limits.Skipped, d.pass.limits.advice()))
	}
	d.skipped = append(d.skipped, Skipped{Path: path, Why: why})
	return nil
}

func (d *directory) visitDirectory(ctx context.Context, parent int, path, name string) error {
	if err := evidence.CheckPath(path); err != nil {
		// Deeper than any listing goes: a search for homes ends there, since the source is refused.
		return d.refuse(refuse(CodePath, "", "%v", err))
	}
	fd, err := openat(parent, name, openDirectory, 0)
	if err != nil {
		return refuse(unreadable(err), path, "the directory can't be opened as listed: %v", err)
	}
	defer unix.Close(fd) //nolint:errcheck // a read-only handle
	if holdsHome(fd) {
		return refuse(CodeHoldsHome, path, "the source holds a baildock home; keep it outside, or under a name like .baildock")
	}
	return d.visit(ctx, fd, path)
}

func holdsHome(fd int) bool {
	var st unix.Stat_t
	return unix.Fstatat(fd, homeLedgerName, &st, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		unix.Fstatat(fd, homeKeysName, &st, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		st.Mode&unix.S_IFMT == unix.S_IFDIR
}

func (d *directory) visitFile(fd int, path, name string, st *unix.Stat_t) error {
	e := evidence.ManifestEntry{Path: path, Mode: evidence.ModeFile, Size: uint64(st.Size)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if st.Mode&unix.S_IXUSR != 0 {
			e.Mode = evidence.ModeExecutable
		}
	case unix.S_IFLNK:
		e.Mode = evidence.ModeLink
	default:
		return refuse(CodeSpecialFile, path, "neither file, directory nor link (mode %06o); leave it out of the source", st.Mode)
	}
	if err := evidence.CheckPath(path); err != nil {
		return refuse(CodePath, "", "%v", err)
	}
	if st.Nlink > 1 {
		return refuse(CodeHardLink, path, "the file has %d names; copy it, so that nothing outside can change it", st.Nlink)
	}
	if err := d.pass.file(path, e.Mode, e.Size); err != nil {
		return err
	}
	if d.onlyHomes {
		return nil
	}
	if e.Mode == evidence.ModeLink {
		target, err := readLink(fd, name)
		if err != nil {
			return refuse(unreadable(err), path, "the link can't be read as listed: %v", err)
		}
		e.Target, e.Size = target, uint64(len(target))
	}
	d.listed[path] = stampOf(st)
	d.entries = append(d.entries, e)
	return nil
}

// unreadable tells a file that may not be read from one that was replaced meanwhile.
func unreadable(err error) Code {
	if errors.Is(err, fs.ErrPermission) {
		return CodeUnreadable
	}
	return CodeChanged
}

func readLink(fd int, name string) (string, error) {
	buf := make([]byte, evidence.MaxLinkTarget+1)
	n, err := unix.Readlinkat(fd, name, buf)
	if err == nil && n == len(buf) {
		err = fmt.Errorf("its target is longer than %d bytes", evidence.MaxLinkTarget)
	}
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// isGitFile reports whether a `.git` file leads to a repository elsewhere, as a submodule's does.
func isGitFile(fd int, name string) bool {
	f, err := openat(fd, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(f) //nolint:errcheck // a read-only handle
	const start = "gitdir:"
	buf := make([]byte, len(start))
	n, err := io.ReadFull(fdFile(f), buf)
	return err == nil && strings.HasPrefix(string(buf[:n]), start)
}

// reopen opens a directory again for copying; it must be the one listed.
func (d *directory) reopen(parent int, name, path string) (int, error) {
	fd, err := openat(parent, name, openDirectory, 0)
	if err != nil {
		return -1, refuse(unreadable(err), path, "the directory can't be opened as listed: %v", err)
	}
	if err := d.unchanged(fd, path); err != nil {
		unix.Close(fd) //nolint:errcheck // a read-only handle
		return -1, err
	}
	return fd, nil
}

// unchanged refuses what isn't, by its open handle, what was listed.
func (d *directory) unchanged(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %q: %w", path, err)
	}
	if stampOf(&st) != d.listed[path] {
		return refuse(CodeChanged, path, "it changed while the source was copied; try again when nothing writes there")
	}
	return nil
}

func (d *directory) copyFile(ctx context.Context, w io.Writer, e evidence.ManifestEntry) error {
	dir, name := evidence.SplitPath(e.Path)
	parent, err := d.stack.enter(dir)
	if err != nil {
		return err
	}
	return d.copyFrom(ctx, w, parent, name, e.Path, d.buf)
}

// copyFrom copies a listed file of an open directory: what is opened, what was read and what the name
// still stands for afterwards must all be what was listed.
func (d *directory) copyFrom(ctx context.Context, w io.Writer, parent int, name, path string, buf []byte) error {
	// O_NONBLOCK: a fifo put in the file's place must not block the open.
	fd, err := openat(parent, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return refuse(unreadable(err), path, "it can't be opened as listed: %v", err)
	}
	defer unix.Close(fd) //nolint:errcheck // a read-only handle
	if err := d.unchanged(fd, path); err != nil {
		return err
	}
	size := uint64(d.listed[path].size)
	n, err := copyExactly(ctx, w, fdFile(fd), size, buf)
	if err != nil {
		return fmt.Errorf("copy source file %q: %w", path, err)
	}
	if n != size {
		return refuse(CodeChanged, path, "it changed its size while it was copied; try again when nothing writes there")
	}
	if err := d.unchanged(fd, path); err != nil {
		return err
	}
	return d.stillThere(parent, name, path)
}

// stillThere refuses a name that stands for something else than was listed.
func (d *directory) stillThere(parent int, name, path string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return refuse(unreadable(err), path, "it went away while the source was copied: %v", err)
	}
	if stampOf(&st) != d.listed[path] {
		return refuse(CodeChanged, path, "something else was put in its place while the source was copied; try again when nothing writes there")
	}
	return nil
}

func (d *directory) finish() error { return d.stack.finish() }
