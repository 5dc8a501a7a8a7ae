package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/fakedaemon"
)

// counts is what a scene does undisturbed: how often it makes each call.
func counts(t *testing.T, c scene) map[fakedaemon.Call]int {
	made := map[fakedaemon.Call]int{}
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, c)
		res, err := s.run(t, c)
		require.NoError(t, err)
		for _, r := range s.requests() {
			made[r.Call]++
		}
		a := s.check(t, c, res, err)
		require.True(t, res.Finished)
		require.Equal(t, c.outcome, res.Verdict.Outcome, "%v %s", res.Verdict, types(a))
		require.Equal(t, c.detail, res.Verdict.Detail)
		settle()
	})
	return made
}

// cell is one broken thing in a scene.
type cell struct {
	scene
	fault fakedaemon.Fault
}

func (c cell) String() string {
	name := fmt.Sprintf("%s/%s %s %d", c.name, c.fault.Call, c.fault.Effect.Kind(), c.fault.Nth)
	if i, ok := c.fault.Effect.(fakedaemon.Interfere); ok {
		name += fmt.Sprintf(" %s before=%v", i.Action, i.Before)
	}
	if c.fault.Times == fakedaemon.Always {
		name += " on"
	}
	return name
}

// cells is every fault of a scene: each call it makes or may be led to make, each kind that the call
// can have, each occurrence and one more, once and from there on. want is their number, counted apart.
func cells(t *testing.T, c scene) (all []cell, want int) {
	made := counts(t, c)
	for _, led := range []fakedaemon.Call{fakedaemon.CallKill, fakedaemon.CallList, fakedaemon.CallInspect, fakedaemon.CallRemove} {
		made[led]++
	}
	for _, call := range fakedaemon.Calls() {
		for _, f := range fakedaemon.Cells(call) {
			for n := range made[call] {
				f.Nth = n + 1
				if f.Effect.Kind() == fakedaemon.KindFlip {
					all = append(all, cell{c, f})
					continue
				}
				f.Times = 1
				all = append(all, cell{c, f})
				f.Times = fakedaemon.Always
				all = append(all, cell{c, f})
			}
		}
	}
	return all, ways(made)
}

// interferences is every action of somebody else, before and after every call on a container of two
// scenes.
func interferences(t *testing.T) (all []cell, want int) {
	for _, c := range scenes {
		if c.name != "good" && c.name != "hangs" {
			continue
		}
		made := counts(t, c)
		for _, call := range []fakedaemon.Call{fakedaemon.CallCreate, fakedaemon.CallInspect, fakedaemon.CallAttach, fakedaemon.CallWait,
			fakedaemon.CallStart, fakedaemon.CallKill, fakedaemon.CallRemove} {
			sides := 2
			if call == fakedaemon.CallCreate {
				sides = 1
			}
			common, isCell := fakedaemon.Default(call, fakedaemon.KindInterfere)
			want += made[call] * len(fakedaemon.Actions()) * sides
			if isCell { // one of them is in every scene's cells
				want -= made[call]
			}
			for n := range made[call] {
				for _, action := range fakedaemon.Actions() {
					for _, before := range []bool{false, true} {
						if before && call == fakedaemon.CallCreate {
							continue // there is none yet
						}
						effect := fakedaemon.Interfere{Action: action, Before: before}
						if !isCell || common.Effect != fakedaemon.Effect(effect) {
							all = append(all, cell{c, fakedaemon.Fault{Call: call, Nth: n + 1, Effect: effect}})
						}
					}
				}
			}
		}
	}
	return all, want
}

// sample is every cell of the full form, and of the short form those that always run and one in n of
// the others, the same ones in every run.
func sample[C any](all []C, n int, always func(C) bool) []C {
	if full() {
		return all
	}
	var some []C
	for i, c := range all {
		if always(c) || i%n == 0 {
			some = append(some, c)
		}
	}
	return some
}

// TestFaultTable breaks every daemon call of every scene in every way.
//
// req C7, req D5, req E1, req E3, req E4, req E5, req E6, req E7, req E9, req F1, req F2, req F3, req G3
func TestFaultTable(t *testing.T) {
	var sum tally
	all, want := interferences(t)
	for _, c := range scenes {
		some, n := cells(t, c)
		all, want = append(all, some...), want+n
	}
	counted(t, all, want, 13_000)
	all = sample(all, 19, func(c cell) bool {
		return c.name == "good" && c.fault.Times != fakedaemon.Always && c.fault.Effect.Kind() != fakedaemon.KindInterfere
	})
	t.Run("cells", func(t *testing.T) {
		for _, c := range all {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := begin(t, c.scene)
					s.daemon.Fault(c.fault)
					res, err := s.run(t, c.scene)
					require.NoError(t, err)
					a := s.check(t, c.scene, res, err)
					end := s.recovered(t)
					if a.Fold.State == evidence.StateFinished {
						end = string(res.Verdict.Outcome)
					}
					sum.add(string(a.Fold.State) + ", " + end)
					settle()
				})
			})
		}
	})
	t.Logf("count: %d cells; %s", len(all), &sum)
	require.Equal(t, len(all), sum.n)
	require.Greater(t, len(all), 1000)
	agents := 0
	for _, c := range all {
		if c.agent {
			agents++
		}
	}
	t.Logf("count: %d cells of an agent in a workspace", agents)
	require.GreaterOrEqual(t, agents, 50)
}

// begin makes a site for a scene.
func begin(t testing.TB, c scene) *site {
	s := newSiteOf(t, fakedaemon.Options{Engine: c.engine}, c.agent)
	if c.agent {
		edit := fakedaemon.Func(func() { s.edit(t) })
		c.program.Steps = append([]fakedaemon.Step{edit}, c.program.Steps...)
	}
	s.daemon.Script("/tool", c.program)
	s.daemon.Fault(c.faults...)
	return s
}

// settle lets everything that a run may have left under way come to its end: what is still there
// afterwards would be there for ever, which the bubble reports.
func settle() { time.Sleep(24 * time.Hour) }

// tally counts what cells came to.
type tally struct {
	mu   sync.Mutex
	n    int
	seen map[string]int
}

func (y *tally) add(what string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.seen == nil {
		y.seen = map[string]int{}
	}
	y.n++
	y.seen[what]++
}

func (y *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cells:", y.n)
	for _, k := range slices.Sorted(maps.Keys(y.seen)) {
		fmt.Fprintf(&b, " %s %d", k, y.seen[k])
	}
	return b.String()
}
