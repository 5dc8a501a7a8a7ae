package projections_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/projections"
)

// Toward S1: the other tables come with their rows.
func TestRowsTellWhatTheEventsTell(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, backend(t))
			p := w.open(t)
			rows, err := p.Attempts(t.Context(), projections.Filter{})
			require.NoError(t, err)
			require.Empty(t, rows)

			appender := w.begin(t, "one")
			rows, err = p.Attempts(t.Context(), projections.Filter{})
			require.NoError(t, err)
			require.Len(t, rows, 1, "an answer holds what was durable before it was asked")
			require.Equal(t, evidence.StateRunning, rows[0].State)
			require.Empty(t, rows[0].Outcome)
			require.Equal(t, "none", rows[0].Cleanup)
			require.Nil(t, rows[0].ExitStatus)

			h := evidencetest.Success()
			_, err = appender.Append(t.Context(), h.Events()[2:6]...)
			require.NoError(t, err)
			rows, err = p.OpenAttempts(t.Context())
			require.NoError(t, err)
			require.Equal(t, "open", rows[0].Cleanup)
			require.EqualValues(t, 1, rows[0].OpenCustody)
			h.Exited.ExitCode = 3
			_, err = appender.Append(t.Context(), h.Events()[6:]...)
			require.NoError(t, err)
			record, finished, err := appender.Finish(t.Context())
			require.NoError(t, err)

			rows, err = p.Attempts(t.Context(), projections.Filter{})
			require.NoError(t, err)
			a, err := w.j.Attempt(t.Context(), "one")
			require.NoError(t, err)
			code, status, version := int64(3), int64(1), a.Version
			finishedIndex := int64(finished.Index)
			registered, claimed, done := time.Unix(0, a.Events[0].Time).UTC(), time.Unix(0, a.Events[1].Time).UTC(), time.Unix(0, finished.Time).UTC()
			stdout, stderr, duration := int64(h.Output.Stdout.Stored), int64(h.Output.Stderr.Stored), int64(h.Exited.Duration)
			require.Equal(t, []projections.AttemptRow{{
				Attempt: "one", State: evidence.StateFinished, Generation: 1,
				Outcome: evidence.OutcomeFailed, Detail: "exit_nonzero", Causes: []string{"exit_nonzero"}, ExitStatus: &status, ExitCode: &code,
				Claim: evidence.ClaimReduced, Reductions: []evidence.Reduction{evidence.ReducedCgroupV1}, Profile: evidence.ProfileCommand,
				Subject: evidence.SubjectCommit, Revision: h.Registered.Subject.Revision, Manifest: h.Materialized.Manifest.String(),
				Recipe: h.Recipe.Digest().String(), Environment: h.Environment.Digest().String(),
				Request: record.Request.String(), Runtime: record.Runtime.String(), Record: record.Digest().String(),
				Cleanup: "terminated", Snapshot: "gone", StdoutBytes: &stdout, StderrBytes: &stderr, Duration: &duration,
				Home:         evidence.HomeID{7}.String(),
				RegisteredAt: registered, ClaimedAt: &claimed, FinishedAt: &done,
				FirstIndex: a.Events[0].Index, LastIndex: finished.Index, FinishedIndex: &finishedIndex, Version: version,
			}}, rows)
		})
	}
}

