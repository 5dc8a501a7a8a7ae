package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDiff(t *testing.T) {
	w := prepare(t, sourceOf(t, map[string]string{"a.txt": "one\ntwo\nthree\n", "bin": "a\x00b", "gone": "x", "moved": "content\n", "exec": "e\n", "perm": "p", "l": "-> a.txt"}))
	in := func(p string) string { return filepath.Join(w.Dir, p) }
	writeAll(t, w.Dir, map[string]string{"a.txt": "one\n2\nthree\n", "bin": "a\x00c", "new \"é\"": "n", "with space": "s\n"})
	require.NoError(t, os.Remove(in("gone")))
	require.NoError(t, os.Rename(in("moved"), in("moved here")))
	require.NoError(t, os.Chmod(in("exec"), 0o755))
	require.NoError(t, os.Chmod(in("perm"), 0o600))
	require.NoError(t, os.Remove(in("l")))
	require.NoError(t, os.Symlink("exec", in("l")))
	captured(t, w)
	d, err := w.Diff(context.Background(), DiffRequest{Bound: 1 << 20})
	require.NoError(t, err)
	require.Equal(t, `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 one
-two
+2
 three
diff --git a/bin b/bin
Binary files a/bin and b/bin differ (no text before)
diff --git a/exec b/exec
old mode 100644
new mode 100755
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1,1 +0,0 @@
-x
\ No newline at end of file
diff --git a/l b/l
--- a/l
+++ b/l
@@ -1,1 +1,1 @@
-a.txt
\ No newline at end of file
+exec
\ No newline at end of file
diff --git a/moved b/moved here
similarity index 100%
rename from moved
rename to moved here
diff --git "a/new \"\303\251\"" "b/new \"\303\251\""
new file mode 100644
--- /dev/null
+++ "b/new \"\303\251\""
@@ -0,0 +1,1 @@
+n
\ No newline at end of file
# perm: permissions 0600, before 0644
diff --git a/with space b/with space
new file mode 100644
--- /dev/null
+++ b/with space`+"\t"+`
@@ -0,0 +1,1 @@
+s
`, string(d.Text))
	require.Equal(t, 1, d.Unshown)
	require.Zero(t, d.Omitted)

	// Whole changes or none, and what is left out is counted.
	short, err := w.Diff(context.Background(), DiffRequest{Bound: 120})
	require.NoError(t, err)
	require.LessOrEqual(t, len(short.Text), 120)
	require.Equal(t, 8, short.Omitted+bytes.Count(short.Text, []byte("diff --git"))-1+strings.Count(string(short.Text), "# perm"))

	secret, err := w.Diff(context.Background(), DiffRequest{Bound: 1 << 20, Redact: func(b []byte) []byte {
		return bytes.ReplaceAll(b, []byte("one\n2"), []byte("[redacted]"))
	}})
	require.NoError(t, err)
	require.Contains(t, string(secret.Text), "+[redacted]\n")
	require.NotContains(t, string(secret.Text), "+2")
}

// The patch, applied by git to the source as it was, gives the workspace: for every text change.
func TestPatchAppliesWithGit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	content := func() string {
		var b strings.Builder
		for range r.IntN(40) {
			fmt.Fprintf(&b, "line %d\n", r.IntN(12))
		}
		if r.IntN(3) == 0 {
			b.WriteString("no end")
		}
		return b.String()
	}
	names := []string{"a", "b c", "d\te", "f\ng", "h\"i", "j\\k", "l\xff", "é", "sub/m", "sub/n o", "x/y/z", "-p", "sub"}
	written, left := 0, 0
	for round := range 25 {
		files := map[string]string{"base": "b"}
		for _, n := range names[:12] {
			if r.IntN(3) > 0 {
				files[n] = content()
			}
			if r.IntN(6) == 0 && files[n] != "" {
				files[n+"*"] = files[n]
				delete(files, n)
			}
		}
		root := sourceOf(t, files)
		w := prepare(t, root)
		for range 8 {
			n := filepath.Join(w.Dir, names[r.IntN(len(names))])
			switch r.IntN(6) {
			case 0:
				_ = os.RemoveAll(n) // what isn't there is fine
			case 1:
				_ = os.Rename(n, filepath.Join(w.Dir, names[r.IntN(12)]))
			case 2:
				_ = os.Chmod(n, 0o755)
			case 3:
				if os.RemoveAll(n) == nil && os.MkdirAll(filepath.Dir(n), 0o755) == nil {
					_ = os.Symlink(strings.Repeat("../", strings.Count(n[len(w.Dir)+1:], "/"))+"base", n)
				}
			default:
				if os.MkdirAll(filepath.Dir(n), 0o755) == nil {
					_ = os.WriteFile(n, []byte(content()), 0o644)
				}
			}
		}
		dropBrokenLinks(t, w.Dir)
		captured(t, w)
		var patch bytes.Buffer
		p, err := w.WritePatch(context.Background(), &patch, nil)
		require.NoError(t, err)
		written += p.Written
		left += len(p.Left)
		if patch.Len() > 0 {
			file := filepath.Join(realTemp(t), "patch")
			require.NoError(t, os.WriteFile(file, patch.Bytes(), 0o600))
			git(t, root, "apply", "--check", file)
			git(t, root, "apply", file)
		}
		require.Equal(t, leavesOf(t, w.Dir), leavesOf(t, root), "round %d:\n%s", round, patch.String())
	}
	require.Greater(t, written, 100)
	require.Zero(t, left)
}

