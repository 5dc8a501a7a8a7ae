package projections_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/ledger/sqlite"
	"github.com/baildock/baildock/projections"
)

var genesis = sync.OnceValue(func() evidence.LedgerOpened {
	bundle, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	checkpoint, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	g := evidence.LedgerOpened{Ledger: evidence.LedgerID{1}, Origin: "baildock/test"}
	if g.Bundle, err = x509.MarshalPKIXPublicKey(&bundle.PublicKey); err != nil {
		panic(err)
	}
	if g.Checkpoint, err = x509.MarshalPKIXPublicKey(checkpoint); err != nil {
		panic(err)
	}
	return g
})

// backends are the ledgers every test may follow.
var backends = map[string]func(t testing.TB) ledger.Ledger{
	"mem": func(testing.TB) ledger.Ledger { return ledgertest.NewMem() },
	"sqlite": func(t testing.TB) ledger.Ledger {
		s, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "ledger.db"), sqlite.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	},
}

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
	require.NoError(t, w.j.Init(t.Context(), genesis()))
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
	v := ledger.NoStream
	last, ok, err := led.Head(t.Context(), s)
	require.NoError(t, err)
	if ok {
		v = last.Version
	}
	_, err = led.Append(t.Context(), s, v, ledger.Prepared{Type: typ, Media: evidence.Media,
		Meta: evidence.Marshal(evidence.Meta{Schema: schema, Actor: "other"}), Data: evidence.Marshal(p)})
	require.NoError(t, err)
}

func ids(rows []projections.AttemptRow) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, string(r.Attempt))
	}
	return out
}

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
	force(t, w.led, journal.AttemptStream("newer"), "CandidateDerived", 1, evidence.StreamSealed{})
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
			rounds := uint64(5)
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
					switch k := rng.IntN(12); {
					case k < 2 || len(open) == 0:
						h := evidencetest.Success()
						h.Exited.ExitCode = rng.Int64N(2)
						open = append(open, &run{w.begin(t, evidence.AttemptID(fmt.Sprint("a", step))), h.Events()[2:]})
					case k == 2:
						require.NoError(t, w.j.Seal(t.Context(), 1<<40, journal.AttemptStream(evidence.AttemptID(fmt.Sprint("a", rng.IntN(step+1))))))
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
		})
	}
}

// edit changes the closed file behind the program's back.
func edit(t *testing.T, path, sql string) {
	t.Helper()
	db, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, db.Exec(sql))
	require.NoError(t, db.Close())
}

// req S3
func TestABadFileRebuildsByItself(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, w *world)
	}{
		{"missing", func(t *testing.T, w *world) { require.NoError(t, os.Remove(w.path)) }},
		{"empty", func(t *testing.T, w *world) { require.NoError(t, os.Truncate(w.path, 0)) }},
		{"no database", func(t *testing.T, w *world) {
			require.NoError(t, os.WriteFile(w.path, bytes.Repeat([]byte("junk"), 4096), 0o600))
		}},
		{"cut short", func(t *testing.T, w *world) { require.NoError(t, os.Truncate(w.path, 8192)) }},
		{"other form", func(t *testing.T, w *world) { edit(t, w.path, "UPDATE position SET form = 'older'") }},
		{"no position", func(t *testing.T, w *world) { edit(t, w.path, "DELETE FROM position") }},
		{"no tables", func(t *testing.T, w *world) { edit(t, w.path, "DROP TABLE position") }},
		{"other program's", func(t *testing.T, w *world) { edit(t, w.path, "PRAGMA application_id=7") }},
		{"ahead of the ledger", func(t *testing.T, w *world) { edit(t, w.path, "UPDATE position SET next = next + 5") }},
		{"of another ledger", func(t *testing.T, w *world) { edit(t, w.path, "UPDATE position SET leaf = zeroblob(32)") }},
		{"leftovers of a crash", func(t *testing.T, w *world) {
			require.NoError(t, os.Remove(w.path))
			for _, s := range []string{".rebuild", ".rebuild-journal", "-journal", "-wal"} {
				require.NoError(t, os.WriteFile(w.path+s, bytes.Repeat([]byte("old"), 1000), 0o600))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, ledgertest.NewMem())
			for i := range 5 {
				end(t, w.begin(t, evidence.AttemptID(fmt.Sprint("a", i))), exits(int64(i%2)))
			}
			p, err := projections.Open(t.Context(), w.path, w.led, nil)
			require.NoError(t, err)
			want, err := p.Digest(t.Context())
			require.NoError(t, err)
			require.NoError(t, p.Close())
			held, err := os.Open(w.path) // as long as it is open, no other file gets its inode number
			require.NoError(t, err)
			defer func() { require.NoError(t, held.Close()) }()
			old, err := held.Stat()
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), old.Mode().Perm())

			c.spoil(t, w)
			got, err := w.open(t).Digest(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, got)
			now, err := os.Stat(w.path)
			require.NoError(t, err)
			require.False(t, os.SameFile(old, now), "rebuilt beside and swapped")
			require.Equal(t, os.FileMode(0o600), now.Mode().Perm())
		})
	}
}

