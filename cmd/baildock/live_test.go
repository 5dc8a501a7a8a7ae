//go:build live

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/docker"
)

// TestLiveScripts shows what runs do on the local daemon. It fails where there is none. The
// program is the static one that people run: the test's own binary would need a loader in its
// probe's image.
func TestLiveScripts(t *testing.T) {
	bin := t.TempDir()
	for name, pkg := range map[string]string{"baildock": ".", "misbehave": "../../test/demo/misbehave"} {
		build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(bin, name), pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	d, err := docker.Open(docker.DefaultSocket)
	require.NoError(t, err)
	rt, err := d.Probe(context.Background())
	require.NoError(t, err, "a Docker daemon must answer on %s", docker.DefaultSocket)
	require.Empty(t, rt.Refusals, "the daemon lacks a requirement")
	require.NoError(t, d.Close())
	var accept []string
	for _, r := range rt.Reductions {
		accept = append(accept, "--accept-reduced="+string(r))
	}
	scripts(t, filepath.Join("testdata", "live"), 7, func(e *testscript.Env) error {
		e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
		e.Setenv("BIN", bin)
		// A flag that may be repeated harmlessly stands in where the claim is full already.
		if len(accept) == 0 {
			accept = []string{"--accept-reduced=cgroup-v1"}
		}
		e.Setenv("ACCEPT", strings.Join(accept, " "))
		return nil
	})
}
