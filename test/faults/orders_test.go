package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// orders enumerates the orders of a race's steps in which somebody is interrupted at most bound times:
// while its participant could go on, another one goes, time passes, or of several things that a
// participant does at once another than the first is done. Where a participant waits, ends or has not
// begun, whoever goes next is free. Without a bound that is every order there is.
type orders struct {
	bound int
	path  []decision
	at    int // the decision that is next
	spent int
	last  int // who went last; -1: nobody
}

const everyOrder = 1 << 20

// decision is one place of an order, as its first visit found it.
type decision struct {
	moves  []move // the first goes on, if somebody can
	cost   []int
	spent  int // before it
	chosen int
}

func newOrders(bound int) *orders { return &orders{bound: bound, last: -1} }

// choose follows the path as far as it goes and takes the first of what can happen behind it.
func (o *orders) choose(t testing.TB, found []move) int {
	moves := slices.Clone(found)
	goesOn := slices.IndexFunc(moves, func(m move) bool { return m.part == o.last })
	if goesOn > 0 {
		own := moves[goesOn]
		moves = append([]move{own}, slices.Delete(moves, goesOn, goesOn+1)...)
	}
	if o.at == len(o.path) {
		d := decision{moves: moves, spent: o.spent}
		for i := range moves {
			if goesOn >= 0 && i > 0 {
				d.cost = append(d.cost, 1)
			} else {
				d.cost = append(d.cost, 0)
			}
		}
		o.path = append(o.path, d)
	}
	d := o.path[o.at]
	require.Equal(t, d.moves, moves, "the same order led elsewhere: it depends on something that is no step")
	o.at++
	o.spent = d.spent + d.cost[d.chosen]
	m := d.moves[d.chosen]
	if m.part != clock {
		o.last = m.part
	}
	return slices.Index(found, m)
}

// next goes to the next order; false when that was the last.
func (o *orders) next() bool {
	for k := len(o.path) - 1; k >= 0; k-- {
		d := &o.path[k]
		for d.chosen++; d.chosen < len(d.moves); d.chosen++ {
			if d.spent+d.cost[d.chosen] <= o.bound {
				o.path = o.path[:k+1]
				o.at, o.spent, o.last = 0, 0, -1
				return true
			}
		}
	}
	return false
}

// name tells an order by its choices.
func (o *orders) name() string {
	s := ""
	for _, d := range o.path {
		s += fmt.Sprintf("%d", d.chosen)
	}
	return s
}

// chance picks anything that can happen.
func chance(draw *rand.Rand) func([]move) int {
	return func(moves []move) int { return draw.IntN(len(moves)) }
}

// seeded is the seed of this run's random orders, printed so that BAILDOCK_SEED repeats them.
func seeded(t testing.TB) uint64 {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("BAILDOCK_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("BAILDOCK_SEED=%d", seed)
	return seed
}