// Toward S1 and S2.
func TestAttemptsAreFiltered(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	h := evidencetest.Success()
	require.NoError(t, w.j.OpenChange(t.Context(), "c", evidence.RepositoryID{1}))
	_, err := w.j.AddVersion(t.Context(), "c", h.Registered.Subject.Revision)
	require.NoError(t, err)
	_, err = w.j.SetContext(t.Context(), "c", journal.Requirement{Recipe: &h.Recipe, Environment: &h.Environment})
	require.NoError(t, err)

	end(t, w.begin(t, "good"), as)
	end(t, w.begin(t, "bad"), exits(1))
	running := w.begin(t, "running")
	r := registration("bound", h)
	r.Change = "c"
	_, err = w.j.Register(t.Context(), r)
	require.NoError(t, err)
	r = registration("tree", h)
	r.Subject = evidence.Subject{Kind: evidence.SubjectDirectory}
	_, err = w.j.Register(t.Context(), r)
	require.NoError(t, err)
	tree, err := w.j.Claim(t.Context(), "tree", 0, journal.Claim{})
	require.NoError(t, err)
	_, err = tree.Append(t.Context(), *h.Materialized)
	require.NoError(t, err)
	p := w.open(t)

	all, err := p.Attempts(t.Context(), projections.Filter{})
	require.NoError(t, err)
	since := all[1].RegisteredAt
	manifest := h.Materialized.Manifest.String()
	for _, c := range []struct {
		name   string
		filter projections.Filter
		want   []string
	}{
		{"all", projections.Filter{}, []string{"tree", "bound", "running", "bad", "good"}},
		{"limit", projections.Filter{Limit: 2}, []string{"tree", "bound"}},
		{"outcome", projections.Filter{Outcome: evidence.OutcomeFailed}, []string{"bad"}},
		{"no such outcome", projections.Filter{Outcome: evidence.OutcomeTimedOut}, []string{}},
		{"state", projections.Filter{State: evidence.StateRunning}, []string{"tree", "running"}},
		{"change", projections.Filter{Change: "c"}, []string{"bound"}},
		{"since", projections.Filter{Since: since}, []string{"tree", "bound"}},
		{"revision", projections.Filter{Revision: h.Registered.Subject.Revision}, []string{"bound", "running", "bad", "good"}},
		{"revision prefix", projections.Filter{Revision: h.Registered.Subject.Revision[:7], Limit: 1}, []string{"bound"}},
		{"manifest", projections.Filter{Revision: manifest}, []string{"tree"}},
		{"manifest hex prefix", projections.Filter{Revision: manifest[len("sha256:"):20]}, []string{"tree"}},
		{"both", projections.Filter{Outcome: evidence.OutcomeSuccess, Change: "c"}, []string{}},
		{"hostile", projections.Filter{Revision: "%' OR 1=1 --"}, []string{}},
	} {
		rows, err := p.Attempts(t.Context(), c.filter)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, ids(rows), c.name)
	}
	_, err = p.Attempts(t.Context(), projections.Filter{Limit: -1})
	require.Error(t, err)
	open, err := p.OpenAttempts(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"running", "bound", "tree"}, ids(open))

	end(t, running, as)
	open, err = p.OpenAttempts(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"bound", "tree"}, ids(open))
}

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

// req R7
func TestWhatCannotBeReadIsAProblemOfItsAttempt(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	p := w.open(t)
	w.begin(t, "newer")
	force(t, w.led, journal.AttemptStream("newer"), "CandidateRevised", 1, evidence.StreamSealed{})
	w.begin(t, "schema")
	force(t, w.led, journal.AttemptStream("schema"), "SnapshotRemoved", 2, evidence.SnapshotRemoved{})
	w.begin(t, "illegal")
	force(t, w.led, journal.AttemptStream("illegal"), "StartOrdered", 1, evidence.StartOrdered{})
	end(t, w.begin(t, "after"), as)
	force(t, w.led, journal.AttemptStream("after"), "AttemptFenced", 1, evidence.AttemptFenced{Generation: 2})
	force(t, w.led, journal.AttemptStream("foreign"), "AttemptRegistered", 1, *evidencetest.Success().Registered)
	force(t, w.led, "attempt--bad", "StreamSealed", 1, evidence.StreamSealed{})
	force(t, w.led, "change-x", "Newest", 1, evidence.StreamSealed{})
	end(t, w.begin(t, "good"), as)
	require.NoError(t, w.j.Seal(t.Context(), 1000, journal.AttemptStream("sealed"), journal.AttemptStream("good")))

	rows, err := p.Attempts(t.Context(), projections.Filter{})
	require.NoError(t, err)
	require.Equal(t, []string{"good", "foreign", "after", "illegal", "schema", "newer"}, ids(rows))
	require.Empty(t, rows[0].Problem)
	require.Equal(t, evidence.OutcomeSuccess, rows[0].Outcome)
	for _, r := range rows[1:] {
		require.NotEmpty(t, r.Problem, r.Attempt)
		require.Empty(t, r.Outcome, r.Attempt)
		require.Empty(t, r.Record, r.Attempt)
	}
	good, err := p.Attempts(t.Context(), projections.Filter{Outcome: evidence.OutcomeSuccess})
	require.NoError(t, err)
	require.Equal(t, []string{"good"}, ids(good))
}

