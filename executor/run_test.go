package executor

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// req E1, req D1, req F2, req G9: each event is durable before the step after it is taken.
func TestSuccessInOrder(t *testing.T) {
	play(t, "success", func(t *testing.T, s *scene) {
		callsAt := map[string][]string{}
		s.book.stored = func(typ string) {
			s.script.mu.Lock()
			defer s.script.mu.Unlock()
			callsAt[typ] = append([]string(nil), s.script.calls...)
		}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, evidence.OutcomeSuccess, v.Outcome, v.Causes)
		require.Equal(t, []string{"RuntimeObserved", "CustodyTaken", "ContainerCreated", "RuntimeObserved", "IsolationObserved",
			"StartOrdered", "ContainerStarted", "KernelObserved", "ContainerExited", "OutputCaptured", "RuntimeObserved",
			"RemovalOrdered", "RemovalObserved"}, s.book.types)
		require.Equal(t, evidence.CleanupTerminated, cleanup(t, s))
		require.NotContains(t, callsAt["CustodyTaken"], "create")
		require.Contains(t, callsAt["CustodyTaken"], "events", "subscribed before the create")
		require.NotContains(t, callsAt["ContainerCreated"], "inspect")
		require.NotContains(t, callsAt["StartOrdered"], "start")
		require.Subset(t, callsAt["StartOrdered"], []string{"attach", "wait"}, "ready before the start")
		require.NotContains(t, callsAt["RemovalOrdered"], "remove")
		require.Nil(t, s.script.box)
		require.Zero(t, s.script.count("kill"))
		require.Equal(t, 1, s.dogs.released)
		o := s.book.fold.Run.Output
		require.Equal(t, "a.txt\n", string(s.book.blobs[o.Stdout.Bytes.Salted]))
		require.Equal(t, "warning\n", string(s.book.blobs[o.Stderr.Bytes.Salted]))
		require.Equal(t, "isolation", s.stages[2])
		require.Equal(t, "removed", s.stages[len(s.stages)-1])
	})
}

// req E2, req E7: custody binds what is created, under a name and a nonce that nobody chose.
func TestCustodyBinds(t *testing.T) {
	handles := map[evidence.HandleKey]bool{}
	for range 3 {
		play(t, "run", func(t *testing.T, s *scene) {
			var sent Plan
			s.script.after["create"] = func() error { sent = s.script.box.plan; return nil }
			_, err := s.perform()
			require.NoError(t, err)
			c, _ := s.book.fold.Custodies.MainContainer()
			require.Equal(t, sent.Handle, c.Handle)
			require.Equal(t, sent.Name, c.Name)
			require.Equal(t, sent.Request, c.Request)
			require.Equal(t, s.job.Request, c.Request)
			require.Equal(t, s.book.fold.BeforeCreate.Identity.Daemon, c.Daemon)
			require.Contains(t, c.Name, c.Handle.String()[:12])
			require.False(t, handles[c.Handle])
			handles[c.Handle] = true
		})
	}
	require.Len(t, handles, 3)
}

