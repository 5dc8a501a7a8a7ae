package fakedaemon_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/fakedaemon"
)

// runProgram runs a program to its end, attached, and returns its container and output.
func (b *bench) runProgram(p fakedaemon.Program) (fakedaemon.Container, [2]string) {
	b.t.Helper()
	b.Script("/bin/given", p)
	ctx := context.WithValue(patient(b.t), bounded{}, patient(b.t))
	id := b.create(ctx, "given", "/bin/given")
	attached, err := b.api.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdout: true, Stderr: true})
	require.NoError(b.t, err)
	result, failed := b.api.ContainerWait(ctx, id, container.WaitConditionNextExit)
	require.NoError(b.t, b.api.ContainerStart(ctx, id, container.StartOptions{}))
	said, err := copyAll(ctx, attached)
	require.NoError(b.t, err)
	select {
	case r := <-result:
		found, ok := b.Container(id)
		require.True(b.t, ok)
		require.EqualValues(b.t, found.ExitCode, r.StatusCode)
		return found, said.([2]string)
	case err := <-failed:
		require.NoError(b.t, err)
	}
	return fakedaemon.Container{}, [2]string{}
}

func TestPrograms(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB: many frames
	odd := "\x00\xff\xfe\r\n"
	var ran bool
	open := make(chan struct{})
	close(open)
	for _, c := range []struct {
		name   string
		steps  []fakedaemon.Step
		code   int
		oom    bool
		events string // after start, without network ones
		out    string
		err    string
	}{
		{"nothing", nil, 0, false, "die", "", ""},
		{"exit", []fakedaemon.Step{fakedaemon.Exit(42), fakedaemon.Stdout("never")}, 42, false, "die", "", ""},
		{"both", []fakedaemon.Step{fakedaemon.Stdout("a"), fakedaemon.Stderr("b"), fakedaemon.Stdout("c"), fakedaemon.Sleep(time.Millisecond)}, 0, false, "die", "ac", "b"},
		{"bytes", []fakedaemon.Step{fakedaemon.Write(false, []byte(odd)), fakedaemon.Write(true, []byte(odd))}, 0, false, "die", odd, odd},
		{"big", []fakedaemon.Step{fakedaemon.Stdout(big), fakedaemon.Exit(1)}, 1, false, "die", big, ""},
		{"child OOM", []fakedaemon.Step{fakedaemon.ChildOOM(), fakedaemon.Stdout("on")}, 0, true, "oom die", "on", ""},
		{"OOM", []fakedaemon.Step{fakedaemon.OOM(), fakedaemon.Stdout("never")}, 137, true, "oom die", "", ""},
		{"quiet OOM", []fakedaemon.Step{fakedaemon.QuietOOM()}, 0, true, "die", "", ""},
		{"unflagged OOM", []fakedaemon.Step{fakedaemon.UnflaggedOOM(), fakedaemon.Exit(137)}, 137, false, "oom die", "", ""},
		{"calls", []fakedaemon.Step{fakedaemon.Func(func() { ran = true }), fakedaemon.Until(open), fakedaemon.Exit(2)}, 2, false, "die", "", ""},
		{"killed from outside", []fakedaemon.Step{fakedaemon.Suffer(fakedaemon.ActKill), fakedaemon.Stdout("never")}, 137, false, "kill die", "", ""},
		{"stopped from outside", []fakedaemon.Step{fakedaemon.Suffer(fakedaemon.ActStop)}, 143, false, "kill die stop", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, fakedaemon.Engine20())
			got, said := b.runProgram(fakedaemon.Program{Steps: c.steps})
			require.Equal(t, c.code, got.ExitCode)
			require.Equal(t, c.oom, got.OOMKilled)
			require.Equal(t, "exited", got.Status)
			require.Zero(t, got.PID)
			require.True(t, c.out == said[0] && c.err == said[1], "output differs")
			all := strings.Join(b.actions(got.ID), " ")
			_, after, found := strings.Cut(all, "start ")
			require.True(t, found, all)
			after = strings.Join(strings.Fields(strings.ReplaceAll(after, "network_disconnect", "")), " ")
			require.Equal(t, c.events, after)
		})
	}
	require.True(t, ran)
}

func TestStartError(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	b.Script("/bin/talk", fakedaemon.Program{StartError: &fakedaemon.StartError{}})
	require.ErrorContains(t, b.api.ContainerStart(patient(t), b.idle, container.StartOptions{}), "no such file")
	got, _ := b.Container(b.idle)
	require.Equal(t, "created", got.Status)
	require.Equal(t, 127, got.ExitCode)
	require.Contains(t, b.field(b.idle, "State", "Error"), "no such file")
	require.Equal(t, []string{"create", "network_connect", "network_disconnect"}, b.actions(b.idle))
}

// The built-in profile has a name only since 1.42: before, the start fails.
func TestSeccompName(t *testing.T) {
	for name, engine := range engines {
		b := newBench(t, engine)
		made, err := b.api.ContainerCreate(patient(t), &container.Config{Image: "tool:1", Cmd: []string{"x"}}, &container.HostConfig{SecurityOpt: []string{"seccomp=builtin"}}, nil, nil, "")
		require.NoError(t, err)
		err = b.api.ContainerStart(patient(t), made.ID, container.StartOptions{})
		if name == "20.10" {
			require.ErrorContains(t, err, "seccomp")
			continue
		}
		require.NoError(t, err)
	}
}

