package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/config"
	"github.com/baildock/baildock/executor/workspace"
)

func example(t *testing.T) config.Config {
	t.Helper()
	b, err := os.ReadFile("baildock.yaml")
	require.NoError(t, err)
	c, err := config.Load("baildock.yaml", b)
	require.NoError(t, err)
	return c
}

// worked lets the agent carry out a plan in a workspace of the project, as a contained run does but
// without the container, and returns what it printed.
func worked(t *testing.T, plan string) (*workspace.Workspace, string) {
	t.Helper()
	parent := filepath.Join(t.TempDir(), "execution")
	require.NoError(t, os.Mkdir(parent, 0o700))
	parent, err := filepath.EvalSymlinks(parent)
	require.NoError(t, err)
	w, err := workspace.Prepare(t.Context(), workspace.Request{Root: "project", Parent: parent, Writable: example(t).Writable})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Remove()) })
	root, err := os.OpenRoot(w.Dir)
	require.NoError(t, err)
	defer root.Close()
	var out bytes.Buffer
	require.NoError(t, perform(root, plan, &out))
	return w, out.String()
}

// Each plan against the example's own policy: which checks hold.
func TestPlansAgainstThePolicy(t *testing.T) {
	for plan, want := range map[string]map[evidence.PolicyCheck]bool{
		"mend": {"allowed_paths": true, "forbidden_paths": true, "protected_tests": true, "max_files": true, "max_bytes": true, "executable_bits": true, "new_links": true},
		"careless": {"allowed_paths": false, "forbidden_paths": true, "protected_tests": false, "max_files": true, "max_bytes": true,
			"executable_bits": false, "new_links": false},
	} {
		t.Run(plan, func(t *testing.T) {
			w, out := worked(t, plan)
			require.Contains(t, out, "mending the greeting")
			l, err := w.Capture(t.Context())
			require.NoError(t, err)
			got := map[evidence.PolicyCheck]bool{}
			for _, r := range example(t).Policy.Check(l) {
				got[r.Name] = r.Held
			}
			require.Equal(t, want, got)
		})
	}
}

func TestMendReallyEdits(t *testing.T) {
	w, _ := worked(t, "mend")
	l, err := w.Capture(t.Context())
	require.NoError(t, err)
	var seen []string
	for _, m := range l {
		seen = append(seen, m.Kind.String()+" "+m.Path)
	}
	require.Equal(t, []string{"added docs/CHANGES.txt", "added src/farewells", "renamed src/farewells/en.txt", "modified src/greeting.txt"}, seen)
	d, err := w.Diff(t.Context(), workspace.DiffRequest{Bound: 1 << 16})
	require.NoError(t, err)
	require.Contains(t, string(d.Text), "-Helo, world!\n+Hello, world!\n")
	original, err := os.ReadFile("project/src/greeting.txt")
	require.NoError(t, err)
	require.Equal(t, "Helo, world!\n", string(original))
}

func TestSpoofFailsTheCapture(t *testing.T) {
	w, _ := worked(t, "spoof")
	_, err := w.Capture(t.Context())
	var refusal *workspace.CaptureError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, workspace.CaptureReserved, refusal.Code)
}

// Every plan can be read, and no step leaves the repository or guesses.
func TestSteps(t *testing.T) {
	require.Equal(t, []string{"careless", "look", "mend", "nosy", "spoof"}, planNames())
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "out")))
	for _, tc := range []struct {
		line, want string
	}{
		{"write a/b \"x y\"", ""},
		{"replace a/b x z", ""},
		{"replace a/b x z", `holds "x" 0 times`},
		{"move a/b c/d", ""},
		{"delete c", ""},
		{"# nothing", ""},
		{"", ""},
		{"write ../x y", "escapes"},
		{"write out/x y", "escapes"},
		{"move nothing there", "no such file"},
		{"mode nothing 755", "no such file"},
		{"fly away", `no step "fly"`},
		{"write one", "takes 2 words, not 1"},
		{`say "open`, "doesn't end"},
		{"try everything", "no such thing to try"},
	} {
		words, err := split(tc.line)
		if err == nil && len(words) > 0 {
			err = step(root, words, new(bytes.Buffer))
		}
		if tc.want == "" {
			require.NoError(t, err, tc.line)
		} else {
			require.ErrorContains(t, err, tc.want, tc.line)
		}
	}
	require.ErrorContains(t, perform(root, "none", new(bytes.Buffer)), `no plan "none"; there are careless, look, mend`)

	var out bytes.Buffer
	require.NoError(t, try(root, []string{"read", filepath.Join(dir, "absent")}, &out))
	require.NoError(t, try(root, []string{"write", filepath.Join(dir, "made")}, &out))
	require.NoError(t, try(root, []string{"read", dir}, &out))
	require.NoError(t, try(root, []string{"dial", "unix", filepath.Join(dir, "no-socket")}, &out))
	require.Equal(t, []bool{true, false, false, true}, refusals(out.String()))
}

func refusals(out string) []bool {
	var r []bool
	for line := range strings.Lines(out) {
		r = append(r, strings.Contains(line, "refused"))
	}
	return r
}
