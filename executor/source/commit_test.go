package source

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

func TestCommitManifest(t *testing.T) {
	r := newGitRepo(t)
	h := r.commitFiles(map[string]string{
		"a": "1", "a-b": "2", "a.d/run": "#!/bin/sh\n", "d/link": "-> ../a.d/run", "empty": "", "caf\xe9": "latin-1", "new\nline,:": "x",
	})
	c, err := measure(t, r.subject(h))
	require.NoError(t, err)
	require.Empty(t, c.Skipped)
	var got []string
	for _, e := range c.Manifest.Entries {
		got = append(got, fmt.Sprintf("%s %q %d %s", e.Mode, e.Path, e.Size, e.Target))
	}
	require.Equal(t, []string{
		`100644 "a" 1 `, `100644 "a-b" 1 `, `100755 "a.d/run" 10 `, `100644 "caf\xe9" 7 `, `120000 "d/link" 10 ../a.d/run`,
		`100644 "empty" 0 `, `100644 "new\nline,:" 1 `,
	}, got)
}

// req B2, req B4, req B7: what a commit may not hold.
func TestCommitRefused(t *testing.T) {
	file := func(r gitRepo) plumbing.Hash { return r.blob("x") }
	for name, tc := range map[string]struct {
		tree func(r gitRepo) plumbing.Hash
		code Code
		path string
	}{
		"submodule": {func(r gitRepo) plumbing.Hash {
			return r.tree(entry{gitTree, "sub", r.tree(entry{gitSubmodule, "m", plumbing.NewHash("11" + strings.Repeat("0", 38))})})
		}, CodeSubmodule, "sub/m"},
		"unknown mode":    {func(r gitRepo) plumbing.Hash { return r.tree(entry{"100600", "f", file(r)}) }, CodeSpecialFile, "f"},
		"fifo mode":       {func(r gitRepo) plumbing.Hash { return r.tree(entry{"10644", "f", file(r)}) }, CodeSpecialFile, "f"},
		".git file":       {func(r gitRepo) plumbing.Hash { return r.tree(entry{gitFile, ".git", file(r)}) }, CodeReservedPath, ".git"},
		".git below":      {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"a/b/.GIT/config": "x"}) }, CodeReservedPath, "a/b/.GIT"},
		"git~1":           {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"git~1/hooks/x": "x"}) }, CodeReservedPath, "git~1"},
		".git and a dot":  {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"d/.git.": "x"}) }, CodeReservedPath, "d/.git."},
		"ignorable":       {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{".g\u200cit": "x"}) }, CodeReservedPath, ".g\u200cit"},
		".baildock":       {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"a/.Baildock-x": "x"}) }, CodeReservedPath, "a/.Baildock-x"},
		"link named .git": {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"f": "", ".git": "-> f"}) }, CodeReservedPath, ".git"},
		"home":            {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"s/ledger.db": "", "s/keys/k": ""}) }, CodeHoldsHome, "s"},
		"dot dot": {func(r gitRepo) plumbing.Hash {
			return r.tree(entry{gitTree, "..", r.treeOf(map[string]string{"f": ""})})
		}, CodePath, ".."},
		"dot":        {func(r gitRepo) plumbing.Hash { return r.tree(entry{gitFile, ".", file(r)}) }, CodePath, "."},
		"slash":      {func(r gitRepo) plumbing.Hash { return r.tree(entry{gitFile, "a/../../b", file(r)}) }, CodePath, "a/../../b"},
		"empty name": {func(r gitRepo) plumbing.Hash { return r.tree(entry{gitTree, "", r.treeOf(map[string]string{"f": ""})}) }, CodePath, ""},
		"long name":  {func(r gitRepo) plumbing.Hash { return r.tree(entry{gitFile, strings.Repeat("n", 256), file(r)}) }, CodePath, strings.Repeat("n", 256)},
		"deep": {func(r gitRepo) plumbing.Hash {
			return r.treeOf(map[string]string{strings.Repeat("d/", evidence.MaxPathDepth) + "f": "x"})
		}, CodePath, ""},
		"file and directory": {func(r gitRepo) plumbing.Hash {
			return r.tree(entry{gitFile, "a", file(r)}, entry{gitTree, "a", r.treeOf(map[string]string{"f": ""})})
		}, CodePath, ""},
		"twice": {func(r gitRepo) plumbing.Hash {
			return r.rawTree(entry{gitFile, "a", file(r)}, entry{gitFile, "a", file(r)})
		}, CodeCorruptObject, ""},
		"unsorted": {func(r gitRepo) plumbing.Hash {
			return r.rawTree(entry{gitFile, "b", file(r)}, entry{gitFile, "a", file(r)})
		}, CodeCorruptObject, ""},
		"cut short":    {func(r gitRepo) plumbing.Hash { return r.object(plumbing.TreeObject, "100644 f\x00short") }, CodeCorruptObject, ""},
		"no tree":      {func(r gitRepo) plumbing.Hash { return plumbing.NewHash(strings.Repeat("12", 20)) }, CodeMissingObject, ""},
		"blob as tree": {func(r gitRepo) plumbing.Hash { return file(r) }, CodeCorruptObject, ""},
		"tree as blob": {func(r gitRepo) plumbing.Hash { return r.tree(entry{gitFile, "f", r.tree()}) }, CodeCorruptObject, ""},
		"missing blob": {func(r gitRepo) plumbing.Hash {
			return r.tree(entry{gitFile, "f", plumbing.NewHash(strings.Repeat("34", 20))})
		}, CodeMissingObject, ""},
		"absolute link": {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"l": "-> /etc/passwd"}) }, CodeLinkAbsolute, "l"},
		"escaping link": {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"d/l": "-> ../../x"}) }, CodeLinkEscapes, "d/l"},
		"dangling link": {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"l": "-> none"}) }, CodeLinkDangling, "l"},
		"link cycle":    {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"k": "-> l", "l": "-> k"}) }, CodeLinkCycle, "k"},
		"link to .git":  {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"l": "-> .git/config"}) }, CodeLinkReserved, "l"},
		"NUL in a link": {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"f": "", "l": "-> f\x00"}) }, CodePath, ""},
		"empty link":    {func(r gitRepo) plumbing.Hash { return r.treeOf(map[string]string{"l": "-> "}) }, CodePath, ""},
		"long link": {func(r gitRepo) plumbing.Hash {
			return r.treeOf(map[string]string{"l": "-> " + strings.Repeat("x", 5000)})
		}, CodePath, "l"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newGitRepo(t)
			s := r.subject(r.commit(tc.tree(r)))
			_, err := measure(t, s)
			require.Equal(t, tc.path, requireCode(t, err, tc.code).Path)

			parent := privateDir(t)
			_, err = Materialize(context.Background(), Request{Subject: s, Parent: parent, Name: "s"})
			requireCode(t, err, tc.code)
			left, err := os.ReadDir(parent)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// req B3
func TestCommitLimits(t *testing.T) {
	r := newGitRepo(t)
	s := r.subject(r.commitFiles(map[string]string{"a": "12345", "d/b": "123", "l": "-> a"}))
	for name, tc := range map[string]struct {
		limits Limits
		code   Code
	}{
		"exactly":   {bounded(3, 8, 5), ""},
		"files":     {bounded(2, 8, 5), CodeTooManyFiles},
		"bytes":     {bounded(3, 7, 5), CodeTooLarge},
		"file size": {bounded(3, 8, 4), CodeFileTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Materialize(context.Background(), Request{Subject: s, Parent: privateDir(t), Name: "s", Limits: tc.limits})
			if tc.code == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, requireCode(t, err, tc.code), "this is not the large-repository profile")
		})
	}
	require.Equal(t, bounded(10_000, 256<<20, 64<<20), DefaultLimits)
}