// dropBrokenLinks removes the links that what was moved or removed left dangling.
func dropBrokenLinks(t *testing.T, dir string) {
	t.Helper()
	for again := true; again; {
		again = false
		require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			require.NoError(t, err)
			if e.Type() == fs.ModeSymlink {
				if to, err := filepath.EvalSymlinks(path); err != nil || !strings.HasPrefix(to, dir+"/") {
					again = true
					return os.Remove(path)
				}
			}
			return nil
		}))
	}
}

// leavesOf is every file and link with its content and execute bit.
func leavesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel := strings.TrimPrefix(path, dir)
		switch {
		case e.IsDir():
		case e.Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			require.NoError(t, err)
			out[rel] = "-> " + to
		default:
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			info, err := e.Info()
			require.NoError(t, err)
			out[rel] = fmt.Sprintf("%t %s", info.Mode()&0o100 != 0, b)
		}
		return nil
	}))
	return out
}

// What isn't text is left out and named; the rest still applies.
func TestPatchLeavesOutWhatIsNoText(t *testing.T) {
	root := sourceOf(t, map[string]string{"bin": "a\x00b", "text": "one\n", "large": strings.Repeat("x\n", maxDiffFile)})
	w := prepare(t, root)
	writeAll(t, w.Dir, map[string]string{"bin": "other\x00", "text": "two\n", "large": "small now", "huge": strings.Repeat("y\n", maxDiffFile), "blob": "\x00"})
	captured(t, w)
	var patch bytes.Buffer
	p, err := w.WritePatch(context.Background(), &patch, nil)
	require.NoError(t, err)
	require.Equal(t, Patch{Written: 1, Left: []string{"bin", "blob", "huge", "large"}}, p)
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Stdin = root, &patch
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	b, err := os.ReadFile(filepath.Join(root, "text"))
	require.NoError(t, err)
	require.Equal(t, "two\n", string(b))
}

func TestDiffNeedsACapture(t *testing.T) {
	w := prepare(t, sourceOf(t, map[string]string{"a": "x"}))
	_, err := w.Diff(context.Background(), DiffRequest{Bound: 10})
	require.ErrorContains(t, err, "nothing was captured")
	writeAll(t, w.Dir, map[string]string{"a": "y"})
	captured(t, w)
	writeAll(t, w.Dir, map[string]string{"a": "z"})
	_, err = w.Diff(context.Background(), DiffRequest{Bound: 10})
	var c *CaptureError
	require.ErrorAs(t, err, &c)
	require.Equal(t, CaptureChanged, c.Code, "a diff is of what was captured")
}

// What was kept of a text is proved by the baseline's digest.
func TestDiffNeedsWhatWasKept(t *testing.T) {
	w := prepare(t, sourceOf(t, map[string]string{"a": "before"}))
	writeAll(t, w.Dir, map[string]string{"a": "after"})
	captured(t, w)
	kept := filepath.Join(w.Evidence, "texts")
	b, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.Equal(t, "before", string(b))
	for _, bad := range []string{"Before", "bef"} {
		require.NoError(t, os.WriteFile(kept, []byte(bad), 0o600))
		_, err = w.Diff(context.Background(), DiffRequest{Bound: 100})
		require.ErrorContains(t, err, `read "a" as it was`)
	}
}
