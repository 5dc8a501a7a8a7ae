package warden

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/ledger/sqlite"
)

// stores are the ledgers of this machine that a claim may be stored in.
var stores = map[string]func(testing.TB) ledger.Ledger{
	"mem": func(testing.TB) ledger.Ledger { return ledgertest.NewMem() },
	"sqlite": func(t testing.TB) ledger.Ledger {
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), sqlite.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	},
}

// double is a runner of the yard's home that draws and reads the same as every other double. What it
// says of a claim goes through before.
func (y *yard) double(before func([]ledger.Prepared) error) *Warden {
	claims := &hooked{Ledger: y.ledger, before: func(_ ledger.StreamID, events []ledger.Prepared) error {
		if events[0].Type != (evidence.AttemptClaimed{}).EventType() {
			return nil
		}
		return before(events)
	}}
	same := func() *rand.ChaCha8 { return rand.NewChaCha8([32]byte{1}) }
	c := y.warden.Config
	c.Random = same()
	c.Journal = journal.New(journal.Config{
		Ledger: claims, Actor: "runner", Random: same(), Now: func() time.Time { return time.Unix(1_700_000_000, 0) },
	})
	w := New(c)
	w.patience = 0
	w.boot = func() (uint64, error) { return 1_000_000_000, nil }
	return w
}

func claimsOf(t testing.TB, y *yard, id evidence.AttemptID) []ledger.Event {
	var out []ledger.Event
	for e, err := range y.ledger.ReadStream(t.Context(), journal.AttemptStream(id), 0) {
		require.NoError(t, err)
		if e.Type == (evidence.AttemptClaimed{}).EventType() {
			out = append(out, e)
		}
	}
	return out
}

// req G2: under a frozen clock and one source of randomness two runners of a home say exactly the same
// bytes, which a store takes for one append sent twice. Still one of them runs: the lock decides who
// says anything.
func TestEqualClaimsHaveOneWinner(t *testing.T) {
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			y := newYardOn(t, store(t), fakedaemon.Options{})
			id := y.register(t, y.registration("one"))

			var said [2][]ledger.Prepared
			for i := range said { // each alone, and nothing is stored
				_, err := y.double(func(events []ledger.Prepared) error { said[i] = events; return errLost }).Run(t.Context(), y.request(id), nil)
				require.ErrorIs(t, err, errLost)
			}
			require.Len(t, said[0], 1)
			require.Equal(t, said[0], said[1], "byte for byte")
			require.Empty(t, claimsOf(t, y, id))

			const racers = 8
			offered := make(chan []ledger.Prepared, racers)
			start, errs := make(chan struct{}), make([]error, racers)
			var all sync.WaitGroup
			for i := range racers {
				w := y.double(func(events []ledger.Prepared) error { offered <- events; return nil })
				all.Go(func() {
					<-start
					_, errs[i] = w.Run(t.Context(), y.request(id), nil)
				})
			}
			close(start)
			all.Wait()
			close(offered)
			won := 0
			for _, err := range errs {
				var held *HeldError
				var taken *journal.NotPendingError
				if err == nil {
					won++
				} else if !errors.As(err, &held) && !errors.As(err, &taken) {
					require.NoError(t, err)
				}
			}
			require.Equal(t, 1, won)
			require.Len(t, offered, 1, "a loser says nothing")
			require.Equal(t, said[0], <-offered)
			require.Len(t, claimsOf(t, y, id), 1)
			require.Equal(t, 1, y.daemon.Count(fakedaemon.CallCreate))
			require.Equal(t, 1, y.daemon.Count(fakedaemon.CallStart))
			require.Equal(t, evidence.StateFinished, y.stored(t, id).State)
		})
	}
}

// req G2: the second comes while the first one's claim is under way, and right after it died with the
// claim stored.
func TestEqualClaimInTheMiddle(t *testing.T) {
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			y := newYardOn(t, store(t), fakedaemon.Options{})
			id := y.register(t, y.registration("one"))
			silent := func([]ledger.Prepared) error { t.Error("it said something"); return nil }
			var during error
			var stored []ledger.Prepared
			_, err := y.double(func(events []ledger.Prepared) error {
				_, during = y.double(silent).Run(t.Context(), y.request(id), nil)
				stored = events
				_, err := y.ledger.Append(t.Context(), journal.AttemptStream(id), 0, events...)
				return errors.Join(err, errLost) // stored, and its maker dies
			}).Run(t.Context(), y.request(id), nil)
			require.ErrorIs(t, err, errLost)
			var held *HeldError
			require.ErrorAs(t, during, &held)

			_, err = y.double(silent).Run(t.Context(), y.request(id), nil)
			var taken *journal.NotPendingError
			require.ErrorAs(t, err, &taken, "the claim is somebody's, however alike")
			again, err := y.ledger.Append(t.Context(), journal.AttemptStream(id), 0, stored...)
			require.NoError(t, err, "to the store, the same bytes are the same append")
			require.Equal(t, claimsOf(t, y, id), again.Events)
			require.Zero(t, y.daemon.Count(fakedaemon.CallCreate))
		})
	}
}
