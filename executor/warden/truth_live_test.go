//go:build live

package warden_test

import (
	"context"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/warden"
)

// TestLiveTruthTable brings about each real cause of an end on the daemon and holds the outcome
// against what must be said of it. Memory has three sources, of which any one counts: the event, the
// flag, and the kernel's own count; 137 counts whoever sent the signal.
//
// req F2, req F3, req F5, req D1, req D3, req E6
func TestLiveTruthTable(t *testing.T) {
	s := newSite(t)
	ctx := context.Background()
	byOthers := func(act func(id string) error) func(*testing.T, string) warden.Result {
		return func(t *testing.T, name string) warden.Result {
			var acted error
			res := s.while(t, name, func(_ context.CancelFunc, id string) { acted = act(id) })
			require.NoError(t, acted)
			return res
		}
	}
	table := []struct {
		name    string
		args    []string
		change  func(*evidence.Recipe)
		run     func(t *testing.T, name string) warden.Result // nil: the subject with args
		outcome evidence.Outcome
		detail  string
		exit    int // of the command line
		code    int64
		oom     evidence.OOMEvent // empty: nothing ran to an exit
		state   evidence.CleanupState
		racy    bool // how far somebody else's removal is when we look decides status and state
	}{
		{name: "child-oom-parent-0", args: []string{"parent"}, outcome: evidence.OutcomeIncomplete, detail: "oom", exit: 5, code: 0, oom: evidence.OOMSeen, state: evidence.CleanupTerminated},
		{name: "parent-oom", args: []string{"hog"}, outcome: evidence.OutcomeIncomplete, detail: "oom", exit: 5, code: 137, oom: evidence.OOMSeen, state: evidence.CleanupTerminated},
		{name: "memory-within-bound", args: []string{"hold", "40"}, outcome: evidence.OutcomeSuccess, detail: "ok", oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		{name: "memory-at-bound", args: []string{"hold", "64"}, outcome: evidence.OutcomeIncomplete, detail: "oom", exit: 5, code: 137, oom: evidence.OOMSeen, state: evidence.CleanupTerminated},
		{name: "child-killed-parent-0", args: []string{"murder"}, outcome: evidence.OutcomeSuccess, detail: "ok", oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		{name: "child-killed-status-passed-on", args: []string{"murder", "pass"}, outcome: evidence.OutcomeIncomplete, detail: "exit_137", exit: 5, code: 137, oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		{name: "exit-137", args: []string{"exit", "137"}, outcome: evidence.OutcomeIncomplete, detail: "exit_137", exit: 5, code: 137, oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		{name: "exit-143", args: []string{"exit", "143"}, outcome: evidence.OutcomeFailed, detail: "exit_nonzero", exit: 1, code: 143, oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		{name: "exit-125", args: []string{"exit", "125"}, outcome: evidence.OutcomeFailed, detail: "exit_nonzero", exit: 1, code: 125, oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		// The first process of a PID namespace can't be ended by SIGKILL from inside.
		{name: "kill-self", args: []string{"signal", "9"}, outcome: evidence.OutcomeSuccess, detail: "ok", oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		// Nor by SIGTERM's default; a Go program then exits 2.
		{name: "term-self", args: []string{"signal", "15"}, outcome: evidence.OutcomeFailed, detail: "exit_nonzero", exit: 1, code: 2, oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		{name: "not-found", change: func(r *evidence.Recipe) { r.Executable = "/absent" }, outcome: evidence.OutcomeIncomplete, detail: "start_failed", exit: 5, state: evidence.CleanupRemoved},
		{name: "not-executable", change: func(r *evidence.Recipe) { r.Executable = "/source/a.txt" }, outcome: evidence.OutcomeIncomplete, detail: "start_failed", exit: 5, state: evidence.CleanupRemoved},
		{name: "a-directory", change: func(r *evidence.Recipe) { r.Executable = "/source/dir" }, outcome: evidence.OutcomeIncomplete, detail: "start_failed", exit: 5, state: evidence.CleanupRemoved},
		{name: "missing-image", change: func(r *evidence.Recipe) { r.Image = evidence.ImageID{1} }, outcome: evidence.OutcomeUnavailable, detail: "runtime_refused", exit: 4},
		{name: "process-bomb", args: []string{"bomb"}, outcome: evidence.OutcomeSuccess, detail: "ok", oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		// A child left behind dies with the first process; what it would have written was never output.
		{name: "orphan", args: []string{"orphan"}, outcome: evidence.OutcomeSuccess, detail: "ok", oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		{name: "timeout", args: []string{"tree", "1h"}, change: wall(time.Second), outcome: evidence.OutcomeTimedOut, detail: "timeout", exit: 5, code: 137, oom: evidence.OOMNone, state: evidence.CleanupForceKilled},
		{name: "killed-by-others", run: byOthers(func(id string) error { return s.api.ContainerKill(ctx, id, "KILL") }),
			outcome: evidence.OutcomeIncomplete, detail: "interfered", exit: 5, code: 137, oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		{name: "stopped-by-others", run: byOthers(func(id string) error { return s.api.ContainerStop(ctx, id, container.StopOptions{}) }),
			outcome: evidence.OutcomeIncomplete, detail: "interfered", exit: 5, code: 137, oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		{name: "removed-by-others", run: byOthers(func(id string) error { return s.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true}) }),
			outcome: evidence.OutcomeIncomplete, detail: "interfered", exit: 5, oom: evidence.OOMNone, racy: true},
		{name: "terminated-by-others", run: byOthers(func(id string) error { return s.api.ContainerKill(ctx, id, "TERM") }),
			outcome: evidence.OutcomeIncomplete, detail: "interfered", exit: 5, code: 2, oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		{name: "killed-by-others-as-it-starts", run: func(t *testing.T, name string) warden.Result {
			id, acted := s.register(t, name, nil, "sleep", "10s"), make(chan error, 1)
			res, err := s.warden(s.driver).Run(ctx, warden.RunRequest{Attempt: id, Path: s.source, Accepted: v1}, func(stage, _ string) {
				if stage == "start" {
					list := s.leftovers(t, id)
					go func() { acted <- s.killStarted(list[0].ID) }()
				}
			})
			require.NoError(t, err)
			require.NoError(t, <-acted)
			return res
		}, outcome: evidence.OutcomeIncomplete, detail: "interfered", exit: 5, code: 137, oom: evidence.OOMNone, state: evidence.CleanupTerminated},
		{name: "cancelled-during-start", run: func(t *testing.T, name string) warden.Result {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			res, err := s.warden(s.driver).Run(ctx, warden.RunRequest{Attempt: s.register(t, name, nil, "sleep", "10s"), Path: s.source, Accepted: v1},
				func(stage, _ string) {
					if stage == "start" {
						cancel()
					}
				})
			require.NoError(t, err)
			return res
		}, outcome: evidence.OutcomeCancelled, detail: "cancelled", exit: 5, code: 137, oom: evidence.OOMNone, state: evidence.CleanupForceKilled},
	}
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			name := "truth-" + c.name
			if c.run == nil {
				c.run = func(t *testing.T, name string) warden.Result {
					res, err := s.warden(s.driver).Run(ctx, warden.RunRequest{Attempt: s.register(t, name, c.change, c.args...), Path: s.source, Accepted: v1}, nil)
					require.NoError(t, err)
					return res
				}
			}
			res := c.run(t, name)
			s.settled(t, res)
			require.Equal(t, c.outcome, res.Verdict.Outcome, "%v %v", res.Verdict, s.details(t, res))
			require.Equal(t, c.detail, res.Verdict.Detail, res.Verdict.Causes)
			require.Equal(t, c.exit, res.Verdict.Exit)
			if c.oom == "" {
				require.Nil(t, res.Fold.Run.Exited)
			} else {
				require.Equal(t, c.oom, res.Fold.Run.Exited.OOMEvent)
				if !c.racy {
					require.Equal(t, c.code, res.Fold.Run.Exited.ExitCode)
				}
			}
			switch {
			case c.state != "":
				require.Equal(t, c.state, res.Record.Cleanup[0].State)
			case c.racy:
				require.Contains(t, []evidence.CleanupState{evidence.CleanupAbsent, evidence.CleanupTerminated}, res.Record.Cleanup[0].State)
			default:
				require.Empty(t, res.Record.Cleanup)
			}
		})
	}
	t.Logf("%d causes", len(table))
	require.Len(t, table, 24)
}

// killStarted kills a container as soon as it runs.
func (s *site) killStarted(id string) error {
	for {
		in, err := s.api.ContainerInspect(context.Background(), id)
		if err != nil {
			return err
		}
		if in.State.Running {
			return s.api.ContainerKill(context.Background(), id, "KILL")
		}
	}
}