// A log grows by random steps of several attempts; a file that followed it step by step, through
// reopenings, equals one folded from zero.
//
// Toward S1: the other tables come with their rows.
func TestRebuildEqualsIncremental(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			rounds, seen := uint64(8), map[string]int{}
			if name == "sqlite" {
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
						force(t, w.led, ledger.StreamID("runtime-"+strings.Repeat("ab", 32)), "RuntimeProbed", 1, evidence.RuntimeProbed{Attempt: "p"})
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
				incremental, err := p.Digest(t.Context())
				require.NoError(t, err)
				rows, err := p.Attempts(t.Context(), projections.Filter{})
				require.NoError(t, err)
				require.Greater(t, len(rows), 5)
				as, err := p.Admissions(t.Context(), projections.Query{})
				require.NoError(t, err)
				for _, a := range as {
					seen[fmt.Sprintf("%v%v", a["kind"], a["stands"])]++
				}
				require.NoError(t, p.Rebuild(t.Context()))
				rebuilt, err := p.Digest(t.Context())
				require.NoError(t, err)
				require.Equal(t, incremental, rebuilt, "seed %d", seed)
				require.NoError(t, p.Close())

				w.path += ".fresh"
				fresh, err := w.open(t).Digest(t.Context())
				require.NoError(t, err)
				require.Equal(t, incremental, fresh)
			}
			if name == "mem" {
				for _, kind := range []string{"approval1", "approval0", "integration1"} {
					require.Positive(t, seen[kind], "%v", seen)
				}
			}
		})
	}
}