// req E9, req E6, req D3: whatever ends a run, its container is gone and the cause is the right one.
func TestEveryEndCleansUp(t *testing.T) {
	type end struct {
		detail  string
		state   evidence.CleanupState
		noStart bool
		broken  bool // Run says that something could not be recorded
	}
	for name, c := range map[string]struct {
		set  func(s *scene)
		want end
	}{
		"success":       {func(s *scene) {}, end{"ok", evidence.CleanupTerminated, false, false}},
		"agent failure": {func(s *scene) { s.script.command = func(b *box) { b.exit(3) } }, end{"exit_nonzero", evidence.CleanupTerminated, false, false}},
		"exit 137":      {func(s *scene) { s.script.command = func(b *box) { b.exit(137) } }, end{"exit_137", evidence.CleanupTerminated, false, false}},
		"timeout":       {func(s *scene) { s.script.command = (*box).sleep }, end{"timeout", evidence.CleanupForceKilled, false, false}},
		"output limit": {func(s *scene) {
			s.script.command = func(b *box) {
				for range 10_000 {
					b.print(strings.Repeat("x", 1000))
				}
				b.sleep()
			}
		}, end{"output_limit", evidence.CleanupForceKilled, false, false}},
		"cancelled while running": {func(s *scene) {
			s.script.command = func(b *box) { time.Sleep(time.Second); s.cancel(); b.sleep() }
		}, end{"cancelled", evidence.CleanupForceKilled, false, false}},
		"cancelled before create": {func(s *scene) {
			s.book.stored = func(typ string) {
				if typ == "CustodyTaken" {
					s.cancel()
				}
			}
		}, end{"cancelled_before_start", evidence.CleanupNotCreated, true, false}},
		"cancelled after create": {func(s *scene) { s.script.after["create"] = func() error { s.cancel(); return nil } },
			end{"cancelled_before_start", evidence.CleanupRemoved, true, false}},
		"cancelled while inspecting": {func(s *scene) { s.script.before["attach"] = func() error { s.cancel(); return nil } },
			end{"cancelled_before_start", evidence.CleanupRemoved, true, false}},
		"create refused":  {func(s *scene) { s.script.before["create"] = func() error { return answered("create", 400) } }, end{"create_refused", evidence.CleanupNotCreated, true, false}},
		"create not sent": {func(s *scene) { s.script.before["create"] = func() error { return ErrNotSent } }, end{"create_refused", evidence.CleanupNotCreated, true, true}},
		"create warnings": {func(s *scene) { s.script.warn = []string{"limitation discarded"} }, end{"create_warnings", evidence.CleanupRemoved, true, false}},
		"create reply lost": {func(s *scene) { s.script.after["create"] = func() error { return unanswered("create") } },
			end{"create_unanswered", evidence.CleanupRemoved, true, false}},
		"create failed half way": {func(s *scene) { s.script.after["create"] = func() error { return answered("create", 500) } },
			end{"create_unanswered", evidence.CleanupRemoved, true, false}},
		"unequal control": {func(s *scene) {
			s.script.compare = func(iso Isolation, _ Inspection) Isolation { iso.Findings[3].Equal = false; return iso }
		}, end{"isolation_refused", evidence.CleanupRemoved, true, false}},
		"unknown field": {func(s *scene) {
			s.script.compare = func(iso Isolation, _ Inspection) Isolation {
				iso.Unknown = []string{"HostConfig.New"}
				return iso
			}
		}, end{"isolation_refused", evidence.CleanupRemoved, true, false}},
		"missing control": {func(s *scene) {
			s.script.compare = func(iso Isolation, _ Inspection) Isolation { iso.Findings = iso.Findings[1:]; return iso }
		}, end{"isolation_refused", evidence.CleanupRemoved, true, false}},
		"inspect fails once": {func(s *scene) { s.script.before["inspect"] = times(1, unanswered("inspect")) },
			end{"isolation_refused", evidence.CleanupRemoved, true, false}},
		"attach fails":   {func(s *scene) { s.script.before["attach"] = func() error { return unanswered("attach") } }, end{"isolation_refused", evidence.CleanupRemoved, true, false}},
		"wait fails":     {func(s *scene) { s.script.before["wait"] = func() error { return unanswered("wait") } }, end{"isolation_refused", evidence.CleanupRemoved, true, false}},
		"watchdog fails": {func(s *scene) { s.dogs.err = errors.New("no process") }, end{"isolation_refused", evidence.CleanupRemoved, true, false}},
		"start error":    {func(s *scene) { s.script.before["start"] = func() error { return answered("start", 400) } }, end{"start_failed", evidence.CleanupRemoved, false, false}},
		"start reply lost": {func(s *scene) {
			s.script.command = (*box).sleep
			s.script.after["start"] = func() error { return unanswered("start") }
		}, end{"start_failed", evidence.CleanupForceKilled, false, false}},
		"start request lost": {func(s *scene) { s.script.before["start"] = func() error { return unanswered("start") } },
			end{"start_failed", evidence.CleanupForceKilled, false, false}},
		"capture failure": {func(s *scene) {
			s.script.command = func(b *box) { b.print("half"); b.hangUp(errors.New("torn")); <-b.killed }
		}, end{"transport_fault", evidence.CleanupForceKilled, false, false}},
		"output never ends": {func(s *scene) { s.script.command = func(b *box) { b.print("late"); b.die(0) } },
			end{"capture_incomplete", evidence.CleanupTerminated, false, false}},
		"wait breaks": {func(s *scene) {
			s.script.command = func(b *box) { b.exits <- Exit{Err: errors.New("torn")}; <-b.killed; b.hangUp(nil) }
		}, end{"transport_fault", evidence.CleanupForceKilled, false, false}},
		"blobs can't be kept": {func(s *scene) {
			s.book.stored = func(typ string) {
				if typ == "KernelObserved" {
					s.book.keep = errors.New("disk full")
				}
			}
		}, end{"exit_not_observed", evidence.CleanupTerminated, false, true}},
		"exit can't be recorded": {func(s *scene) { s.book.fail["ContainerExited"] = errors.New("disk full") },
			end{"exit_not_observed", evidence.CleanupTerminated, false, true}},
		"start can't be recorded": {func(s *scene) {
			s.script.command = (*box).sleep
			s.book.fail["ContainerStarted"] = errors.New("disk full")
		}, end{"not_started", evidence.CleanupForceKilled, false, true}},
		"panic in create":  {func(s *scene) { s.script.before["create"] = panics }, end{"", evidence.CleanupUnverifiable, true, true}},
		"panic in inspect": {func(s *scene) { s.script.before["inspect"] = timesPanic(1) }, end{"isolation_refused", evidence.CleanupRemoved, true, true}},
		"panic in compare": {func(s *scene) {
			s.script.compare = func(Isolation, Inspection) Isolation { panic("compare") }
		}, end{"not_started", evidence.CleanupRemoved, true, true}},
		"panic in start": {func(s *scene) {
			s.script.command = (*box).sleep
			s.script.after["start"] = panics
		}, end{"not_started", evidence.CleanupForceKilled, false, true}},
		"panic in kernel":   {func(s *scene) { s.script.before["kernel"] = panics }, end{"transport_fault", evidence.CleanupTerminated, false, true}},
		"panic in recorder": {func(s *scene) { s.book.hook = func(typ string) { panicOn(typ, "OutputCaptured") } }, end{"exit_not_observed", evidence.CleanupTerminated, false, true}},
		"panic in a copy of the output": {func(s *scene) { s.job.Stdout = brokenWriter{} },
			end{"ok", evidence.CleanupTerminated, false, false}},
	} {
		play(t, name, func(t *testing.T, s *scene) {
			c.set(s)
			v, err := s.perform()
			require.Equal(t, c.want.broken, err != nil, "%v", err)
			require.Equal(t, c.want.state, cleanup(t, s), "%v %v", v.Causes, err)
			if c.want.state == evidence.CleanupUnverifiable {
				require.Equal(t, "cleanup_unconfirmed", v.Detail)
				return
			}
			require.Empty(t, s.book.fold.Custodies.Open())
			require.Equal(t, c.want.detail, v.Detail, v.Causes)
			require.Nil(t, s.script.box, "the container is gone")
			if name == "capture failure" || name == "wait breaks" {
				require.Contains(t, v.Causes, "transport_fault")
			}
			if c.want.noStart {
				require.Zero(t, s.script.count("start"))
			}
			require.Equal(t, len(s.dogs.guarded), s.dogs.released, "the watchdog is released")
		})
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { panic("the terminal is gone") }

func panics() error { panic("scripted") }

func panicOn(got, want string) {
	if got == want {
		panic("scripted")
	}
}

func times(n int, err error) func() error {
	return func() error {
		if n--; n >= 0 {
			return err
		}
		return nil
	}
}

func timesPanic(n int) func() error {
	return func() error {
		if n--; n >= 0 {
			panic("scripted")
		}
		return nil
	}
}

// req D4: wall time runs on while output is drained; a writer that outlives the command leaves
// the capture incomplete beside whatever wins (req D3).
func TestDrain(t *testing.T) {
	play(t, "timeout while draining", func(t *testing.T, s *scene) {
		s.job.Recipe.Limits.Wall = 3 * time.Second
		s.script.command = func(b *box) { time.Sleep(time.Second); b.die(0) }
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "timeout", v.Detail, v.Causes)
		require.Contains(t, v.Causes, "capture_incomplete")
		require.Equal(t, "no_end_of_stream", s.book.fold.Run.Output.Code)
		require.Equal(t, uint64(3*time.Second), s.book.fold.Run.Stops[0].After)
		require.Zero(t, s.script.count("kill"), "it had exited")
	})
	play(t, "cancelled while draining", func(t *testing.T, s *scene) {
		s.script.command = func(b *box) { b.die(0); time.Sleep(time.Second); s.cancel(); b.hangUp(nil) }
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "cancelled", v.Detail, v.Causes)
	})
	play(t, "flood seen while draining", func(t *testing.T, s *scene) {
		s.script.command = func(b *box) {
			b.die(0)
			b.chunks <- Chunk{Bytes: make([]byte, s.job.Recipe.Limits.Output+1)}
			b.hangUp(nil)
		}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "output_limit", v.Detail, v.Causes)
		require.Equal(t, s.job.Recipe.Limits.Output, s.book.fold.Run.Output.Stdout.Stored)
	})
	play(t, "exactly the bound", func(t *testing.T, s *scene) {
		s.script.command = func(b *box) { b.print(strings.Repeat("x", int(s.job.Recipe.Limits.Output))); b.exit(0) }
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "ok", v.Detail, v.Causes)
	})
}

