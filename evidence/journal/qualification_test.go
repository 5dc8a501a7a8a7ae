package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

// adHoc runs the bent history of a canary as an attempt of its own, and returns the observation that passes.
func adHoc(t testing.TB, j *journal.Journal, id evidence.AttemptID, c evidence.Canary) evidence.CanaryObserved {
	t.Helper()
	h, _ := evidencetest.Canary(evidencetest.Corpus(), c)
	p := claimed(t, j, id)
	h.Registered.Attempt = id
	a, err := j.Attempt(t.Context(), id)
	require.NoError(t, err)
	h.Registered = &a.Fold.Registered
	h.Custody.Request = h.Request()
	_, err = p.Append(t.Context(), h.Events()[2:]...)
	require.NoError(t, err)
	r, _, err := p.Finish(t.Context())
	require.NoError(t, err)
	e := evidencetest.Observe(h, evidencetest.Corpus(), c.Name)
	e.Record = r.Digest()
	return e
}

// qualify lets the whole corpus pass.
func qualify(t testing.TB, j *journal.Journal) []evidence.CanaryObserved {
	t.Helper()
	var out []evidence.CanaryObserved
	for _, c := range evidencetest.Corpus().Canaries {
		e := adHoc(t, j, evidencetest.CanaryAttempt(c), c)
		require.NoError(t, j.RecordCanary(t.Context(), e))
		out = append(out, e)
	}
	return out
}

// demanding opens a change whose context asks for a qualified runtime.
func demanding(t testing.TB, j *journal.Journal) {
	t.Helper()
	change(t, j, "c")
	r, corpus := requirement(), evidencetest.Corpus()
	r.RequireQualified, r.Corpus = true, &corpus
	_, err := j.SetContext(t.Context(), "c", r)
	require.NoError(t, err)
}

func fails(e evidence.CanaryObserved) evidence.CanaryObserved {
	e.Verdict, e.Code = evidence.CanaryFailed, "allowed"
	return e
}

// req H7
func TestApprovalRestsOnAQualifiedRuntime(t *testing.T) {
	everywhere(t, func(t *testing.T, led ledger.Ledger, j *journal.Journal) {
		demanding(t, j)
		succeed(t, j, "one", nil)
		var refused *journal.NotAdmittedError
		_, err := j.Approve(t.Context(), "c", nil)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, []evidence.Rule{evidence.RuleAttempt, evidence.RuleQualified}, rules(refused.Decision))
		require.Contains(t, refused.Error(), "never observed")

		seen := qualify(t, j)
		runtime := ledger.StreamID(evidence.RuntimePrefix + seen[0].Runtime.Hex())
		want, err := j.Basis(t.Context(), journal.ChangeStream("c"), journal.PolicyStream("main"), journal.AttemptStream("one"), runtime)
		require.NoError(t, err)
		got, err := j.Approve(t.Context(), "c", nil)
		require.NoError(t, err)
		p, _, err := journal.Decode(got.Event)
		require.NoError(t, err)
		approved := p.(evidence.ContextApproved)
		require.Equal(t, want, approved.Basis, "the runtime's stream is one of those it rests on")
		requireSound(t, led)

		// What fails later voids nothing, and lets nothing more be decided.
		require.NoError(t, j.RecordCanary(t.Context(), fails(seen[0])))
		requireSound(t, led)
		_, err = j.Integrate(t.Context(), "c")
		require.ErrorAs(t, err, &refused)
		require.Equal(t, []evidence.Rule{evidence.RuleAttempt, evidence.RuleQualified}, rules(refused.Decision))
		require.NoError(t, j.RecordCanary(t.Context(), seen[0]))
		_, err = j.Integrate(t.Context(), "c")
		require.NoError(t, err)
		requireSound(t, led)
	})
}

// A canary that fails between reading and storing voids nothing: the approval is as of what it read.
//
// req H7 req H5
func TestACanaryThatFailsDuringAnApproval(t *testing.T) {
	led, j := begin(t)
	demanding(t, j)
	succeed(t, j, "one", nil)
	seen := qualify(t, j)
	racing := open(&hooked{Ledger: led, Before: once(journal.ChangeStream("c"), func() {
		require.NoError(t, j.RecordCanary(t.Context(), fails(seen[0])))
	})}, "late")
	got, err := racing.Approve(t.Context(), "c", nil)
	require.NoError(t, err)
	require.True(t, got.Decision.Admitted)
	requireSound(t, led)
}

