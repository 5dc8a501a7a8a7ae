package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
)

// scheduler lets one participant at a time take its next append.
type scheduler struct {
	mu     sync.Mutex
	parked [][]chan struct{} // by participant, in the order they came
	done   []bool
}

// gated is one participant's ledger: each append waits until the scheduler lets it pass.
type gated struct {
	ledger.Ledger
	s    *scheduler
	self int
}

func (g *gated) Append(ctx context.Context, id ledger.StreamID, v ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	g.wait()
	return g.Ledger.Append(ctx, id, v, events...)
}

// wait is a step that does nothing but let others go first.
func (g *gated) wait() {
	pass := make(chan struct{})
	g.s.mu.Lock()
	g.s.parked[g.self] = append(g.s.parked[g.self], pass)
	g.s.mu.Unlock()
	<-pass
}

// play runs the participants to their ends. choose picks one of n that could go on, or none (-1), so
// that time passes; first says whether the first participant could, or has ended.
func play(choose func(n int, first bool) int, ledgerOf ledger.Ledger, parts ...func(l *gated)) {
	s := &scheduler{parked: make([][]chan struct{}, len(parts)), done: make([]bool, len(parts))}
	for i, p := range parts {
		go func() {
			p(&gated{ledgerOf, s, i})
			s.mu.Lock()
			defer s.mu.Unlock()
			s.done[i] = true
		}()
	}
	for {
		synctest.Wait() // everybody waits for the scheduler, for time, or has ended
		s.mu.Lock()
		var ready []int
		over := true
		for i := range parts {
			over = over && s.done[i]
			if len(s.parked[i]) > 0 {
				ready = append(ready, i)
			}
		}
		went := false
		if len(ready) > 0 {
			if k := choose(len(ready), s.done[0] || len(s.parked[0]) > 0); k >= 0 {
				i := ready[k]
				close(s.parked[i][0])
				s.parked[i], went = s.parked[i][1:], true
			}
		}
		s.mu.Unlock()
		if over {
			return
		}
		if !went {
			time.Sleep(time.Millisecond)
		}
	}
}

// race is some participants on one attempt.
type race struct {
	name  string
	parts func(s *site) []func(*gated)
}

func (s *site) runs(home string) func(*gated) {
	return func(l *gated) {
		w := s.wardenOf(journal.New(journal.Config{Ledger: l, Actor: "runner"}), s.driver)
		w.Home = warden.Home{Dir: home, ID: evidence.HomeID{1}}
		w.Reserved = []source.Reserved{{Kind: source.ReservedHome, Path: home}}
		w.Run(context.Background(), warden.RunRequest{Attempt: "one", Path: s.source, Accepted: accepted}, nil) // what it came to is in the ledger
	}
}

// ends takes the attempt from whoever has it, at whatever generation it stands.
func (s *site) ends(by evidence.FencedBy) func(*gated) {
	return func(l *gated) {
		j := journal.New(journal.Config{Ledger: l, Actor: string(by)})
		for range 40 {
			l.wait()
			a, err := j.Attempt(context.Background(), "one")
			if err != nil || a.Fold.State == evidence.StateFinished {
				return
			}
			_, err = s.wardenOf(j, s.driver).Recover(context.Background(), warden.RecoverRequest{Attempt: "one", Generation: a.Fold.Generation, By: by}, nil)
			var moved *journal.GenerationError
			var pending *journal.NotRunningError
			if !errors.As(err, &moved) && !errors.As(err, &pending) {
				return
			}
		}
	}
}

var races = []race{
	{name: "two runners", parts: func(s *site) []func(*gated) {
		return []func(*gated){s.runs(s.home), s.runs(filepath.Join(filepath.Dir(s.home), "home2"))}
	}},
	{name: "cancel against a runner", parts: func(s *site) []func(*gated) {
		return []func(*gated){s.runs(s.home), s.ends(evidence.FencedByCancel)}
	}},
	{name: "recover against a runner", parts: func(s *site) []func(*gated) {
		return []func(*gated){s.runs(s.home), s.ends(evidence.FencedByRecover)}
	}},
	{name: "two recoverers and a runner", parts: func(s *site) []func(*gated) {
		return []func(*gated){s.runs(s.home), s.ends(evidence.FencedByRecover), s.ends(evidence.FencedByCancel)}
	}},
}

