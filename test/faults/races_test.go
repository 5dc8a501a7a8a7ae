package faults

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/warden"
)

// race is a scene with several participants on one attempt.
type race struct {
	name  string
	begin func(t testing.TB, s *site) // before anybody begins; nil: nothing
	parts []func(*participant)
	lead  string   // the first participant goes alone until this is its next step; "" = nobody leads
	bound [2]int   // of the orders that are enumerated: short, full
	least [2]int   // how many orders there are at least
	ends  []string // that orders come to, among others
	check func(t testing.TB, s *site, a journal.Attempt, said []answer)
}

// runs is a runner in a home beside others' ("" = the site's own).
func runs(home string) func(*participant) {
	return func(p *participant) {
		if home == "" {
			home = p.home
		}
		dir := filepath.Join(filepath.Dir(p.home), filepath.Base(home))
		w := p.wardenOf(p.as("runner"), p.drives())
		w.Home = warden.Home{Dir: dir, ID: evidence.HomeID{1}}
		w.Reserved = []source.Reserved{{Kind: source.ReservedHome, Path: dir}}
		p.say(w.Run(context.Background(), warden.RunRequest{Attempt: p.racer, Path: p.source, Accepted: accepted}, nil))
	}
}

// ends takes the attempt from whoever has it, at whatever generation it stands.
func ends(by evidence.FencedBy) func(*participant) {
	return func(p *participant) {
		j := p.as(string(by))
		for range 40 {
			p.step("read")
			a, err := j.Attempt(context.Background(), p.racer)
			if err != nil || a.Fold.State == evidence.StateFinished {
				return
			}
			res, err := p.wardenOf(j, p.drives()).Recover(context.Background(), warden.RecoverRequest{Attempt: p.racer, Generation: a.Fold.Generation, By: by}, nil)
			var moved *journal.GenerationError
			var pending *journal.NotRunningError
			if !errors.As(err, &moved) && !errors.As(err, &pending) {
				p.say(res, err)
				return
			}
		}
	}
}

// claims claims and does nothing more: every participant says the same bytes, under a clock that
// stands, and only the nonce of its event tells them apart.
func claims(p *participant) {
	home, err := warden.Home{Dir: p.home, ID: evidence.HomeID{1}}.Identity()
	if err != nil {
		panic(err)
	}
	j := journal.New(journal.Config{Ledger: &steppedLedger{p.watched, p}, Actor: "runner", Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	_, err = j.Claim(context.Background(), p.racer, 0, journal.Claim{Home: home, Deadline: math.MaxInt64, Accepted: accepted})
	p.say(warden.Result{}, err)
}

// wreckage is a container that its runner left behind before its ID was stored.
func wreckage(t testing.TB, s *site) {
	s.watched.Ledger = &dead{Ledger: s.memory, from: "ContainerCreated"}
	res, err := s.run(t, scene{})
	require.Error(t, err)
	require.False(t, res.Finished)
	s.watched.Ledger = s.memory
}

var (
	cancels  = ends(evidence.FencedByCancel)
	recovers = ends(evidence.FencedByRecover)
)

var races = []race{
	{name: "two runners", parts: []func(*participant){runs(""), runs("home2")}, bound: [2]int{1, 2}, least: [2]int{150, 1500}, ends: []string{"ok"}},
	{name: "claims of the same bytes", parts: []func(*participant){claims, claims, claims}, bound: [2]int{everyOrder, everyOrder}, least: [2]int{66, 66}, ends: []string{"recovered"}, check: oneWinner},
	{name: "cancel against a runner", parts: []func(*participant){runs(""), cancels}, bound: [2]int{1, 2}, least: [2]int{120, 2000}, ends: []string{"ok", "cancelled_by_operator"}},
	{name: "recover against a runner", parts: []func(*participant){runs(""), recovers}, bound: [2]int{0, 1}, least: [2]int{4, 200}, ends: []string{"ok", "recovered"}},
	{name: "cancel against finish", lead: "append RemovalObserved", parts: []func(*participant){runs(""), cancels}, bound: [2]int{2, everyOrder}, least: [2]int{70, 100}, ends: []string{"ok", "cancelled_by_operator"}},
	{name: "late finisher", lead: "append AttemptFinished", parts: []func(*participant){runs(""), recovers}, bound: [2]int{everyOrder, everyOrder}, least: [2]int{6, 6}, ends: []string{"ok", "recovered"}},
	{name: "two recoverers", begin: wreckage, parts: []func(*participant){recovers, cancels}, bound: [2]int{1, 3}, least: [2]int{30, 3000}, ends: []string{"recovered", "cancelled_by_operator"}},
	{name: "two recoverers and a runner", parts: []func(*participant){runs(""), recovers, cancels}, bound: [2]int{0, 1}, least: [2]int{16, 1000}, ends: []string{"ok", "recovered", "cancelled_by_operator"}},
}

// oneWinner: of claims that say the same exactly one is stored, and the others are told so.
func oneWinner(t testing.TB, s *site, a journal.Attempt, said []answer) {
	won := 0
	for _, one := range said {
		var lost *journal.NotPendingError
		if one.err == nil {
			won++
			continue
		}
		require.ErrorAs(t, one.err, &lost)
		require.EqualValues(t, 1, lost.Generation)
		require.Equal(t, a.Fold.Claimed.Home, lost.Claimed.Home)
	}
	require.Equal(t, 1, won)
}

// play plays one order of the race and holds what is left against the invariants.
func (r race) play(t *testing.T, choose func([]move) int) string {
	end := ""
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, fakedaemon.Options{})
		require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(s.home), "home2"), 0o700))
		s.daemon.Script("/tool", scenes[0].program)
		if r.begin != nil {
			r.begin(t, s)
		}
		s.taken = math.MaxInt // a removal may precede somebody else's order for it
		leads := r.lead != ""
		said := play(t, s, func(moves []move) int {
			if leads {
				if leads = moves[0] != (move{0, r.lead}); leads {
					if moves[0].part == 0 {
						return 0
					}
					return len(moves) - 1 // time
				}
			}
			return choose(moves)
		}, r.parts...)
		end = s.raced(t, r, said)
		settle()
	})
	return end
}

