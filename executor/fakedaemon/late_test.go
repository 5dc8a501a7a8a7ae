package fakedaemon_test

import (
	"context"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/fakedaemon"
)

// lost asks for a container and gives up before the daemon makes it.
func (b *bench) lost(name string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(patient(b.t))
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := b.api.ContainerCreate(ctx, &container.Config{Image: "tool:1", Cmd: []string{"x"}}, nil, nil, nil, name)
		answered <- err
	}()
	require.Eventually(b.t, func() bool { return b.Pending() == 1 }, 30*time.Second, time.Millisecond)
	cancel()
	require.Error(b.t, <-answered)
	_, ok := b.Container(name)
	require.False(b.t, ok)
}

// A create completes long after its client gave up: when told to, after a while, or once something
// else was done.
func TestLateCreate(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	b.Fault(fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.Late{}})
	b.lost("told")
	require.Equal(t, 1, b.CompleteLate())
	_, ok := b.Container("told")
	require.True(t, ok)
	require.Zero(t, b.CompleteLate())

	b.Fault(fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.Late{After: slow}})
	b.lost("timed")
	require.Eventually(t, func() bool { _, ok := b.Container("timed"); return ok }, 30*time.Second, time.Millisecond)

	b.Fault(fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.Late{Until: fakedaemon.CallList, HangUp: true}})
	b.lost("listed")
	list, err := b.api.ContainerList(patient(t), container.ListOptions{All: true})
	require.NoError(t, err)
	for _, c := range list {
		require.NotContains(t, c.Names, "/listed", "the list comes first")
	}
	_, ok = b.Container("listed")
	require.True(t, ok, "and the create directly after it")

	// Whoever still waits is answered.
	b.Fault(fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.Late{After: slow / 4}})
	b.create(patient(t), "waited", "/bin/talk")
}

// A daemon that ends takes what it had not done with it.
func TestRestart(t *testing.T) {
	for _, live := range []bool{false, true} {
		b := newBench(t, fakedaemon.Engine20().With(func(e *fakedaemon.Engine) { e.LiveRestore = live }))
		b.Fault(fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.Late{}})
		b.lost("lost")
		result, failed := b.api.ContainerWait(patient(t), b.busy, container.WaitConditionNextExit)
		require.NoError(t, b.Restart())
		select {
		case r := <-result:
			require.Fail(t, "an exit from a daemon that ended", "%v", r)
		case err := <-failed:
			require.Error(t, err)
		}
		require.Zero(t, b.CompleteLate())
		_, ok := b.Container("lost")
		require.False(t, ok)
		_, err := b.api.ContainerInspect(patient(t), b.busy)
		require.NoError(t, err, "it listens at the same path")
		busy, _ := b.Container(b.busy)
		require.Equal(t, map[bool]string{false: "exited", true: "running"}[live], busy.Status)
	}
}

// A replaced daemon knows nothing of ours, until it is back.
func TestReplace(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	before, err := b.api.Info(patient(t))
	require.NoError(t, err)
	b.Replace(true)
	other, err := b.api.Info(patient(t))
	require.NoError(t, err)
	require.NotEqual(t, before.ID, other.ID)
	_, err = b.api.ContainerInspect(patient(t), b.busy)
	require.ErrorContains(t, err, "No such container")
	for _, c := range b.Containers() {
		require.True(t, c.Hidden)
	}
	b.Restore()
	again, err := b.api.Info(patient(t))
	require.NoError(t, err)
	require.Equal(t, before.ID, again.ID)
	_, err = b.api.ContainerInspect(patient(t), b.busy)
	require.NoError(t, err)
}

// Which requests a fault hits.
func TestOccurrences(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault fakedaemon.Fault
		want  string // of six calls
	}{
		{"first", fakedaemon.Fault{}, "x....."},
		{"third", fakedaemon.Fault{Nth: 3}, "..x..."},
		{"two from second", fakedaemon.Fault{Nth: 2, Times: 2}, ".xx..."},
		{"all from third", fakedaemon.Fault{Nth: 3, Times: fakedaemon.Always}, "..xxxx"},
		{"every second", fakedaemon.Fault{Nth: 2, Every: 2, Times: fakedaemon.Always}, ".x.x.x"},
		{"every third, once more", fakedaemon.Fault{Every: 3, Times: 2}, "x..x.."},
		{"a state's first", fakedaemon.Fault{If: func(r fakedaemon.Request) bool { return r.State == "created" }}, ".x...."},
		{"one object's second", fakedaemon.Fault{Nth: 2, If: func(r fakedaemon.Request) bool { return r.Object == "busy" }}, "..x..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, fakedaemon.Engine20())
			c.fault.Call, c.fault.Effect = fakedaemon.CallInspect, fakedaemon.Refuse{}
			b.Fault(c.fault)
			got := ""
			for i := range 6 {
				_, err := b.api.ContainerInspect(patient(t), []string{"busy", "idle"}[i%2])
				got += map[bool]string{true: ".", false: "x"}[err == nil]
			}
			require.Equal(t, c.want, got)
		})
	}
}

// Several faults hit one request, each in its place.
func TestFaultsTogether(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	b.Fault(
		fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.Warned{Warnings: []string{"one"}}},
		fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.Override{Pointer: "/Warnings/0", Value: "two"}},
		fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.Interfere{Action: fakedaemon.ActRename}},
		fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.Replaced{}},
	)
	id := b.Engine().ID
	made, err := b.api.ContainerCreate(patient(t), &container.Config{Image: "tool:1", Cmd: []string{"x"}}, nil, nil, nil, "given")
	require.NoError(t, err)
	require.Equal(t, []string{"two"}, made.Warnings)
	renamed, ok := b.Container("given_renamed")
	require.True(t, ok)
	require.Equal(t, made.ID, renamed.ID)
	require.NotEqual(t, id, b.Engine().ID)
	require.Panics(t, func() { b.Fault(fakedaemon.Fault{Call: "nothing", Effect: fakedaemon.Refuse{}}) })
	require.Panics(t, func() {
		b.Fault(fakedaemon.Fault{Call: fakedaemon.CallInspect, Effect: fakedaemon.Missing{Pointer: "State"}})
	})
}
