package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// GitState is what git would say of a working tree (req O1): evidence of where a copy came from, which
// decides nothing.
type GitState struct {
	Head        string       // full hash of the commit checked out; empty: none yet
	Branch      string       // full reference HEAD stands for; empty: detached
	Status      []StatusLine // sorted by path, at most MaxStatusLines
	More        int          // lines beyond
	Unavailable string       // why there is no status; empty: Status and More are all there is
}

// StatusLine is one line of `git status --porcelain=v1 -z --untracked-files=all --no-renames`. Filters and
// line endings of .gitattributes, and ignore rules of the user's own configuration, are not applied.
type StatusLine struct {
	Index    byte // X: the index against the commit
	Worktree byte // Y: the working tree against the index
	Path     string
}

func (l StatusLine) String() string { return string([]byte{l.Index, l.Worktree, ' '}) + l.Path }

// Clean reports whether nothing differs and nothing is untracked.
func (s GitState) Clean() bool { return s.Unavailable == "" && len(s.Status) == 0 }

// ReadGitState reads HEAD and compares commit, index and the listed working tree. A file is read only if
// its index entry's size and times don't settle it. It returns nil if path is not the top of a working
// tree; what git has that can't be read makes the status unavailable, a tree that changes fails with
// *RefusedError (CodeChanged).
func ReadGitState(ctx context.Context, path string, l *Listing) (*GitState, error) {
	if _, err := os.Lstat(filepath.Join(path, ".git")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	state := &GitState{}
	err := state.read(ctx, path, l)
	var r *RefusedError
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &r) && r.Code != CodeChanged:
		state.Status, state.More, state.Unavailable = nil, 0, string(r.Code)+": "+r.Detail
	default:
		return nil, err
	}
	return state, nil
}

func (s *GitState) read(ctx context.Context, path string, l *Listing) error {
	repo, err := openRepository(path)
	if err != nil {
		return err
	}
	defer repo.close()
	tree := plumbing.ZeroHash
	if s.Branch, err = repo.branch(); err != nil {
		return err
	}
	head, found, err := repo.reference("HEAD")
	if err != nil {
		return err
	}
	if found {
		c, err := repo.commit(ctx, head)
		if err != nil {
			return err
		}
		s.Head, tree = c.hash.String(), c.tree
	}
	gitDir, err := findGitDir(path)
	if err != nil {
		return err
	}
	idx, written, err := readIndex(filepath.Join(gitDir, "index"))
	if err != nil {
		return err
	}
	c := statusComparer{ctx: ctx, repo: repo, listing: l, index: idx, indexWritten: written}
	lines, err := c.compare(tree, gitDir)
	if err != nil {
		return err
	}
	s.Status = lines[:min(len(lines), MaxStatusLines)]
	s.More = len(lines) - len(s.Status)
	return nil
}

// branch is what HEAD stands for, or nothing.
func (r *repository) branch() (string, error) {
	ref, err := r.refs.Reference(plumbing.HEAD)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", refuse(CodeRepository, "", "the repository has no HEAD")
	}
	if err != nil {
		return "", refuse(CodeRepository, "", "HEAD can't be read: %v", err)
	}
	if ref.Type() == plumbing.SymbolicReference {
		return ref.Target().String(), nil
	}
	return "", nil
}

// ignoresModes reports whether the repository says that execute bits mean nothing here.
func (r *repository) ignoresModes() (bool, error) {
	cfg, err := r.refs.Config()
	if err != nil {
		return false, refuse(CodeRepository, "", "the repository's configuration can't be read: %v", err)
	}
	return strings.EqualFold(cfg.Raw.Section("core").Options.Get("filemode"), "false"), nil
}

// readIndex reads git's index and when it was written. A repository without one has an empty one.
func readIndex(path string) (idx *index.Index, written int64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &index.Index{}, 0, nil
	}
	if err != nil {
		return nil, 0, refuse(CodeRepository, "", "the index can't be opened: %v", errors.Unwrap(err))
	}
	defer f.Close() //nolint:errcheck // a read-only handle
	info, err := f.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("look at the index: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxIndexFile {
		return nil, 0, refuse(CodeRepository, "", "the index is no file of at most %d bytes", maxIndexFile)
	}
	idx = &index.Index{}
	if err := index.NewDecoder(f).Decode(idx); err != nil {
		return nil, 0, refuse(CodeRepository, "", "the index can't be read: %v", err)
	}
	return idx, info.ModTime().UnixNano(), nil
}
