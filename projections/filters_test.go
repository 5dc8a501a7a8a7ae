package projections_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/projections"
)

// req S2
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

	all, err := p.Attempts(t.Context(), projections.Query{})
	require.NoError(t, err)
	since := all[1].RegisteredAt
	manifest := h.Materialized.Manifest.String()
	recipe, runtime := h.Recipe.Digest().String(), all[4].Runtime
	by := func(pairs ...string) projections.Query {
		q := projections.Query{Where: map[projections.Filterable]string{}}
		for i := 0; i < len(pairs); i += 2 {
			q.Where[projections.Filterable(pairs[i])] = pairs[i+1]
		}
		return q
	}
	for _, c := range []struct {
		name string
		q    projections.Query
		want []string
	}{
		{"all", projections.Query{}, []string{"tree", "bound", "running", "bad", "good"}},
		{"limit", projections.Query{Limit: 2}, []string{"tree", "bound"}},
		{"outcome", by("outcome", "failed"), []string{"bad"}},
		{"no such outcome", by("outcome", "timed_out"), []string{}},
		{"state", by("state", "running"), []string{"tree", "running"}},
		{"change", by("change", "c"), []string{"bound"}},
		{"claim", by("claim", "reduced"), []string{"bad", "good"}},
		{"no claim yet", by("claim", "none"), []string{"tree", "bound", "running"}},
		{"actor", by("actor", "test"), []string{"tree", "bound", "running", "bad", "good"}},
		{"another actor", by("actor", "nobody"), []string{}},
		{"recipe", by("recipe", recipe), []string{"tree", "bound", "running", "bad", "good"}},
		{"recipe prefix", by("recipe", recipe[:19], "outcome", "success"), []string{"good"}},
		{"recipe prefix without its algorithm", by("recipe", recipe[7:19], "outcome", "success"), []string{"good"}},
		{"another recipe", by("recipe", "ffffffffffff"), []string{}},
		{"runtime", by("runtime", runtime), []string{"bad", "good"}},
		{"since", projections.Query{Since: since}, []string{"tree", "bound"}},
		{"until", projections.Query{Until: since}, []string{"running", "bad", "good"}},
		{"since and until", projections.Query{Since: since, Until: since.Add(1)}, []string{"bound"}},
		{"revision", by("revision", h.Registered.Subject.Revision), []string{"bound", "running", "bad", "good"}},
		{"revision prefix", projections.Query{Where: by("revision", h.Registered.Subject.Revision[:7]).Where, Limit: 1}, []string{"bound"}},
		{"manifest", by("revision", manifest), []string{"tree"}},
		{"manifest hex prefix", by("revision", manifest[len("sha256:"):20]), []string{"tree"}},
		{"both", by("outcome", "success", "change", "c"), []string{}},
		{"sort", projections.Query{Sort: "attempt"}, []string{"bad", "bound", "good", "running", "tree"}},
		{"sort down", projections.Query{Sort: "attempt:desc", Limit: 2}, []string{"tree", "running"}},
		{"sort up", projections.Query{Sort: "registered_at:asc", Limit: 1}, []string{"good"}},
		{"sort by how long it took", projections.Query{Sort: "duration_ns:desc", Limit: 2}, []string{"bad", "good"}},
	} {
		rows, err := p.Attempts(t.Context(), c.q)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, ids(rows), c.name)
	}
	open, err := p.OpenAttempts(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"running", "bound", "tree"}, ids(open))

	end(t, running, as)
	open, err = p.OpenAttempts(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"bound", "tree"}, ids(open))
}

