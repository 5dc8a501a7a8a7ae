package warden

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/fakedaemon"
)

// nobody is a watchdog that can't guard.
type nobody struct{}

func (nobody) Guard(context.Context, evidence.ContainerID) (executor.Guard, error) {
	return nil, errors.New("no watchdog")
}

// An agent starts only if everything could be verified: each thing that can't be ends the attempt at
// its stage, before the agent has credentials, write access, a network or a chance to run.
//
// req N2
func TestNothingStartsUnverified(t *testing.T) {
	shows := func(pointer string, value any) func(*testing.T, *containedYard) {
		return func(_ *testing.T, y *containedYard) {
			y.daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallInspect, Times: fakedaemon.Always, Effect: fakedaemon.Override{Pointer: pointer, Value: value}})
		}
	}
	engine := func(change func(*fakedaemon.Engine)) func(*testing.T, *containedYard) {
		return func(_ *testing.T, y *containedYard) { y.daemon.Change(change) }
	}
	cases := map[string]struct {
		set    func(*testing.T, *containedYard)
		detail string
	}{
		"platform":        {engine(fakedaemon.Desktop), "preflight_refused"},
		"daemon settings": {engine(fakedaemon.NoMemoryLimit), "preflight_refused"},
		"image provenance": {func(_ *testing.T, y *containedYard) {
			y.image[0]++
		}, "preflight_refused"},
		"image's own environment": {func(t *testing.T, y *containedYard) {
			id, err := y.daemon.AddImage(fakedaemon.Image{Name: "leaks:1", Env: []string{"CLOUD_KEY=AKIA"}})
			require.NoError(t, err)
			require.NoError(t, y.image.UnmarshalText([]byte(id)))
		}, "preflight_refused"},
		"evidence location": {func(_ *testing.T, y *containedYard) {
			y.source = filepath.Dir(y.home)
		}, "source_refused"},
		"workspace mounts":    {shows("/Mounts/0/Source", "/"), "isolation_refused"},
		"another mount":       {shows("/HostConfig/Binds", []string{"/:/host"}), "isolation_refused"},
		"network mode":        {shows("/HostConfig/NetworkMode", "host"), "isolation_refused"},
		"process namespace":   {shows("/HostConfig/PidMode", "host"), "isolation_refused"},
		"user namespace":      {shows("/HostConfig/UsernsMode", "host"), "isolation_refused"},
		"privilege mode":      {shows("/HostConfig/Privileged", true), "isolation_refused"},
		"added capability":    {shows("/HostConfig/CapAdd", []string{"SYS_ADMIN"}), "isolation_refused"},
		"device exposure":     {shows("/HostConfig/Devices", []any{map[string]any{"PathOnHost": "/dev/kvm"}}), "isolation_refused"},
		"credential boundary": {shows("/Config/Env", []string{"CLOUD_KEY=AKIA"}), "isolation_refused"},
		"user":                {shows("/Config/User", "0:0"), "isolation_refused"},
		"memory limit":        {shows("/HostConfig/Memory", 0), "isolation_refused"},
		"unknown setting":     {shows("/HostConfig/NewPower", true), "isolation_refused"},
		"cleanup supervision": {func(_ *testing.T, y *containedYard) { y.warden.Watchdog = nobody{} }, "isolation_refused"},
		"end of the command": {func(_ *testing.T, y *containedYard) {
			y.daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallWait, Effect: fakedaemon.Refuse{}})
		}, "isolation_refused"},
		"output of the agent": {func(_ *testing.T, y *containedYard) {
			y.daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallAttach, Effect: fakedaemon.Refuse{}})
		}, "isolation_refused"},
		"watch over the agent": {func(_ *testing.T, y *containedYard) {
			y.daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallEvents, Effect: fakedaemon.Refuse{}})
		}, "runtime_refused"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			y := newContained(t, func(string) { t.Error("the agent ran") })
			c.set(t, y)
			res, err := y.perform(t, t.Context())
			require.NoError(t, err)
			require.True(t, res.Finished)
			require.Equal(t, c.detail, res.Verdict.Detail, "%v %v", res.Verdict.Causes, y.stages)
			require.Equal(t, 4, res.Verdict.Exit)
			require.Zero(t, y.daemon.Count(fakedaemon.CallStart))
			require.Empty(t, y.snapshots(t))
			require.Empty(t, y.daemon.Containers())
			if c.detail == "preflight_refused" {
				require.Nil(t, res.Fold.Materialized, "no workspace was prepared")
				require.NoDirExists(t, filepath.Join(y.home, "execution"))
			}
			y.nowhere(t, agentSecret)
		})
	}
	require.Len(t, cases, 21)

	t.Run("timeout", func(t *testing.T) { // without a bound there is no recipe, so nothing to run
		y := newContained(t, nil)
		r := y.registration("one")
		r.Recipe.Profile, r.Recipe.Contained, r.Recipe.Limits.Wall = evidence.ProfileContained, &y.terms, 0
		_, err := y.journal.Register(t.Context(), r)
		require.ErrorContains(t, err, "wall time")
		_, err = os.ReadDir(filepath.Join(y.home, "execution"))
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}
