package projections_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/projections"
)

// req J4
func TestResolve(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	p := w.open(t)
	var unknown *projections.UnknownAttemptError
	_, err := p.Resolve(t.Context(), projections.Last)
	require.ErrorAs(t, err, &unknown)

	probe := evidence.ProbeID(evidence.Nonce{1})
	w.begin(t, probe)
	got, err := p.Resolve(t.Context(), projections.Last)
	require.NoError(t, err)
	require.Equal(t, probe, got, "there is no other")
	for _, id := range []evidence.AttemptID{"nightly", "nightly-1", "nightly-2", "other"} {
		w.begin(t, id)
	}
	w.begin(t, evidence.ProbeID(evidence.Nonce{2}))
	for name, want := range map[string]evidence.AttemptID{
		"@last": "other", "o": "other", "nightly-1": "nightly-1", "nightly": "nightly", "other": "other",
	} {
		got, err := p.Resolve(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, want, got)
	}
	var several *projections.AmbiguousError
	_, err = p.Resolve(t.Context(), "nightly-")
	require.ErrorAs(t, err, &several)
	require.Equal(t, []evidence.AttemptID{"nightly-1", "nightly-2"}, several.Candidates)
	require.False(t, several.More)
	require.ErrorContains(t, err, "nightly-1, nightly-2")
	_, err = p.Resolve(t.Context(), "nightly-3")
	require.ErrorAs(t, err, &unknown)
	_, err = p.Resolve(t.Context(), "../x")
	require.Error(t, err)

	for i := range 12 {
		w.begin(t, evidence.AttemptID(fmt.Sprintf("many-%02d", i)))
	}
	_, err = p.Resolve(t.Context(), "many-")
	require.ErrorAs(t, err, &several)
	require.Len(t, several.Candidates, 10)
	require.True(t, several.More)
}

func TestNames(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	for _, id := range []evidence.AttemptID{"nightly-1", "other", "nightly-2"} {
		w.begin(t, id)
	}
	for _, id := range []evidence.ChangeID{"fix-b", "fix-a", "x"} {
		require.NoError(t, w.j.OpenChange(t.Context(), id, evidence.RepositoryID{9}))
	}
	_, err := w.j.AdvanceEpoch(t.Context(), "strict")
	require.NoError(t, err)
	p := w.open(t)
	for _, c := range []struct {
		of     projections.Named
		prefix string
		most   int
		want   []string
	}{
		{projections.AttemptNames, "", 9, []string{"nightly-2", "other", "nightly-1"}},
		{projections.AttemptNames, "", 1, []string{"nightly-2"}},
		{projections.AttemptNames, "night", 9, []string{"nightly-2", "nightly-1"}},
		{projections.AttemptNames, "' OR 1", 9, []string{}},
		{projections.ChangeNames, "fix", 9, []string{"fix-a", "fix-b"}},
		{projections.PolicyNames, "", 9, []string{"main", "strict"}},
		{projections.PolicyNames, "s", 9, []string{"strict"}},
	} {
		got, err := p.Names(t.Context(), c.of, c.prefix, c.most)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%s %q", c.of, c.prefix)
	}
}
