package source

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// statusOf asks git itself.
func statusOf(t *testing.T, dir string) []string {
	t.Helper()
	out := gitOutput(t, dir, "--no-optional-locks", "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
	lines := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if out == "" {
		return nil
	}
	return lines
}

func gitOutput(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %q: %s", args, out)
	return string(out)
}

func gitStateOf(t *testing.T, dir string) (*GitState, error) {
	t.Helper()
	root, err := os.Open(dir)
	require.NoError(t, err)
	defer root.Close()
	limits := DefaultLimits
	l, err := List(context.Background(), ListRequest{Root: root, Path: dir, Limits: limits})
	require.NoError(t, err)
	defer l.Close()
	return ReadGitState(context.Background(), dir, l)
}

func requireSameStatus(t *testing.T, dir, when string) int {
	t.Helper()
	s, err := gitStateOf(t, dir)
	require.NoError(t, err)
	require.Empty(t, s.Unavailable)
	got := map[string]bool{}
	for _, l := range s.Status {
		got[l.String()] = true
	}
	want := map[string]bool{}
	for _, l := range statusOf(t, dir) {
		want[l] = true
	}
	require.Equal(t, want, got, when)
	return len(want)
}

// Random histories, staged and unstaged changes, ignore rules, links and modes: git says the same.
//
// req O1
func TestGitStateIsWhatGitSays(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	names := []string{"a", "b.o", "d/c", "d/e.o", "d/f/g", "keep.o", "out/x", "out/y/z", "é n", "l\nm", "d/out/w", "-h"}
	total := 0
	for round := range 12 {
		dir := filepath.Join(realTemp(t), "repo")
		require.NoError(t, os.Mkdir(dir, 0o755))
		gitOutput(t, dir, "init", "-q", "-b", "main")
		total += requireSameStatus(t, dir, "no commit yet")
		for step := range 14 {
			name := names[r.IntN(len(names))]
			path := filepath.Join(dir, name)
			switch r.IntN(9) {
			case 0:
				_ = os.Remove(path)
			case 1:
				_ = os.Remove(path)
				_ = os.MkdirAll(filepath.Dir(path), 0o755)
				_ = os.Symlink(strings.Repeat("../", strings.Count(name, "/"))+names[r.IntN(3)], path)
			case 2:
				_ = os.Chmod(path, 0o755)
			case 3:
				where := []string{"", "d", "out"}[r.IntN(3)]
				_ = os.MkdirAll(filepath.Join(dir, where), 0o755)
				rules := []string{"*.o\n", "/out/\n", "out\n!keep.o\n", "# c\n*.o\n!keep.o\n\n", "d/f\n", "[ab]*\n"}[r.IntN(6)]
				require.NoError(t, os.WriteFile(filepath.Join(dir, where, ".gitignore"), []byte(rules), 0o644))
			case 4:
				gitOutput(t, dir, "add", "-A")
			case 5:
				gitOutput(t, dir, "commit", "-qm", fmt.Sprint(step), "--allow-empty")
			case 6:
				if out := gitOutput(t, dir, "ls-files", "-z"); out != "" {
					gitOutput(t, dir, "rm", "-q", "--cached", "--", strings.Split(out, "\x00")[0])
				}
			default:
				_ = os.MkdirAll(filepath.Dir(path), 0o755)
				_ = os.WriteFile(path, fmt.Appendf(nil, "%d", r.IntN(4)), 0o644)
			}
		}
		total += requireSameStatus(t, dir, fmt.Sprint("round ", round))
		gitOutput(t, dir, "add", "-A")
		gitOutput(t, dir, "commit", "-qm", "all", "--allow-empty")
		s, err := gitStateOf(t, dir)
		require.NoError(t, err)
		require.Equal(t, statusOf(t, dir), []string(nil))
		require.True(t, s.Clean(), "%v", s)
		require.Equal(t, gitOutput(t, dir, "rev-parse", "HEAD"), s.Head+"\n")
		require.Equal(t, "refs/heads/main", s.Branch)
	}
	require.Greater(t, total, 40)
}

// A conflict of each kind, an entry only meant to be added, a sparse one, and a repository that ignores modes.
func TestGitStateOfConflicts(t *testing.T) {
	dir := filepath.Join(realTemp(t), "repo")
	require.NoError(t, os.Mkdir(dir, 0o755))
	gitOutput(t, dir, "init", "-q", "-b", "main")
	writeFiles(t, dir, map[string]string{"both": "0", "ours": "0", "theirs": "0", "same": "0", "sparse": "0"})
	gitOutput(t, dir, "add", ".")
	gitOutput(t, dir, "commit", "-qm", "base")
	gitOutput(t, dir, "checkout", "-qb", "other")
	writeFiles(t, dir, map[string]string{"both": "1", "ours": "1", "added": "1"})
	require.NoError(t, os.Remove(filepath.Join(dir, "theirs")))
	gitOutput(t, dir, "add", "-A")
	gitOutput(t, dir, "commit", "-qm", "other")
	gitOutput(t, dir, "checkout", "-q", "main")
	writeFiles(t, dir, map[string]string{"both": "2", "theirs": "2", "added": "2"})
	require.NoError(t, os.Remove(filepath.Join(dir, "ours")))
	gitOutput(t, dir, "add", "-A")
	gitOutput(t, dir, "commit", "-qm", "main")
	merge := exec.Command("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "merge", "-q", "other")
	merge.Dir = dir
	require.Error(t, merge.Run(), "a conflict")
	require.Equal(t, 4, requireSameStatus(t, dir, "conflict"))

	gitOutput(t, dir, "reset", "-q", "--hard")
	writeFiles(t, dir, map[string]string{"meant": "x"})
	gitOutput(t, dir, "add", "-N", "meant")
	gitOutput(t, dir, "update-index", "--skip-worktree", "sparse")
	require.NoError(t, os.Remove(filepath.Join(dir, "sparse")))
	require.NoError(t, os.Chmod(filepath.Join(dir, "same"), 0o755))
	require.Equal(t, 2, requireSameStatus(t, dir, "intent and mode"))
	gitOutput(t, dir, "config", "core.fileMode", "false")
	require.Equal(t, 1, requireSameStatus(t, dir, "modes ignored"))
	gitOutput(t, dir, "checkout", "-q", "--detach")
	s, err := gitStateOf(t, dir)
	require.NoError(t, err)
	require.Empty(t, s.Branch)
}

// A large status is cut and counted; what can't be read makes it unavailable, and says why.
func TestGitStateBounds(t *testing.T) {
	dir := filepath.Join(realTemp(t), "repo")
	require.NoError(t, os.Mkdir(dir, 0o755))
	s, err := gitStateOf(t, dir)
	require.NoError(t, err)
	require.Nil(t, s, "no working tree of git")
	gitOutput(t, dir, "init", "-q", "-b", "main")
	for i := range MaxStatusLines + 7 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d", i)), nil, 0o644))
	}
	s, err = gitStateOf(t, dir)
	require.NoError(t, err)
	require.Len(t, s.Status, MaxStatusLines)
	require.Equal(t, 7, s.More)

	for name, damage := range map[string]func(git string){
		"index": func(git string) {
			require.NoError(t, os.WriteFile(filepath.Join(git, "index"), []byte("DIRC????"), 0o644))
		},
		"HEAD": func(git string) {
			require.NoError(t, os.WriteFile(filepath.Join(git, "HEAD"), []byte("nonsense"), 0o644))
		},
		"no HEAD": func(git string) { require.NoError(t, os.Remove(filepath.Join(git, "HEAD"))) },
		"extension": func(string) {
			gitOutput(t, dir, "config", "core.repositoryformatversion", "1")
			gitOutput(t, dir, "config", "extensions.refStorage", "reftable")
		},
		"file": func(git string) {
			require.NoError(t, os.RemoveAll(git))
			writeFiles(t, dir, map[string]string{".git": "gitdir: nowhere\n"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			git := filepath.Join(dir, ".git")
			require.NoError(t, os.RemoveAll(git))
			gitOutput(t, dir, "init", "-q", "-b", "main")
			damage(git)
			s, err := gitStateOf(t, dir)
			require.NoError(t, err)
			require.Contains(t, s.Unavailable, "source_")
			require.Empty(t, s.Status)
			require.False(t, s.Clean())
		})
	}
}

// A linked worktree has its own HEAD and index; a submodule that isn't checked out is an empty directory; a
// directory below the top is no working tree by itself.
func TestGitStateOfWorktreesAndSubmodules(t *testing.T) {
	base := realTemp(t)
	dir, linked := filepath.Join(base, "repo"), filepath.Join(base, "linked")
	require.NoError(t, os.Mkdir(dir, 0o755))
	gitOutput(t, dir, "init", "-q", "-b", "main")
	writeFiles(t, dir, map[string]string{"a": "1", "d/b": "2"})
	gitOutput(t, dir, "add", ".")
	gitOutput(t, dir, "commit", "-qm", "one")
	head := strings.TrimSpace(gitOutput(t, dir, "rev-parse", "HEAD"))
	gitOutput(t, dir, "worktree", "add", "-q", "-b", "side", linked)
	writeFiles(t, linked, map[string]string{"a": "changed", "new": "x"})
	require.Equal(t, 2, requireSameStatus(t, linked, "linked"))
	s, err := gitStateOf(t, linked)
	require.NoError(t, err)
	require.Equal(t, "refs/heads/side", s.Branch)
	require.Equal(t, head, s.Head)
	require.Zero(t, requireSameStatus(t, dir, "main"))

	gitOutput(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+head+",sub")
	gitOutput(t, dir, "commit", "-qm", "submodule")
	require.Equal(t, 1, requireSameStatus(t, dir, "its directory is missing"))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	require.Zero(t, requireSameStatus(t, dir, "not checked out"))

	s, err = gitStateOf(t, filepath.Join(dir, "d"))
	require.NoError(t, err)
	require.Nil(t, s)
}