// raced holds what participants left against the invariants, and again after a supervisor.
func (s *site) raced(t testing.TB, r race, said []answer) string {
	t.Helper()
	s.audit(t)
	a := s.stored(t, s.racer)
	s.intents(t, a)
	s.left(t, a)
	claimed, finished := 0, 0
	for _, e := range a.Events {
		switch e.Type {
		case "AttemptClaimed":
			claimed++
		case "AttemptFinished":
			finished++
		}
	}
	require.LessOrEqual(t, claimed, 1, "one claim is stored")
	require.LessOrEqual(t, finished, 1)
	for _, one := range said { // req G5: whoever says that it is finished says how it is stored
		if one.res.Finished {
			require.Equal(t, evidence.StateFinished, a.Fold.State)
			require.Equal(t, a.Fold.Finished.Record, one.res.Record.Digest())
			require.Equal(t, evidence.VerdictOf(&a.Fold), one.res.Verdict)
		}
		if one.err == nil && len(one.res.Attempt) > 0 && !one.res.Finished {
			require.NotEmpty(t, one.res.Fold.Custodies.Open(), "it didn't finish, nothing is open, and nobody says why")
		}
	}
	if r.check != nil {
		r.check(t, s, a, said)
	}
	homes, err := filepath.Glob(filepath.Join(filepath.Dir(s.home), "home*"))
	require.NoError(t, err)
	for range 2 { // it also sweeps the lock files of whoever came too late, in every home
		for _, home := range homes {
			s.superviseIn(t, home)
		}
	}
	a = s.stored(t, s.racer)
	s.audit(t)
	s.left(t, a)
	v := evidence.VerdictOf(&a.Fold)
	if a.Fold.State == evidence.StatePending {
		require.Empty(t, s.requests(fakedaemon.CallCreate))
		require.Empty(t, s.snapshots(t))
		return "pending"
	}
	require.Equal(t, evidence.StateFinished, a.Fold.State, types(a))
	by := map[evidence.FencedBy]bool{}
	for _, f := range a.Fold.Fences {
		by[f.By] = true
	}
	switch v.Outcome { // req G4: who took it decides how it ends
	case evidence.OutcomeSuccess:
		require.Empty(t, by)
		s.trulySucceeded(t, a)
	case evidence.OutcomeCancelled:
		require.True(t, by[evidence.FencedByCancel], "%v", v)
	case evidence.OutcomeIncomplete:
		require.True(t, a.Fold.Voided != nil || by[evidence.FencedByRecover] || by[evidence.FencedBySupervise], "%v", v)
	default:
		t.Errorf("it ended %v", v)
	}
	require.Empty(t, s.snapshots(t))
	for _, home := range homes { // the home of the claim, and of whoever lost it
		require.NoFileExists(t, filepath.Join(home, "locks", string(s.racer)))
	}
	for _, id := range s.strangers {
		_, there := s.daemon.Container(id)
		require.True(t, there, "a stranger's container is gone")
	}
	return v.Detail
}

// TestRaces plays every order of each race's steps up to its bound, and random ones that nothing bounds.
//
// req G2, req G4, req G5, req G6, req H5, req E4, req F2
func TestRaces(t *testing.T) {
	random, form := 10, 0
	if full() {
		random, form = 400, 1
	}
	seed := seeded(t)
	for i, r := range slices.Concat(races, claimRaces, superviseRaces) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			var sum tally
			played := map[string]bool{}
			for o, more := newOrders(r.bound[form]), true; more; more = o.next() {
				sum.add(r.play(t, func(m []move) int { return o.choose(t, m) }))
				require.False(t, played[o.name()], "an order was played twice")
				played[o.name()] = true
			}
			require.GreaterOrEqual(t, len(played), r.least[form])
			for _, end := range r.ends {
				require.Positive(t, sum.seen[end], "no order ends %s: %s", end, &sum)
			}
			draw := rand.New(rand.NewPCG(seed, uint64(i)))
			for range random {
				sum.add(r.play(t, chance(draw)))
			}
			t.Logf("count: %d orders (bound %d), %d random; %s", len(played), r.bound[form], random, &sum)
			require.Equal(t, len(played)+random, sum.n)
		})
	}
}
