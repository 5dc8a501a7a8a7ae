package drivertest

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// req E8: every container with our labels is listed, running or not, whosever it is; a network's list
// holds no container.
func labelled(t *testing.T, e Env) {
	p, q := e.plan(t, "exit", "0"), e.plan(t, "sleep", "5m")
	first, second := e.create(t, p), e.create(t, q)
	require.NoError(t, e.Driver.Start(ctx(t), second))
	all, err := e.Driver.FindLabelled(ctx(t), evidence.CustodyContainer)
	require.NoError(t, err)
	require.True(t, slices.IsSortedFunc(all, func(a, b executor.Labelled) int { return slices.Compare(a.ID[:], b.ID[:]) }))
	for _, want := range []struct {
		id     evidence.ContainerID
		plan   executor.Plan
		status string
	}{{first, p, "created"}, {second, q, "running"}} {
		i := slices.IndexFunc(all, func(l executor.Labelled) bool { return l.ID == want.id })
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, evidence.CustodyContainer, all[i].Kind)
		require.Equal(t, want.plan.Name, all[i].Name)
		require.Equal(t, want.status, all[i].Status)
		require.Equal(t, map[string]string{executor.LabelRequest: want.plan.Request.String(), executor.LabelHandle: want.plan.Handle.String()}, all[i].Labels)
		request, handle, ok := all[i].Owner()
		require.True(t, ok)
		require.Equal(t, want.plan.Request, request)
		require.Equal(t, want.plan.Handle, handle)
		require.InDelta(t, time.Now().UnixNano(), all[i].Created, float64(time.Hour))
	}
	networks, err := e.Driver.FindLabelled(ctx(t), evidence.CustodyNetwork)
	require.NoError(t, err)
	for _, n := range networks {
		require.Equal(t, evidence.CustodyNetwork, n.Kind)
		require.NotContains(t, []evidence.ContainerID{first, second}, n.ID)
	}
	_, err = e.Driver.FindLabelled(ctx(t), "volume")
	require.Error(t, err)
}

// req E3: a network that isn't there is absent by the daemon's own word, and nothing else is.
func absentNetwork(t *testing.T, e Env) {
	var id evidence.ContainerID
	fill(t, id[:])
	_, err := e.Driver.InspectNetwork(ctx(t), id)
	require.ErrorIs(t, err, executor.ErrAbsent)
	require.ErrorIs(t, e.Driver.RemoveNetwork(ctx(t), id), executor.ErrAbsent)
	made := e.create(t, e.plan(t, "exit", "0"))
	_, err = e.Driver.InspectNetwork(ctx(t), made)
	require.ErrorIs(t, err, executor.ErrAbsent, "a container is no network")
}
