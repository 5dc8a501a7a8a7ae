package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/evidence/journal/journaltest"
	"github.com/baildock/baildock/ledger"
)

// everywhere runs a test on every backend.
func everywhere(t *testing.T, f func(t *testing.T, led ledger.Ledger, j *journal.Journal)) {
	journaltest.Everywhere(t, func(t *testing.T, led ledger.Ledger) {
		j := open(led, "test")
		require.NoError(t, j.Init(t.Context(), genesis()))
		f(t, led, j)
	})
}

// succeed registers an attempt of change c and runs the bent history through it.
func succeed(t testing.TB, j *journal.Journal, id evidence.AttemptID, bend func(*evidencetest.History)) evidence.Record {
	t.Helper()
	a, err := j.Register(t.Context(), forChange(id, "c"))
	require.NoError(t, err)
	h := evidencetest.Success()
	h.Registered = &a.Fold.Registered
	h.Custody.Request = h.Request()
	if bend != nil {
		bend(h)
	}
	p, err := j.Claim(t.Context(), id, 0, runner)
	require.NoError(t, err)
	_, err = p.Append(t.Context(), h.Events()[2:]...)
	require.NoError(t, err)
	r, _, err := p.Finish(t.Context())
	require.NoError(t, err)
	return r
}

func rules(d evidence.Decision) []evidence.Rule {
	var out []evidence.Rule
	for _, r := range d.Broken() {
		out = append(out, r.Rule)
	}
	return out
}

// req H2 req H5
func TestApproveAndIntegrate(t *testing.T) {
	everywhere(t, func(t *testing.T, led ledger.Ledger, j *journal.Journal) {
		change(t, j, "c")
		before := size(t, led)
		var refused *journal.NotAdmittedError
		_, err := j.Approve(t.Context(), "c", nil)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, []evidence.Rule{evidence.RuleAttempt}, rules(refused.Decision))
		require.Contains(t, refused.Error(), "no attempt is listed")
		require.Equal(t, before, size(t, led), "a refusal appends nothing")

		succeed(t, j, "bad", func(h *evidencetest.History) { h.Exited.ExitCode = 3 })
		_, err = j.Approve(t.Context(), "c", nil)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, []evidence.Rule{evidence.RuleAttempt, evidence.RuleSuccess}, rules(refused.Decision))
		require.Contains(t, refused.Error(), "exit_nonzero")

		record := succeed(t, j, "good", nil)
		_, err = j.Integrate(t.Context(), "c")
		require.ErrorAs(t, err, &refused)
		require.Equal(t, []evidence.Rule{evidence.RuleApproval}, rules(refused.Decision))

		want, err := j.Basis(t.Context(), journal.ChangeStream("c"), journal.PolicyStream("main"), journal.AttemptStream("good"))
		require.NoError(t, err)
		got, err := j.Approve(t.Context(), "c", nil)
		require.NoError(t, err)
		require.False(t, got.Already)
		require.Equal(t, evidence.Tally{Listed: 2, Finished: 2, Succeeded: 1}, got.Decision.Tally)
		p, _, err := journal.Decode(got.Event)
		require.NoError(t, err)
		approved := p.(evidence.ContextApproved)
		require.Equal(t, want, approved.Basis)
		require.Equal(t, []evidence.AttemptRelied{{Attempt: "good", Record: record.Digest()}}, approved.Attempts)
		requireSound(t, led)

		again, err := j.Approve(t.Context(), "c", nil)
		require.NoError(t, err)
		require.True(t, again.Already)
		require.Equal(t, got.Event.Index, again.Event.Index)

		done, err := j.Integrate(t.Context(), "c")
		require.NoError(t, err)
		require.Equal(t, "ChangeIntegrated", done.Event.Type)
		requireSound(t, led)

		// An integration ends the context: nothing more rests on it.
		_, err = j.Approve(t.Context(), "c", nil)
		require.ErrorAs(t, err, &refused)
		require.Contains(t, rules(refused.Decision), evidence.RuleContext)
		_, err = j.Register(t.Context(), forChange("late", "c"))
		var stale *journal.NotCurrentError
		require.ErrorAs(t, err, &stale)
		var none *journal.NotFoundError
		_, err = j.Approve(t.Context(), "nothing", nil)
		require.ErrorAs(t, err, &none)
		requireSound(t, led)
	})
}

// req H5: what changes no epoch and no context takes nothing away, before or after.
func TestAnApprovalSurvivesWhatChangesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, led ledger.Ledger, j *journal.Journal) {
		change(t, j, "c")
		succeed(t, j, "one", nil)
		racing := open(&hooked{Ledger: led, Before: once(journal.ChangeStream("c"), func() {
			require.NoError(t, j.Seal(t.Context(), ledger.Index(size(t, led)-1), journal.PolicyStream("main"), journal.AttemptStream("one")))
			_, err := j.AdvanceEpoch(t.Context(), "other")
			require.NoError(t, err)
		})}, "late")
		_, err := racing.Approve(t.Context(), "c", nil)
		require.NoError(t, err)
		requireSound(t, led)
		_, err = j.AdvanceEpoch(t.Context(), "main")
		require.NoError(t, err)
		requireSound(t, led)
		var refused *journal.NotAdmittedError
		_, err = j.Integrate(t.Context(), "c")
		require.ErrorAs(t, err, &refused)
		require.Equal(t, []evidence.Rule{evidence.RuleEpoch}, rules(refused.Decision), "integration decides at its own index")
	})
}
