//go:build live

package warden_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/warden"
)

// req C9: what others do to the container through the same socket is noticed.
func TestLiveInterference(t *testing.T) {
	s := newSite(t)
	ctx := context.Background()
	var random [6]byte
	_, err := rand.Read(random[:])
	require.NoError(t, err)
	net, err := s.api.NetworkCreate(ctx, "baildock-wardentest-"+hex.EncodeToString(random[:]), network.CreateOptions{Internal: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.api.NetworkRemove(ctx, net.ID)) })
	for name, c := range map[string]struct {
		act   func(id string) error
		codes []string
	}{
		"exec": {func(id string) error {
			e, err := s.api.ContainerExecCreate(ctx, id, container.ExecOptions{Cmd: []string{"/subject", "cat", "a.txt"}})
			if err != nil {
				return err
			}
			return s.api.ContainerExecStart(ctx, e.ID, container.ExecStartOptions{Detach: true})
		}, []string{"exec"}},
		"update": {func(id string) error {
			_, err := s.api.ContainerUpdate(ctx, id, container.UpdateConfig{Resources: container.Resources{Memory: 80 << 20, MemorySwap: 80 << 20}})
			return err
		}, []string{"changed_configuration", "update"}},
		"rename": {func(id string) error { return s.api.ContainerRename(ctx, id, "somebody-elses") }, []string{"changed_configuration", "rename"}},
		"pause": {func(id string) error {
			if err := s.api.ContainerPause(ctx, id); err != nil {
				return err
			}
			return s.api.ContainerUnpause(ctx, id)
		}, []string{"pause"}},
		"restart": {func(id string) error {
			now := 0
			return s.api.ContainerRestart(ctx, id, container.StopOptions{Timeout: &now})
		}, []string{"kill"}},
		"network": {func(id string) error {
			if err := s.api.NetworkDisconnect(ctx, "none", id, true); err != nil {
				return err
			}
			return s.api.NetworkConnect(ctx, net.ID, id, nil)
		}, []string{"changed_configuration", "network_connect"}},
		"copy": {func(id string) error {
			r, _, err := s.api.CopyFromContainer(ctx, id, "/subject")
			if err != nil {
				return err
			}
			return r.Close()
		}, []string{"copy"}},
		"attach": {func(id string) error {
			r, err := s.api.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdout: true})
			if err != nil {
				return err
			}
			r.Close()
			return nil
		}, []string{"attach"}},
	} {
		t.Run(name, func(t *testing.T) {
			var acted error
			res := s.while(t, "interfered-"+name, func(_ context.CancelFunc, id string) { acted = c.act(id) })
			require.NoError(t, acted)
			require.Equal(t, "interfered", res.Verdict.Detail, res.Verdict.Causes)
			if name == "restart" { // how much of it comes before the removal is the daemon's matter
				require.Subset(t, res.Fold.Run.Exited.Interference, c.codes)
			} else {
				require.Equal(t, c.codes, res.Fold.Run.Exited.Interference)
			}
			s.settled(t, res)
		})
	}
}

// req C9, req D1: a start that comes before ours is somebody else's, whatever it printed.
func TestLiveForeignStart(t *testing.T) {
	s := newSite(t)
	ctx := context.Background()
	id := s.register(t, "foreign-start", nil, "sleep", "10s")
	var acted error
	begun := false
	res, err := s.warden(s.driver).Run(ctx, warden.RunRequest{Attempt: id, Path: s.source, Accepted: v1}, func(stage, _ string) {
		if stage == "start" { // ordered, and not sent yet
			list := s.leftovers(t, id)
			acted, begun = s.api.ContainerStart(ctx, list[0].ID, container.StartOptions{}), true
		}
	})
	require.NoError(t, err)
	require.NoError(t, acted)
	require.True(t, begun)
	require.Equal(t, evidence.OutcomeIncomplete, res.Verdict.Outcome)
	require.Equal(t, "start_failed", res.Verdict.Detail, res.Verdict.Causes)
	require.Equal(t, "start_foreign", res.Fold.Run.StartFailed.Code)
	require.Equal(t, []string{"start"}, res.Fold.Run.Exited.Interference)
	require.Equal(t, evidence.CleanupForceKilled, res.Record.Cleanup[0].State)
	s.settled(t, res)
}
