package fakedaemon_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/fakedaemon"
)

// Each action leaves what the daemon shows of it: events, and how the container is afterwards.
func TestActions(t *testing.T) {
	const gone = ""
	seen := 0
	for _, c := range []struct {
		action fakedaemon.Action
		events string // about the container
		status string
	}{
		{fakedaemon.ActExec, "exec_create: /bin/sh -c id, exec_start: /bin/sh -c id, exec_die", "running"},
		{fakedaemon.ActUpdate, "update", "running"},
		{fakedaemon.ActRename, "rename", "running"},
		{fakedaemon.ActPause, "pause", "paused"},
		{fakedaemon.ActBlink, "pause, unpause", "running"},
		{fakedaemon.ActConnect, "network_disconnect, network_disconnect, network_connect", "running"},
		{fakedaemon.ActDisconnect, "network_disconnect, network_disconnect", "running"},
		{fakedaemon.ActCopyOut, "archive-path", "running"},
		{fakedaemon.ActCopyIn, "extract-to-dir", "running"},
		{fakedaemon.ActAttach, "attach", "running"},
		{fakedaemon.ActTop, "top", "running"},
		{fakedaemon.ActStart, "", "running"},
		{fakedaemon.ActRestart, "kill, die, network_disconnect, stop, network_connect, start, restart", "running"},
		{fakedaemon.ActKill, "kill, die, network_disconnect", "exited"},
		{fakedaemon.ActStop, "kill, die, network_disconnect, stop", "exited"},
		{fakedaemon.ActRemove, "kill, die, network_disconnect, destroy", gone},
		{fakedaemon.ActReuseName, "rename", "running"},
		{fakedaemon.ActReplace, "kill, die, network_disconnect, destroy", gone},
		{fakedaemon.ActRelabel, "", "running"},
	} {
		t.Run(string(c.action), func(t *testing.T) {
			b := newBench(t, fakedaemon.Engine20())
			made, err := b.api.ContainerCreate(patient(t), &container.Config{Image: "tool:1", Cmd: []string{"/bin/never"}, Labels: map[string]string{"own": "yes"}},
				&container.HostConfig{NetworkMode: "none"}, nil, nil, "target")
			require.NoError(t, err)
			require.NoError(t, b.api.ContainerStart(patient(t), made.ID, container.StartOptions{}))
			before, others := len(b.actions(made.ID)), len(b.Containers())
			require.NoError(t, b.Interfere(c.action, made.ID))
			require.Equal(t, c.events, strings.Join(b.actions(made.ID)[before:], ", "))
			got, ok := b.Container(made.ID)
			require.Equal(t, c.status != gone, ok)
			require.Equal(t, c.status, got.Status)
			named, ok := b.Container("target")
			switch c.action {
			case fakedaemon.ActReuseName:
				require.True(t, ok)
				require.NotEqual(t, made.ID, named.ID)
				require.Empty(t, named.Labels)
			case fakedaemon.ActReplace:
				require.True(t, ok)
				require.NotEqual(t, made.ID, named.ID)
				require.Equal(t, "yes", named.Labels["own"])
			case fakedaemon.ActRelabel:
				require.Len(t, b.Containers(), others+1)
				twin, ok := b.Container("target_twin")
				require.True(t, ok)
				require.Equal(t, "yes", twin.Labels["own"])
			case fakedaemon.ActRename, fakedaemon.ActRemove:
				require.False(t, ok)
			default:
				require.Equal(t, made.ID, named.ID)
			}
		})
		seen++
	}
	require.Len(t, fakedaemon.Actions(), seen)
	b := newBench(t, fakedaemon.Engine20())
	require.Error(t, b.Interfere(fakedaemon.ActKill, "nobody"))
}

// Somebody else's start of a container that waits for ours runs its program, and ours is answered
// that it runs already.
func TestStartAction(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	made, err := b.api.ContainerCreate(patient(t), &container.Config{Image: "tool:1", Cmd: []string{"/bin/never"}}, nil, nil, nil, "waiting")
	require.NoError(t, err)
	require.NoError(t, b.Interfere(fakedaemon.ActStart, made.ID))
	require.Equal(t, []string{"create", "network_connect", "start"}, b.actions(made.ID))
	require.NoError(t, b.api.ContainerStart(patient(t), made.ID, container.StartOptions{}), "the client takes it for a start")
	started := b.Requests(fakedaemon.CallStart)
	require.Equal(t, http.StatusNotModified, started[len(started)-1].Status)
}

// A client that follows events sees every one, in order, with growing times; one that comes later
// gets the last 256.
func TestEventLog(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	for range 150 {
		require.NoError(t, b.Interfere(fakedaemon.ActBlink, b.busy))
	}
	log := b.EventLog()
	require.Len(t, log, 256)
	for i := 1; i < len(log); i++ {
		require.Greater(t, log[i].TimeNano, log[i-1].TimeNano)
	}
}

// What the daemon's users must survive, as the real one does it.
func TestHabits(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	ctx := patient(t)

	// The wait for an exit of a container that never ran ends with its removal, with status 0.
	result, failed := b.api.ContainerWait(ctx, b.idle, container.WaitConditionNextExit)
	require.NoError(t, b.api.ContainerRemove(ctx, b.idle, container.RemoveOptions{}))
	select {
	case r := <-result:
		require.Zero(t, r.StatusCode)
		require.Nil(t, r.Error)
	case err := <-failed:
		require.NoError(t, err)
	}

	// A removal of what runs wants force; a kill of what doesn't run is refused.
	require.ErrorContains(t, b.api.ContainerRemove(ctx, b.busy, container.RemoveOptions{}), "cannot remove a running container")
	require.NoError(t, b.api.ContainerKill(ctx, b.busy, "KILL"))
	require.ErrorContains(t, b.api.ContainerKill(ctx, b.busy, "KILL"), "is not running")

	// A name is taken once.
	_, err := b.api.ContainerCreate(ctx, &container.Config{Image: "tool:1", Cmd: []string{"x"}}, nil, nil, nil, "busy")
	require.ErrorContains(t, err, "already in use by container \""+b.busy)
	_, err = b.api.ContainerCreate(ctx, &container.Config{Image: "tool:1", Cmd: []string{"x"}}, nil, nil, nil, "-")
	require.ErrorContains(t, err, "Invalid container name")
}