// order is the choices of one run: the first are given, those behind them go in turns.
type order struct {
	lead    int // choices before them that let the first participant go
	depth   int // choices that are enumerated
	given   []int
	options []int // how many there were at each choice
}

func (o *order) choose(n int, first bool) int {
	if o.lead > 0 && !first {
		return -1
	}
	if o.lead > 0 {
		o.lead--
		return 0
	}
	k := len(o.options)
	o.options = append(o.options, n)
	if k < len(o.given) {
		return o.given[k]
	}
	if k < o.depth {
		return 0
	}
	return k % n
}

// next is the order after this one among all that differ in the first depth choices; false when it was the last.
func (o *order) next() ([]int, bool) {
	given := make([]int, min(o.depth, len(o.options)))
	copy(given, o.given)
	for k := len(given) - 1; k >= 0; k-- {
		if given[k] == o.options[k]-1 {
			continue
		}
		given[k]++
		return given[:k+1], true
	}
	return nil, false
}

func (r race) run(t *testing.T, choose func(int, bool) int) string {
	end := ""
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, fakedaemon.Options{})
		require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(s.home), "home2"), 0o700))
		s.daemon.Script("/tool", scenes[0].program)
		play(choose, s.memory, r.parts(s)...)
		s.audit(t)
		a := s.stored(t, "one")
		claims := 0
		for _, e := range a.Events {
			if e.Type == "AttemptClaimed" {
				claims++
			}
		}
		require.LessOrEqual(t, claims, 1, "one claim is stored")
		require.LessOrEqual(t, len(s.requests(fakedaemon.CallCreate)), 1)
		require.LessOrEqual(t, len(s.requests(fakedaemon.CallStart)), 1)
		s.left(t, a)
		if a.Fold.Fenced() {
			require.NotEqual(t, evidence.OutcomeSuccess, evidence.VerdictOf(&a.Fold).Outcome)
		}
		if a.Fold.State == evidence.StateRunning {
			s.supervise(t)
			a = s.stored(t, "one")
		}
		require.Equal(t, evidence.StateFinished, a.Fold.State, types(a))
		s.left(t, a)
		s.audit(t)
		v := evidence.VerdictOf(&a.Fold)
		if v.Outcome == evidence.OutcomeSuccess {
			s.trulySucceeded(t, a)
		}
		require.Empty(t, s.snapshots(t))
		end = v.Detail
		settle()
	})
	return end
}

// leads is how far the runner may come before the others begin: past its last append.
const leads = 16

// TestRaces plays, for every place that the runner may have come to, every order of the next appends
// of each race up to a bound, then turns; and random orders all the way.
//
// req G2, req G4, req G5, req G6, req E4, req F2
func TestRaces(t *testing.T) {
	depth, random := 3, 15
	if full() {
		depth, random = 6, 500
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("BAILDOCK_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("BAILDOCK_SEED=%d", seed)
	for _, r := range races {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			var sum tally
			for lead := range leads {
				o := &order{lead: lead, depth: depth}
				for more := true; more; {
					sum.add(r.run(t, o.choose))
					given, again := o.next()
					o, more = &order{lead: lead, depth: depth, given: given}, again
				}
			}
			enumerated := sum.n
			require.Greater(t, enumerated, 30)
			draw := rand.New(rand.NewPCG(seed, 0))
			for range random {
				sum.add(r.run(t, func(n int, _ bool) int { return draw.IntN(n+1) - 1 }))
			}
			t.Logf("%d orders (%d leads, every order of %d steps), %d random; %s", enumerated, leads, depth, random, &sum)
		})
	}
}
