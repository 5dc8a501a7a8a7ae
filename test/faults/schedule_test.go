package faults

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
)

// scheduler lets one participant at a time take its next step: an append, or a call of the daemon.
// Whatever a participant does between two steps, its reads of the ledger among them, belongs to the
// step before.
type scheduler struct {
	mu     sync.Mutex
	parked []*step
	done   []bool
	moved  chan struct{} // somebody came to a step, or to its end
}

// step is what a participant would do next.
type step struct {
	part int
	what string
	pass chan struct{}
}

// participant is one process of a race.
type participant struct {
	*site
	s    *scheduler
	self int
	said *answers
}

// answers is what the participants said in the end.
type answers struct {
	mu  sync.Mutex
	all []answer
}

type answer struct {
	part int
	res  warden.Result
	err  error
}

func (p *participant) say(res warden.Result, err error) {
	p.said.mu.Lock()
	defer p.said.mu.Unlock()
	p.said.all = append(p.said.all, answer{p.self, res, err})
}

// step waits until the scheduler lets it pass.
func (p *participant) step(what string) {
	here := &step{p.self, what, make(chan struct{})}
	p.s.mu.Lock()
	p.s.parked = append(p.s.parked, here)
	p.s.mu.Unlock()
	p.s.tell()
	<-here.pass
}

func (s *scheduler) tell() {
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

// as is the journal that the participant writes with.
func (p *participant) as(actor string) *journal.Journal {
	return journal.New(journal.Config{Ledger: &steppedLedger{p.watched, p}, Actor: actor})
}

// drives makes each call of the daemon a step. Request, effect and reply are one: between a request and
// its effect others may come as between the step before and the request, and between the effect and its
// reply as between the reply and the step after.
func (p *participant) drives() executor.Driver {
	return &hooked{Driver: p.driver, before: p.step, after: func(string) {}}
}

// steppedLedger makes each append a step.
type steppedLedger struct {
	ledger.Ledger
	p *participant
}

func (l *steppedLedger) Append(ctx context.Context, id ledger.StreamID, v ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	l.p.step(nameOf(events))
	return l.Ledger.Append(ctx, id, v, events...)
}

// nameOf tells what an append appends.
func nameOf(events []ledger.Prepared) string {
	var types []string
	for _, e := range events {
		types = append(types, e.Type)
	}
	return "append " + strings.Join(types, "+")
}

// move is one thing that can happen next: a participant's step, or time (part clock).
type move struct {
	part int
	what string
}

const clock = 1 << 30

// lull is how long nobody may have anything to do: longer than a fenced runner waits for its end.
// Somebody who is asleep longer is a stale runner (races_test.go).
const lull = 6 * time.Second

// play runs the participants to their ends. choose picks one of what can happen: the ready steps by
// participant and name, then time, where somebody waits for it.
func play(t testing.TB, s *site, choose func([]move) int, parts ...func(*participant)) []answer {
	c := &scheduler{done: make([]bool, len(parts)), moved: make(chan struct{}, 1)}
	said := &answers{}
	for i, part := range parts {
		p := &participant{s, c, i, said}
		go func() {
			p.step("begin")
			part(p)
			c.mu.Lock()
			c.done[i] = true
			c.mu.Unlock()
			c.tell()
		}()
	}
	for {
		synctest.Wait() // everybody waits for the scheduler, for time, or has ended
		moves, over := c.moves()
		if over {
			return said.all
		}
		require.NotEmpty(t, moves)
		if m := moves[choose(moves)]; m.part != clock {
			c.let(m)
			continue
		}
		select {
		case <-c.moved: // of before
		default:
		}
		bound := lull
		if len(moves) == 1 {
			bound = time.Hour
		}
		select {
		case <-c.moved:
		case <-time.After(bound):
			require.Greater(t, len(moves), 1, "nobody goes on")
		}
	}
}

// moves lists what can happen, in an order that depends on nothing else.
func (s *scheduler) moves() (all []move, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := 0
	for i := range s.done {
		if !s.done[i] && !slices.ContainsFunc(s.parked, func(p *step) bool { return p.part == i }) {
			idle++
		}
	}
	for _, p := range s.parked {
		all = append(all, move{p.part, p.what})
	}
	slices.SortFunc(all, func(a, b move) int { return cmp.Or(a.part-b.part, strings.Compare(a.what, b.what)) })
	all = slices.Compact(all)
	if idle > 0 {
		all = append(all, move{part: clock})
	}
	return all, !slices.Contains(s.done, false)
}

// let lets a step pass.
func (s *scheduler) let(m move) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.parked, func(p *step) bool { return p.part == m.part && p.what == m.what })
	close(s.parked[i].pass)
	s.parked = slices.Delete(s.parked, i, i+1)
}
