//go:build live

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/docker"
)

// req M1, req M2, req M4: the local daemon passes every check, on both networks and as the user that a
// configuration names; nothing of it is left. It fails where there is no daemon.
func TestLivePreflight(t *testing.T) {
	top := t.TempDir()
	bin := filepath.Join(top, "baildock")
	build := exec.Command("go", "build", "-trimpath", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	d, err := docker.Open(docker.DefaultSocket)
	require.NoError(t, err)
	before, err := d.Probe(t.Context())
	require.NoError(t, err)
	var accept []string
	for _, r := range before.Reductions {
		accept = append(accept, "--accept-reduced="+string(r))
	}
	preflight := func(args ...string) (string, int) {
		cmd := exec.Command(bin, append([]string{"preflight", "--home", filepath.Join(top, "none")}, args...)...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(top, "state"))
		cmd.Dir = top
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if cmd.ProcessState == nil {
			t.Fatalf("%v", err)
		}
		t.Logf("baildock preflight %s → %d\n%s%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), out, stderr.String())
		return string(out), cmd.ProcessState.ExitCode()
	}

	_, exit := preflight(append(accept, "--quiet")...)
	require.Zero(t, exit)
	if len(accept) > 0 {
		_, exit = preflight("--quiet")
		require.Equal(t, exitRefused, exit, "a reduction is accepted by name, or not at all")
	}

	// Its own probe's image stands for one that a configuration pins: it is only looked at.
	images, err := d.ImageList(t.Context())
	require.NoError(t, err)
	var id evidence.ImageID
	for _, i := range images {
		if strings.HasPrefix(strings.Join(i.Names, " "), "baildock-probe") {
			id = i.ID
		}
	}
	require.NotZero(t, id)
	uid, gid := "4242", "4343"
	if os.Geteuid() != 0 {
		uid, gid = fmt.Sprint(os.Geteuid()), fmt.Sprint(os.Getegid())
	}
	for _, network := range []string{"none", "bridge"} {
		config := filepath.Join(top, network+".yaml")
		require.NoError(t, os.WriteFile(config, []byte("sandbox: {type: docker, image: \""+id.String()+"\"}\ncontained_execution: {version: 1, network: "+network+
			", required_uid: "+uid+", required_gid: "+gid+", tmpfs_size: 3m, memory_limit: 128m, pids_limit: 64}\n"), 0o600))
		text, exit := preflight(append(accept, config, "--json", "--quiet")...)
		require.Zero(t, exit, network)
		var v preflightView
		require.NoError(t, json.Unmarshal([]byte(text), &v))
		require.Len(t, v.Checks, 15)
		for _, c := range v.Checks {
			require.Contains(t, []evidence.PreflightResult{evidence.PreflightSupported, evidence.PreflightExperimental}, c.Result, "%+v", c)
			require.NotContains(t, c.Reason, top)
		}
		require.NoError(t, validate("preflight", []byte(text)))
	}

	left, err := d.FindLabelled(t.Context(), evidence.CustodyContainer)
	require.NoError(t, err)
	for _, l := range left {
		require.NotContains(t, l.Name, "preflight-", "%+v", l)
	}
	for _, dir := range []string{"custody", "preflight"} {
		entries, err := os.ReadDir(filepath.Join(top, "state", "baildock", dir))
		require.NoError(t, err)
		require.Empty(t, entries, dir)
	}
	require.NoDirExists(t, filepath.Join(top, "none"))
	require.NoError(t, d.Close())
}