// Each table tells what its events tell; what is void says which event broke it.
func TestTablesTellWhatTheEventsTell(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, backend(t))
			p := w.open(t)
			h := evidencetest.Success()
			require.NoError(t, w.j.OpenChange(t.Context(), "c", evidence.RepositoryID{9}))
			_, err := w.j.AddVersion(t.Context(), "c", h.Registered.Subject.Revision)
			require.NoError(t, err)
			_, err = w.j.SetContext(t.Context(), "c", journal.Requirement{Recipe: &h.Recipe, Environment: &h.Environment, Reductions: []evidence.Reduction{evidence.ReducedCgroupV1}})
			require.NoError(t, err)
			r := registration("one", h)
			r.Change = "c"
			a, err := w.j.Register(t.Context(), r)
			require.NoError(t, err)
			run, err := w.j.Claim(t.Context(), "one", 0, journal.Claim{Accepted: []evidence.Reduction{evidence.ReducedCgroupV1}})
			require.NoError(t, err)
			h.Registered = &a.Fold.Registered
			h.Custody.Request = h.Request()
			events := h.Events()[2:]
			_, err = run.Append(t.Context(), events[:4]...) // as far as the container is made
			require.NoError(t, err)
			ask := func(v projections.View, where ...string) []projections.Row {
				t.Helper()
				q := projections.Query{Where: map[projections.Filterable]string{}}
				for i := 0; i < len(where); i += 2 {
					q.Where[projections.Filterable(where[i])] = where[i+1]
				}
				table, err := p.Ask(t.Context(), v, q)
				require.NoError(t, err)
				return table.ByName()
			}
			open := ask(projections.CustodyView, "state", "open")
			require.Len(t, open, 1)
			require.Equal(t, "one", open[0]["attempt"])
			require.Equal(t, evidencetest.Container.String(), open[0]["container"])
			require.Empty(t, ask(projections.CustodyView, "state", "closed"))
			_, err = run.Append(t.Context(), events[4:]...)
			require.NoError(t, err)
			_, _, err = run.Finish(t.Context())
			require.NoError(t, err)
			require.Empty(t, ask(projections.CustodyView, "state", "open"))
			require.Len(t, ask(projections.CustodyView, "attempt", "one", "state", "closed"), 1)

			late := journal.New(journal.Config{Ledger: &racing{Ledger: w.led, j: w.j, t: t}, Actor: "late"})
			var void *journal.VoidJudgementError
			_, err = late.Approve(t.Context(), "c", nil)
			require.ErrorAs(t, err, &void)
			rows := ask(projections.AdmissionsView, "change", "c", "actor", "late", "stands", "no")
			require.Len(t, rows, 1)
			require.EqualValues(t, void.Index, rows[0]["void_index"])
			require.EqualValues(t, void.Stored.Index, rows[0]["index"])
			require.Empty(t, ask(projections.AdmissionsView, "stands", "yes"))

			changes := ask(projections.ChangesView, "change", "c")
			require.Len(t, changes, 1)
			require.EqualValues(t, 1, changes[0]["approvals"])
			runtimes := ask(projections.RuntimesView)
			require.Len(t, runtimes, 1)
			require.EqualValues(t, 1, runtimes[0]["attempts"])
			require.Equal(t, "not computed", runtimes[0]["qualification"])

			size, err := w.led.Size(t.Context())
			require.NoError(t, err)
			timeline := ask(projections.TimelineView)
			require.Len(t, timeline, int(size))
			n := 0
			for e, err := range w.led.ReadAll(t.Context(), 0) {
				require.NoError(t, err)
				require.EqualValues(t, e.Index, timeline[n]["index"])
				require.Equal(t, string(e.Stream), timeline[n]["stream"])
				require.Equal(t, e.Type, timeline[n]["type"])
				n++
			}
			require.Len(t, ask(projections.TimelineView, "attempt", "one"), len(events)+3)
			require.Len(t, ask(projections.TimelineView, "change", "c", "type", "ContextSet"), 1)
			_, err = p.Ask(t.Context(), projections.RuntimesView, projections.Query{Where: map[projections.Filterable]string{projections.ByType: "x"}})
			require.ErrorContains(t, err, "can't be asked by")
			_, err = p.Ask(t.Context(), projections.RuntimesView, projections.Query{Since: time.Unix(1, 0)})
			require.Error(t, err)
			_, err = p.Ask(t.Context(), projections.RuntimesView, projections.Query{Sort: "runtime; DROP TABLE words"})
			require.ErrorContains(t, err, "no column")
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

// racing lets the epoch move on before an approval is stored.
type racing struct {
	ledger.Ledger
	j *journal.Journal
	t *testing.T
}

func (r *racing) Append(ctx context.Context, s ledger.StreamID, v ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	if events[0].Type == "ContextApproved" {
		_, err := r.j.AdvanceEpoch(ctx, "main")
		require.NoError(r.t, err)
	}
	return r.Ledger.Append(ctx, s, v, events...)
}

// The views answer in plain words.
//
// Toward S2: the same views answer `query sql`.
func TestViewsCanBeRead(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	end(t, w.begin(t, "one"), as)
	end(t, w.begin(t, "two"), exits(2))
	w.begin(t, "three")
	w.open(t)
	db, err := sqlite3.Open(w.path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for sql, want := range map[string]string{
		"SELECT group_concat(attempt) FROM open_attempts":                     "three",
		"SELECT sum(attempts) FROM outcomes WHERE outcome = 'success'":        "1",
		"SELECT registered_at FROM attempts WHERE attempt = 'one'":            "2023-11-14T22:13:23.000000005Z",
		"SELECT finished_at IS NULL FROM attempts WHERE attempt = 'three'":    "1",
		"SELECT exit_code FROM attempts WHERE detail = 'exit_nonzero'":        "2",
		"SELECT count(*) FROM attempts WHERE causes = '' AND exit_status = 0": "1",
	} {
		s, _, err := db.Prepare(sql)
		require.NoError(t, err, sql)
		require.True(t, s.Step(), sql)
		require.Equal(t, want, s.ColumnText(0), sql)
		require.NoError(t, s.Close())
	}
}
