package source

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// Listed is one entry of a directory tree as it lay.
type Listed struct {
	Path    string
	Type    evidence.EntryType
	Mode    uint32    // permission bits, set-ID and sticky ones too
	Size    uint64    // bytes of a file or of a link's target; 0 for a directory
	Target  string    // of a link
	ModTime time.Time // of a file
}

// ListRequest asks for a listing.
type ListRequest struct {
	Root     *os.File   // the directory, open
	Path     string     // where it lies; refused if that is in a home. Empty: its maker knows it isn't
	Reserved []Reserved // what is in use: home, ledger, keys, Docker socket
	Limits   Limits
	Strict   bool // a reserved name refuses the tree instead of being skipped
}

// Listing is a directory tree as it lay at one moment, to be read by several workers at once. What is
// read through it is what was listed, or the read fails with *RefusedError (CodeChanged).
type Listing struct {
	Entries []Listed  // sorted by path, the root apart
	Skipped []Skipped // sorted by path

	tree *directory
}

// List looks at every entry, opens every directory, reads no file, and refuses what no source may hold:
// special files, hard links, unclean paths, another repository, a home, more than the limits. Links are
// read but not judged. The listing keeps its own handle of the root; close it.
func List(ctx context.Context, r ListRequest) (*Listing, error) {
	g, err := newGuard(r.Reserved)
	if err != nil {
		return nil, err
	}
	if r.Path != "" {
		if err := g.checkOutside(r.Path); err != nil {
			return nil, err
		}
	}
	root, err := openat(int(r.Root.Fd()), ".", openDirectory, 0)
	if err != nil {
		return nil, refuse(unreadable(err), "", "the directory can't be read: %v", err)
	}
	d := &directory{guard: g, listed: map[string]stamp{}, stack: newDirStack(root), refuseReserved: r.Strict}
	entries, err := d.list(ctx, r.Limits)
	if err != nil {
		d.close()
		return nil, err
	}
	l := &Listing{tree: d, Skipped: d.skipped}
	for _, path := range d.directories[1:] {
		l.Entries = append(l.Entries, Listed{Path: path, Type: evidence.EntryDirectory, Mode: d.listed[path].mode & evidence.PermAll})
	}
	for _, e := range entries {
		st := d.listed[e.Path]
		entry := Listed{Path: e.Path, Type: evidence.EntryFile, Mode: st.mode & evidence.PermAll, Size: e.Size, Target: e.Target, ModTime: time.Unix(st.mtime.Unix())}
		if e.Mode == evidence.ModeLink {
			entry.Type, entry.Mode = evidence.EntryLink, 0
		}
		l.Entries = append(l.Entries, entry)
	}
	slices.SortFunc(l.Entries, func(a, b Listed) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(l.Skipped, func(a, b Skipped) int { return strings.Compare(a.Path, b.Path) })
	return l, nil
}

// Close gives the root's handle back.
func (l *Listing) Close() { l.tree.close() }

// Opened is a directory of a listing, open. It belongs to one worker.
type Opened struct {
	tree *directory
	path string
	fd   int
}

// Open opens a listed directory, "" being the root, one name after the other from the root, never
// through a link. Each must be the one listed.
func (l *Listing) Open(path string) (*Opened, error) {
	fd, err := l.tree.reach(path)
	if err != nil {
		return nil, err
	}
	return &Opened{tree: l.tree, path: path, fd: fd}, nil
}

func (d *directory) reach(path string) (int, error) {
	fd, err := d.reopen(d.stack.fds[0], ".", "")
	for at := ""; err == nil && at != path; {
		name, _, _ := strings.Cut(strings.TrimPrefix(path[len(at):], "/"), "/")
		at = evidence.JoinPath(at, name)
		var next int
		next, err = d.reopen(fd, name, at)
		unix.Close(fd) //nolint:errcheck // a read-only handle
		fd = next
	}
	return fd, err
}

// Read writes exactly the bytes of a listed file of this directory, or fails. The buffer is the
// worker's own.
func (o *Opened) Read(ctx context.Context, w io.Writer, name string, buf []byte) error {
	return o.tree.copyFrom(ctx, w, o.fd, name, evidence.JoinPath(o.path, name), buf)
}

// Close proves that the directory's path still leads to what was listed, and closes it.
func (o *Opened) Close() error {
	unix.Close(o.fd) //nolint:errcheck // a read-only handle
	fd, err := o.tree.reach(o.path)
	if err != nil {
		return err
	}
	if err := unix.Close(fd); err != nil {
		return fmt.Errorf("close source directory %q: %w", o.path, err)
	}
	return nil
}

// Abandon closes the directory after a failure.
func (o *Opened) Abandon() { unix.Close(o.fd) } //nolint:errcheck // a read-only handle
