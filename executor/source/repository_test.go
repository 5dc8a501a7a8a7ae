package source

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// realRepo is a repository of the real git with some content, and what it holds.
func realRepo(t *testing.T) (dir string, content map[string]string) {
	dir = realTemp(t)
	content = map[string]string{"README": "hello\n", "bin/run": "#!/bin/sh\n", "lib/l": "-> ../bin/run", "big": strings.Repeat("0123456789abcdef", 200_000)}
	runGit(t, dir, "init", "-q", "-b", "main")
	writeFiles(t, dir, content)
	runGit(t, dir, "add", "-A")
	runGit(t, dir, "commit", "-q", "-m", "1")
	return dir, content
}

// req B5: loose, packed, bare, shared, borrowed and linked repositories hold the same revision.
func TestRepositoryForms(t *testing.T) {
	dir, content := realRepo(t)
	want := digestOf(t, directorySubject(directoryOf(t, content)))
	revision := runGit(t, dir, "rev-parse", "HEAD")
	check := func(name, path string) {
		t.Helper()
		s, err := Resolve(context.Background(), Locator{Path: path, Rev: "HEAD"})
		require.NoError(t, err, name)
		require.Equal(t, revision, s.Revision, name)
		require.Equal(t, want, digestOf(t, s), name)
	}
	check("loose", dir)
	check("its .git", filepath.Join(dir, ".git"))
	require.Equal(t, want, digestOf(t, directorySubject(dir)), "its working tree")

	base := realTemp(t)
	runGit(t, base, "clone", "-q", "--bare", dir, "bare.git")
	check("bare", filepath.Join(base, "bare.git"))
	runGit(t, base, "clone", "-q", "--shared", dir, "shared")
	check("borrowed", filepath.Join(base, "shared"))
	runGit(t, base, "clone", "-q", "--shared", "shared", "shared-again")
	check("borrowed twice", filepath.Join(base, "shared-again"))
	relative, err := filepath.Rel(filepath.Join(base, "shared", ".git", "objects"), filepath.Join(dir, ".git", "objects"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(base, "shared", ".git", "objects", "info", "alternates"), []byte("# a comment\n\n"+relative+"\n"), 0o644))
	check("borrowed by a relative path", filepath.Join(base, "shared"))

	runGit(t, dir, "worktree", "add", "-q", "--detach", filepath.Join(base, "linked"))
	check("linked worktree", filepath.Join(base, "linked"))
	require.Equal(t, want, digestOf(t, directorySubject(filepath.Join(base, "linked"))), "linked worktree as it lies")

	// A second version makes packing store one of the two as a difference.
	writeFiles(t, dir, map[string]string{"big": content["big"] + "more"})
	runGit(t, dir, "commit", "-q", "-a", "-m", "2")
	runGit(t, dir, "gc", "-q", "--aggressive", "--prune=now")
	packs, err := filepath.Glob(filepath.Join(dir, ".git", "objects", "pack", "*.pack"))
	require.NoError(t, err)
	require.NotEmpty(t, packs)
	require.Equal(t, want, digestOf(t, commitSubject(dir, revision)), "packed")
	require.Equal(t, digestOf(t, directorySubject(dir)), digestOf(t, commitSubject(dir, runGit(t, dir, "rev-parse", "HEAD"))), "packed, newer")

	for _, key := range []string{"extensions.worktreeConfig true", "extensions.preciousObjects true", "extensions.noop x"} {
		runGit(t, dir, "config", "core.repositoryformatversion", "1")
		runGit(t, dir, append([]string{"config"}, strings.Fields(key)...)...)
	}
	require.Equal(t, want, digestOf(t, commitSubject(dir, revision)), "harmless extensions")
}

// req B2
func TestRealSubmodule(t *testing.T) {
	inner, _ := realRepo(t)
	outer, _ := realRepo(t)
	runGit(t, outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "vendor/inner")
	runGit(t, outer, "commit", "-q", "-m", "2")
	_, err := measure(t, commitSubject(outer, runGit(t, outer, "rev-parse", "HEAD")))
	require.Equal(t, "vendor/inner", requireCode(t, err, CodeSubmodule).Path)
	_, err = measure(t, directorySubject(outer))
	require.Equal(t, "vendor/inner", requireCode(t, err, CodeSubmodule).Path)
}

