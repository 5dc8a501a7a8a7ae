package projections_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
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

// grow makes a ledger in a file that holds about so many events of finished attempts.
func grow(b *testing.B, events int) ledger.Ledger {
	b.Helper()
	led := journaltest.OpenSQLite(b)
	require.NoError(b, journal.New(journal.Config{Ledger: led, Actor: "bench"}).Init(b.Context(), journaltest.Genesis()))
	journaltest.Fill(b, led, events)
	return led
}

// peakHeap samples the heap in use until stopped.
func peakHeap() (stop func() uint64) {
	done, peak := make(chan struct{}), uint64(0)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return func() uint64 { close(done); all.Wait(); return peak }
}

// BenchmarkRebuild folds a whole log into a new file (req U3). The baseline of the same run reads
// the same log and decodes every event, and nothing else.
func BenchmarkRebuild(b *testing.B) {
	for _, events := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			led := grow(b, events)
			size, err := led.Size(b.Context())
			require.NoError(b, err)
			path := filepath.Join(b.TempDir(), "projections.db")

			var baseline, rebuild time.Duration
			var peak uint64
			for b.Loop() {
				start := time.Now()
				for e, err := range led.ReadAll(b.Context(), 0) {
					require.NoError(b, err)
					if _, _, err := journal.Decode(e); err != nil {
						b.Fatal(err)
					}
				}
				baseline += time.Since(start)
				runtime.GC()
				stop := peakHeap()
				start = time.Now()
				p, err := projections.Open(b.Context(), path, led, nil)
				require.NoError(b, err)
				rebuild += time.Since(start)
				peak = max(peak, stop())
				require.NoError(b, p.Close())
				path += "x"
			}
			n := float64(size) * float64(b.N)
			b.ReportMetric(n/rebuild.Seconds(), "events/s")
			b.ReportMetric(rebuild.Seconds()/baseline.Seconds(), "÷read+decode")
			b.ReportMetric(float64(peak)/(1<<20), "peak-heap-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkCatchUp asks one question after one more attempt on a long log (toward U6).
func BenchmarkCatchUp(b *testing.B) {
	led := grow(b, 100_000)
	path := filepath.Join(b.TempDir(), "projections.db")
	p, err := projections.Open(b.Context(), path, led, nil)
	require.NoError(b, err)
	require.NoError(b, p.Close())
	j := journal.New(journal.Config{Ledger: led, Actor: "bench"})
	n := 0
	for b.Loop() {
		n++
		_, err := j.Register(b.Context(), registration(evidence.AttemptID(fmt.Sprint("new-", n)), evidencetest.Success()))
		require.NoError(b, err)
		p, err := projections.Open(b.Context(), path, led, nil)
		require.NoError(b, err)
		rows, err := p.Attempts(b.Context(), projections.Query{Limit: 20})
		require.NoError(b, err)
		require.Len(b, rows, 20)
		require.NoError(b, p.Close())
	}
}

// BenchmarkQueries asks a long log that is caught up; each answer is to take under 100 ms.
func BenchmarkQueries(b *testing.B) {
	led := grow(b, 1_000_000)
	attempts := 1_000_000 / len(evidencetest.Success().Finished())
	p, err := projections.Open(b.Context(), filepath.Join(b.TempDir(), "projections.db"), led, nil)
	require.NoError(b, err)
	defer func() { require.NoError(b, p.Close()) }()
	where := func(f projections.Filterable, value string) map[projections.Filterable]string {
		return map[projections.Filterable]string{f: value}
	}
	newest := int64(1_700_000_000_000_000_000) + int64(attempts/100)*86_400_000_000_000
	// The baseline of the same run asks for nothing: one look whether the file has caught up.
	least := func() time.Duration {
		var all []time.Duration
		for range 21 {
			start := time.Now()
			require.NoError(b, p.CatchUp(b.Context()))
			all = append(all, time.Since(start))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	for name, ask := range map[string]func() (int, error){
		"timeline of the last day": func() (int, error) {
			t, err := p.Ask(b.Context(), projections.TimelineView, projections.Query{Since: time.Unix(0, newest), Limit: 50})
			return len(t.Rows), err
		},
		"timeline by actor": func() (int, error) {
			t, err := p.Ask(b.Context(), projections.TimelineView, projections.Query{Where: where(projections.ByActor, "bench")})
			return len(t.Rows), err
		},
		"timeline sorted by size": func() (int, error) {
			t, err := p.Ask(b.Context(), projections.TimelineView, projections.Query{Sort: "bytes:desc", Limit: 20})
			return len(t.Rows), err
		},
		"attempts that took longest": func() (int, error) {
			rows, err := p.Attempts(b.Context(), projections.Query{Where: where(projections.ByOutcome, "success"), Sort: "duration_ns:desc", Limit: 20})
			return len(rows), err
		},
		"attempts of a recipe": func() (int, error) {
			rows, err := p.Attempts(b.Context(), projections.Query{Where: where(projections.ByRecipe, evidencetest.Success().Recipe.Digest().String()), Limit: 50})
			return len(rows), err
		},
		"attempts by outcome": func() (int, error) {
			rows, err := p.Attempts(b.Context(), projections.Query{Where: map[projections.Filterable]string{projections.ByOutcome: "failed"}, Limit: 50})
			return len(rows), err
		},
		"timeline of an attempt": func() (int, error) {
			t, err := p.Ask(b.Context(), projections.TimelineView, projections.Query{Where: map[projections.Filterable]string{projections.ByAttempt: "a-0000100"}})
			return len(t.Rows), err
		},
		"timeline by type": func() (int, error) {
			t, err := p.Ask(b.Context(), projections.TimelineView, projections.Query{Where: map[projections.Filterable]string{projections.ByType: "AttemptFinished"}, Limit: 50})
			return len(t.Rows), err
		},
		"timeline by a rare type": func() (int, error) {
			t, err := p.Ask(b.Context(), projections.TimelineView, projections.Query{Where: map[projections.Filterable]string{projections.ByType: "LedgerOpened"}})
			return len(t.Rows), err
		},
		"open custody": func() (int, error) {
			t, err := p.Ask(b.Context(), projections.CustodyView, projections.Query{Where: map[projections.Filterable]string{projections.ByAttempt: "a-0000100"}})
			return len(t.Rows), err
		},
		"runtimes": func() (int, error) {
			t, err := p.Ask(b.Context(), projections.RuntimesView, projections.Query{})
			return len(t.Rows), err
		},
		"outcomes by day": func() (int, error) {
			t, err := p.Outcomes(b.Context(), projections.OutcomeQuery{Period: projections.PerDay})
			return len(t.Rows), err
		},
		"sql": func() (int, error) {
			t, err := p.SQL(b.Context(), "SELECT attempt FROM attempts WHERE outcome = 'failed' ORDER BY first_index DESC LIMIT 50")
			return len(t.Rows), err
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				n, err := ask()
				require.NoError(b, err)
				require.Positive(b, n)
			}
			took := b.Elapsed() / time.Duration(b.N)
			b.ReportMetric(float64(took.Microseconds())/1000, "ms/query")
			b.ReportMetric(took.Seconds()/least().Seconds(), "÷asking-nothing")
			b.ReportMetric(0, "ns/op")
		})
	}
}
