package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

// moves are what takes a claim's ground away.
var moves = map[string]func(*testing.T, *journal.Journal){
	"epoch": func(t *testing.T, j *journal.Journal) {
		_, err := j.AdvanceEpoch(t.Context(), "main")
		require.NoError(t, err)
	},
	"version": func(t *testing.T, j *journal.Journal) {
		_, err := j.AddVersion(t.Context(), "c", "ffffffffffffffffffffffffffffffffffffffff")
		require.NoError(t, err)
	},
	"context": func(t *testing.T, j *journal.Journal) {
		r := requirement()
		r.RequireQualified = true
		_, err := j.SetContext(t.Context(), "c", r)
		require.NoError(t, err)
	},
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
					racing := open(&hooked{Ledger: led, Before: once(journal.ChangeStream("c"), func() { m.move(t, j) })}, "late")
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

// The move comes after the claim read its basis and before the claim is stored.
//
// req H5
func TestAClaimThatLostARaceIsVoid(t *testing.T) {
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, led ledger.Ledger, j *journal.Journal) {
				change(t, j, "c")
				_, err := j.Register(t.Context(), forChange("one", "c"))
				require.NoError(t, err)
				racing := &hooked{Ledger: led, Before: once(journal.AttemptStream("one"), func() {
					require.NoError(t, j.Seal(t.Context(), ledger.Index(size(t, led)-1), journal.ChangeStream("c"), journal.PolicyStream("main")))
					move(t, j)
				})}
				p, err := open(racing, "late").Claim(t.Context(), "one", 0, runner)
				var void *journal.VoidClaimError
				require.ErrorAs(t, err, &void)
				require.NotNil(t, p, "the runner has to say so and finish")
				requireSound(t, led) // legal as it stands

				_, err = p.Append(t.Context(), evidence.ClaimVoided{Breaking: void.Breaking})
				require.NoError(t, err)
				r, _, err := p.Finish(t.Context())
				require.NoError(t, err)
				require.Equal(t, evidence.OutcomeIncomplete, r.Outcome)
				require.Equal(t, "void_claim", r.Detail)
				a := p.Attempt()
				require.Equal(t, 4, evidence.VerdictOf(&a).Exit)
				requireSound(t, led)
			})
		})
	}
}

// A judgement and a move of its ground, on every backend, in every order: the move comes before the judgement
// read, between its reading and its append, or after its append. Before, it is refused. Between, it stands
// nowhere: the expected version notices what moved in the change's own stream and the decision is made again,
// else what was stored is void. After, it stands.
//
// req G2 req H5
func TestEveryOrderOfAMoveAndAJudgement(t *testing.T) {
	const (
		before, between, after           = "before it read", "between", "after"
		claiming, approving, integrating = "claim", "approval", "integration"
	)
	type expectation int
	const (
		refused expectation = iota
		isVoid
		stands
	)
	orders := 0
	for name, m := range moved {
		for _, what := range []string{claiming, approving, integrating} {
			for _, when := range []string{before, between, after} {
				if name == "integration" && (what == approving || what == integrating && when == after) {
					continue // nothing is integrated before its approval, or twice
				}
				want := map[string]expectation{before: refused, after: stands}[when]
				if when == between && (what == claiming || m.other) {
					want = isVoid
				}
				orders++
				t.Run(name+" "+when+" "+what, func(t *testing.T) {
					everywhere(t, func(t *testing.T, led ledger.Ledger, j *journal.Journal) {
						change(t, j, "c")
						succeed(t, j, "one", nil)
						_, err := j.Register(t.Context(), forChange("two", "c"))
						require.NoError(t, err)
						if what == integrating || name == "integration" {
							_, err = j.Approve(t.Context(), "c", nil)
							require.NoError(t, err)
						}
						stream := journal.ChangeStream("c")
						if what == claiming {
							stream = journal.AttemptStream("two")
						}
						acting := j
						switch when {
						case before:
							m.move(t, j)
						case between:
							acting = open(&hooked{Ledger: led, Before: once(stream, func() { m.move(t, j) })}, "late")
						}
						var run *journal.Appender
						switch what {
						case claiming:
							run, err = acting.Claim(t.Context(), "two", 0, runner)
						case approving:
							_, err = acting.Approve(t.Context(), "c", nil)
						case integrating:
							_, err = acting.Integrate(t.Context(), "c")
						}
						if when == after {
							m.move(t, j)
						}
						var stale *journal.NotCurrentError
						var not *journal.NotAdmittedError
						var voidClaim *journal.VoidClaimError
						var voided *journal.VoidJudgementError
						switch {
						case want == stands:
							require.NoError(t, err)
						case want == refused && what == claiming:
							require.ErrorAs(t, err, &stale)
						case want == refused:
							require.ErrorAs(t, err, &not)
						case what == claiming:
							require.ErrorAs(t, err, &voidClaim)
							_, err = run.Append(t.Context(), evidence.ClaimVoided{Breaking: voidClaim.Breaking})
							require.NoError(t, err)
							_, _, err = run.Finish(t.Context())
							require.NoError(t, err)
						default:
							require.ErrorAs(t, err, &voided)
						}
						requireSound(t, led) // an audit judges alike
						if want == isVoid && what != claiming {
							_, err = j.Integrate(t.Context(), "c")
							require.ErrorAs(t, err, &not, "what is void admits nothing")
						}
					})
				})
			}
		}
	}
	require.Equal(t, 4*3*3-4, orders)
}

// Only what changes an epoch or a context counts, and only before the claim.
//
// req H5
func TestAClaimSurvivesWhatChangesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, led ledger.Ledger, j *journal.Journal) {
		change(t, j, "c")
		for _, id := range []evidence.AttemptID{"one", "two"} {
			_, err := j.Register(t.Context(), forChange(id, "c"))
			require.NoError(t, err)
		}
		racing := &hooked{Ledger: led, Before: once(journal.AttemptStream("one"), func() {
			_, err := j.Register(t.Context(), forChange("three", "c"))
			require.NoError(t, err)
			require.NoError(t, j.Seal(t.Context(), ledger.Index(size(t, led)-1), journal.ChangeStream("c"), journal.PolicyStream("main"), journal.AttemptStream("one")))
		})}
		p, err := open(racing, "runner").Claim(t.Context(), "one", 0, runner)
		require.NoError(t, err)
		_, err = p.Append(t.Context(), afterClaim()[0])
		require.NoError(t, err)
		for _, move := range moves {
			move(t, j) // afterwards: too late to void it
		}
		rest := afterClaim()[1:]
		custody, ok := rest[1].(evidence.CustodyTaken)
		require.True(t, ok)
		fold := p.Attempt()
		req, ok := fold.Request()
		require.True(t, ok)
		custody.Request = req.Digest() // of the bound attempt
		rest[1] = custody
		_, err = p.Append(t.Context(), rest...)
		require.NoError(t, err)
		requireSound(t, led)
	})
}
