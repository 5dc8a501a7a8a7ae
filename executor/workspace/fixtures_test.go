package workspace

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// sourceOf makes a directory. A content that starts with "-> " is a link, a path that ends in a slash an
// empty directory, and one that ends in "*" is executable.
func sourceOf(t testing.TB, content map[string]string) string {
	t.Helper()
	dir := filepath.Join(realTemp(t), "source")
	require.NoError(t, os.Mkdir(dir, 0o755))
	writeAll(t, dir, content)
	return dir
}

func writeAll(t testing.TB, dir string, content map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(content)) {
		path := filepath.Join(dir, strings.TrimSuffix(name, "*"))
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(path, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if to, link := strings.CutPrefix(content[name], "-> "); link {
			require.NoError(t, os.Symlink(to, path))
			continue
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, "*") {
			mode = 0o755
		}
		require.NoError(t, os.WriteFile(path, []byte(content[name]), mode))
		require.NoError(t, os.Chmod(path, mode))
	}
}

func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

func privateDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(realTemp(t), "execution")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

func prepare(t testing.TB, root string) *Workspace {
	t.Helper()
	w, err := Prepare(context.Background(), Request{Root: root, Parent: privateDir(t), Writable: evidence.WritablePaths{"."}})
	require.NoError(t, err)
	t.Cleanup(func() {
		if w.top != nil {
			require.NoError(t, w.Remove())
		}
	})
	return w
}

// refused prepares what must fail, and proves that nothing is left.
func refused(t testing.TB, r Request, code source.Code) *source.RefusedError {
	t.Helper()
	if r.Parent == "" {
		r.Parent = privateDir(t)
	}
	if r.Writable == nil {
		r.Writable = evidence.WritablePaths{"."}
	}
	before := handles(t)
	w, err := Prepare(context.Background(), r)
	require.Nil(t, w)
	var refusal *source.RefusedError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, code, refusal.Code, "%v", err)
	var left *LeftoverError
	require.False(t, errors.As(err, &left), "%v", err)
	requireEmpty(t, r.Parent)
	require.Equal(t, before, handles(t), "handles are left open")
	return refusal
}

func requireEmpty(t testing.TB, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// handles counts this process's open files below the test's directories.
func handles(t testing.TB) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	n := 0
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.Contains(to, "/execution") {
			n++
		}
	}
	return n
}

func capturedCode(t testing.TB, w *Workspace, code CaptureCode) *CaptureError {
	t.Helper()
	l, err := w.Capture(context.Background())
	require.Nil(t, l)
	var c *CaptureError
	require.ErrorAs(t, err, &c)
	require.Equal(t, code, c.Code, "%v", err)
	require.NotContains(t, err.Error(), filepath.Dir(w.Dir), "a path of the host")
	return c
}

func captured(t testing.TB, w *Workspace) evidence.Mutations {
	t.Helper()
	l, err := w.Capture(context.Background())
	require.NoError(t, err)
	return l
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %q: %s", args, out)
	return string(out)
}
