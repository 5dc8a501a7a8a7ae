package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/executor/source"
)

const somebody = 65533

// As root the copy is handed over, links themselves and not what they name; the evidence is not.
func TestHandOver(t *testing.T) {
	require.Zero(t, os.Geteuid(), "handing over needs root")
	root := sourceOf(t, map[string]string{"a": "x", "d/e/f*": "y", "l": "-> a", "empty/": ""})
	w := prepare(t, root)
	for _, bad := range [][2]int{{0, 5}, {5, 0}, {-1, 5}} {
		err := w.HandOver(bad[0], bad[1])
		var refusal *source.RefusedError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, CodeOwner, refusal.Code)
	}
	require.NoError(t, w.HandOver(somebody, somebody-1))
	owned := 0
	require.NoError(t, filepath.WalkDir(w.Dir, func(path string, _ os.DirEntry, err error) error {
		require.NoError(t, err)
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(path, &st))
		require.EqualValues(t, somebody, st.Uid, path)
		require.EqualValues(t, somebody-1, st.Gid, path)
		owned++
		return nil
	}))
	require.Equal(t, 7, owned)
	uid, gid, err := w.Owner()
	require.NoError(t, err)
	require.EqualValues(t, somebody, uid)
	require.EqualValues(t, somebody-1, gid)
	for _, kept := range []string{root, filepath.Join(root, "a"), w.Evidence, filepath.Dir(w.Dir)} {
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(kept, &st))
		require.Zero(t, st.Uid, kept)
	}
	require.Empty(t, captured(t, w), "an owner is no change")
}

// TestAsUser runs the tests below as an ordinary user: what a mode hides is hidden from them, too.
func TestAsUser(t *testing.T) {
	if os.Getenv("WORKSPACE_TEST_AS_USER") != "" {
		t.Run("unreadable", testUnreadable)
		t.Run("owner", testOtherOwner)
		return
	}
	require.Zero(t, os.Geteuid(), "becoming somebody else needs root")
	// The test binary's own directory is closed to others.
	dir, err := os.MkdirTemp("", "workspace-as-user-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chown(dir, somebody, somebody))
	b, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	binary := filepath.Join(dir, "test")
	require.NoError(t, os.WriteFile(binary, b, 0o755))
	cmd := exec.Command(binary, "-test.run", "^TestAsUser$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WORKSPACE_TEST_AS_USER=1", "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: somebody, Gid: somebody, Groups: []uint32{}}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range []string{"unreadable", "owner"} {
		require.Contains(t, string(out), "--- PASS: TestAsUser/"+name)
	}
}

func testUnreadable(t *testing.T) {
	require.NotZero(t, os.Geteuid())
	for name, hide := range map[string]func(dir string) string{
		"file":      func(dir string) string { return filepath.Join(dir, "d", "f") },
		"directory": func(dir string) string { return filepath.Join(dir, "d") },
	} {
		root := sourceOf(t, map[string]string{"d/f": "x", "a": "y"})
		require.NoError(t, os.Chmod(hide(root), 0))
		refused(t, Request{Root: root}, source.CodeUnreadable)
		require.NoError(t, os.Chmod(hide(root), 0o755))

		w := prepare(t, root)
		require.NoError(t, os.Chmod(hide(w.Dir), 0))
		capturedCode(t, w, CaptureUnreadable)
		u, err := w.Usage()
		require.NoError(t, err)
		if name == "directory" {
			require.Equal(t, BoundHidden, u.Broken, "what can't be counted could fill the disk")
		} else {
			require.Empty(t, u.Broken)
		}
		require.NoError(t, os.Chmod(w.Dir, 0))
		require.NoError(t, w.Remove(), "it can be removed all the same")
	}

	// A directory without the search right shows its names and nothing of them.
	w := prepare(t, sourceOf(t, map[string]string{"d/f": "x"}))
	require.NoError(t, os.Chmod(filepath.Join(w.Dir, "d"), 0o400))
	u, err := w.Usage()
	require.NoError(t, err)
	require.Equal(t, BoundHidden, u.Broken)
	capturedCode(t, w, CaptureUnreadable)

	// Directories that nobody may enter, deeper than a handle for each level.
	w = prepare(t, sourceOf(t, map[string]string{"a": "x"}))
	nest("n", 400)(t, w.Dir)
	at := w.Dir
	for range 5 {
		at = filepath.Join(at, "n")
	}
	require.NoError(t, os.Chmod(at, 0))
	require.NoError(t, os.Chmod(filepath.Join(w.Dir, "n"), 0o100))
	require.NoError(t, w.Remove())
}

func testOtherOwner(t *testing.T) {
	w := prepare(t, sourceOf(t, map[string]string{"a": "x"}))
	require.NoError(t, w.HandOver(os.Geteuid(), os.Getegid()), "it is theirs already")
	for _, other := range [][2]int{{os.Geteuid() + 1, os.Getegid()}, {os.Geteuid(), os.Getegid() + 1}, {0, 0}} {
		err := w.HandOver(other[0], other[1])
		var refusal *source.RefusedError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, CodeOwner, refusal.Code)
	}
}
