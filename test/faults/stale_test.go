package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// sleeper lets the first participant come to its nth step, then sleep until the others have ended and
// an hour has passed, then go on.
type sleeper struct {
	nth   int
	steps int
	awake bool
	woken []string // what it did afterwards
}

func (z *sleeper) choose(moves []move) int {
	if z.steps < z.nth && moves[0].part == 0 {
		z.steps++
		return 0
	}
	if z.steps < z.nth {
		return len(moves) - 1 // time: it waits for something
	}
	for i, m := range moves {
		if m.part > 0 { // others' steps, then time for their waits
			return i
		}
	}
	if !z.awake {
		time.Sleep(time.Hour)
		z.awake = true
	}
	z.woken = append(z.woken, moves[0].what)
	return 0
}

// TestStaleRunners lets a runner sleep at each of its steps, with its lock held and every deadline
// gone by, until somebody took its attempt and ended it; then it wakes.
//
// req G4, req G5, req E1, req F2
func TestStaleRunners(t *testing.T) {
	for _, by := range []evidence.FencedBy{evidence.FencedByCancel, evidence.FencedByRecover} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			var sum tally
			r := race{parts: []func(*participant){runs(""), ends(by)}}
			places := 0
			for ; ; places++ {
				z := &sleeper{nth: places + 1}
				end := r.play(t, z.choose)
				sum.add(end)
				if z.steps < z.nth || len(z.woken) == 0 {
					break // it ended before it could sleep
				}
				for i, what := range z.woken {
					late := what == "create" || what == "start" || strings.Contains(what, "StartOrdered")
					require.False(t, late && i > 0 && end != "ok", "%v: nothing is begun after the first step", z.woken)
				}
			}
			t.Logf("count: %d places; %s", places, &sum)
			require.Greater(t, places, 25)
		})
	}
}
