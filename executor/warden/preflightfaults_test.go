//go:build !race

package warden

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/fakedaemon"
)

// How a reply can be wrong (req M3), and the faults that make it so.
var wrongs = map[string][]fakedaemon.FaultKind{
	"malformed":     {fakedaemon.KindMalformed, fakedaemon.KindTruncated, fakedaemon.KindRepeatedKey, fakedaemon.KindCut},
	"missing":       {fakedaemon.KindMissing, fakedaemon.KindAbsent, fakedaemon.KindNoLabel, fakedaemon.KindDropReply, fakedaemon.KindDropBefore, fakedaemon.KindLost},
	"contradictory": {fakedaemon.KindOverride, fakedaemon.KindFlip, fakedaemon.KindWrongLabel, fakedaemon.KindReplaced, fakedaemon.KindSwapped, fakedaemon.KindChanged, fakedaemon.KindIgnored, fakedaemon.KindInterfere, fakedaemon.KindWarned},
	"oversized":     {fakedaemon.KindOversized},
	"timed out":     {fakedaemon.KindSlow, fakedaemon.KindSlowReply, fakedaemon.KindStalled, fakedaemon.KindLate, fakedaemon.KindSilent},
	"refused":       {fakedaemon.KindRefuse, fakedaemon.KindFailedDone, fakedaemon.KindDeniedDone},
}

// Calls of one preflight, and how many of each it makes at least.
var callsOfAPreflight = map[fakedaemon.Call]int{
	fakedaemon.CallPing: 1, fakedaemon.CallVersion: 5, fakedaemon.CallInfo: 5, fakedaemon.CallImageInspect: 2, fakedaemon.CallEvents: 1,
	fakedaemon.CallCreate: 1, fakedaemon.CallInspect: 3, fakedaemon.CallAttach: 1, fakedaemon.CallWait: 1, fakedaemon.CallStart: 1,
	fakedaemon.CallRemove: 1,
}

// harmless reports whether a wrong reply may be passed over: it says nothing that a preflight rests on, or
// what it says was asked again. Everything else must refuse.
func harmless(f fakedaemon.Fault, nth int) bool {
	switch k := f.Effect.Kind(); {
	case k == fakedaemon.KindInterfere || k == fakedaemon.KindReplaced || k == fakedaemon.KindSwapped || k == fakedaemon.KindChanged:
		// Before the first look it is the daemon that is looked at, after the last one it comes too late;
		// what somebody does to a container that doesn't run is refused to him. The daemon's log decides.
		return true
	case f.Call == fakedaemon.CallInspect:
		// The first is compared. Later ones tell whether the process may be read in the host's /proc, and,
		// again and again, whether it is gone; which comes second is a race.
		return nth > 1
	case f.Call == fakedaemon.CallPing: // asked again
		return true
	case f.Call == fakedaemon.CallRemove || f.Call == fakedaemon.CallWait || f.Call == fakedaemon.CallStart:
		// Done, and its answer lost: the event, the exit and the inspection tell.
		return true
	case f.Call == fakedaemon.CallCreate:
		return k == fakedaemon.KindSlow || k == fakedaemon.KindSlowReply
	}
	return false
}

// req M3, req M4, req E8: one wrong reply of any kind at any call of a preflight. It fails closed: a run
// is let go only if the daemon's own log, which no fault bends, shows that all of it happened; whatever
// may be left is under custody, and a supervisor ends it. What these cells share with the race detector's own
// cases is left to those: it makes them five times as slow.
func TestUnracedPreflightFailsClosed(t *testing.T) {
	type cell struct {
		fault fakedaemon.Fault
		nth   int
		how   string
	}
	var cells []cell
	for call, times := range callsOfAPreflight {
		for how, kinds := range wrongs {
			for _, k := range kinds {
				f, ok := fakedaemon.Default(call, k)
				for n := range times {
					if ok {
						cells = append(cells, cell{f, n + 1, how})
					}
				}
			}
		}
	}
	counts, passed := map[string]int{}, 0
	for _, c := range cells {
		t.Run(fmt.Sprintf("%s %s %d", c.fault.Call, c.fault.Effect.Kind(), c.nth), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProbation(t, fakedaemon.Options{Engine: fakedaemon.Engine27(), Memory: true, Slow: 10 * time.Minute})
				c.fault.Nth = c.nth
				p.daemon.Fault(c.fault)
				f := p.examine(t)
				history := p.history()
				if f.Go() {
					passed++
					if c.fault.Effect.Kind() == fakedaemon.KindSwapped { // the log that tells is the former daemon's
						p.daemon.Restore()
						history = p.history()
					}
					require.Equal(t, "create attach start die destroy", history, "%v", f.Lines())
					require.True(t, harmless(c.fault, c.nth), "passed over: %v", f.Lines())
				} else {
					require.Equal(t, evidence.ClaimNone, f.Claim())
				}
				counts[c.how]++
				p.end(t, f)
			})
		})
	}
	t.Logf("%d wrong replies: %v; %d of them changed nothing that a run rests on", len(cells), counts, passed)
	require.GreaterOrEqual(t, len(cells), 300)
	for how := range wrongs {
		require.GreaterOrEqual(t, counts[how], 10, how)
	}
}
