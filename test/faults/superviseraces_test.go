package faults

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/warden"
)

// supervises is a supervisor of the site's home that makes two passes, at any time.
func supervises(p *participant) {
	w := p.wardenOf(p.as("supervisor"), p.drives())
	for range 2 {
		p.step("pass")
		met, err := w.Supervise(context.Background(), warden.Pass{Audit: true}, nil)
		if err != nil {
			p.say(warden.Result{}, err)
		}
		for _, m := range met {
			if m.Action == warden.ActionFailed {
				p.say(warden.Result{}, m.Err)
			}
		}
	}
}

// superviseRaces are those in which locks decide who may begin (req G8).
var superviseRaces = []race{
	{name: "supervisor against a runner", parts: []func(*participant){runs(""), supervises}, bound: [2]int{1, 2}, least: [2]int{100, 100},
		ends: []string{"ok"}, check: fencedTimes(0)},
	{name: "two supervisors", begin: wreckage, parts: []func(*participant){supervises, supervises}, bound: [2]int{1, 3}, least: [2]int{30, 600},
		ends: []string{"recovered"}, check: fencedTimes(1)},
	{name: "supervisor against a recoverer", begin: wreckage, parts: []func(*participant){supervises, recovers}, bound: [2]int{1, 2}, least: [2]int{30, 250},
		ends: []string{"recovered"}},
}

// fencedTimes holds that whoever holds the lock keeps supervisors out: a living runner is never fenced, and
// of two supervisors one recovers. None of them fails.
func fencedTimes(n int) func(testing.TB, *site, journal.Attempt, []answer) {
	return func(t testing.TB, _ *site, a journal.Attempt, said []answer) {
		require.Len(t, a.Fold.Fences, n, types(a))
		for _, one := range said {
			require.NoError(t, one.err)
		}
	}
}
