//go:build live

package warden_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/warden"
)

// TestLiveProcessGroupDies ends a runner during its command by a signal to its whole process group, as
// a terminal, an operator or a service manager sends it, and by kill -9 of the runner alone. The
// watchdog is in no such group: it kills the container and every process in it, removes nothing, and
// ends. A supervisor then ends the attempt.
//
// req D5, req G8, req G9, req D3
func TestLiveProcessGroupDies(t *testing.T) {
	s := newSite(t)
	deaths := []struct {
		name  string
		sig   syscall.Signal
		group bool
	}{
		{"runner-9", syscall.SIGKILL, false},
		{"group-9", syscall.SIGKILL, true},
		{"group-int", syscall.SIGINT, true},
		{"group-term", syscall.SIGTERM, true},
		{"group-hup", syscall.SIGHUP, true},
		{"group-quit", syscall.SIGQUIT, true},
	}
	for _, c := range deaths {
		t.Run(c.name, func(t *testing.T) {
			id := s.register(t, "group-"+c.name, nil, "tree", "1h")
			runner := exec.Command("/proc/self/exe", "runner", s.home, s.source, s.socket, string(id))
			runner.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			require.NoError(t, runner.Start())
			var fold evidence.Attempt
			require.Eventually(t, func() bool {
				a, err := s.journal.Attempt(context.Background(), id)
				require.NoError(t, err)
				fold = a.Fold
				return fold.Run.Started
			}, time.Minute, 20*time.Millisecond)
			dogs := childrenOf(t, runner.Process.Pid)
			require.Len(t, dogs, 1)
			main, _ := fold.Custodies.MainContainer()
			in, err := s.api.ContainerInspect(context.Background(), main.Container.Hex())
			require.NoError(t, err)
			first := in.State.Pid
			require.Eventually(t, func() bool { return len(childrenOf(t, first)) == 1 }, time.Minute, 20*time.Millisecond, "the command's tree")
			tree := append(childrenOf(t, first), first)

			target := runner.Process.Pid
			if c.group {
				target = -target
			}
			require.NoError(t, syscall.Kill(target, c.sig))
			require.Error(t, runner.Wait())
			require.Eventually(t, func() bool {
				in, err := s.api.ContainerInspect(context.Background(), main.Container.Hex())
				require.NoError(t, err, "the watchdog removes nothing")
				return in.State.Status == "exited"
			}, time.Minute, 20*time.Millisecond, "the watchdog kills the container")
			for _, pid := range append(tree, dogs...) {
				require.Eventually(t, func() bool { return ended(pid) }, time.Minute, 20*time.Millisecond, "process %d lives on", pid)
			}
			out, err := s.warden(s.driver).Supervise(context.Background(), warden.Pass{}, nil)
			require.NoError(t, err)
			require.Len(t, out, 1, "%v", out)
			require.Equal(t, warden.ActionRecovered, out[0].Action, out[0].Detail)
			a, err := s.journal.Attempt(context.Background(), id)
			require.NoError(t, err)
			require.Equal(t, "recovered", evidence.VerdictOf(&a.Fold).Detail)
			require.Empty(t, s.leftovers(t, id))
			require.NoDirExists(t, filepath.Join(s.home, "execution", string(id)))
			require.NoFileExists(t, filepath.Join(s.home, "locks", string(id)))
		})
	}
	t.Logf("%d deaths", len(deaths))
	require.Len(t, deaths, 6)
}

// childrenOf lists the children of every thread of a process; none of one that is gone.
func childrenOf(t testing.TB, pid int) (all []int) {
	lists, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	require.NoError(t, err)
	for _, name := range lists {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread ended meanwhile
		}
		for _, f := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(f)
			require.NoError(t, err)
			all = append(all, child)
		}
	}
	return all
}

// ended reports whether a process is gone, or only waits for its parent to notice.
func ended(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}
