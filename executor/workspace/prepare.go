package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// Names inside a prepared directory.
const (
	treeName      = "workspace"
	evidenceName  = "evidence"
	baselineName  = "baseline.cbor"
	ownershipName = "ownership.json"
	originName    = "origin.json"
	textsName     = "texts"
)

// Request asks for a workspace.
type Request struct {
	Root     string                 // the repository; never written to
	Parent   string                 // existing directory of mode 0700, owned by this user; absolute
	Writable evidence.WritablePaths // trees of the copy the agent may write to
	Reserved []source.Reserved      // what is in use: home, ledger, keys, Docker socket

	hooks hooks
}

// hooks are called at the moments a hostile writer would choose. Tests alone set them.
type hooks struct {
	listed, made func()
	opened, read func(path string)
}

// Baseline is the workspace before its agent had it.
type Baseline struct {
	Manifest evidence.WorkspaceManifest
	Digest   evidence.WorkspaceDigest
	Git      *source.GitState // nil: the source is no git working tree
	Skipped  []source.Skipped // what of the source stayed behind, by path
	Stripped int              // files and directories whose set-ID or sticky bits stayed behind
}

// Workspace is a prepared copy. Its methods are for one goroutine, Usage apart.
type Workspace struct {
	Dir       string // absolute: what is mounted
	Evidence  string // absolute: what is never mounted
	Baseline  Baseline
	Ownership Ownership

	name               string
	parent, top        *os.File
	tree, evidenceTree *os.File
	texts              *texts
	captured           *capture
	hooks              hooks
}

// LeftoverError says that a directory could not be removed and is kept.
type LeftoverError struct {
	Dir    string // for the operator; not in the text
	Cause  error  // why there is no workspace; nil after a finished one
	Remove error
}

func (e *LeftoverError) Error() string {
	kept := fmt.Sprintf("the workspace %s could not be removed and is kept: %v", filepath.Base(e.Dir), e.Remove)
	if e.Cause == nil {
		return kept
	}
	return fmt.Sprintf("%v; and %s", e.Cause, kept)
}

func (e *LeftoverError) Unwrap() []error { return []error{e.Cause, e.Remove} }

// Prepare copies a repository into a new private directory. It fails with *source.RefusedError if the
// repository may not be worked on, and leaves nothing then, or a *LeftoverError.
func Prepare(ctx context.Context, r Request) (w *Workspace, err error) {
	if err := r.Writable.Validate(); err != nil {
		return nil, refuse(CodeWritable, "", "%v", err)
	}
	parent, err := source.OpenParent(r.Parent)
	if err != nil {
		return nil, err
	}
	w = &Workspace{parent: parent, hooks: r.hooks}
	defer func() {
		if err != nil {
			err = errors.Join(err, parent.Close())
			w = nil
		}
	}()
	subject, err := source.Resolve(ctx, source.Locator{Path: r.Root})
	if err != nil {
		return w, err
	}
	root, err := openSource(subject.Path)
	if err != nil {
		return w, err
	}
	defer root.Close() //nolint:errcheck // a read-only handle
	listing, err := source.List(ctx, source.ListRequest{
		Root: root, Path: subject.Path, Limits: sourceLimits,
		// A source that holds its own workspaces would be copied into itself.
		Reserved: append(slices.Clone(r.Reserved), source.Reserved{Kind: source.ReservedHome, Path: r.Parent}),
	})
	if err != nil {
		return w, err
	}
	defer listing.Close()
	if err := judge(listing, r.Writable, parent); err != nil {
		return w, err
	}
	w.Baseline.Git, err = source.ReadGitState(ctx, subject.Path, listing)
	if err != nil {
		return w, err
	}
	r.hooks.call(r.hooks.listed)
	if err = w.make(r.Parent); err == nil {
		err = w.fill(ctx, r, listing)
	}
	if err != nil {
		// The removal goes on after a cancellation: nothing may be left.
		if removeErr := w.removeMade(); removeErr != nil {
			err = &LeftoverError{Dir: filepath.Join(r.Parent, w.name), Cause: err, Remove: removeErr}
		}
	}
	return w, err
}

func (h hooks) call(f func()) {
	if f != nil {
		f()
	}
}

// openSource opens the source as the root of everything that is read.
func openSource(path string) (*os.File, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, refuse(source.CodeNotFound, "", "the source directory can't be opened: %v", errors.Unwrap(err))
	}
	f, err := root.Open(".")
	return f, errors.Join(err, root.Close())
}

// judgeTree refuses what no copy may hold, and returns what is to be copied.
func judgeTree(l *source.Listing) (evidence.WorkspaceManifest, error) {
	if len(l.Entries) > evidence.MaxWorkspaceEntries {
		return evidence.WorkspaceManifest{}, refuse(source.CodeTooManyFiles, "", "the source has more than %d files, links and directories: %s", evidence.MaxWorkspaceEntries, sourceLimits.Advice)
	}
	m, err := evidence.NewWorkspaceManifest(entriesOf(l))
	if err != nil {
		return m, refuse(source.CodePath, "", "%v", err)
	}
	return m, checkLinks(m)
}