func TestStubbornPrograms(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	start := func(name string, p fakedaemon.Program) string {
		b.Script("/bin/"+name, p)
		id := b.create(patient(t), name, "/bin/"+name)
		require.NoError(t, b.api.ContainerStart(patient(t), id, container.StartOptions{}))
		return id
	}
	status := func(id string) string {
		c, ok := b.Container(id)
		require.True(t, ok)
		return c.Status
	}
	forever := []fakedaemon.Step{fakedaemon.Never()}

	id := start("unkillable", fakedaemon.Program{Steps: forever, IgnoreKill: true})
	require.NoError(t, b.api.ContainerKill(patient(t), id, "KILL"))
	require.Equal(t, "running", status(id))
	require.ErrorContains(t, b.api.ContainerRemove(patient(t), id, container.RemoveOptions{Force: true}), "did not receive an exit event")
	require.NoError(t, b.api.ContainerKill(patient(t), id, "TERM"))
	require.Equal(t, "exited", status(id))

	id = start("polite", fakedaemon.Program{Steps: forever, IgnoreSignals: true})
	require.NoError(t, b.api.ContainerKill(patient(t), id, "TERM"))
	require.Equal(t, "running", status(id))
	require.NoError(t, b.api.ContainerStop(patient(t), id, container.StopOptions{}))
	require.Equal(t, "exited", status(id))

	id = start("dying", fakedaemon.Program{Steps: forever, KillDelay: slow})
	require.NoError(t, b.api.ContainerKill(patient(t), id, "KILL"))
	require.Equal(t, "running", status(id))
	require.Eventually(t, func() bool { return status(id) == "exited" }, 30*time.Second, time.Millisecond)

	id = start("owned", fakedaemon.Program{Steps: forever, PID: os.Getpid()})
	require.EqualValues(t, os.Getpid(), b.field(id, "State", "Pid"))
	other, _ := b.Container(b.busy)
	require.Greater(t, other.PID, 1<<22, "no process can have it")
}

// A paused program goes on only when it is let.
func TestPausedProgram(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	gate := make(chan struct{})
	b.Script("/bin/talk", fakedaemon.Program{Steps: []fakedaemon.Step{fakedaemon.Until(gate), fakedaemon.Exit(4)}})
	require.NoError(t, b.api.ContainerStart(patient(t), b.idle, container.StartOptions{}))
	require.NoError(t, b.api.ContainerPause(patient(t), b.idle))
	close(gate)
	require.Never(t, func() bool { c, _ := b.Container(b.idle); return c.Status != "paused" }, slow/4, slow/40)
	require.NoError(t, b.api.ContainerUnpause(patient(t), b.idle))
	require.Eventually(t, func() bool { c, _ := b.Container(b.idle); return c.ExitCode == 4 }, 30*time.Second, time.Millisecond)
}

// Output held open after the exit ends later, or never.
func TestHeldOutput(t *testing.T) {
	for name, hold := range map[string]time.Duration{"for a while": slow, "for ever": fakedaemon.Forever} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fakedaemon.Engine20())
			b.Script("/bin/talk", fakedaemon.Program{Steps: []fakedaemon.Step{fakedaemon.Stdout("x")}, HoldOutput: hold})
			ctx := patient(t)
			h, err := b.api.ContainerAttach(ctx, b.idle, container.AttachOptions{Stream: true, Stdout: true})
			require.NoError(t, err)
			defer h.Close()
			require.NoError(t, b.api.ContainerStart(ctx, b.idle, container.StartOptions{}))
			require.Eventually(t, func() bool { c, _ := b.Container(b.idle); return c.Status == "exited" }, 30*time.Second, time.Millisecond)
			exited := time.Now()
			require.NoError(t, h.Conn.SetReadDeadline(exited.Add(3*slow)))
			said, err := io.ReadAll(h.Reader)
			require.True(t, bytes.HasSuffix(said, []byte("\x01x")))
			if hold == fakedaemon.Forever {
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				return
			}
			require.NoError(t, err)
			require.Greater(t, time.Since(exited), slow/2)
		})
	}
}

// A reader that stands still blocks the program, whose kill loses what was not read.
func TestStalledReader(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	done := make(chan struct{})
	b.Script("/bin/talk", fakedaemon.Program{Steps: []fakedaemon.Step{
		fakedaemon.Write(false, make([]byte, 64<<20)), fakedaemon.Func(func() { close(done) })}})
	ctx := patient(t)
	h, err := b.api.ContainerAttach(ctx, b.idle, container.AttachOptions{Stream: true, Stdout: true})
	require.NoError(t, err)
	defer h.Close()
	require.NoError(t, b.api.ContainerStart(ctx, b.idle, container.StartOptions{}))
	select {
	case <-done:
		require.Fail(t, "64 MiB went nowhere")
	case <-time.After(slow):
	}
	require.NoError(t, b.api.ContainerKill(ctx, b.idle, "KILL"))
	rest, err := io.Copy(io.Discard, h.Reader)
	require.NoError(t, err)
	require.Less(t, rest, int64(64<<20))
	require.Positive(t, rest)
}
