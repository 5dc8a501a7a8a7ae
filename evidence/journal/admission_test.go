package journal_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/ledger/sqlite"
)

// everywhere runs a test on every backend.
func everywhere(t *testing.T, f func(t *testing.T, led ledger.Ledger, j *journal.Journal)) {
	for name, open := range map[string]func(t *testing.T) ledger.Ledger{
		"mem": func(*testing.T) ledger.Ledger { return ledgertest.NewMem() },
		"sqlite": func(t *testing.T) ledger.Ledger {
			s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), sqlite.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			led := open(t)
			j := journal.New(journal.Config{Ledger: led, Actor: "test", Now: frozen})
			require.NoError(t, j.Init(t.Context(), genesis()))
			f(t, led, j)
		})
	}
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

func pathsOnly(globs ...string) journal.Requirement { return journal.Requirement{AllowPaths: globs} }

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

// moved are what takes a judgement's ground away, and what it is on which stream.
var moved = map[string]struct {
	move  func(*testing.T, *journal.Journal)
	other bool // it lies in another stream than the change's, where only the basis notices it
}{
	"epoch":   {moves["epoch"], true},
	"version": {moves["version"], false},
	"context": {moves["context"], false},
	"integration": {func(t *testing.T, j *journal.Journal) {
		_, err := j.Integrate(t.Context(), "c")
		require.NoError(t, err)
	}, false},
}

// The move comes after the judgement read its basis and before it is stored. In the change's own
// stream the expected version notices it, and the decision is made again; elsewhere the stored
// judgement is void.
//
// req H5
func TestAJudgementThatLostARace(t *testing.T) {
	require.Len(t, moved, 4)
	for name, m := range moved {
		for _, integrate := range []bool{false, true} {
			if name == "integration" && !integrate {
				continue // there is nothing to integrate before an approval
			}
			t.Run(name+map[bool]string{true: " against integration", false: " against approval"}[integrate], func(t *testing.T) {
				everywhere(t, func(t *testing.T, led ledger.Ledger, j *journal.Journal) {
					change(t, j, "c")
					succeed(t, j, "one", nil)
					if integrate {
						_, err := j.Approve(t.Context(), "c", nil)
						require.NoError(t, err)
					}
					racing := open(&hooked{Ledger: led, before: once(journal.ChangeStream("c"), func() { m.move(t, j) })}, "late")
					judge := func() (journal.Judgement, error) {
						if integrate {
							return racing.Integrate(t.Context(), "c")
						}
						return racing.Approve(t.Context(), "c", nil)
					}
					got, err := judge()
					if !m.other {
						var refused *journal.NotAdmittedError
						require.ErrorAs(t, err, &refused)
						requireSound(t, led)
						return
					}
					var void *journal.VoidJudgementError
					require.ErrorAs(t, err, &void)
					require.Equal(t, "EpochAdvanced", void.Type)
					require.Less(t, void.Index, got.Event.Index)
					requireSound(t, led) // legal as it stands

					// A void judgement admits nothing.
					var refused *journal.NotAdmittedError
					_, err = j.Integrate(t.Context(), "c")
					require.ErrorAs(t, err, &refused)
					if !integrate {
						require.Contains(t, rules(refused.Decision), evidence.RuleApproval)
						require.Contains(t, rules(refused.Decision), evidence.RuleEpoch)
					}
				})
			})
		}
	}
}