// req D5: the kill waits for nothing, and a cause counts only if it was stored.
func TestKillNeverWaitsForTheLedger(t *testing.T) {
	play(t, "ledger waits for the kill", func(t *testing.T, s *scene) {
		killed := make(chan struct{})
		s.script.command = (*box).sleep
		s.script.before["kill"] = func() error { close(killed); return nil }
		s.book.hook = func(typ string) {
			if typ == "StopOrdered" {
				<-killed // a deadlock, if the kill waited for this append
			}
		}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "timeout", v.Detail, v.Causes)
	})
	play(t, "stop can't be stored", func(t *testing.T, s *scene) {
		s.script.command = (*box).sleep
		s.book.fail["StopOrdered"] = errors.New("disk full")
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "stop_unrecorded", v.Detail, v.Causes)
		require.Equal(t, evidence.StopTimeout, s.book.fold.Run.Exited.Unrecorded)
	})
	play(t, "ledger hangs for good", func(t *testing.T, s *scene) {
		hung := make(chan struct{})
		s.script.command = (*box).sleep
		s.book.hook = func(typ string) {
			if typ == "StopOrdered" {
				<-hung
			}
		}
		begin := time.Now()
		v, err := s.perform()
		require.Error(t, err)
		require.Less(t, time.Since(begin), s.job.Recipe.Limits.Wall+Allowance)
		require.Equal(t, 1, s.script.count("kill"))
		require.Nil(t, s.script.box, "removed although nothing could be recorded")
		require.Equal(t, "cleanup_unconfirmed", v.Detail)
		close(hung)
		synctest.Wait()
	})
	play(t, "kill fails at first", func(t *testing.T, s *scene) {
		s.script.command = (*box).sleep
		s.script.before["kill"] = times(3, unanswered("kill"))
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "timeout", v.Detail, v.Causes)
		require.Equal(t, 4, s.script.count("kill"))
	})
}