// A tree that names itself over and over is refused by count, not by patience.
func TestTreeBomb(t *testing.T) {
	r := newGitRepo(t)
	level := r.tree()
	for range 30 {
		var entries []entry
		for i := range 10 {
			entries = append(entries, entry{gitTree, fmt.Sprintf("d%d", i), level})
		}
		level = r.tree(entries...)
	}
	_, err := measure(t, r.subject(r.commit(level)))
	requireCode(t, err, CodeTooManyFiles)
}

func TestHugeTreeObject(t *testing.T) {
	r := newGitRepo(t)
	h := r.object(plumbing.TreeObject, strings.Repeat("x", maxTreeObject+1))
	_, err := measure(t, r.subject(r.commit(h)))
	requireCode(t, err, CodeTooLarge)
}

// writeLoose replaces a loose object by bytes of our choice.
func (r gitRepo) writeLoose(h plumbing.Hash, raw string) {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, err := z.Write([]byte(raw))
	require.NoError(r.t, err)
	require.NoError(r.t, z.Close())
	path := filepath.Join(r.dir, ".git", "objects", h.String()[:2], h.String()[2:])
	require.NoError(r.t, os.Remove(path))
	require.NoError(r.t, os.WriteFile(path, b.Bytes(), 0o644))
}

// req B5: the same revision always gives the same digest, or none.
func TestObjectsHashToTheirNames(t *testing.T) {
	for name, tc := range map[string]struct{ raw, want string }{
		"other bytes":      {"blob 4\x00evil", "doesn't hash to its name"},
		"longer":           {"blob 4\x00good and more", "not as long as its header says"},
		"shorter":          {"blob 4\x00go", "not as long as its header says"},
		"other kind":       {"commit 4\x00good", "is a commit"},
		"a header of junk": {"junk", "can't be read"},
		"negative size":    {"blob -4\x00good", "can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newGitRepo(t)
			s := r.subject(r.commitFiles(map[string]string{"f": "good"}))
			r.writeLoose(r.blob("good"), tc.raw)
			_, err := measure(t, s)
			require.ErrorContains(t, requireCode(t, err, CodeCorruptObject), tc.want)
		})
	}
	t.Run("not compressed", func(t *testing.T) {
		r := newGitRepo(t)
		h := r.blob("good")
		s := r.subject(r.commitFiles(map[string]string{"f": "good"}))
		path := filepath.Join(r.dir, ".git", "objects", h.String()[:2], h.String()[2:])
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.WriteFile(path, []byte("blob 4\x00good"), 0o644))
		_, err := measure(t, s)
		requireCode(t, err, CodeCorruptObject)
	})
	t.Run("tree", func(t *testing.T) {
		r := newGitRepo(t)
		tree := r.treeOf(map[string]string{"f": "good"})
		s := r.subject(r.commit(tree))
		h := r.blob("good")
		r.writeLoose(tree, "tree 29\x00100644 g\x00"+string(h[:]))
		_, err := measure(t, s)
		requireCode(t, err, CodeCorruptObject)
	})
}

// A loose object that says it is small and inflates to a gigabyte is stopped at its said size.
func TestInflationIsBounded(t *testing.T) {
	r := newGitRepo(t)
	s := r.subject(r.commitFiles(map[string]string{"f": "x"}))
	r.writeLoose(r.blob("x"), "blob 1\x00"+strings.Repeat("x", 64<<20))
	allocated := testing.AllocsPerRun(1, func() {
		_, err := measure(t, s)
		requireCode(t, err, CodeCorruptObject)
	})
	require.Less(t, allocated, 10_000.0)
}

func TestCommitMustBeFull(t *testing.T) {
	r := newGitRepo(t)
	h := r.commitFiles(map[string]string{"f": "x"})
	tag := r.object(plumbing.TagObject, "object "+h.String()+"\ntype commit\ntag x\n")
	for _, revision := range []string{h.String()[:10], strings.ToUpper(h.String()), tag.String(), "", h.String() + strings.Repeat("0", 24)} {
		_, err := measure(t, commitSubject(r.dir, revision))
		requireCode(t, err, CodeRevision)
	}
}
