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

	for _, id := range []evidence.AttemptID{"nightly", "nightly-1", "nightly-2", "other"} {
		w.begin(t, id)
	}
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
