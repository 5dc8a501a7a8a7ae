package source

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// Request asks for a snapshot.
type Request struct {
	Subject  Subject
	Parent   string     // existing directory of mode 0700, owned by this user; absolute
	Name     string     // first part of the snapshot's name: lower-case letters, digits, `.`, `_`, `-`
	Reserved []Reserved // what is in use: home, ledger, keys, Docker socket
	Limits   Limits     // the zero value is DefaultLimits
}

// Content is what a source holds.
type Content struct {
	Manifest evidence.Manifest
	Skipped  []Skipped // by path
}

// Snapshot is a frozen copy on disk: directories 0555, files 0444 or 0555.
type Snapshot struct {
	Dir string // absolute: Parent/Name-<32 hex digits>
	Content
}

// Remove removes the snapshot's directory.
func (s Snapshot) Remove() error { return Remove(s.Dir) }

// LeftoverError says that a failed snapshot could not be removed either.
type LeftoverError struct {
	Dir    string
	Cause  error // why there is no snapshot
	Remove error // why its directory is still there
}

func (e *LeftoverError) Error() string {
	return fmt.Sprintf("%v; and the unfinished snapshot %s could not be removed: %v", e.Cause, filepath.Base(e.Dir), e.Remove)
}

func (e *LeftoverError) Unwrap() []error { return []error{e.Cause, e.Remove} }

// Check finds what must be refused before anything is recorded (req B7): a source that lies in a
// home, or a directory that holds a home, ledger or key under a name that isn't reserved. It
// fails with *RefusedError.
func Check(ctx context.Context, s Subject, reserved []Reserved) error {
	return check(ctx, s, reserved, DefaultLimits)
}

func check(ctx context.Context, s Subject, reserved []Reserved, limits Limits) error {
	g, err := newGuard(reserved)
	if err != nil {
		return err
	}
	if err := g.checkOutside(s.Path); err != nil {
		return err
	}
	if s.Kind != evidence.SubjectDirectory {
		return nil
	}
	d, err := openDirectoryTree(s.Path, g)
	if err != nil {
		return err
	}
	defer d.close()
	d.onlyHomes = true
	if _, err := d.list(ctx, limits); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

// Digest measures a source without copying it: its manifest is the one Materialize would give
// (req J5).
func Digest(ctx context.Context, s Subject, reserved []Reserved) (Content, error) {
	return read(ctx, Request{Subject: s, Reserved: reserved}, discard{})
}

// Materialize copies a source into a new directory with a random suffix. The parent is checked
// before use and the copy is written through its handle. After a failure nothing is left, or the
// error is a *LeftoverError. A source that may not be run on fails with *RefusedError.
func Materialize(ctx context.Context, r Request) (Snapshot, error) {
	return materialize(ctx, r, RandomSuffix)
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

func materialize(ctx context.Context, r Request, suffix func() (string, error)) (s Snapshot, err error) {
	if !namePattern.MatchString(r.Name) {
		return Snapshot{}, refuse(CodeDelimiter, "", "snapshot name %q is not 1 to 128 of a-z 0-9 . _ -", r.Name)
	}
	parent, err := openParent(r.Parent)
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { err = errors.Join(err, unix.Close(parent)) }()
	random, err := suffix()
	if err != nil {
		return Snapshot{}, err
	}
	name := r.Name + "-" + random
	out, err := newDisk(parent, name)
	if err != nil {
		return Snapshot{}, err
	}
	s.Dir = filepath.Join(r.Parent, name)
	// A source that holds its own snapshots would be copied into itself.
	r.Reserved = append(slices.Clone(r.Reserved), Reserved{Kind: ReservedHome, Path: r.Parent})
	s.Content, err = read(ctx, r, out)
	out.close()
	if err != nil {
		if removeErr := removeAt(parent, name); removeErr != nil {
			err = &LeftoverError{Dir: s.Dir, Cause: err, Remove: removeErr}
		}
		return Snapshot{}, err
	}
	return s, nil
}

// read checks and transfers a source.
func read(ctx context.Context, r Request, out sink) (Content, error) {
	if r.Limits == (Limits{}) {
		r.Limits = DefaultLimits
	}
	g, err := newGuard(r.Reserved)
	if err != nil {
		return Content{}, err
	}
	if err := g.checkOutside(r.Subject.Path); err != nil {
		return Content{}, err
	}
	t, err := open(ctx, r.Subject, g)
	if err != nil {
		return Content{}, err
	}
	defer t.close()
	m, err := transfer(ctx, t, r.Limits, out)
	return Content{Manifest: m, Skipped: t.skippedPaths()}, err
}

func open(ctx context.Context, s Subject, g guard) (tree, error) {
	if err := s.Check(); err != nil {
		return nil, refuse(CodeRevision, "", "%v", err)
	}
	if s.Kind == evidence.SubjectDirectory {
		return openDirectoryTree(s.Path, g)
	}
	return openCommit(ctx, s.Path, s.Revision)
}

// OpenParent opens the directory in which a copy is to be made, and refuses one that isn't private to
// this user, mode 0700, or that a mount can't name (req B1). It fails with *RefusedError.
func OpenParent(path string) (*os.File, error) {
	fd, err := openParent(path)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

func openParent(path string) (int, error) {
	if err := checkMountable(path); err != nil {
		return -1, err
	}
	return openPrivate(path)
}

// checkMountable refuses a path that Docker's mount syntax or JSON can't carry (req B1).
func checkMountable(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return refuse(CodeParent, "", "the snapshot's parent must be a clean absolute path")
	}
	if !utf8.ValidString(path) || strings.ContainsFunc(path, func(c rune) bool { return c == ',' || c == ':' || c < ' ' || c == 0x7f }) {
		return refuse(CodeDelimiter, "", "the home's path holds a character that can't be named in a mount (comma, colon, control character, bad UTF-8); choose another --home")
	}
	return nil
}

// openPrivate opens the parent and checks, through the handle, that nobody else may enter it.
func openPrivate(path string) (int, error) {
	fd, err := openat(unix.AT_FDCWD, path, openDirectory, 0)
	if err != nil {
		return -1, refuse(CodeParent, "", "the snapshot's parent can't be opened as a directory that isn't a link: %v", err)
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	switch {
	case err != nil:
		err = fmt.Errorf("look at the snapshot's parent: %w", err)
	case st.Uid != uint32(unix.Geteuid()):
		err = refuse(CodeParent, "", "the snapshot's parent belongs to user %d, not to %d who runs this", st.Uid, unix.Geteuid())
	case st.Mode&0o7777 != 0o700:
		err = refuse(CodeParent, "", "the snapshot's parent has mode %04o; it must be 0700, private to its owner", st.Mode&0o7777)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// RandomSuffix is 128 random bits in hex, which nobody can guess or occupy beforehand.
func RandomSuffix() (string, error) {
	var b [16]byte
	_, err := rand.Read(b[:])
	return hex.EncodeToString(b[:]), err
}
