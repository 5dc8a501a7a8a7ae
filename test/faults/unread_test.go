package faults

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
)

// newer appends an event that this version can't read to a wreck's stream.
func (s *site) newer(t testing.TB) {
	a := s.stored(t, "one")
	last := a.Events[len(a.Events)-1]
	_, err := s.memory.Append(t.Context(), last.Stream, last.Version, ledger.Prepared{
		Type: "SomethingNewer", Time: last.Time, Media: evidence.Media, Meta: last.Meta, Data: evidence.Marshal(map[int]int{1: 2}),
	})
	require.NoError(t, err)
}

// req E10, req G8: an attempt with events of a newer version whose container can't be removed is left alone
// between two tries as any other, for twice as long each time; it doesn't fill the ledger.
func TestSuperviseWaitsForWhatItCantRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var exited wreck
		for _, w := range wrecks {
			if w.name == "exited" {
				exited = w
			}
		}
		s := wrecked(t, exited)
		s.newer(t)
		s.daemon.Fault(always(fakedaemon.CallRemove, fakedaemon.Refuse{}))
		stream := s.length(t)
		tries, waits := 0, 0
		for begun := time.Now(); time.Since(begun) < 4*time.Hour; time.Sleep(15 * time.Second) {
			before := stream()
			met, err := s.wardenOf(s.journal, s.driver).Supervise(t.Context(), warden.Pass{Patient: true}, nil)
			require.NoError(t, err)
			require.Len(t, met, 1)
			switch met[0].Action {
			case warden.ActionUnconfirmed:
				tries++
				require.Greater(t, stream(), before)
			case warden.ActionWaiting:
				waits++
				require.Equal(t, before, stream(), "a waiting attempt's stream doesn't grow")
			default:
				t.Fatalf("%v", met)
			}
		}
		require.Greater(t, waits, 20*tries)
		require.Greater(t, tries, 5, "it is tried again")
		require.Less(t, tries, 15, "twice as long each time, up to an hour")
		s.daemon.ClearFaults()
		met, err := s.wardenOf(s.journal, s.driver).Supervise(t.Context(), warden.Pass{}, nil)
		require.NoError(t, err)
		require.Equal(t, warden.ActionRemoved, met[0].Action, "whoever isn't patient tries at once")
		require.Len(t, s.daemon.Containers(), len(s.strangers))
		settle()
	})
}

// length tells how long attempt one's stream is, readable or not.
func (s *site) length(t testing.TB) func() ledger.Version {
	return func() ledger.Version {
		last, _, err := s.memory.Head(t.Context(), journal.AttemptStream("one"))
		require.NoError(t, err)
		return last.Version
	}
}