// Nothing records a canary that no finished attempt can bear out.
//
// req H7
func TestACanaryNeedsItsAttempt(t *testing.T) {
	led, j := begin(t)
	c := evidencetest.Corpus().Canaries[0]
	e := adHoc(t, j, "canary", c)
	before := size(t, led)
	none := e
	none.Attempt = "nobody"
	var absent *journal.NotFoundError
	require.ErrorAs(t, j.RecordCanary(t.Context(), none), &absent)
	other := e
	other.Record[0]++
	require.ErrorContains(t, j.RecordCanary(t.Context(), other), "not how it finished")
	claimed(t, j, "running")
	open := e
	open.Attempt = "running"
	require.ErrorContains(t, j.RecordCanary(t.Context(), open), "not how it finished")
	shapeless := e
	shapeless.Verdict = "good"
	var illegal *evidence.IllegalEventError
	require.ErrorAs(t, j.RecordCanary(t.Context(), shapeless), &illegal)
	require.Equal(t, before+2, size(t, led), "only the running attempt's two events")
	require.NoError(t, j.RecordCanary(t.Context(), e))
	requireSound(t, led)
}

// An audit finds what no program of ours would have stored.
//
// req H7 req R5
func TestMeaningFollowsCanaries(t *testing.T) {
	approval := func(t *testing.T, j *journal.Journal, bend func(*evidence.ContextApproved)) evidence.ContextApproved {
		t.Helper()
		d, err := j.Decide(t.Context(), "c", false)
		require.NoError(t, err)
		ch, err := j.Change(t.Context(), "c")
		require.NoError(t, err)
		runtime := ledger.StreamID(evidencetest.Success().BeforeCreate.Identity.Stream())
		b, err := j.Basis(t.Context(), journal.AttemptStream("one"), journal.ChangeStream("c"), journal.PolicyStream("main"), runtime)
		require.NoError(t, err)
		a := evidence.ContextApproved{Version: 1, Context: ch.Fold.ContextDigest, Attempts: d.Relied, Basis: b, Grounds: d.Grounds()}
		bend(&a)
		return a
	}
	drop := func(a *evidence.ContextApproved) { a.Basis = a.Basis[:3] }
	cases := map[string]struct {
		field string
		forge func(*testing.T, ledger.Ledger, *journal.Journal, []evidence.CanaryObserved) ledger.Event
	}{
		"an attempt that isn't there": {"attempt", func(t *testing.T, led ledger.Ledger, _ *journal.Journal, seen []evidence.CanaryObserved) ledger.Event {
			seen[0].Attempt = "nobody"
			return force(t, led, ledger.StreamID(evidence.RuntimePrefix+seen[0].Runtime.Hex()), raw(seen[0]))
		}},
		"a record of its own": {"record", func(t *testing.T, led ledger.Ledger, _ *journal.Journal, seen []evidence.CanaryObserved) ledger.Event {
			seen[0].Record[0]++
			return force(t, led, ledger.StreamID(evidence.RuntimePrefix+seen[0].Runtime.Hex()), raw(seen[0]))
		}},
		"an attempt of a change": {"record", func(t *testing.T, led ledger.Ledger, j *journal.Journal, seen []evidence.CanaryObserved) ledger.Event {
			a, err := j.Attempt(t.Context(), "one")
			require.NoError(t, err)
			seen[0].Attempt, seen[0].Record = "one", a.Fold.Finished.Record
			return force(t, led, ledger.StreamID(evidence.RuntimePrefix+seen[0].Runtime.Hex()), raw(seen[0]))
		}},
		"another runtime's stream": {"history", func(t *testing.T, led ledger.Ledger, _ *journal.Journal, seen []evidence.CanaryObserved) ledger.Event {
			other := seen[0].Runtime
			other[0]++
			return force(t, led, ledger.StreamID(evidence.RuntimePrefix+other.Hex()), raw(seen[0]))
		}},
		"an approval that doesn't rest on the runtime": {"basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal, _ []evidence.CanaryObserved) ledger.Event {
			return force(t, led, journal.ChangeStream("c"), raw(approval(t, j, drop)))
		}},
		"another leaf of the runtime": {"basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal, _ []evidence.CanaryObserved) ledger.Event {
			return force(t, led, journal.ChangeStream("c"), raw(approval(t, j, func(a *evidence.ContextApproved) { a.Basis[3].Leaf[0]++ })))
		}},
		"the runtime before it qualified": {"basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal, _ []evidence.CanaryObserved) ledger.Event {
			return force(t, led, journal.ChangeStream("c"), raw(approval(t, j, func(a *evidence.ContextApproved) { a.Basis[3].Version-- })))
		}},
		"a failure in between": {"decision", func(t *testing.T, led ledger.Ledger, j *journal.Journal, seen []evidence.CanaryObserved) ledger.Event {
			good := approval(t, j, func(*evidence.ContextApproved) {})
			require.NoError(t, j.RecordCanary(t.Context(), fails(seen[0])))
			good.Basis = approval(t, j, func(*evidence.ContextApproved) {}).Basis
			return force(t, led, journal.ChangeStream("c"), raw(good))
		}},
	}
	require.Len(t, cases, 8)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			led, j := begin(t)
			demanding(t, j)
			succeed(t, j, "one", nil)
			forged := c.forge(t, led, j, qualify(t, j))
			_, err := visit(t, led)
			var bad *journal.BadEventError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, c.field, bad.Field, bad.Error())
			require.Equal(t, forged.Index, bad.Index, bad.Error())
		})
	}
}
