package source

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/baildock/baildock/evidence"
)

// Difference is what a commit touches against its first parent.
type Difference struct {
	Parent  string   // full hash; empty: the commit has no parent, so every path counts
	Touched []string // files, links and submodules added, removed or changed in content or mode; sorted, each once
}

// Differ compares a commit with its first parent, tree by tree. Names are taken as they are: what
// a snapshot would refuse is touched all the same. It fails with *RefusedError.
func Differ(ctx context.Context, path, revision string) (Difference, error) {
	repo, err := openRepository(path)
	if err != nil {
		return Difference{}, err
	}
	defer repo.close()
	c, err := repo.commit(ctx, plumbing.NewHash(revision))
	if err != nil {
		return Difference{}, err
	}
	d := differ{ctx: ctx, repo: repo}
	var out Difference
	before := plumbing.ZeroHash
	if len(c.parents) > 0 {
		parent, err := repo.commit(ctx, c.parents[0])
		if err != nil {
			return Difference{}, err
		}
		out.Parent, before = parent.hash.String(), parent.tree
	}
	if err := d.trees(before, c.tree, "", 0); err != nil {
		return Difference{}, err
	}
	slices.Sort(d.touched)
	out.Touched = slices.Compact(d.touched)
	return out, nil
}

type differ struct {
	ctx     context.Context
	repo    *repository
	touched []string
}

// trees compares two trees of the same path; the zero hash is an absent one.
func (d *differ) trees(a, b plumbing.Hash, path string, depth int) error {
	if a == b {
		return nil
	}
	if depth > evidence.MaxPathDepth {
		return refuse(CodePath, "", "the trees have more than %d levels", evidence.MaxPathDepth)
	}
	before, err := d.entries(a)
	if err != nil {
		return err
	}
	after, err := d.entries(b)
	if err != nil {
		return err
	}
	for name, was := range before {
		if is, ok := after[name]; !ok || is != was {
			if err := d.entry(was, is, evidence.JoinPath(path, name), depth); err != nil {
				return err
			}
		}
	}
	for name, is := range after {
		if _, ok := before[name]; !ok {
			if err := d.entry(treeEntry{}, is, evidence.JoinPath(path, name), depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry compares what one name stands for on both sides; the zero entry is an absent one.
func (d *differ) entry(was, is treeEntry, path string, depth int) error {
	var a, b plumbing.Hash
	if was.mode == gitTree {
		a = was.hash
	}
	if is.mode == gitTree {
		b = is.hash
	}
	if was.mode != "" && was.mode != gitTree || is.mode != "" && is.mode != gitTree {
		if d.touched = append(d.touched, path); len(d.touched) > evidence.MaxTouched {
			return refuse(CodeTooManyFiles, "", "the commit touches more than %d paths", evidence.MaxTouched)
		}
	}
	return d.trees(a, b, path, depth+1)
}

func (d *differ) entries(h plumbing.Hash) (map[string]treeEntry, error) {
	out := map[string]treeEntry{}
	if h == plumbing.ZeroHash {
		return out, nil
	}
	b, err := d.repo.objects.read(d.ctx, h, plumbing.TreeObject, maxTreeObject)
	if err != nil {
		return nil, err
	}
	for len(b) > 0 {
		var e treeEntry
		if e, b, err = nextTreeEntry(b); err != nil {
			return nil, corrupt(h, err)
		}
		if _, twice := out[e.name]; twice {
			return nil, corrupt(h, fmt.Errorf("the name %q is there twice", e.name))
		}
		out[e.name] = e
	}
	return out, nil
}
