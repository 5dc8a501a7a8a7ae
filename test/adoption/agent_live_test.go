//go:build live

package adoption

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/docker"
)

// TestLiveAgentExample runs each plan of the example as a person does, on the local daemon: image, repository,
// contained run, evidence exported and verified. It fails where there is no daemon.
//
// req N1 req N5 req N7
func TestLiveAgentExample(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(bin, "baildock"), "../../cmd/baildock")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	d, err := docker.Open(docker.DefaultSocket)
	require.NoError(t, err)
	rt, err := d.Probe(context.Background())
	require.NoError(t, err, "a Docker daemon must answer on %s", docker.DefaultSocket)
	require.NoError(t, d.Close())
	var accept []string
	for _, r := range rt.Reductions {
		accept = append(accept, string(r))
	}
	for _, tc := range []struct {
		plan string
		exit int
		says []string
	}{
		{"mend", 0, []string{"success", "renamed", "+Hello, world!", "VERIFIED: success"}},
		{"look", 0, []string{"success", "VERIFIED: success"}},
		{"careless", 1, []string{"policy_violated", "allowed_paths BROKEN", "protected_tests BROKEN", "executable_bits BROKEN", "new_links BROKEN", "max_files held"}},
		{"nosy", 0, []string{"success", `"docs/report.txt"`, "read /var/run/docker.sock: refused", "write /etc/agent: refused",
			"dial tcp 192.0.2.1:443: refused", "dial udp 192.0.2.1:53: refused", "read /workspace/../evidence: refused"}},
		{"spoof", 5, []string{"mutations_unknown", "workspace_reserved_path"}},
	} {
		t.Run(tc.plan, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			cmd := exec.Command("../../examples/agent/run.sh", tc.plan, dir)
			cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "ACCEPT="+strings.Join(accept, " "))
			out, err := cmd.CombinedOutput()
			got := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				got, err = exit.ExitCode(), nil
			}
			require.NoError(t, err)
			require.Equal(t, tc.exit, got, "%s", out)
			for _, s := range tc.says {
				require.Contains(t, string(out), s)
			}
			require.NotContains(t, string(out), "which it shouldn't have been")
			require.Contains(t, string(out), "every attempt is about .") // req J5
			artifacts, err := filepath.Glob(filepath.Join(dir, "home", "contained-runs", "*", "contained-run.json"))
			require.NoError(t, err)
			require.Len(t, artifacts, 1)
			b, err := os.ReadFile(artifacts[0])
			require.NoError(t, err)
			var a struct {
				Exit int
			}
			require.NoError(t, json.Unmarshal(b, &a))
			require.Equal(t, tc.exit, a.Exit)
			left, err := os.ReadDir(filepath.Join(dir, "home", "execution"))
			require.NoError(t, err)
			require.Empty(t, left, "the copy is gone")
			original, err := os.ReadFile(filepath.Join(dir, "project", "src", "greeting.txt"))
			require.NoError(t, err)
			require.Equal(t, "Helo, world!\n", string(original), "the repository is as it was")

			require.NoError(t, os.WriteFile(filepath.Join(dir, "project", "src", "greeting.txt"), []byte("Helo!\n"), 0o644))
			verify := exec.Command(filepath.Join(bin, "baildock"), "verify", "run.cbor", "--key", "home/ledger.pub", "--source", "project")
			verify.Dir = dir
			out, err = verify.CombinedOutput()
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 1, exit.ExitCode())
			require.Contains(t, string(out), "is not about project")
			rerun := exec.Command(filepath.Join(bin, "baildock"), "--home", "home", "rerun", "run.cbor", "--key", "home/ledger.pub", "--source", "project")
			rerun.Dir = dir
			out, err = rerun.CombinedOutput()
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 2, exit.ExitCode(), "%s", out)
			require.Contains(t, string(out), "is a contained run")
		})
	}
}
