package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

// history is a repository the real git made: two branches merged, tags of all kinds, a remote.
func history(t *testing.T) string {
	dir := realTemp(t)
	g := func(args ...string) { runGit(t, dir, args...) }
	g("init", "-q", "-b", "main")
	commit := func(n string) { g("commit", "-q", "--allow-empty", "-m", n) }
	commit("1")
	g("tag", "light")
	commit("2")
	g("switch", "-q", "-c", "side", "HEAD~1")
	commit("3")
	commit("4")
	g("switch", "-q", "main")
	g("merge", "-q", "--no-ff", "-m", "5", "side")
	g("tag", "-a", "-m", "x", "heavy")
	g("tag", "-a", "-m", "y", "tag-of-a-tag", "heavy")
	g("branch", "feat/with/slashes", "side")
	g("branch", "light", "main") // the tag wins
	g("update-ref", "refs/remotes/origin/main", "side")
	g("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	return dir
}

// req B1
func TestResolveAgreesWithGit(t *testing.T) {
	dir := history(t)
	head := runGit(t, dir, "rev-parse", "HEAD")
	revisions := []string{
		"HEAD", "@", "main", "side", "heads/main", "refs/heads/side", "light", "tags/light", "heavy", "tag-of-a-tag", "feat/with/slashes",
		"origin", "origin/main", "remotes/origin/main", "HEAD~", "HEAD~0", "HEAD~1", "HEAD~2", "HEAD^", "HEAD^1", "HEAD^2", "HEAD^2~1",
		"HEAD^2^", "HEAD~1~1", "@~2", "heavy^2", "heavy^{commit}", "heavy^{}", "heavy^0", "heavy^{}^2~1", head, head[:7], head[:8] + "~1", head[:4] + "^2",
	}
	check := func() {
		t.Helper()
		for _, rev := range revisions {
			s, err := Resolve(context.Background(), Locator{Path: dir, Rev: rev})
			require.NoError(t, err, rev)
			want := runGit(t, dir, "-c", "core.warnAmbiguousRefs=false", "rev-parse", "--verify", "--quiet", rev+"^{commit}")
			require.Equal(t, commitSubject(dir, want), s, rev)
			require.NoError(t, s.Check())
		}
	}
	check()
	runGit(t, dir, "gc", "-q", "--aggressive", "--prune=now") // all packed, references too
	check()
}

// A branch whose name looks like the start of a hash is the branch, as in git.
func TestBranchBeforeAbbreviation(t *testing.T) {
	r := newGitRepo(t)
	one := r.commitFiles(map[string]string{"f": "1"})
	two := r.commitFiles(map[string]string{"f": "2"})
	for _, n := range []int{1, 4, 8} {
		r.setRef("refs/heads/"+one.String()[:n], two)
		s, err := Resolve(context.Background(), Locator{Path: r.dir, Rev: one.String()[:n]})
		require.NoError(t, err)
		require.Equal(t, two.String(), s.Revision)
	}
}

func TestAmbiguousAbbreviation(t *testing.T) {
	r := newGitRepo(t)
	seen := map[string]plumbing.Hash{}
	for i := range 5000 {
		h := r.commit(plumbing.NewHash(fmt.Sprintf("%040x", i)))
		prefix := h.String()[:4]
		if other, found := seen[prefix]; found {
			_, err := Resolve(context.Background(), Locator{Path: r.dir, Rev: prefix})
			requireCode(t, err, CodeAmbiguousRevision)
			s, err := Resolve(context.Background(), Locator{Path: r.dir, Rev: other.String()[:20]})
			require.NoError(t, err)
			require.Equal(t, other.String(), s.Revision)
			return
		}
		seen[prefix] = h
	}
	require.Fail(t, "no two of 5000 hashes share four digits")
}

func TestRevisionRefused(t *testing.T) {
	dir := history(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "refs", "heads", "loop"), []byte("ref: refs/heads/loop\n"), 0o644))
	tree := runGit(t, dir, "rev-parse", "HEAD^{tree}")
	for rev, code := range map[string]Code{
		"none": CodeRevision, "HEAD@{1}": CodeRevision, "@{1}": CodeRevision, "HEAD:f": CodeRevision, ":/x": CodeRevision,
		"HEAD^{tree}": CodeRevision, "HEAD^{/x}": CodeRevision, "^HEAD": CodeRevision, "~1": CodeRevision, "HEAD..side": CodeRevision, "HEAD~x": CodeRevision,
		"HEAD^3": CodeRevision, "HEAD~9": CodeRevision, "HEAD~99999999999": CodeRevision, "light^1": CodeRevision,
		"config": CodeRevision, "../config": CodeRevision, "heads/../../config": CodeRevision, "-x": CodeRevision, "a b": CodeRevision,
		"loop": CodeRevision, tree: CodeRevision, tree[:10]: CodeRevision,
		"abc": CodeRevision,
		"0123456789012345678901234567890123456789": CodeMissingObject,
	} {
		_, err := Resolve(context.Background(), Locator{Path: dir, Rev: rev})
		require.Error(t, err, rev)
		requireCode(t, err, code)
	}
}

// ~N must end even where the history is longer than anyone needs.
func TestAncestorsAreBounded(t *testing.T) {
	r := newGitRepo(t)
	h := r.commitFiles(map[string]string{"f": "1"})
	_, err := Resolve(context.Background(), Locator{Path: r.dir, Rev: h.String() + "~200000"})
	requireCode(t, err, CodeRevision)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Resolve(ctx, Locator{Path: r.dir, Rev: h.String()})
	require.ErrorIs(t, err, context.Canceled)
}

func TestTagChainIsBounded(t *testing.T) {
	r := newGitRepo(t)
	h := r.commitFiles(map[string]string{"f": "1"})
	for range maxPeel {
		h = r.object(plumbing.TagObject, "object "+h.String()+"\ntype tag\ntag x\n")
	}
	_, err := Resolve(context.Background(), Locator{Path: r.dir, Rev: h.String()})
	requireCode(t, err, CodeRevision)
	bad := r.object(plumbing.TagObject, "type commit\n")
	_, err = Resolve(context.Background(), Locator{Path: r.dir, Rev: bad.String()})
	requireCode(t, err, CodeCorruptObject)
}
