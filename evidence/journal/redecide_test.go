package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

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
	g.Rules = evidence.RuleSet + 1
	force(t, led, journal.ChangeStream("c"), raw(evidence.ContextApproved{Version: 1, Context: ch.Fold.ContextDigest,
		Attempts: d.Relied, Basis: basisNow(t, j, "good"), Grounds: g}))
	m, err := visit(t, led)
	require.NoError(t, err)
	require.Len(t, m.Unread(), 1)
}