// req D3: of two causes the first wins.
func TestFirstCauseWins(t *testing.T) {
	play(t, "cancel then timeout", func(t *testing.T, s *scene) {
		s.script.before["kill"] = times(20, unanswered("kill")) // alive past its wall time
		s.job.Recipe.Limits.Wall = 2 * time.Second
		s.script.command = func(b *box) { time.Sleep(time.Second); s.cancel(); b.sleep() }
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "cancelled", v.Detail, v.Causes)
		require.Len(t, s.book.fold.Run.Stops, 1)
	})
}

// req E1, req G5: a runner that can't record, or was fenced, goes no further. What is on record is
// removed all the same; a container that was never started and that the ledger doesn't know stays
// where recovery finds it by its labels.
func TestRecorderFails(t *testing.T) {
	for _, failure := range []error{ErrFenced, errors.New("disk full")} {
		for _, c := range []struct {
			at                     string
			created, started, left bool
		}{
			{at: "RuntimeObserved"},
			{at: "CustodyTaken"},
			{at: "ContainerCreated", created: true, left: true},
			{at: "IsolationObserved", created: true},
			{at: "StartOrdered", created: true},
			{at: "ContainerStarted", created: true, started: true},
			{at: "KernelObserved", created: true, started: true},
			{at: "ContainerExited", created: true, started: true},
			{at: "RemovalOrdered", created: true, started: true},
			{at: "RemovalObserved", created: true, started: true},
		} {
			play(t, c.at+" "+failure.Error(), func(t *testing.T, s *scene) {
				failed := false
				s.book.hook = func(typ string) {
					if failed = failed || typ == c.at; failed {
						s.book.fail[typ] = failure
					}
				}
				_, err := s.perform()
				require.ErrorIs(t, err, failure)
				require.Equal(t, c.created, s.script.count("create") == 1)
				require.Equal(t, c.started, s.script.count("start") == 1)
				require.Equal(t, c.left, s.script.box != nil)
			})
		}
	}
	play(t, "ContainerCreated fails once", func(t *testing.T, s *scene) {
		s.book.hook = func(typ string) {
			delete(s.book.fail, typ)
			if typ == "ContainerCreated" && s.script.count("remove") == 0 && s.script.count("inspect") == 0 {
				s.book.fail[typ] = errors.New("busy")
			}
		}
		v, err := s.perform()
		require.ErrorContains(t, err, "busy")
		require.Zero(t, s.script.count("start"))
		require.Equal(t, "not_started", v.Detail)
		require.Equal(t, evidence.CleanupRemoved, cleanup(t, s))
		require.Nil(t, s.script.box)
	})
}