// judge refuses a source before anything is made of it.
func judge(l *source.Listing, writable evidence.WritablePaths, parent *os.File) error {
	m, err := judgeTree(l)
	if err != nil {
		return err
	}
	directories := map[string]bool{evidence.WholeWorkspace: true}
	for _, e := range m.Entries {
		if e.Type == evidence.EntryDirectory {
			directories[e.Path] = true
		}
	}
	for _, p := range writable {
		if !directories[p] {
			return refuse(CodeWritable, p, "a writable path must be a directory of the source; make it there first")
		}
	}
	free, err := freeBytes(parent)
	if err != nil {
		return err
	}
	return enoughSpace(free, m.Bytes())
}

// enoughSpace refuses a copy, with the texts kept beside it, that would leave its disk too full.
func enoughSpace(free, size uint64) error {
	copied := size + min(size, maxKept)
	if free < copied+MinFree {
		return refuse(CodeNoSpace, "", "the disk of the home has %d bytes free; the copy needs %d and %d stay free: clean up, or choose another --home", free, copied, MinFree)
	}
	return nil
}

// stateOf is a listed entry as the copy will have it, without a digest: its owner may always read and
// write, and what would act with another's rights stays behind.
func stateOf(e source.Listed) evidence.EntryState {
	s := evidence.EntryState{Type: e.Type, Size: e.Size, Target: e.Target, Mode: e.Mode & 0o777}
	switch e.Type {
	case evidence.EntryFile:
		s.Mode |= 0o600
	case evidence.EntryDirectory:
		s.Mode |= 0o700
	case evidence.EntryLink:
		s.Mode = 0
	}
	return s
}

// make makes the directories. After a failure, removeMade removes those there are.
func (w *Workspace) make(parent string) error {
	name, err := source.RandomSuffix()
	if err != nil {
		return err
	}
	if err := unix.Mkdirat(int(w.parent.Fd()), name, 0o700); err != nil {
		return fmt.Errorf("make the workspace's directory: %w", err)
	}
	w.name = name
	if w.top, err = openIn(w.parent, w.name); err != nil {
		return err
	}
	for _, d := range []struct {
		name string
		to   **os.File
	}{{treeName, &w.tree}, {evidenceName, &w.evidenceTree}} {
		if err := unix.Mkdirat(int(w.top.Fd()), d.name, 0o700); err != nil {
			return fmt.Errorf("make the directory %s: %w", d.name, err)
		}
		if *d.to, err = openIn(w.top, d.name); err != nil {
			return err
		}
	}
	w.Dir = filepath.Join(parent, w.name, treeName)
	w.Evidence = filepath.Join(parent, w.name, evidenceName)
	return nil
}

// openIn opens a directory of an open one, never through a link.
func openIn(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the workspace's directory: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// fill copies the source and writes down what was copied.
func (w *Workspace) fill(ctx context.Context, r Request, l *source.Listing) error {
	r.hooks.call(r.hooks.made)
	texts, err := newTexts(w.evidenceTree, len(l.Entries))
	if err != nil {
		return err
	}
	w.texts = texts
	c := copier{listing: l, into: w.tree, texts: texts, hooks: r.hooks, entries: make([]evidence.WorkspaceEntry, len(l.Entries))}
	if err := c.copy(ctx); err != nil {
		return err
	}
	b := &w.Baseline
	b.Skipped, b.Stripped = l.Skipped, c.stripped
	if b.Manifest, err = evidence.NewWorkspaceManifest(c.entries); err != nil {
		return fmt.Errorf("the copy's own manifest: %w", err)
	}
	encoded, err := b.Manifest.Marshal()
	if err != nil {
		return fmt.Errorf("the copy's own manifest: %w", err)
	}
	if b.Digest, err = b.Manifest.Digest(); err != nil {
		return fmt.Errorf("the copy's own manifest: %w", err)
	}
	w.Ownership = newOwnership(r.Writable)
	if err := w.keep(baselineName, encoded); err != nil {
		return err
	}
	if err := w.keep(ownershipName, w.Ownership.Marshal()); err != nil {
		return err
	}
	return w.keep(originName, b.origin())
}

// keep writes a file of the evidence directory.
func (w *Workspace) keep(name string, b []byte) error {
	f, err := createIn(w.evidenceTree, name)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the workspace's %s: %w", name, err)
	}
	return nil
}

func createIn(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the workspace's %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// timesOf are a file's times in the copy; when it was read is nobody's business.
func timesOf(modified time.Time) []unix.Timespec {
	ts := unix.NsecToTimespec(modified.UnixNano())
	return []unix.Timespec{ts, ts}
}
