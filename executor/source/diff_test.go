package source

import (
	"context"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

func differOf(t *testing.T, r gitRepo, h plumbing.Hash) Difference {
	t.Helper()
	d, err := Differ(context.Background(), r.dir, h.String())
	require.NoError(t, err)
	return d
}

// req H4: every path a commit touches, and nothing else, against its first parent.
func TestDiffer(t *testing.T) {
	r := newGitRepo(t)
	first := r.commitFiles(map[string]string{"a": "1", "d/b": "2", "d/e/c": "3", "x": "#!run", "l": "-> a"})
	require.Equal(t, Difference{Touched: []string{"a", "d/b", "d/e/c", "l", "x"}}, differOf(t, r, first), "a root commit touches everything")

	next := r.commit(r.treeOf(map[string]string{"a": "1", "d/b": "changed", "d/e": "now a file", "l": "-> d/b", "n/m/o": "new"}), first, first)
	d := differOf(t, r, next)
	require.Equal(t, first.String(), d.Parent)
	require.Equal(t, []string{"d/b", "d/e", "d/e/c", "l", "n/m/o", "x"}, d.Touched)
	require.Empty(t, differOf(t, r, r.commit(r.treeOf(map[string]string{"a": "1"}), r.commitFiles(map[string]string{"a": "1"}))).Touched)

	// A mode alone is a change, and so is a submodule.
	blob := r.blob("1")
	was := r.commit(r.tree(entry{gitFile, "a", blob}))
	is := r.commit(r.tree(entry{gitExec, "a", blob}, entry{gitSubmodule, "sub", first}), was)
	require.Equal(t, []string{"a", "sub"}, differOf(t, r, is).Touched)

	// The real git says the same.
	runGit(t, r.dir, "update-ref", "refs/heads/x", next.String())
	require.Equal(t, "d/b\nd/e\nd/e/c\nl\nn/m/o\nx", runGit(t, r.dir, "diff", "--name-only", "--no-renames", first.String(), next.String()))

	_, err := Differ(context.Background(), r.dir, blob.String())
	requireCode(t, err, CodeRevision)
	_, err = Differ(context.Background(), realTemp(t), first.String())
	requireCode(t, err, CodeRepository)
}