// Nothing of the repository is executed or applied: no hook, filter, attribute, replacement.
func TestRawBlobs(t *testing.T) {
	dir, _ := realRepo(t)
	want := digestOf(t, commitSubject(dir, runGit(t, dir, "rev-parse", "HEAD")))
	marker := filepath.Join(realTemp(t), "ran")
	runGit(t, dir, "config", "filter.x.smudge", "touch "+marker+"; cat")
	runGit(t, dir, "config", "core.fsmonitor", "touch "+marker)
	runGit(t, dir, "config", "core.autocrlf", "true")
	writeFiles(t, dir, map[string]string{".git/info/attributes": "* filter=x text eol=crlf\n", ".git/hooks/post-checkout": "#!/bin/sh\ntouch " + marker + "\n"})
	blob := runGit(t, dir, "rev-parse", "HEAD:README")
	other := runGit(t, dir, "rev-parse", "HEAD:bin/run")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".git", "refs", "replace"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "refs", "replace", blob), []byte(other+"\n"), 0o644))
	s, err := Resolve(context.Background(), Locator{Path: dir, Rev: "main"})
	require.NoError(t, err)
	snap, err := Materialize(context.Background(), Request{Subject: s, Parent: privateDir(t), Name: "s"})
	require.NoError(t, err)
	got, err := snap.Manifest.Digest()
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NoFileExists(t, marker)
}

func TestRepositoryRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string
	}{
		"SHA-256": {func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git")))
			runGit(t, dir, "init", "-q", "--object-format=sha256")
			runGit(t, dir, "commit", "-q", "--allow-empty", "-m", "1")
		}, "extension objectformat=sha256 is not understood"},
		"unknown extension": {func(t *testing.T, dir string) {
			require.NoError(t, appendFile(filepath.Join(dir, ".git", "config"), "[extensions]\nrefStorage = reftable\n"))
		}, "reftable is not understood"},
		"unknown format": {func(t *testing.T, dir string) {
			require.NoError(t, appendFile(filepath.Join(dir, ".git", "config"), "[core]\nrepositoryformatversion = 2\n"))
		}, `format "2" is not understood`},
		"broken configuration": {func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "config"), []byte("[core\n"), 0o644))
		}, "configuration can't be read"},
		"empty .git file": {func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git")))
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), nil, 0o644))
		}, ".git doesn't name a repository"},
		"huge .git file": {func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git")))
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), make([]byte, maxGitFile+1), 0o644))
		}, "not a file of one path"},
		".git file to nowhere": {func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git")))
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: nowhere\n"), 0o644))
		}, "can't be read"},
		"alternates to nowhere": {func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "objects", "info", "alternates"), []byte("nowhere/objects\n"), 0o644))
		}, "needs objects from a directory"},
		"endless alternates": {func(t *testing.T, dir string) {
			var lines strings.Builder
			for i := range maxAlternates {
				other := filepath.Join(dir, strings.Repeat("x", i+1), "objects")
				require.NoError(t, os.MkdirAll(other, 0o755))
				lines.WriteString(other + "\n")
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "objects", "info", "alternates"), []byte(lines.String()), 0o644))
		}, "borrows objects from more than"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := realRepo(t)
			tc.change(t, dir)
			_, err := Resolve(context.Background(), Locator{Path: dir, Rev: "HEAD"})
			require.ErrorContains(t, requireCode(t, err, CodeRepository), tc.want)
		})
	}
	_, err := Resolve(context.Background(), Locator{Path: realTemp(t), Rev: "HEAD"})
	requireCode(t, err, CodeRepository)
}

// A shallow clone lacks parents, not files.
func TestShallowClone(t *testing.T) {
	dir, _ := realRepo(t)
	runGit(t, dir, "commit", "-q", "--allow-empty", "-m", "2")
	base := realTemp(t)
	runGit(t, base, "clone", "-q", "--depth", "1", "file://"+dir, "shallow")
	s, err := Resolve(context.Background(), Locator{Path: filepath.Join(base, "shallow"), Rev: "HEAD"})
	require.NoError(t, err)
	require.Equal(t, digestOf(t, directorySubject(dir)), digestOf(t, s))
	_, err = Resolve(context.Background(), Locator{Path: filepath.Join(base, "shallow"), Rev: "HEAD~1"})
	requireCode(t, err, CodeMissingObject)
}

func appendFile(path, text string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, text...), 0o644)
}
