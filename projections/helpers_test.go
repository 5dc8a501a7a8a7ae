package projections_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/evidence/journal/journaltest"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/projections"
)

// world is a ledger with a journal, a clock that moves a second with every event, and the file.
type world struct {
	led  ledger.Ledger
	j    *journal.Journal
	path string
}

func newWorld(t testing.TB, led ledger.Ledger) *world {
	var mu sync.Mutex
	now := time.Unix(1_700_000_000, 5)
	w := &world{led: led, path: filepath.Join(t.TempDir(), "projections.db")}
	w.j = journal.New(journal.Config{Ledger: led, Actor: "test", Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}})
	require.NoError(t, w.j.Init(t.Context(), journaltest.Genesis()))
	return w
}

func (w *world) open(t testing.TB) *projections.Projections {
	t.Helper()
	p, err := projections.Open(t.Context(), w.path, w.led, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func registration(id evidence.AttemptID, h *evidencetest.History) journal.Registration {
	return journal.Registration{Attempt: id, Subject: h.Registered.Subject, Recipe: h.Recipe, Environment: h.Environment}
}

// begin registers and claims an attempt.
func (w *world) begin(t testing.TB, id evidence.AttemptID) *journal.Appender {
	t.Helper()
	_, err := w.j.Register(t.Context(), registration(id, evidencetest.Success()))
	require.NoError(t, err)
	p, err := w.j.Claim(t.Context(), id, 0, journal.Claim{
		Home: evidence.HomeIdentity{Home: evidence.HomeID{7}}, Accepted: []evidence.Reduction{evidence.ReducedCgroupV1}})
	require.NoError(t, err)
	return p
}

// end appends the rest of a bent history and finishes.
func end(t testing.TB, p *journal.Appender, bend func(*evidencetest.History)) evidence.Record {
	t.Helper()
	h := evidencetest.Success()
	bend(h)
	_, err := p.Append(t.Context(), h.Events()[2:]...)
	require.NoError(t, err)
	r, _, err := p.Finish(t.Context())
	require.NoError(t, err)
	return r
}

func as(*evidencetest.History) {}

func exits(code int64) func(*evidencetest.History) {
	return func(h *evidencetest.History) { h.Exited.ExitCode = code }
}

// force appends an event as a forger, or a newer version, would.
func force(t testing.TB, led ledger.Ledger, s ledger.StreamID, typ string, schema uint, p any) {
	t.Helper()
	journaltest.Force(t, led, s, ledger.Prepared{Type: typ, Media: evidence.Media,
		Meta: evidence.Marshal(evidence.Meta{Schema: schema, Actor: "other"}), Data: evidence.Marshal(p)})
}

func ids(rows []projections.AttemptRow) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, string(r.Attempt))
	}
	return out
}
