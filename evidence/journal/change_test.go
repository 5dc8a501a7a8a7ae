package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

const otherRevision = "ffffffffffffffffffffffffffffffffffffffff"

// req H1
func TestAChangeHasVersionsAndAVersionHasAContext(t *testing.T) {
	led, j := begin(t)
	r := requirement()
	c := change(t, j, "c")
	require.NoError(t, c.Check())
	require.Equal(t, evidence.DefaultPolicy, c.Policy)
	require.EqualValues(t, 1, c.Epoch)
	require.Equal(t, []string{evidence.CapabilityCommand}, c.Capabilities)
	d, ok := c.Requires(evidence.EvidenceCommand)
	require.True(t, ok)
	require.Equal(t, evidence.PlainDigest(r.Recipe.Digest()), d)
	require.Equal(t, r.Recipe.Environment, c.Environment)
	got, err := j.Recipe(t.Context(), r.Recipe.Digest())
	require.NoError(t, err, "the recipe is durable before the context names it")
	require.Equal(t, *r.Recipe, got)

	// Saying the same again appends nothing.
	before := size(t, led)
	change(t, j, "c")
	require.Equal(t, before, size(t, led))
	require.ErrorContains(t, j.OpenChange(t.Context(), "c", evidence.RepositoryID{1}), "another repository")

	v, err := j.AddVersion(t.Context(), "c", otherRevision)
	require.NoError(t, err)
	require.EqualValues(t, 2, v)
	read, err := j.Change(t.Context(), "c")
	require.NoError(t, err)
	require.Nil(t, read.Fold.Context, "a new version starts without a context")
	_, ok = read.Fold.Binding()
	require.False(t, ok)
	requireSound(t, led)
}

// req H1
func TestAContextNamesAPolicyThatExists(t *testing.T) {
	led, j := begin(t)
	change(t, j, "c")
	r := requirement()
	r.Policy = "strict"
	var none *journal.NotFoundError
	_, err := j.SetContext(t.Context(), "c", r)
	require.ErrorAs(t, err, &none)

	for want := range uint64(3) {
		epoch, err := j.AdvanceEpoch(t.Context(), "strict")
		require.NoError(t, err)
		require.Equal(t, want+1, epoch)
	}
	c, err := j.SetContext(t.Context(), "c", r)
	require.NoError(t, err)
	require.EqualValues(t, 3, c.Epoch)
	requireSound(t, led)
}

func TestChangeUseCasesRefuse(t *testing.T) {
	led, j := begin(t)
	require.NoError(t, j.OpenChange(t.Context(), "empty", evidence.RepositoryID{9}))
	change(t, j, "c")
	before := size(t, led)
	require.Error(t, j.OpenChange(t.Context(), "No", evidence.RepositoryID{9}))
	_, err := j.AddVersion(t.Context(), "c", "main")
	require.Error(t, err)
	_, err = j.AddVersion(t.Context(), "nowhere", otherRevision)
	var none *journal.NotFoundError
	require.ErrorAs(t, err, &none)
	_, err = j.SetContext(t.Context(), "empty", requirement())
	var stale *journal.NotCurrentError
	require.ErrorAs(t, err, &stale)
	_, err = j.AdvanceEpoch(t.Context(), "")
	require.Error(t, err)
	for name, bend := range map[string]func(*journal.Requirement){
		"reduction":   func(r *journal.Requirement) { r.Reductions = []evidence.Reduction{"all"} },
		"environment": func(r *journal.Requirement) { r.Environment = nil },
		"recipe":      func(r *journal.Requirement) { r.Recipe.Executable = "tool" },
		"glob":        func(r *journal.Requirement) { r.AllowPaths = []string{""} },
	} {
		r := requirement()
		bend(&r)
		_, err := j.SetContext(t.Context(), "c", r)
		require.Error(t, err, name)
	}
	require.Equal(t, before, size(t, led))
}

// req H1
func TestAContextMayAskForPaths(t *testing.T) {
	led, j := begin(t)
	change(t, j, "c")
	r := requirement()
	r.AllowPaths = []string{"src/**", "docs/*", "src/**"}
	c, err := j.SetContext(t.Context(), "c", r)
	require.NoError(t, err)
	require.Equal(t, []string{"docs/*", "src/**"}, c.AllowPaths)
	d, ok := c.Requires(evidence.EvidencePaths)
	require.True(t, ok)
	require.Equal(t, evidence.PathPolicyDigest(c.AllowPaths), d)

	r = journal.Requirement{AllowPaths: []string{"src/**"}}
	_, err = j.SetContext(t.Context(), "c", r)
	require.NoError(t, err)
	_, err = j.Register(t.Context(), forChange("one", "c"))
	require.ErrorContains(t, err, "does not ask for")
	requireSound(t, led)
}

// req T3
func TestSealOnlyWhereNothingFollowsTheJudgement(t *testing.T) {
	led, j := begin(t)
	p := claimed(t, j, "one")
	_, err := p.Append(t.Context(), afterClaim()...)
	require.NoError(t, err)
	_, last, err := p.Finish(t.Context())
	require.NoError(t, err)
	streams := []ledger.StreamID{journal.GenesisStream, journal.AttemptStream("one"), journal.AttemptStream("two"), journal.PolicyStream("main")}
	before := size(t, led)
	require.NoError(t, j.Seal(t.Context(), last.Index, streams...))
	require.Equal(t, before+uint64(len(streams)), size(t, led))
	require.NoError(t, j.Seal(t.Context(), last.Index, streams...))
	require.Equal(t, before+uint64(len(streams)), size(t, led), "sealed already")
	require.Error(t, j.Seal(t.Context(), last.Index, "notes"))
	for _, s := range streams {
		e, ok, err := led.Head(t.Context(), s)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "StreamSealed", e.Type)
	}
	requireSound(t, led)
}