// Whatever byte changes, the answers stay right: the page's checksum tells, or nothing reads it.
//
// req S3
func TestAnyFlippedByteIsNoticedOrHarmless(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	for i := range 40 {
		end(t, w.begin(t, evidence.AttemptID(fmt.Sprint("a", i))), as)
	}
	p, err := projections.Open(t.Context(), w.path, w.led, nil)
	require.NoError(t, err)
	want, err := p.Digest(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.Close())
	good, err := os.ReadFile(w.path)
	require.NoError(t, err)
	rng := mathrand.New(mathrand.NewPCG(1, 1))
	rebuilt := 0
	for range 40 {
		at := rng.IntN(len(good))
		bad := bytes.Clone(good)
		bad[at] ^= 1 << rng.IntN(8)
		require.NoError(t, os.WriteFile(w.path, bad, 0o600))
		p, err := projections.Open(t.Context(), w.path, w.led, nil)
		require.NoError(t, err, "byte %d", at)
		got, err := p.Digest(t.Context())
		require.NoError(t, err, "byte %d", at)
		require.Equal(t, want, got, "byte %d", at)
		require.NoError(t, p.Close())
		now, err := os.ReadFile(w.path)
		require.NoError(t, err)
		if !bytes.Equal(now, bad) {
			rebuilt++
		}
	}
	require.Greater(t, rebuilt, 10)
}

// Several processes share the file, one of them rebuilds it again and again.
//
// Toward S1. req S3
func TestManyHoldersAndARebuilder(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, backend(t))
			const holders, attempts = 4, 25
			var all sync.WaitGroup
			stop := make(chan struct{})
			for range holders {
				p := w.open(t)
				all.Go(func() {
					seen := 0
					for {
						rows, err := p.Attempts(context.Background(), projections.Filter{})
						if err != nil || len(rows) < seen {
							t.Errorf("%d rows after %d: %v", len(rows), seen, err)
							return
						}
						seen = len(rows)
						select {
						case <-stop:
							return
						case <-time.After(time.Millisecond):
						}
					}
				})
			}
			rebuilder := w.open(t)
			for i := range attempts {
				end(t, w.begin(t, evidence.AttemptID(fmt.Sprint("a", i))), as)
				if i%5 == 0 {
					require.NoError(t, rebuilder.Rebuild(t.Context()))
				}
			}
			close(stop)
			all.Wait()
			shared, err := w.open(t).Digest(t.Context())
			require.NoError(t, err)
			require.NoError(t, rebuilder.Rebuild(t.Context()))
			alone, err := rebuilder.Digest(t.Context())
			require.NoError(t, err)
			require.Equal(t, alone, shared)
		})
	}
}

// req S3
func TestProgressAndCancel(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	for i := range 500 {
		events := make([]ledger.Prepared, 20)
		for k := range events {
			events[k] = ledger.Prepared{Type: "Note", Media: "text/plain"}
		}
		_, err := w.led.Append(t.Context(), ledger.StreamID(fmt.Sprint("notes", i)), ledger.NoStream, events...)
		require.NoError(t, err)
	}
	size, err := w.led.Size(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = projections.Open(ctx, w.path, w.led, func(done, total uint64) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	_, err = os.Stat(w.path)
	require.ErrorIs(t, err, os.ErrNotExist, "a rebuild that was cut short leaves nothing in place")
	_, err = os.Stat(w.path + ".rebuild")
	require.ErrorIs(t, err, os.ErrNotExist)

	var told []uint64
	p, err := projections.Open(t.Context(), w.path, w.led, func(done, total uint64) {
		require.Equal(t, size, total)
		told = append(told, done)
	})
	require.NoError(t, err)
	require.NoError(t, p.Close())
	require.Greater(t, len(told), 1)
	require.Equal(t, size, told[len(told)-1])
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
