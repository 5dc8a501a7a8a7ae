package warden

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/fakedaemon"
)

// slowKinds wait for a deadline of the driver; they belong to a longer run.
var slowKinds = []fakedaemon.FaultKind{fakedaemon.KindSlow, fakedaemon.KindSlowReply, fakedaemon.KindStalled, fakedaemon.KindLate, fakedaemon.KindSilent}

// calls of a run, and how many of each a fault may hit.
var callsOfARun = map[fakedaemon.Call]int{
	fakedaemon.CallPing: 1, fakedaemon.CallVersion: 4, fakedaemon.CallInfo: 4, fakedaemon.CallImageInspect: 1,
	fakedaemon.CallEvents: 1, fakedaemon.CallCreate: 1, fakedaemon.CallInspect: 4, fakedaemon.CallAttach: 1, fakedaemon.CallWait: 1,
	fakedaemon.CallStart: 1, fakedaemon.CallRemove: 1,
}

// req E3, req E5, req E6, req E9, req F2, req G9: one fault of any fast kind at any call of a run. Whatever it does, the
// history is legal as stored, nothing is left that custody doesn't name, nothing is created or
// started twice, and nothing unproven is a success.
func TestOneFaultAnywhere(t *testing.T) {
	type cell struct {
		fault fakedaemon.Fault
		nth   int
	}
	var cells []cell
	for call, times := range callsOfARun {
		for _, f := range fakedaemon.Cells(call) {
			for n := range times {
				// A start that is confirmed and not done has no exit to see until every bound ran out.
				ignored := call == fakedaemon.CallStart && f.Effect.Kind() == fakedaemon.KindIgnored
				if !ignored && !slices.Contains(slowKinds, f.Effect.Kind()) {
					cells = append(cells, cell{f, n + 1})
				}
			}
		}
	}
	require.Greater(t, len(cells), 200)
	outcomes := struct {
		sync.Mutex
		seen map[evidence.Outcome]int
	}{seen: map[evidence.Outcome]int{}}
	var all sync.WaitGroup
	room := make(chan struct{}, 32)
	for _, c := range cells {
		all.Add(1)
		go func() {
			defer all.Done()
			room <- struct{}{}
			defer func() { <-room }()
			t.Run(fmt.Sprintf("%s %s %d", c.fault.Call, c.fault.Effect.Kind(), c.nth), func(t *testing.T) {
				y := newYard(t, fakedaemon.Options{})
				c.fault.Nth = c.nth
				y.daemon.Fault(c.fault)
				id := y.register(t, y.registration("one"))
				res, err := y.warden.Run(context.Background(), y.request(id), nil)
				require.NoError(t, err)
				stored, err := y.journal.Attempt(context.Background(), id)
				require.NoError(t, err)
				require.LessOrEqual(t, y.daemon.Count(fakedaemon.CallCreate), 1)
				require.LessOrEqual(t, y.daemon.Count(fakedaemon.CallStart), 1)
				y.daemon.ClearFaults()
				y.daemon.Restore()
				if !res.Finished {
					require.NotEmpty(t, stored.Fold.Custodies.Open())
					require.Equal(t, 6, res.Verdict.Exit)
					require.NotEmpty(t, y.snapshots(t), "a container may mount it")
					return
				}
				require.Equal(t, evidence.StateFinished, stored.Fold.State)
				require.Empty(t, y.daemon.Containers())
				require.Empty(t, y.snapshots(t))
				if res.Verdict.Outcome == evidence.OutcomeUnavailable {
					require.Zero(t, y.daemon.Count(fakedaemon.CallStart))
				}
				if res.Verdict.Outcome == evidence.OutcomeSuccess {
					y.trulySucceeded(t, res)
				}
				outcomes.Lock()
				defer outcomes.Unlock()
				outcomes.seen[res.Verdict.Outcome]++
			})
		}()
	}
	all.Wait()
	t.Logf("count: %d faults: %v", len(cells), outcomes.seen)
	require.Positive(t, outcomes.seen[evidence.OutcomeSuccess])
	require.Positive(t, outcomes.seen[evidence.OutcomeIncomplete])
	require.Positive(t, outcomes.seen[evidence.OutcomeUnavailable])
}

// trulySucceeded holds a success against the daemon's own log, which no fault bends.
func (y *yard) trulySucceeded(t *testing.T, res Result) {
	main, _ := res.Fold.Custodies.MainContainer()
	var actions []string
	for _, e := range y.daemon.EventLog() {
		if e.Type == "container" && e.Actor == main.Container.Hex() {
			actions = append(actions, e.Action)
		}
	}
	require.Equal(t, "create attach start die destroy", strings.Join(actions, " "))
	ours := y.daemon.Requests(fakedaemon.CallStart)
	require.Len(t, ours, 1)
	require.Equal(t, http.StatusNoContent, ours[0].Status, "somebody else started it")
	for _, s := range []struct {
		of   *evidence.Stream
		want string
	}{{res.Record.Stdout, "hello\n"}, {res.Record.Stderr, "warning\n"}} {
		kept, err := y.journal.Kept(context.Background(), s.of.Bytes)
		require.NoError(t, err)
		require.Equal(t, s.want, string(kept.Bytes))
	}
}
