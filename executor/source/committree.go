package source

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/baildock/baildock/evidence"
)

// committed reads the tree of a commit.
type committed struct {
	repo    *repository
	root    plumbing.Hash // tree of the commit
	pass    pass
	entries []evidence.ManifestEntry
	blobs   map[string]plumbing.Hash // by path
	buf     []byte
}

var _ tree = (*committed)(nil)

func openCommit(ctx context.Context, path, revision string) (*committed, error) {
	repo, err := openRepository(path)
	if err != nil {
		return nil, err
	}
	c, err := repo.commit(ctx, plumbing.NewHash(revision))
	if err == nil && c.hash.String() != revision {
		err = refuse(CodeRevision, "", "%s is not the full hash of a commit", revision)
	}
	if err != nil {
		repo.close()
		return nil, err
	}
	return &committed{repo: repo, root: c.tree, blobs: map[string]plumbing.Hash{}, buf: make([]byte, copyBuffer)}, nil
}

func (c *committed) close()                  { c.repo.close() }
func (c *committed) finish() error           { return nil } // objects can't change without failing their hash
func (c *committed) skippedPaths() []Skipped { return nil }

func (c *committed) list(ctx context.Context, limits Limits) ([]evidence.ManifestEntry, error) {
	c.pass = pass{limits: limits}
	if err := c.visit(ctx, c.root, ""); err != nil {
		return nil, err
	}
	return c.entries, nil
}

func (c *committed) visit(ctx context.Context, h plumbing.Hash, path string) error {
	if err := c.pass.directory(); err != nil {
		return err
	}
	b, err := c.repo.objects.read(ctx, h, plumbing.TreeObject, maxTreeObject)
	if err != nil {
		return err
	}
	var ledger, keys bool
	last := ""
	for len(b) > 0 {
		var e treeEntry
		if e, b, err = nextTreeEntry(b); err != nil {
			return corrupt(h, err)
		}
		if e.order() <= last {
			return corrupt(h, errors.New("tree entries are not in order"))
		}
		last = e.order()
		ledger = ledger || e.name == homeLedgerName
		keys = keys || e.name == homeKeysName && e.mode == gitTree
		if ledger && keys {
			return refuse(CodeHoldsHome, path, "the commit holds a baildock home; remove it from the repository")
		}
		if err := c.visitEntry(ctx, e, evidence.JoinPath(path, e.name)); err != nil {
			return err
		}
	}
	return nil
}

// Modes of tree entries as git writes them. 100664 is an old one, read as 100644.
const (
	gitTree      = "40000"
	gitFile      = "100644"
	gitGroupFile = "100664"
	gitExec      = "100755"
	gitLink      = "120000"
	gitSubmodule = "160000"
)

type treeEntry struct {
	mode, name string
	hash       plumbing.Hash
}

// order is what git sorts a tree by: a directory as if its name ended in a slash.
func (e treeEntry) order() string {
	if e.mode == gitTree {
		return e.name + "/"
	}
	return e.name
}

// nextTreeEntry reads "<octal mode> <name>\0<20 bytes>".
func nextTreeEntry(b []byte) (treeEntry, []byte, error) {
	mode, rest, found := bytes.Cut(b, []byte(" "))
	name, rest, ended := bytes.Cut(rest, []byte{0})
	e := treeEntry{mode: string(mode), name: string(name)}
	if !found || !ended || len(rest) < len(e.hash) {
		return e, nil, errors.New("a tree entry is cut short")
	}
	copy(e.hash[:], rest)
	return e, rest[len(e.hash):], nil
}

func (c *committed) visitEntry(ctx context.Context, e treeEntry, path string) error {
	if err := evidence.CheckComponent(e.name); err != nil {
		return refuse(CodePath, path, "%v", err)
	}
	if err := evidence.CheckPath(path); err != nil {
		return refuse(CodePath, "", "%v", err)
	}
	if evidence.ReservedName(e.name) {
		return refuse(CodeReservedPath, path, "the commit holds a name that some filesystem takes for .git or .baildock*; rename it")
	}
	entry := evidence.ManifestEntry{Path: path}
	switch e.mode {
	case gitTree:
		return c.visit(ctx, e.hash, path)
	case gitSubmodule:
		return refuse(CodeSubmodule, path, submoduleText)
	case gitFile, gitGroupFile:
		entry.Mode = evidence.ModeFile
	case gitExec:
		entry.Mode = evidence.ModeExecutable
	case gitLink:
		entry.Mode = evidence.ModeLink
	default:
		return refuse(CodeSpecialFile, path, "a git entry of mode %q is neither file, directory nor link", e.mode)
	}
	size, err := c.repo.objects.size(e.hash)
	if err != nil {
		return err
	}
	entry.Size = size
	if err := c.pass.file(path, entry.Mode, size); err != nil {
		return err
	}
	if entry.Mode == evidence.ModeLink {
		target, err := c.target(ctx, e.hash, path, size)
		if err != nil {
			return err
		}
		entry.Target = target
	} else {
		c.blobs[path] = e.hash
	}
	c.entries = append(c.entries, entry)
	return nil
}

func (c *committed) target(ctx context.Context, h plumbing.Hash, path string, size uint64) (string, error) {
	if size > evidence.MaxLinkTarget {
		return "", refuse(CodePath, path, "a link target of %d bytes, at most %d", size, evidence.MaxLinkTarget)
	}
	b, err := c.repo.objects.read(ctx, h, plumbing.BlobObject, evidence.MaxLinkTarget)
	return string(b), err
}

func (c *committed) copyFile(ctx context.Context, w io.Writer, e evidence.ManifestEntry) error {
	return c.repo.objects.copyTo(ctx, w, c.blobs[e.Path], plumbing.BlobObject, e.Size, c.buf)
}
