package fakedaemon_test

import (
	"encoding/json"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/fakedaemon"
)

var engines = map[string]fakedaemon.Engine{"20.10": fakedaemon.Engine20(), "27": fakedaemon.Engine27()}

// Every call is made by the official client, unchanged, at both API versions, and does its work.
func TestOfficialClient(t *testing.T) {
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			made := 0
			for _, call := range fakedaemon.Calls() {
				t.Run(string(call), func(t *testing.T) {
					b := newBench(t, engine)
					b.prepare(call)
					before := b.Count(call)
					said, err := b.invoke(patient(t), call)
					require.NoError(t, err)
					require.Greater(t, b.Count(call), before)
					last := b.Requests(call)[b.Count(call)-1]
					require.NotZero(t, last.Status)
					require.Less(t, last.Status, 400)
					b.check(call, said)
					made++
				})
			}
			require.Equal(t, 35, made)
		})
	}
}

// check wants the effect that a good call has.
func (b *bench) check(c fakedaemon.Call, said any) {
	t := b.t
	status := func(id string) string {
		found, ok := b.Container(id)
		require.True(t, ok)
		return found.Status
	}
	switch c {
	case fakedaemon.CallImageLoad:
		require.Equal(t, "Loaded image: loaded:1\n", said)
	case fakedaemon.CallCreate:
		require.Len(t, b.Containers(), 3)
	case fakedaemon.CallList:
		require.Len(t, said, 2)
	case fakedaemon.CallInspect:
		want, err := b.Inspection(b.busy)
		require.NoError(t, err)
		require.JSONEq(t, string(want), said.(string))
	case fakedaemon.CallAttach:
		require.Equal(t, [2]string{"to stdout\n", "to stderr\n"}, said)
	case fakedaemon.CallWait:
		require.EqualValues(t, 137, said)
	case fakedaemon.CallStart:
		require.Contains(t, []string{"running", "exited"}, status(b.idle))
	case fakedaemon.CallKill, fakedaemon.CallStop:
		require.Equal(t, "exited", status(b.busy))
	case fakedaemon.CallRestart, fakedaemon.CallUnpause:
		require.Equal(t, "running", status(b.busy))
	case fakedaemon.CallPause:
		require.Equal(t, "paused", status(b.busy))
	case fakedaemon.CallRename:
		_, ok := b.Container("other")
		require.True(t, ok)
	case fakedaemon.CallUpdate:
		require.EqualValues(t, 7, b.field(b.busy, "HostConfig", "CpuShares"))
	case fakedaemon.CallRemove:
		require.Len(t, b.Containers(), 1)
	case fakedaemon.CallEvents:
		require.Equal(t, "create", said)
	case fakedaemon.CallExecStart:
		require.Contains(t, b.actions(b.busy), "exec_die")
	case fakedaemon.CallCopyFrom:
		require.Contains(t, b.actions(b.busy), "archive-path")
	case fakedaemon.CallCopyTo:
		require.Contains(t, b.actions(b.busy), "extract-to-dir")
	case fakedaemon.CallTop:
		require.Contains(t, b.actions(b.busy), "top")
	case fakedaemon.CallNetworkConnect:
		require.Len(t, b.field(b.busy, "NetworkSettings", "Networks"), 2)
	case fakedaemon.CallNetworkDisconnect:
		require.Empty(t, b.field(b.busy, "NetworkSettings", "Networks"))
	case fakedaemon.CallNetworkRemove:
		_, err := b.api.NetworkInspect(patient(t), b.network, network.InspectOptions{})
		require.ErrorContains(t, err, "not found")
	case fakedaemon.CallImageRemove:
		_, err := b.api.ImageInspect(patient(t), "tool:1")
		require.ErrorContains(t, err, "No such image")
	}
}

// field reads one field of a container's true inspection.
func (b *bench) field(id string, path ...string) any {
	raw, err := b.Inspection(id)
	require.NoError(b.t, err)
	var node any
	require.NoError(b.t, json.Unmarshal(raw, &node))
	for _, key := range path {
		m, ok := node.(map[string]any)
		require.True(b.t, ok, "%v", path)
		node = m[key]
	}
	return node
}

// actions is what the daemon said of a container, in order; network events as network_….
func (b *bench) actions(id string) []string {
	var all []string
	for _, e := range b.EventLog() {
		switch {
		case e.Actor == id:
			all = append(all, e.Action)
		case e.Attributes["container"] == id:
			all = append(all, "network_"+e.Action)
		}
	}
	return all
}

// A client newer or older than the daemon is told so.
func TestVersionsRefused(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	for version, text := range map[string]string{"1.99": "too new", "1.11": "too old"} {
		api, err := client.NewClientWithOpts(client.WithHost("unix://"+b.Socket), client.WithVersion(version))
		require.NoError(t, err)
		_, err = api.Info(patient(t))
		require.ErrorContains(t, err, text)
		require.NoError(t, api.Close())
	}
}

// What a daemon lacks it drops with a warning, or refuses.
func TestMissingControllers(t *testing.T) {
	limit := int64(10)
	for _, c := range []struct {
		name    string
		change  func(*fakedaemon.Engine)
		warning string
		field   string
		value   any
	}{
		{"memory", fakedaemon.NoMemoryLimit, "memory limit", "Memory", 0.0},
		{"swap", fakedaemon.NoSwapLimit, "swap limit", "MemorySwap", -1.0},
		{"pids", fakedaemon.NoPIDsLimit, "PIDs limit", "PidsLimit", nil},
		{"cpu", fakedaemon.NoCPULimit, "", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, fakedaemon.Engine20().With(c.change))
			made, err := b.api.ContainerCreate(patient(t), &container.Config{Image: "tool:1", Cmd: []string{"x"}},
				&container.HostConfig{Resources: container.Resources{Memory: 1 << 26, MemorySwap: 1 << 26, PidsLimit: &limit, NanoCPUs: 1e9}}, nil, nil, "")
			if c.field == "" {
				require.ErrorContains(t, err, "CFS")
				return
			}
			require.NoError(t, err)
			require.Len(t, made.Warnings, 1)
			require.Contains(t, made.Warnings[0], c.warning)
			require.Equal(t, c.value, b.field(made.ID, "HostConfig", c.field))
		})
	}
}
