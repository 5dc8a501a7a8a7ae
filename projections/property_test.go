package projections_test

import (
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/evidence/journal/journaltest"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/projections"
)

// A log grows by random steps of several attempts; a file that followed it step by step, through
// reopenings, equals one folded from zero.
//
// req S1
func TestRebuildEqualsIncremental(t *testing.T) {
	for name, backend := range journaltest.Backends() {
		t.Run(name, func(t *testing.T) {
			rounds, seen := uint64(8), map[string]int{}
			if name != "mem" {
				rounds = 2
			}
			for seed := range rounds {
				rng := mathrand.New(mathrand.NewPCG(seed, 2))
				w := newWorld(t, backend(t))
				p, err := projections.Open(t.Context(), w.path, w.led, nil)
				require.NoError(t, err)
				type run struct {
					p    *journal.Appender
					rest []evidence.Payload
				}
				open := []*run{}
				for step := range 120 {
					switch k := rng.IntN(16); {
					case k < 2 || len(open) == 0:
						h := evidencetest.Success()
						h.Exited.ExitCode = rng.Int64N(2)
						open = append(open, &run{w.begin(t, evidence.AttemptID(fmt.Sprint("a", step))), h.Events()[2:]})
					case k == 2:
						require.NoError(t, w.j.Seal(t.Context(), 1<<40, journal.AttemptStream(evidence.AttemptID(fmt.Sprint("a", rng.IntN(step+1))))))
					case k == 4:
						_, err := w.j.AdvanceEpoch(t.Context(), []evidence.PolicyID{"main", "other"}[rng.IntN(2)])
						require.NoError(t, err)
					case k == 5 || k == 6:
						judge(t, w, rng, step)
					case k == 7:
						force(t, w.led, "notes", "Note", 1, "anything")
						force(t, w.led, ledger.StreamID("runtime-"+strings.Repeat("ab", 32)), "RuntimeProbed", 1, evidence.RuntimeProbed{Attempt: "p", Controls: []evidence.Control{
							{ID: evidence.CtlSeccomp, Kind: evidence.Probed, Equal: rng.IntN(2) == 0}}})
					case k == 3:
						force(t, w.led, journal.AttemptStream(evidence.AttemptID(fmt.Sprint("b", rng.IntN(5)))), "Newest", 1, evidence.StreamSealed{})
					default:
						i := rng.IntN(len(open))
						r := open[i]
						n := rng.IntN(len(r.rest) + 1)
						if n > 0 {
							_, err := r.p.Append(t.Context(), r.rest[:n]...)
							require.NoError(t, err)
							r.rest = r.rest[n:]
						}
						if len(r.rest) == 0 {
							_, _, err := r.p.Finish(t.Context())
							require.NoError(t, err)
							open = append(open[:i], open[i+1:]...)
						}
					}
					switch rng.IntN(6) {
					case 0:
						require.NoError(t, p.CatchUp(t.Context()))
					case 1:
						require.NoError(t, p.Close())
						p, err = projections.Open(t.Context(), w.path, w.led, nil)
						require.NoError(t, err)
					}
				}
				incremental, err := p.Digests(t.Context())
				require.NoError(t, err)
				rows, err := p.Attempts(t.Context(), projections.Query{})
				require.NoError(t, err)
				require.Greater(t, len(rows), 5)
				as, err := p.Admissions(t.Context(), projections.Query{})
				require.NoError(t, err)
				for _, a := range as {
					seen[fmt.Sprintf("%v%v", a["kind"], a["stands"])]++
				}
				require.NoError(t, p.Rebuild(t.Context()))
				rebuilt, err := p.Digests(t.Context())
				require.NoError(t, err)
				require.Equal(t, incremental, rebuilt, "seed %d", seed)
				for table := range rebuilt {
					n, err := p.SQL(t.Context(), "SELECT count(*) FROM "+table)
					require.NoError(t, err)
					rows, ok := n.Rows[0][0].(int64)
					require.True(t, ok)
					seen[table] += int(rows)
				}
				require.NoError(t, p.Close())

				w.path += ".fresh"
				fresh, err := w.open(t).Digests(t.Context())
				require.NoError(t, err)
				require.Equal(t, incremental, fresh)
			}
			for _, table := range []string{"attempt_rows", "words", "timeline_rows", "timeline_spans", "custody_rows", "change_rows", "policy_rows", "admission_rows", "runtime_rows", "qualification_rows"} {
				require.Positive(t, seen[table], "no history made rows of %s", table)
			}
			if name == "mem" {
				for _, kind := range []string{"approval1", "approval0", "integration1"} {
					require.Positive(t, seen[kind], "%v", seen)
				}
			}
		})
	}
}

// judge moves one of a few changes on by one step: a version, a context, an attempt, an approval
// that may lose a race, an integration, a candidate. What may not follow is left out.
func judge(t *testing.T, w *world, rng *mathrand.Rand, step int) {
	t.Helper()
	id := evidence.ChangeID(fmt.Sprint("c", rng.IntN(3)))
	h := evidencetest.Success()
	require.NoError(t, w.j.OpenChange(t.Context(), id, evidence.RepositoryID{9}))
	_, err := w.j.AddVersion(t.Context(), id, h.Registered.Subject.Revision)
	require.NoError(t, err)
	if rng.IntN(3) > 0 {
		_, err = w.j.SetContext(t.Context(), id, journal.Requirement{Recipe: &h.Recipe, Environment: &h.Environment,
			Reductions: []evidence.Reduction{evidence.ReducedCgroupV1}, RequireQualified: rng.IntN(6) == 0})
		require.NoError(t, err)
	}
	r := registration(evidence.AttemptID(fmt.Sprint("x", step)), h)
	r.Change = id
	var stale *journal.NotCurrentError
	a, err := w.j.Register(t.Context(), r)
	if errors.As(err, &stale) {
		return
	}
	require.NoError(t, err)
	p, err := w.j.Claim(t.Context(), r.Attempt, 0, journal.Claim{Home: evidence.HomeIdentity{Home: evidence.HomeID{7}}, Accepted: []evidence.Reduction{evidence.ReducedCgroupV1}})
	if errors.As(err, &stale) {
		return
	}
	require.NoError(t, err)
	h.Registered = &a.Fold.Registered
	h.Custody.Request = h.Request()
	h.Exited.ExitCode = rng.Int64N(2)
	_, err = p.Append(t.Context(), h.Events()[2:]...)
	require.NoError(t, err)
	_, _, err = p.Finish(t.Context())
	require.NoError(t, err)
	late := w.j
	if rng.IntN(2) == 0 {
		late = journal.New(journal.Config{Ledger: &racing{Ledger: w.led, j: w.j, t: t}, Actor: "late"})
	}
	var refused *journal.NotAdmittedError
	var void *journal.VoidJudgementError
	_, err = late.Approve(t.Context(), id, nil)
	require.True(t, err == nil || errors.As(err, &refused) || errors.As(err, &void), "%v", err)
	if rng.IntN(2) == 0 {
		_, err = w.j.Integrate(t.Context(), id)
		require.True(t, err == nil || errors.As(err, &refused), "%v", err)
	}
	if h.Exited.ExitCode == 0 {
		_, err = w.j.Derived(t.Context(), r.Attempt, evidence.CandidateDerived{Revision: strings.Repeat("d", 40)})
		require.NoError(t, err)
	}
}