// req H5: what changes no epoch and no context takes nothing away, before or after.
func TestAnApprovalSurvivesWhatChangesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, led ledger.Ledger, j *journal.Journal) {
		change(t, j, "c")
		succeed(t, j, "one", nil)
		racing := open(&hooked{Ledger: led, before: once(journal.ChangeStream("c"), func() {
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

// Forged judgements are named by the visitor, with the field.
//
// req H2 req H5 req R5
func TestMeaningDecidesAgain(t *testing.T) {
	cases := map[string]struct {
		field string
		forge func(t *testing.T, led ledger.Ledger, j *journal.Journal, good evidence.ContextApproved) evidence.Payload
	}{
		"nothing carries it": {"decision", func(t *testing.T, led ledger.Ledger, j *journal.Journal, good evidence.ContextApproved) evidence.Payload {
			good.Attempts = []evidence.AttemptRelied{{Attempt: "bad"}}
			good.Basis = basisNow(t, j, "bad")
			return good
		}},
		"a record of its own": {"decision", func(t *testing.T, led ledger.Ledger, j *journal.Journal, good evidence.ContextApproved) evidence.Payload {
			good.Attempts[0].Record[0]++
			return good
		}},
		"an index of its own": {"decision", func(t *testing.T, led ledger.Ledger, j *journal.Journal, good evidence.ContextApproved) evidence.Payload {
			i := *good.Grounds.Grounds[3].Index + 1
			good.Grounds.Grounds[3].Index = &i
			return good
		}},
		"a rule left out": {"decision", func(t *testing.T, led ledger.Ledger, j *journal.Journal, good evidence.ContextApproved) evidence.Payload {
			good.Grounds.Grounds = good.Grounds.Grounds[1:]
			return good
		}},
		"another leaf": {"basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal, good evidence.ContextApproved) evidence.Payload {
			good.Basis[0].Leaf[0]++
			return good
		}},
		"another leaf of the attempt": {"basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal, good evidence.ContextApproved) evidence.Payload {
			good.Basis[0].Version--
			return good
		}},
		"no policy": {"basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal, good evidence.ContextApproved) evidence.Payload {
			good.Basis = good.Basis[:2]
			return good
		}},
		"an old end of the change": {"basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal, good evidence.ContextApproved) evidence.Payload {
			require.NoError(t, j.Seal(t.Context(), ledger.Index(size(t, led)-1), journal.ChangeStream("c")))
			return good
		}},
		"an epoch that passed": {"decision", func(t *testing.T, led ledger.Ledger, j *journal.Journal, good evidence.ContextApproved) evidence.Payload {
			_, err := j.AdvanceEpoch(t.Context(), "main")
			require.NoError(t, err)
			good.Basis = basisNow(t, j, "good")
			return good
		}},
		"an integration without approval": {"history", func(t *testing.T, led ledger.Ledger, j *journal.Journal, good evidence.ContextApproved) evidence.Payload {
			return evidence.ChangeIntegrated{Version: 1, Context: good.Context, Revision: evidencetest.Success().Registered.Subject.Revision,
				Approval: evidence.Basis{Stream: "change-c"}, Attempts: good.Attempts, Basis: good.Basis, Grounds: good.Grounds}
		}},
	}
	require.GreaterOrEqual(t, len(cases), 10)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			led, j := begin(t)
			change(t, j, "c")
			succeed(t, j, "bad", func(h *evidencetest.History) { h.Exited.ExitCode = 3 })
			succeed(t, j, "good", nil)
			// A second journal on a copy tells what a good approval would be.
			d, err := j.Decide(t.Context(), "c", false)
			require.NoError(t, err)
			ch, err := j.Change(t.Context(), "c")
			require.NoError(t, err)
			good := evidence.ContextApproved{Version: 1, Context: ch.Fold.ContextDigest, Attempts: d.Relied, Basis: basisNow(t, j, "good"), Grounds: d.Grounds()}
			e := force(t, led, journal.ChangeStream("c"), raw(c.forge(t, led, j, good)))
			_, err = visit(t, led)
			var found *journal.BadEventError
			require.ErrorAs(t, err, &found)
			require.Equal(t, e.Index, found.Index, "%v", err)
			if name == "nothing carries it" || name == "an integration without approval" {
				require.Contains(t, []string{"basis", "decision", "history"}, found.Field)
				return
			}
			require.Equal(t, c.field, found.Field, "%v", err)
		})
	}
}

func basisNow(t *testing.T, j *journal.Journal, id evidence.AttemptID) []evidence.Basis {
	b, err := j.Basis(t.Context(), journal.ChangeStream("c"), journal.PolicyStream("main"), journal.AttemptStream(id))
	require.NoError(t, err)
	return b
}

// req R7: grounds by rules of a later version are carried, and nothing is concluded from them.
func TestLaterRulesAreNotJudged(t *testing.T) {
	led, j := begin(t)
	change(t, j, "c")
	succeed(t, j, "good", nil)
	d, err := j.Decide(t.Context(), "c", false)
	require.NoError(t, err)
	ch, err := j.Change(t.Context(), "c")
	require.NoError(t, err)
	g := d.Grounds()
	g.Rules++
	force(t, led, journal.ChangeStream("c"), raw(evidence.ContextApproved{Version: 1, Context: ch.Fold.ContextDigest,
		Attempts: d.Relied, Basis: basisNow(t, j, "good"), Grounds: g}))
	m, err := visit(t, led)
	require.NoError(t, err)
	require.Len(t, m.Unread(), 1)
}

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
