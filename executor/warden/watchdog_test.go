package warden

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// patient is a driver with one container whose fate is a function of time.
type patient struct {
	executor.Driver
	begin   time.Time
	kills   int
	status  func(since time.Duration, kills int) (string, error)
	lastLog time.Duration
}

func (p *patient) Kill(context.Context, evidence.ContainerID) error { p.kills++; return nil }

func (p *patient) Inspect(context.Context, evidence.ContainerID) (executor.Inspection, error) {
	p.lastLog = time.Since(p.begin)
	s, err := p.status(p.lastLog, p.kills)
	return executor.Inspection{Status: s, Running: s == "running" || s == "paused"}, err
}

// req D5: a container whose runner died is killed until it is seen stopped; only "created for a
// minute" and "five minutes of errors" end that earlier.
func TestWatchdogPutsDown(t *testing.T) {
	lost := &executor.Fault{Call: "inspect", Err: errors.New("lost")}
	for name, c := range map[string]struct {
		status func(time.Duration, int) (string, error)
		until  time.Duration // about
		fails  bool
	}{
		"exits at once":   {func(time.Duration, int) (string, error) { return "exited", nil }, 0, false},
		"is dead":         {func(time.Duration, int) (string, error) { return "dead", nil }, 0, false},
		"is absent":       {func(time.Duration, int) (string, error) { return "", executor.ErrAbsent }, 0, false},
		"dies slowly":     {after(20*time.Second, "running", "exited"), 20 * time.Second, false},
		"starts late":     {after(30*time.Second, "created", "running", "exited"), 30 * time.Second, false},
		"never starts":    {func(time.Duration, int) (string, error) { return "created", nil }, guardCreated, false},
		"paused":          {after(2*time.Second, "paused", "exited"), 2 * time.Second, false},
		"daemon restarts": {failing(lost, 4*time.Minute, "exited"), 4 * time.Minute, false},
		"daemon is gone":  {failing(lost, time.Hour, "exited"), guardErrors, true},
		"never dies":      {func(time.Duration, int) (string, error) { return "running", nil }, guardErrors, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &patient{begin: time.Now(), status: c.status}
				var out bytes.Buffer
				err := watchOver(t.Context(), p, strings.NewReader(evidence.ContainerID{1}.Hex()+"\n"), &out)
				require.Equal(t, c.fails, err != nil, "%v", err)
				require.Equal(t, "guarding\n", out.String())
				require.Positive(t, p.kills)
				require.InDelta(t, c.until.Seconds(), p.lastLog.Seconds(), 1)
			})
		})
	}
}

func after(d time.Duration, states ...string) func(time.Duration, int) (string, error) {
	return func(since time.Duration, _ int) (string, error) {
		if since < d {
			return states[0], nil
		}
		if len(states) > 2 && since < d+500*time.Millisecond {
			return states[1], nil
		}
		return states[len(states)-1], nil
	}
}

func failing(err error, d time.Duration, state string) func(time.Duration, int) (string, error) {
	return func(since time.Duration, _ int) (string, error) {
		if since < d {
			return "", err
		}
		return state, nil
	}
}

func TestWatchdogWords(t *testing.T) {
	id := evidence.ContainerID{1}.Hex()
	for name, c := range map[string]struct {
		in      string
		killed  bool
		refused bool
	}{
		"nothing to guard":  {"", false, false},
		"released":          {id + "\nrelease\n", false, false},
		"runner died":       {id + "\n", true, false},
		"half a release":    {id + "\nrelea", true, false},
		"another word":      {id + "\nplease\n", true, false},
		"half an ID":        {id[:20], false, true},
		"no ID":             {"release\n", false, true},
		"endless line":      {strings.Repeat("a", 10_000), false, true},
		"endless last line": {id + "\n" + strings.Repeat("a", 10_000), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &patient{begin: time.Now(), status: func(time.Duration, int) (string, error) { return "exited", nil }}
			err := watchOver(t.Context(), p, strings.NewReader(c.in), io.Discard)
			require.Equal(t, c.killed, p.kills > 0)
			require.Equal(t, c.refused, err != nil, "%v", err)
		})
	}
	t.Run("runner died before the answer", func(t *testing.T) {
		p := &patient{begin: time.Now(), status: func(time.Duration, int) (string, error) { return "exited", nil }}
		require.ErrorIs(t, watchOver(t.Context(), p, strings.NewReader(id+"\n"), closed{}), io.ErrClosedPipe)
		require.Positive(t, p.kills)
	})
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Children is what this binary does as a child of itself, by its first argument.
var Children = map[string]func(args []string) error{"test-watchdog": testWatchdog}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && Children[os.Args[1]] != nil {
		if err := Children[os.Args[1]](os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// testWatchdog guards a container that exits when killed, and leaves a mark when it was.
func testWatchdog(args []string) error {
	p := &patient{begin: time.Now(), status: func(time.Duration, int) (string, error) { return "exited", nil }}
	err := WatchdogMain(context.Background(), p, os.Stdin, os.Stdout)
	if p.kills > 0 {
		err = errors.Join(err, os.WriteFile(args[0], []byte(fmt.Sprint(len(os.Environ()))), 0o600))
	}
	return err
}

func TestWatchdogProcess(t *testing.T) {
	mark := t.TempDir() + "/killed"
	w, err := StartWatchdog("/proc/self/exe", "test-watchdog", mark)
	require.NoError(t, err)
	for range 2 { // the one that was ready, and one started on the spot
		g, err := w.Guard(t.Context(), evidence.ContainerID{1})
		require.NoError(t, err)
		require.NoError(t, g.Release())
	}
	require.NoFileExists(t, mark)
	require.NoError(t, w.Close())

	w, err = StartWatchdog("/proc/self/exe", "test-watchdog", mark)
	require.NoError(t, err)
	require.NoError(t, w.Close(), "one that guards nothing ends quietly")

	w, err = StartWatchdog("/proc/self/exe", "test-watchdog", mark)
	require.NoError(t, err)
	spare := w.spare
	g, err := w.Guard(t.Context(), evidence.ContainerID{1})
	require.NoError(t, err)
	pid := spare.cmd.Process.Pid
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		require.NoError(t, syscall.Kill(pid, s))
	}
	sid, err := getsid(pid)
	require.NoError(t, err)
	require.Equal(t, pid, sid, "a session of its own")
	require.NoFileExists(t, mark)
	require.NoError(t, g.(*guard).leave(), "its runner dies")
	env, err := os.ReadFile(mark)
	require.NoError(t, err)
	require.Equal(t, "0", string(env), "it gets no environment")

	_, err = StartWatchdog("/nowhere/baildock")
	require.Error(t, err)
	w, err = StartWatchdog("/bin/true")
	require.NoError(t, err)
	_, err = w.Guard(t.Context(), evidence.ContainerID{1})
	require.Error(t, err, "a watchdog that doesn't answer guards nothing")
}

func getsid(pid int) (int, error) {
	sid, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(sid), nil
}
