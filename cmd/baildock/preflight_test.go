package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/warden"
)

// TestPreflightScripts shows the verb on a daemon that contains nothing: its probe reports what the
// container that was asked for would show.
func TestPreflightScripts(t *testing.T) {
	var daemon *fakedaemon.Daemon
	daemon = fakedaemon.Start(t, fakedaemon.Options{Engine: fakedaemon.Engine27(), Program: func(inv fakedaemon.Invocation) (fakedaemon.Program, bool) {
		if inv.Argv[0] != "/baildock" {
			return fakedaemon.Program{Steps: []fakedaemon.Step{fakedaemon.Exit(99)}}, true
		}
		return fakedaemon.Program{Steps: []fakedaemon.Step{
			fakedaemon.WriteOf(func() []byte { return reportOf(daemon, inv.Labels[executor.LabelHandle]) }),
		}}, true
	}})
	id, err := daemon.AddImage(fakedaemon.Image{Name: "tool:1", User: "agent"})
	require.NoError(t, err)
	old := fakedaemon.Start(t, fakedaemon.Options{Engine: fakedaemon.Engine20().With(fakedaemon.NoSwapLimit)})
	scripts(t, filepath.Join("testdata", "preflight"), 1, func(e *testscript.Env) error {
		e.Setenv("SOCKET", daemon.Socket)
		e.Setenv("OLD", old.Socket)
		e.Setenv("IMAGE", id)
		uid, gid := os.Geteuid(), os.Getegid()
		if uid == 0 {
			uid, gid = 1234, 1234
		}
		e.Setenv("UID", fmt.Sprint(uid))
		e.Setenv("GID", fmt.Sprint(gid))
		return nil
	}, "preflight")
	require.Empty(t, daemon.Containers())
	require.Zero(t, old.Count(fakedaemon.CallCreate))
	for _, r := range daemon.Requests(fakedaemon.CallCreate) {
		require.Regexp(t, `"Entrypoint":\["/(baildock|bin/agent)"\],`, string(r.Body))
	}
}

// reportOf is what the container that was asked for with a handle would show.
func reportOf(d *fakedaemon.Daemon, handle string) []byte {
	for _, r := range slices.Backward(d.Requests(fakedaemon.CallCreate)) {
		var asked struct {
			User       string
			Labels     map[string]string
			HostConfig struct {
				Tmpfs  map[string]string
				Mounts []struct{ Source string }
			}
		}
		if json.Unmarshal(r.Body, &asked) != nil || asked.Labels[executor.LabelHandle] != handle {
			continue
		}
		var uid, gid uint32
		var size uint64
		fmt.Sscanf(asked.User, "%d:%d", &uid, &gid)                                             //nolint:errcheck // zero fails the check
		fmt.Sscanf(strings.SplitN(asked.HostConfig.Tmpfs["/tmp"], ",", 5)[4], "size=%d", &size) //nolint:errcheck // so does this
		marker, err := os.ReadFile(filepath.Join(asked.HostConfig.Mounts[0].Source, "marker"))
		if err != nil {
			return nil
		}
		return evidence.Marshal(preflightReport(uid, gid, size, marker))
	}
	return nil
}

// preflightReport is what a probe in a container that is as asked for says.
func preflightReport(uid, gid uint32, size uint64, marker []byte) warden.SelfReport {
	four := func(n uint32) string { return strings.Join(slices.Repeat([]string{fmt.Sprint(n)}, 4), " ") }
	none := strings.Repeat("0", 16)
	return warden.SelfReport{
		Version: 1, Marker: marker, Routes: []string{}, Failed: []string{},
		Status: []warden.StatusField{
			{Name: "CapAmb", Value: none}, {Name: "CapBnd", Value: none}, {Name: "CapEff", Value: none}, {Name: "CapInh", Value: none},
			{Name: "CapPrm", Value: none}, {Name: "Gid", Value: four(gid)}, {Name: "Groups"}, {Name: "NoNewPrivs", Value: "1"},
			{Name: "Seccomp", Value: "2"}, {Name: "Uid", Value: four(uid)},
		},
		Root:    warden.Filesystem{Block: 4096, ReadOnly: true, Create: uint(unix.EROFS)},
		Scratch: warden.Filesystem{Type: unix.TMPFS_MAGIC, Size: size, Block: 4096, Beyond: uint(unix.ENOSPC)},
	}
}
