package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
)

// req I3 req I4: a candidate follows a finished success, once; its revision admits nothing by itself.
func TestDeriveCandidate(t *testing.T) {
	led, j := begin(t)
	change(t, j, "c")
	succeed(t, j, "good", nil)
	succeed(t, j, "bad", func(h *evidencetest.History) { h.Exited.ExitCode = 3 })
	made := evidence.CandidateDerived{Revision: otherRevision}
	e, err := j.Derived(t.Context(), "good", made)
	require.NoError(t, err)
	again, err := j.Derived(t.Context(), "good", made)
	require.NoError(t, err)
	require.Equal(t, e.Index, again.Index)
	_, err = j.Derived(t.Context(), "good", evidence.CandidateDerived{Revision: "0123456789012345678901234567890123456789"})
	require.ErrorContains(t, err, "another")
	_, err = j.Derived(t.Context(), "bad", made)
	require.ErrorContains(t, err, "failed")
	requireSound(t, led)
	_, err = j.Approve(t.Context(), "c", nil)
	require.NoError(t, err, "an attempt whose candidate was derived still carries its own context")
	requireSound(t, led)
	v, err := j.AddVersion(t.Context(), "c", otherRevision)
	require.NoError(t, err)
	require.EqualValues(t, 2, v)
	_, err = j.SetContext(t.Context(), "c", requirement())
	require.NoError(t, err)
	var refused *journal.NotAdmittedError
	_, err = j.Approve(t.Context(), "c", nil)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []evidence.Rule{evidence.RuleAttempt}, rules(refused.Decision))
}
