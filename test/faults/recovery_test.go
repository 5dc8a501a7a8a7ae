package faults

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/warden"
)

// supervise makes one pass as another process of the home does, with a ledger that works.
func (s *site) supervise(t testing.TB) []warden.Supervised {
	t.Helper()
	return s.superviseIn(t, s.home)
}

// superviseIn is supervise of a home beside.
func (s *site) superviseIn(t testing.TB, home string) []warden.Supervised {
	t.Helper()
	driver := s.open(t)
	w := s.wardenOf(journal.New(journal.Config{Ledger: s.memory, Actor: "supervisor"}), driver)
	w.Home.Dir = home
	out, err := w.Supervise(t.Context(), warden.Pass{Audit: true}, nil)
	require.NoError(t, err)
	return out
}

// recovered makes at most two passes of a supervisor over what a run left, and holds the end against
// the same invariants. The faults are taken back already. It returns how the attempt ended.
func (s *site) recovered(t testing.TB) string {
	t.Helper()
	before := s.stored(t, "one")
	switch before.Fold.State {
	case evidence.StatePending:
		require.Empty(t, s.daemon.Containers()[len(s.strangers):])
		return "pending"
	case evidence.StateFinished:
		return "finished"
	}
	for range 2 {
		s.supervise(t)
	}
	s.audit(t)
	a := s.stored(t, "one")
	s.left(t, a)
	for _, id := range s.strangers {
		_, there := s.daemon.Container(id)
		require.True(t, there, "a stranger's container is gone")
	}
	v := evidence.VerdictOf(&a.Fold)
	require.NotEqual(t, evidence.OutcomeSuccess, v.Outcome, "recovered, and a success")
	if a.Fold.State == evidence.StateFinished {
		require.Empty(t, s.snapshots(t))
		require.NoFileExists(t, filepath.Join(s.home, "locks", "one"))
		require.True(t, a.Fold.Fenced())
		return "recovered " + v.Detail
	}
	// What stays open can't be closed by anyone: a create that nobody answered and that made nothing
	// may come yet (req E5); of two containers with both our labels one isn't ours; and what another
	// daemon made, which was there for the whole run and is gone, this one can't vouch for.
	require.Equal(t, 6, v.Exit)
	for _, k := range a.Fold.Custodies.Open() {
		if k.Daemon.Engine != s.daemon.Engine().ID {
			require.Equal(t, executor.OpenReplaced, k.Unconfirmed)
			continue
		}
		twins := 0
		for _, c := range s.daemon.Containers() {
			if c.Twin && c.Labels[executor.LabelHandle] == k.Handle.String() {
				twins++
			}
		}
		require.Nil(t, k.Container, "a known container is always removed or seen absent: %s", types(a))
		want := []string{executor.OpenUnanswered}
		if twins > 0 {
			want = []string{executor.OpenAmbiguous}
		}
		require.True(t, slices.Contains(want, k.Unconfirmed), "%s open: %s", k.Unconfirmed, types(a))
	}
	return "open"
}
