package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
)

// offers are events a random history may try next; the fold takes those that may follow. Mostly
// they come in the order of a run, so that many histories get far.
func offers(rng *rand.Rand) []evidence.Payload {
	h := evidencetest.Success()
	h.Exited.ExitCode = rng.Int64N(2)
	handle := evidencetest.Handle
	out := append(h.Events()[2:],
		evidence.SourceRefused{Code: "special_file"},
		evidence.RuntimeObserved{Point: evidence.BeforeCreate, Refusals: []string{"cgroup"}},
		evidence.CreateRuledOut{Handle: handle, Proof: "refused", Status: 409},
		evidence.StartFailed{Handle: handle, Code: "start_error"},
		evidence.StopOrdered{Cause: evidence.StopTimeout, After: 5},
		evidence.CleanupUnconfirmed{Handle: handle, State: evidence.CleanupUnverifiable, Code: "daemon_gone"},
		evidence.SnapshotLeft{Code: "busy"},
		evidence.StreamSealed{}, // may always follow
	)
	if rng.IntN(12) != 0 {
		return out
	}
	rng.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
	return out
}

// Random legal histories, written through random faults with others in between, fold the same
// from storage as in the appender, and mean what they should.
//
// req G3 req F1
func TestRandomHistoriesFoldTheSameFromStorage(t *testing.T) {
	synctest.Test(t, randomHistories) // pauses between retries pass at once
}

func randomHistories(t *testing.T) {
	outcomes := map[evidence.Outcome]int{}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		led, j := begin(t)
		faulty := ledgertest.NewFaulty(led, func(int, ledger.StreamID, []ledger.Prepared) ledgertest.Fault {
			return map[int]ledgertest.Fault{1: ledgertest.ReplyLost, 2: ledgertest.CommitLost}[rng.IntN(16)]
		})
		w := open(faulty, "runner")
		_, err := w.Register(t.Context(), registration("one"))
		require.NoError(t, err)
		p, err := w.Claim(t.Context(), "one", 0, runner)
		require.NoError(t, err)
		for step := 0; step < 24; step++ {
			if rng.IntN(10) == 0 {
				require.NoError(t, j.Seal(t.Context(), ledger.Index(size(t, led)-1), journal.AttemptStream("one")))
			}
			if rng.IntN(200) == 0 {
				p = fence(t, w, "one", evidence.FencedByRecover)
			}
			before := size(t, led)
			for _, e := range offers(rng) {
				_, err = p.Append(t.Context(), e)
				var illegal *evidence.IllegalEventError
				if err == nil || !errors.As(err, &illegal) {
					break
				}
				require.Equal(t, before, size(t, led), "an illegal event was stored")
			}
			require.NoError(t, err, "seed %d step %d", seed, step)
		}
		if _, _, err := p.Finish(t.Context()); err == nil {
			a := p.Attempt()
			outcomes[evidence.VerdictOf(&a).Outcome]++
		} else {
			outcomes["open"]++
		}
		read, err := j.Attempt(t.Context(), "one")
		require.NoError(t, err)
		require.Equal(t, p.Attempt(), read.Fold, "seed %d", seed)
		requireSound(t, led)
	}
	require.Greater(t, len(outcomes), 3, fmt.Sprint(outcomes))
}