// Every column of every view can be sorted by, both ways; and what is no value of a filter is refused with
// the view and the filter named, before anything is read.
//
// req S2
func TestQuestionsAreChecked(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	end(t, w.begin(t, "one"), as)
	p := w.open(t)
	views := []projections.View{projections.AttemptsView, projections.CustodyView, projections.ChangesView, projections.AdmissionsView,
		projections.RuntimesView, projections.QualificationsView, projections.TimelineView}
	bad := map[projections.Filterable]string{
		projections.ByAttempt: "No ID", projections.ByChange: "../x", projections.ByRevision: "%' OR 1=1 --", projections.ByRecipe: "sha256:XY",
		projections.ByRuntime: "", projections.ByOutcome: "fine", projections.ByClaim: "most", projections.ByStream: "", projections.ByPolicy: "P",
		projections.ByType: "a\nb", projections.ByActor: "", projections.ByState: "gone", projections.ByKind: "volume", projections.ByStands: "maybe",
		projections.ByCanary: "", projections.ByVerdict: "\x00",
	}
	asked := map[projections.Filterable]bool{}
	for _, v := range views {
		for _, column := range v.Columns() {
			for _, direction := range []string{"", ":asc", ":desc"} {
				table, err := p.Ask(t.Context(), v, projections.Query{Sort: column + direction, Limit: 3})
				require.NoError(t, err, "%s by %s", v.Name, column)
				if v.Name != "attempts" { // its rows are printed under the names of the view
					require.Equal(t, v.Columns(), table.Columns, v.Name)
				}
			}
		}
		refused := func(q projections.Query, why string) {
			t.Helper()
			var question *projections.QuestionError
			require.ErrorAs(t, v.Check(q), &question, v.Name)
			require.Equal(t, v.Name, question.View)
			require.ErrorContains(t, question, why)
			_, err := p.Ask(t.Context(), v, q)
			require.ErrorAs(t, err, &question)
		}
		for _, f := range v.Filters() {
			value, ok := bad[f]
			require.True(t, ok, "no bad value of %s", f)
			refused(projections.Query{Where: map[projections.Filterable]string{f: value}}, string(f))
			asked[f] = true
		}
		for f, value := range bad {
			if !slices.Contains(v.Filters(), f) {
				refused(projections.Query{Where: map[projections.Filterable]string{f: value}}, "can't be asked by")
			}
		}
		refused(projections.Query{Limit: -1}, "limit")
		refused(projections.Query{Sort: "nothing"}, "no column")
		refused(projections.Query{Sort: v.Columns()[0] + ":down"}, "desc")
		refused(projections.Query{Sort: v.Columns()[0] + "; DROP TABLE words"}, "no column")
		if !v.Timed() {
			refused(projections.Query{Since: time.Unix(1, 0)}, "time")
		}
	}
	require.Len(t, asked, len(bad), "every filter belongs to a view")
}

// A limit keeps the latest events, in the ledger's order; with a sort it keeps the first by that. Times are
// their writers' claims, and needn't follow the order.
//
// req S1 req S2
func TestTimelineIsPickedBeforeItIsSorted(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	const events = 10_000 // more than two spans
	batch := make([]ledger.Prepared, 0, 250)
	v := ledger.NoStream
	p := w.open(t)
	for i := range events {
		at := int64(i)
		if i == 4_000 {
			at = 9_000_000 // one clock that runs ahead
		}
		batch = append(batch, ledger.Prepared{Type: "Note", Media: "text/plain", Time: at, Data: make([]byte, i%7)})
		if len(batch) == cap(batch) {
			done, err := w.led.Append(t.Context(), "notes", v, batch...)
			require.NoError(t, err)
			v, batch = done.Last().Version, batch[:0]
			require.NoError(t, p.CatchUp(t.Context()))
		}
	}
	incremental, err := p.Digests(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.Rebuild(t.Context()))
	rebuilt, err := p.Digests(t.Context())
	require.NoError(t, err)
	require.Equal(t, incremental, rebuilt)
	first, err := p.Ask(t.Context(), projections.TimelineView, projections.Query{Where: map[projections.Filterable]string{projections.ByStream: "notes"}, Sort: "index", Limit: 1})
	require.NoError(t, err)
	base, ok := first.ByName()[0]["index"].(int64)
	require.True(t, ok)
	indexes := func(q projections.Query) []int64 {
		t.Helper()
		q.Where = map[projections.Filterable]string{projections.ByStream: "notes"}
		table, err := p.Ask(t.Context(), projections.TimelineView, q)
		require.NoError(t, err)
		out := []int64{}
		for _, r := range table.ByName() {
			at, ok := r["index"].(int64)
			require.True(t, ok)
			out = append(out, at-base)
		}
		return out
	}
	require.Equal(t, []int64{9_997, 9_998, 9_999}, indexes(projections.Query{Limit: 3}))
	require.Equal(t, []int64{0, 1}, indexes(projections.Query{Limit: 2, Sort: "index"}))
	require.Equal(t, []int64{4_000, 9_999}, indexes(projections.Query{Limit: 2, Sort: "time:desc"}))
	require.Equal(t, []int64{6, 13}, indexes(projections.Query{Limit: 2, Sort: "bytes:desc"}), "equal ones in the ledger's order")
	at := func(ns int64) time.Time { return time.Unix(0, ns) }
	require.Equal(t, []int64{4_000, 9_998, 9_999}, indexes(projections.Query{Since: at(9_998)}))
	require.Equal(t, []int64{3_999, 4_001}, indexes(projections.Query{Since: at(3_999), Until: at(4_002)}))
	require.Equal(t, []int64{0, 1, 2}, indexes(projections.Query{Until: at(3)}))
	require.Empty(t, indexes(projections.Query{Since: at(9_000_001), Until: at(9_000_002)}))
}
