package source

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's own names of objects
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/baildock/baildock/evidence"
)

// statusComparer compares a commit, an index and a listed working tree.
type statusComparer struct {
	ctx          context.Context
	repo         *repository
	listing      *Listing
	index        *index.Index
	indexWritten int64 // ns since the epoch
	hashed       uint64
	buf          []byte
	ignoreModes  bool
}

// gitEntry is a path in a commit.
type gitEntry struct {
	mode filemode.FileMode
	hash plumbing.Hash
}

func (c *statusComparer) compare(tree plumbing.Hash, gitDir string) ([]StatusLine, error) {
	var err error
	if c.ignoreModes, err = c.repo.ignoresModes(); err != nil {
		return nil, err
	}
	lines := map[string]StatusLine{}
	at := func(path string) StatusLine {
		if l, ok := lines[path]; ok {
			return l
		}
		return StatusLine{Index: ' ', Worktree: ' ', Path: path}
	}
	staged, err := c.staged(tree)
	if err != nil {
		return nil, err
	}
	for path, x := range staged {
		l := at(path)
		l.Index = x
		lines[path] = l
	}
	tracked := map[string]bool{}
	for _, e := range c.index.Entries {
		tracked[e.Name] = true
		if reservedPath(e.Name) || e.Stage != 0 {
			continue
		}
		y, err := c.worktree(e)
		if err != nil {
			return nil, err
		}
		if l := at(e.Name); y != ' ' {
			l.Worktree = y
			lines[e.Name] = l
		}
	}
	for path, l := range c.unmerged() {
		lines[path] = l
	}
	untracked, err := c.untracked(tracked, gitDir)
	if err != nil {
		return nil, err
	}
	out := make([]StatusLine, 0, len(lines)+len(untracked))
	for _, l := range lines {
		out = append(out, l)
	}
	// A path that was taken from the index and left in place has two lines.
	for _, path := range untracked {
		out = append(out, StatusLine{Index: '?', Worktree: '?', Path: path})
	}
	slices.SortStableFunc(out, func(a, b StatusLine) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// reservedPath reports whether a path can't be in a listing.
func reservedPath(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if evidence.ReservedName(name) {
			return true
		}
	}
	return false
}

// staged are the paths where the index differs from the commit, with git's letter.
func (c *statusComparer) staged(tree plumbing.Hash) (map[string]byte, error) {
	out := map[string]byte{}
	// The index remembers the tree it was last equal to, until an entry is changed.
	if t := c.index.Cache; t != nil && len(t.Entries) > 0 && t.Entries[0].Path == "" && t.Entries[0].Entries == len(c.index.Entries) && t.Entries[0].Hash == tree {
		return out, nil
	}
	before := map[string]gitEntry{}
	if tree != plumbing.ZeroHash {
		if err := c.flatten(tree, "", 0, before); err != nil {
			return nil, err
		}
	}
	for _, e := range c.index.Entries {
		was, found := before[e.Name]
		delete(before, e.Name)
		switch {
		case e.Stage != 0 || e.IntentToAdd:
		case !found:
			out[e.Name] = 'A'
		case kindOf(was.mode) != kindOf(e.Mode):
			out[e.Name] = 'T'
		case was.hash != e.Hash || was.mode != e.Mode:
			out[e.Name] = 'M'
		}
	}
	for path := range before {
		out[path] = 'D'
	}
	return out, nil
}

// kindOf is a mode without its permissions.
func kindOf(m filemode.FileMode) filemode.FileMode { return m & 0o170000 }

func (c *statusComparer) flatten(h plumbing.Hash, dir string, depth int, into map[string]gitEntry) error {
	if depth > evidence.MaxPathDepth {
		return refuse(CodePath, "", "the commit's tree has more than %d levels", evidence.MaxPathDepth)
	}
	b, err := c.repo.objects.read(c.ctx, h, plumbing.TreeObject, maxTreeObject)
	if err != nil {
		return err
	}
	for len(b) > 0 {
		var e treeEntry
		if e, b, err = nextTreeEntry(b); err != nil {
			return corrupt(h, err)
		}
		path := evidence.JoinPath(dir, e.name)
		if e.mode == gitTree {
			if err := c.flatten(e.hash, path, depth+1, into); err != nil {
				return err
			}
			continue
		}
		mode, err := filemode.New(e.mode)
		if err != nil {
			return corrupt(h, err)
		}
		if mode == filemode.Deprecated {
			mode = filemode.Regular
		}
		if into[path] = (gitEntry{mode, e.hash}); len(into) > maxTreePaths {
			return refuse(CodeTooManyFiles, "", "the commit has more than %d paths to compare", maxTreePaths)
		}
	}
	return nil
}

// worktree compares an index entry with what lies there.
func (c *statusComparer) worktree(e *index.Entry) (byte, error) {
	now, there := c.listing.find(e.Name)
	switch {
	case e.Mode == filemode.Submodule:
		if there && now.Type == evidence.EntryDirectory {
			return ' ', nil
		}
	case there && now.Type != evidence.EntryDirectory:
		if e.IntentToAdd {
			return 'A', nil
		}
		return c.content(e, now)
	}
	if e.SkipWorktree {
		return ' ', nil
	}
	return 'D', nil
}

func (c *statusComparer) content(e *index.Entry, now Listed) (byte, error) {
	isLink := e.Mode == filemode.Symlink
	switch {
	case isLink != (now.Type == evidence.EntryLink):
		return 'T', nil
	case !isLink && !c.ignoreModes && (e.Mode == filemode.Executable) != (now.Mode&0o100 != 0):
		return 'M', nil
	case c.settled(e):
		return ' ', nil
	}
	hash, err := c.blob(now)
	if err != nil {
		return 0, err
	}
	if hash != e.Hash {
		return 'M', nil
	}
	return ' ', nil
}

// settled reports whether an index entry's size, times and inode prove that its file is as it was: git's
// own rule, with its exception for what changed as the index was written.
func (c *statusComparer) settled(e *index.Entry) bool {
	st := c.listing.tree.listed[e.Name]
	mtime, ctime := st.mtime.Nano(), st.ctime.Nano()
	return e.Size == uint32(st.size) && e.ModifiedAt.UnixNano() == mtime && e.CreatedAt.UnixNano() == ctime &&
		e.Inode == uint32(st.place.ino) && mtime < c.indexWritten
}

// blob is the name git would give the bytes of a file or link.
func (c *statusComparer) blob(now Listed) (plumbing.Hash, error) {
	h := sha1.New() //nolint:gosec // git's own names of objects
	fmt.Fprintf(h, "blob %d\x00", now.Size)
	if now.Type == evidence.EntryLink {
		h.Write([]byte(now.Target))
		return plumbing.Hash(h.Sum(nil)), nil
	}
	if c.hashed += now.Size; c.hashed > maxStatusHash {
		return plumbing.ZeroHash, refuse(CodeTooLarge, "", "more than %d bytes would have to be read: run git status once, which refreshes the index", maxStatusHash)
	}
	dir, name := evidence.SplitPath(now.Path)
	err := c.copyInto(h, dir, name)
	return plumbing.Hash(h.Sum(nil)), err
}

// copyInto reads one listed file.
func (c *statusComparer) copyInto(w io.Writer, dir, name string) error {
	opened, err := c.listing.Open(dir)
	if err != nil {
		return err
	}
	if c.buf == nil {
		c.buf = make([]byte, copyBuffer)
	}
	if err := opened.Read(c.ctx, w, name, c.buf); err != nil {
		opened.Abandon()
		return err
	}
	return opened.Close()
}

// unmerged are the paths of a merge that waits for somebody, by the sides that have them.
func (c *statusComparer) unmerged() map[string]StatusLine {
	sides := map[string]int{}
	for _, e := range c.index.Entries {
		if e.Stage != 0 {
			sides[e.Name] |= 1 << (e.Stage - 1)
		}
	}
	letters := map[int]string{1: "DD", 2: "AU", 3: "UD", 4: "UA", 5: "DU", 6: "AA", 7: "UU"}
	out := map[string]StatusLine{}
	for path, s := range sides {
		out[path] = StatusLine{Index: letters[s][0], Worktree: letters[s][1], Path: path}
	}
	return out
}

// find looks an entry up by its path.
func (l *Listing) find(path string) (Listed, bool) {
	i, found := slices.BinarySearchFunc(l.Entries, path, func(e Listed, p string) int { return strings.Compare(e.Path, p) })
	if !found {
		return Listed{}, false
	}
	return l.Entries[i], true
}