// req E3, req E4, req E5: only the daemon's own "no such container" closes custody of a known ID, and
// nothing closes that of an unknown one.
func TestRemoval(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(s *scene)
		state evidence.CleanupState
		code  string // while custody stays open
	}{
		"reply lost":     {func(s *scene) { s.script.after["remove"] = func() error { return unanswered("remove") } }, evidence.CleanupTerminated, ""},
		"fails at first": {func(s *scene) { s.script.before["remove"] = times(2, answered("remove", 500)) }, evidence.CleanupTerminated, ""},
		"always fails":   {func(s *scene) { s.script.before["remove"] = func() error { return answered("remove", 500) } }, evidence.CleanupIncomplete, OpenPresent},
		"can't be inspected": {func(s *scene) {
			s.script.before["remove"] = s.script.then("inspect", unanswered("inspect"))
		}, evidence.CleanupUnverifiable, OpenUnreadable},
		"daemon gone": {func(s *scene) {
			s.script.before["remove"] = s.script.then("probe", unanswered("info"))
		}, evidence.CleanupUnverifiable, OpenUnprobed},
		"gone before": {func(s *scene) {
			s.script.before["remove"] = func() error { s.script.mu.Lock(); s.script.box = nil; s.script.mu.Unlock(); return nil }
		}, evidence.CleanupAbsent, ""},
		"labels differ": {func(s *scene) {
			s.script.after["create"] = func() error { s.script.box.in.Handle = "another"; return nil }
		}, evidence.CleanupUnverifiable, OpenLabels},
		"create lost and nothing there": {func(s *scene) { s.script.before["create"] = func() error { return unanswered("create") } }, evidence.CleanupUnverifiable, OpenUnanswered},
		"create lost and two there": {func(s *scene) {
			s.script.others = 1
			s.script.after["create"] = func() error { return unanswered("create") }
		}, evidence.CleanupUnverifiable, OpenAmbiguous},
		"create lost and no list": {func(s *scene) {
			s.script.after["create"] = func() error { return unanswered("create") }
			s.script.before["find"] = func() error { return unanswered("list") }
		}, evidence.CleanupUnverifiable, OpenLookup},
	} {
		play(t, name, func(t *testing.T, s *scene) {
			c.set(s)
			v, err := s.perform()
			require.NoError(t, err)
			require.Equal(t, c.state, cleanup(t, s))
			main, _ := s.book.fold.Custodies.MainContainer()
			require.Equal(t, c.code, main.Unconfirmed)
			require.Equal(t, c.code != "", main.Open())
			if c.code != "" {
				require.Equal(t, evidence.OutcomeIndeterminate, v.Outcome)
				require.Zero(t, s.dogs.released, "the watchdog stays")
				return
			}
			require.Nil(t, s.script.box)
		})
	}
}
