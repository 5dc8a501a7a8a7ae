package projections_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/evidence/journal/journaltest"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/projections"
)

// Each table tells what its events tell; what is void says which event broke it.
func TestTablesTellWhatTheEventsTell(t *testing.T) {
	for name, backend := range journaltest.Backends() {
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
			force(t, w.led, ledger.StreamID("runtime-"+runtimeOf(t, p)), "RuntimeProbed", 1, evidence.RuntimeProbed{Attempt: "one", Image: evidence.ImageID{3},
				Controls: []evidence.Control{{ID: evidence.CtlSeccomp, Kind: evidence.Probed, Equal: true}}})
			force(t, w.led, ledger.StreamID("runtime-"+strings.Repeat("ab", 32)), "RuntimeProbed", 1, evidence.RuntimeProbed{Attempt: "two", Controls: []evidence.Control{}})
			seen := ask(projections.QualificationsView)
			require.Len(t, seen, 2, "the latest first")
			require.Equal(t, "not_held", seen[0]["verdict"])
			require.Equal(t, "held", seen[1]["verdict"])
			require.Equal(t, "seccomp", seen[1]["canary"])
			require.Equal(t, evidence.ImageID{3}.String(), seen[1]["image"])
			require.Equal(t, "sha256:"+runtimeOf(t, p), seen[1]["runtime"])
			require.Len(t, ask(projections.QualificationsView, "attempt", "one", "verdict", "held", "runtime", runtimeOf(t, p)[:8]), 1)
			require.Len(t, ask(projections.RuntimesView, "runtime", strings.Repeat("ab", 32)), 1)
			require.Len(t, ask(projections.CustodyView, "change", "c", "outcome", "success", "actor", "test"), 1)
			require.Len(t, ask(projections.AdmissionsView, "revision", h.Registered.Subject.Revision[:9], "attempt", "one"), 1)

			runtimes := ask(projections.RuntimesView, "attempt", "one")
			require.Len(t, runtimes, 1)
			require.EqualValues(t, 1, runtimes[0]["attempts"])
			require.Equal(t, "no canary observed", runtimes[0]["qualification"])
			canaries := ledger.StreamID("runtime-" + runtimeOf(t, p))
			for _, v := range []evidence.CanaryVerdict{evidence.CanaryFailed, evidence.CanaryPassed} {
				force(t, w.led, canaries, "CanaryObserved", 1, evidence.CanaryObserved{Canary: "root", Attempt: "one", Image: evidence.ImageID{3},
					Table: evidence.ProfileDigest{4}, Corpus: evidence.CorpusDigest{5}, Verdict: v})
			}
			force(t, w.led, canaries, "CanaryObserved", 1, evidence.CanaryObserved{Canary: "tmp", Attempt: "one", Corpus: evidence.CorpusDigest{5}, Verdict: evidence.CanaryFailed})
			seen = ask(projections.QualificationsView, "canary", "root")
			require.Len(t, seen, 2)
			require.Equal(t, "passed", seen[0]["verdict"])
			require.Equal(t, evidence.CorpusDigest{5}.String(), seen[0]["corpus"])
			require.Equal(t, evidence.ProfileDigest{4}.String(), seen[0]["profile"])
			require.Equal(t, "1 of 2 canaries passed", ask(projections.RuntimesView, "attempt", "one")[0]["qualification"])

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
			require.NoError(t, err)
			_, err = p.Ask(t.Context(), projections.RuntimesView, projections.Query{Sort: "runtime; DROP TABLE words"})
			require.ErrorContains(t, err, "no column")
		})
	}
}

// runtimeOf is the runtime of the only attempt, in hex.
func runtimeOf(t *testing.T, p *projections.Projections) string {
	t.Helper()
	rows, err := p.Attempts(t.Context(), projections.Query{})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	return strings.TrimPrefix(rows[0].Runtime, "sha256:")
}

// Nothing that a file holds is left out of what a rebuild is compared by.
//
// req S1
func TestEveryTableHasADigest(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	end(t, w.begin(t, "one"), as)
	p, err := projections.Open(t.Context(), w.path, w.led, nil)
	require.NoError(t, err)
	before, err := p.Digests(t.Context())
	require.NoError(t, err)
	in, err := p.SQL(t.Context(), "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'position' ORDER BY name")
	require.NoError(t, err)
	names := []string{}
	for _, r := range in.Rows {
		name, ok := r[0].(string)
		require.True(t, ok)
		names = append(names, name)
	}
	require.Equal(t, slices.Sorted(maps.Keys(before)), names)
	require.NoError(t, p.Close())

	// Each digest is over that table, whole.
	for table, change := range map[string]string{
		"attempt_rows":   "UPDATE attempt_rows SET actor = 'other'",
		"timeline_rows":  "UPDATE timeline_rows SET bytes = bytes + 1 WHERE idx = 3",
		"timeline_spans": "DELETE FROM timeline_spans",
		"custody_rows":   "UPDATE custody_rows SET unconfirmed = ''",
		"runtime_rows":   "UPDATE runtime_rows SET probed = 0",
		"words":          "UPDATE words SET word = 'x' WHERE id = 1",
	} {
		edit(t, w.path, change)
		p, err := projections.Open(t.Context(), w.path, w.led, nil)
		require.NoError(t, err)
		after, err := p.Digests(t.Context())
		require.NoError(t, err)
		for name := range before {
			require.Equal(t, name == table, before[name] != after[name], "%s after: %s", name, change)
		}
		before = after
		require.NoError(t, p.Close())
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
// req S2: the same views answer `query sql`.
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
