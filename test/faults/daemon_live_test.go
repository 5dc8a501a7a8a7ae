//go:build live

package faults

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/daemontest"
	"github.com/baildock/baildock/executor/warden"
)

// sleeping is a reader of the program's output that tells once that it sleeps.
type sleeping chan struct{}

func (s sleeping) Write(p []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(p), nil
}

// TestLiveDaemonDies kills a daemon with SIGKILL under a running command and starts it again: at once,
// after the runner gave up, and after the runner died too; with and without containers that live on.
// The run is never a success, and whatever it left open is ended by a supervisor.
//
// req D5, req E3, req E4, req F2, req F3, req G6, req G8, req G9
func TestLiveDaemonDies(t *testing.T) {
	n := 0
	for name, extra := range map[string][]string{"plain": nil, "live-restore": {"--live-restore"}} {
		t.Run(name, func(t *testing.T) {
			own := daemontest.New(t, extra...)
			own.Start()
			s := newLiveSite(t, own.Socket)
			for _, c := range []struct {
				name string
				at   func(t *testing.T, s *liveSite, own *daemontest.Daemon)
			}{
				{"back at once", backAtOnce},
				{"back after the runner", backAfterRunner},
				{"both die", bothDie},
			} {
				n++
				t.Run(c.name, func(t *testing.T) { c.at(t, s, own) })
			}
		})
	}
	t.Logf("count: %d deaths of a daemon", n)
	require.Equal(t, 6, n)
}

type ran struct {
	res warden.Result
	err error
}

// asleep runs an attempt here until its command sleeps.
func (s *liveSite) asleep(t *testing.T, id evidence.AttemptID) <-chan ran {
	dog, err := warden.StartWatchdog("/proc/self/exe", childWatchdog, s.socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dog.Close()) })
	s.dog = dog
	said, ended := make(sleeping, 1), make(chan ran, 1)
	go func() {
		res, err := s.wardenOf(s.journal, s.driver).Run(context.Background(), warden.RunRequest{Attempt: id, Path: s.source, Accepted: accepted, Stdout: said}, nil)
		ended <- ran{res, err}
	}()
	select {
	case <-said:
	case r := <-ended:
		require.Fail(t, "it ended", "%v %v", r.res.Verdict, r.err)
	}
	s.started(t, id) // its output may come before the daemon says that it started
	return ended
}

func (s *liveSite) started(t *testing.T, id evidence.AttemptID) {
	require.Eventually(t, func() bool { return s.stored(t, id).Fold.Run.Started }, time.Minute, 20*time.Millisecond)
}

// backAtOnce: the daemon is there again before the runner gave up. It may confirm its own cleanup.
func backAtOnce(t *testing.T, s *liveSite, own *daemontest.Daemon) {
	id := s.registers(t, "sleep", "10m")
	ended := s.asleep(t, id)
	own.Kill()
	own.Start()
	s.endsOpenOrIncomplete(t, id, <-ended)
}

// backAfterRunner: the runner finds no daemon any more, and leaves its custody open.
func backAfterRunner(t *testing.T, s *liveSite, own *daemontest.Daemon) {
	id := s.registers(t, "sleep", "10m")
	ended := s.asleep(t, id)
	own.Kill()
	r := <-ended
	require.NoError(t, r.err)
	require.False(t, r.res.Finished, "nothing is confirmed without a daemon")
	require.Equal(t, evidence.OutcomeIndeterminate, r.res.Verdict.Outcome)
	require.Equal(t, 6, r.res.Verdict.Exit)
	s.passes(t, 1)
	require.Equal(t, evidence.StateRunning, s.stored(t, id).Fold.State, "nor by a supervisor")
	own.Start()
	s.endsOpenOrIncomplete(t, id, r)
}

// bothDie: the watchdog outlives its runner and waits for the daemon, and the supervisor ends the rest.
func bothDie(t *testing.T, s *liveSite, own *daemontest.Daemon) {
	id := s.registers(t, "sleep", "10m")
	self, err := os.Executable()
	require.NoError(t, err)
	runner := exec.Command(self, childMortal, s.home, s.source, s.socket, string(id), "")
	runner.Stderr = os.Stderr
	require.NoError(t, runner.Start())
	s.started(t, id)
	main, ok := s.stored(t, id).Fold.Custodies.MainContainer()
	require.True(t, ok)
	own.Kill()
	require.NoError(t, runner.Process.Kill())
	require.Error(t, runner.Wait())
	own.Start()
	require.Eventually(t, func() bool {
		in, err := s.driver.Inspect(context.Background(), *main.Container)
		return err == nil && !in.Running
	}, time.Minute, 50*time.Millisecond, "nobody kills it")
	s.passes(t, 2)
	s.audit(t)
	a := s.stored(t, id)
	require.Equal(t, evidence.StateFinished, a.Fold.State, types(a))
	require.Equal(t, "recovered", evidence.VerdictOf(&a.Fold).Detail)
	s.nothingLeft(t, id)
}

// endsOpenOrIncomplete holds a run whose daemon died against what may be said of it.
func (s *liveSite) endsOpenOrIncomplete(t *testing.T, id evidence.AttemptID, r ran) {
	require.NoError(t, r.err)
	if !r.res.Finished {
		require.Equal(t, evidence.OutcomeIndeterminate, r.res.Verdict.Outcome)
		require.Equal(t, 6, r.res.Verdict.Exit)
		require.Len(t, r.res.Fold.Custodies.Open(), 1)
		require.FileExists(t, filepath.Join(s.home, "locks", string(id)))
		s.passes(t, 2)
	}
	s.audit(t)
	a := s.stored(t, id)
	require.Equal(t, evidence.StateFinished, a.Fold.State, types(a))
	v := evidence.VerdictOf(&a.Fold)
	require.Equal(t, evidence.OutcomeIncomplete, v.Outcome, "%v", v)
	t.Logf("finished by its runner: %v; %s; causes %v", r.res.Finished, v.Detail, v.Causes)
	s.nothingLeft(t, id)
}
