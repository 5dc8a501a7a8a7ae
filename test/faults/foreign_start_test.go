package faults

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/warden"
)

// foreignStarts is somebody else's start before and after every call on the container that comes
// before its exit.
func foreignStarts() []fakedaemon.Fault {
	var all []fakedaemon.Fault
	for _, call := range []fakedaemon.Call{fakedaemon.CallCreate, fakedaemon.CallInspect, fakedaemon.CallAttach, fakedaemon.CallWait, fakedaemon.CallStart} {
		for _, before := range []bool{false, true} {
			if before && call == fakedaemon.CallCreate {
				continue // there is none yet
			}
			all = append(all, fakedaemon.Fault{Call: call, Effect: fakedaemon.Interfere{Action: fakedaemon.ActStart, Before: before}})
		}
	}
	return all
}

// TestForeignStart lets somebody else start the container at each moment before ours, with a command
// that is over by then and one that isn't.
//
// req C9, req D1, req F2
func TestForeignStart(t *testing.T) {
	programs := map[string]fakedaemon.Program{
		"runs on":     steps(fakedaemon.Stdout("hello\n"), fakedaemon.Stderr("warning\n"), fakedaemon.Sleep(time.Second), fakedaemon.Exit(0)),
		"over by now": steps(fakedaemon.Stdout("hello\n"), fakedaemon.Stderr("warning\n"), fakedaemon.Exit(0)),
	}
	cells := 0
	for name, p := range programs {
		for _, f := range foreignStarts() {
			c := cell{scene{name: name, program: p, outcome: evidence.OutcomeSuccess, detail: "ok"}, f}
			cells++
			t.Run(c.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := begin(t, c.scene)
					s.daemon.Fault(c.fault)
					res, err := s.run(t, c.scene)
					require.NoError(t, err)
					s.check(t, c.scene, res, err)
					if late := f.Call == fakedaemon.CallStart && !f.Effect.(fakedaemon.Interfere).Before; late {
						require.Equal(t, evidence.OutcomeSuccess, res.Verdict.Outcome, "ours ran already: theirs did nothing")
					} else {
						require.NotEqual(t, evidence.OutcomeSuccess, res.Verdict.Outcome)
					}
					settle()
				})
			})
		}
	}
	require.Equal(t, 18, cells)

	// The moments that no request marks: all that is looked at before the start was looked at.
	for _, wait := range []time.Duration{100 * time.Millisecond, 3 * time.Second} {
		for _, at := range []string{"attach", "wait", "start"} {
			t.Run("a while before the "+at, func(t *testing.T) {
				c := scene{program: programs["runs on"], outcome: evidence.OutcomeSuccess, detail: "ok"}
				synctest.Test(t, func(t *testing.T) {
					s := begin(t, c)
					d := &hooked{Driver: s.driver, after: func(string) {}, before: func(call string) {
						if call == at {
							time.Sleep(time.Millisecond) // what goes on beside it is over
							main, ok := s.stored(t, "one").Fold.Custodies.MainContainer()
							require.True(t, ok)
							require.NoError(t, s.daemon.Interfere(fakedaemon.ActStart, main.Container.Hex()))
							time.Sleep(wait)
						}
					}}
					res, err := s.wardenOf(s.journal, d).Run(context.Background(), warden.RunRequest{Attempt: "one", Path: s.source, Accepted: accepted}, nil)
					require.NoError(t, err)
					s.check(t, c, res, err)
					require.NotEqual(t, evidence.OutcomeSuccess, res.Verdict.Outcome, "%v", res.Verdict)
					settle()
				})
			})
		}
	}
}
