package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

func pathsOnly(globs ...string) journal.Requirement { return journal.Requirement{AllowPaths: globs} }

// req H4
func TestPathsAreCheckedByApproval(t *testing.T) {
	everywhere(t, func(t *testing.T, led ledger.Ledger, j *journal.Journal) {
		change(t, j, "c")
		revision := evidencetest.Success().Registered.Subject.Revision
		_, err := j.SetContext(t.Context(), "c", pathsOnly("docs/**", "a.txt"))
		require.NoError(t, err)
		var refused *journal.NotAdmittedError
		_, err = j.Approve(t.Context(), "c", nil)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, []evidence.Rule{evidence.RulePaths}, rules(refused.Decision))
		var stale *journal.NotCurrentError
		_, err = j.Approve(t.Context(), "c", &journal.PathDiff{Revision: otherRevision})
		require.ErrorAs(t, err, &stale)

		outside := &journal.PathDiff{Parent: otherRevision, Revision: revision, Touched: evidence.PathList{"a.txt", "src/main"}}
		_, err = j.Approve(t.Context(), "c", outside)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, []evidence.Rule{evidence.RulePathsAllowed}, rules(refused.Decision))
		before := size(t, led)
		_, err = j.Approve(t.Context(), "c", outside)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, before, size(t, led), "the same check is recorded once")

		_, err = j.SetContext(t.Context(), "c", pathsOnly("**"))
		require.NoError(t, err)
		got, err := j.Approve(t.Context(), "c", outside)
		require.NoError(t, err)
		require.Empty(t, got.Decision.Relied)
		read, err := j.Change(t.Context(), "c")
		require.NoError(t, err)
		kept, err := j.Kept(t.Context(), read.Fold.Paths.Paths)
		require.NoError(t, err)
		require.NoError(t, read.Fold.Paths.Redecide(kept.Bytes))
		requireSound(t, led)

		r := requirement()
		r.AllowPaths = []string{"**"}
		_, err = j.SetContext(t.Context(), "c", r)
		require.NoError(t, err)
		succeed(t, j, "one", nil)
		_, err = j.Approve(t.Context(), "c", outside)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, []evidence.Rule{evidence.RuleKinds}, rules(refused.Decision), "req H3")
	})
}
