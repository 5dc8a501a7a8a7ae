package journal_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/sqlite"
)

// benchEvents is how many events the audit's benchmarks read. BAILDOCK_BENCH_EVENTS=1000000 is the
// size the requirement names.
func benchEvents(b *testing.B) int {
	b.Helper()
	s := os.Getenv("BAILDOCK_BENCH_EVENTS")
	if s == "" {
		return 200_000
	}
	n, err := strconv.Atoi(s)
	require.NoError(b, err)
	return n
}

// filled opens a ledger and lets 64 writers fill it; each job is one append to a stream of its own.
func filled(b *testing.B, jobs int, job func(i int) (ledger.StreamID, []ledger.Prepared)) *sqlite.Store {
	b.Helper()
	s, err := sqlite.Open(context.Background(), filepath.Join(b.TempDir(), "ledger.db"), sqlite.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	require.NoError(b, journal.New(journal.Config{Ledger: s, Actor: "bench"}).Init(context.Background(), genesis()))
	next := make(chan int)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := range next {
				stream, events := job(i)
				if _, err := s.Append(context.Background(), stream, ledger.NoStream, events...); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	wg.Wait()
	return s
}

// req U7: an audit of everything against a plain read of the same events, in turns.
func benchmarkAudit(b *testing.B, s *sqlite.Store) {
	size, err := s.Size(context.Background())
	require.NoError(b, err)
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	var peak, bytes uint64
	var plain, audited, cpu time.Duration
	streams := 0
	b.ResetTimer()
	for b.Loop() {
		start := time.Now()
		bytes = 0
		for e, err := range s.ReadAll(context.Background(), 0) {
			if err != nil {
				b.Fatal(err)
			}
			bytes += uint64(len(e.Meta) + len(e.Data) + len(e.Stream) + len(e.Type) + len(e.Media) + len(e.Prev) + 20)
		}
		plain += time.Since(start)
		start, cpu = time.Now(), cpu-cpuTime(b)
		r, err := journal.Audit{Exhibit: s, Mentions: benchMentions, Progress: func(_, _ uint64) {
			metrics.Read(heap)
			peak = max(peak, heap[0].Value.Uint64())
		}}.Run(context.Background())
		audited, cpu = audited+time.Since(start), cpu+cpuTime(b)
		require.NoError(b, err)
		require.Equal(b, journal.AuditValid, r.Verdict, "%v", r.FirstBad)
		require.Equal(b, size, r.Events)
		streams = r.Streams
	}
	events := float64(b.N) * float64(size)
	b.ReportMetric(events/audited.Seconds(), "events/s")
	b.ReportMetric(events/plain.Seconds(), "plain-reads/s")
	b.ReportMetric(plain.Seconds()/audited.Seconds(), "ratio-to-plain")
	b.ReportMetric(cpu.Seconds()*1e6/events, "cpu-µs/event") // of all processors: what a busy machine doesn't hide
	b.ReportMetric(float64(peak)/(1<<20), "peak-heap-MB")
	b.ReportMetric(float64(size), "events")
	b.ReportMetric(float64(streams), "streams")
	b.ReportMetric(float64(bytes)/float64(size), "bytes/event")
}

// cpuTime is what the process has used so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchMentions(p evidence.Payload) (out []journal.Mention) {
	for _, m := range bundle.Mentions(p) {
		out = append(out, journal.Mention{Plain: ledger.BlobKey(m.Plain), Ref: m.Ref})
	}
	return out
}

// Events of 300 bytes in users' streams: bytes, chains and tree.
func BenchmarkU7AuditBytes(b *testing.B) {
	const batch = 100
	s := filled(b, benchEvents(b)/batch, func(i int) (ledger.StreamID, []ledger.Prepared) {
		events := make([]ledger.Prepared, batch)
		for k := range events {
			raw := make([]byte, 170)
			_, _ = rand.Read(raw) // never fails
			events[k] = ledger.Prepared{Type: "SomethingHappened", Time: int64(i), Media: "application/cbor", Meta: raw[:40], Data: raw[40:]}
		}
		return ledger.StreamID(fmt.Sprintf("stream-%08x", i*0x9e3779b1)), events
	})
	benchmarkAudit(b, s)
}

// Whole attempts: bytes, and every event decoded, folded and judged, every record derived again.
// The blobs are absent; each is still looked for.
func BenchmarkU7AuditAttempts(b *testing.B) {
	perAttempt := len(evidencetest.Success().Finished())
	s := filled(b, benchEvents(b)/perAttempt, func(i int) (ledger.StreamID, []ledger.Prepared) {
		h := evidencetest.Success()
		h.Registered.Attempt = evidence.AttemptID(fmt.Sprintf("run-%08x", i*0x9e3779b1))
		h.Custody.Request = h.Request()
		var events []ledger.Prepared
		for _, p := range h.Finished() {
			m := evidence.Meta{Schema: evidence.SchemaVersion, Actor: "bench"}
			_, _ = rand.Read(m.Nonce[:]) // never fails
			meta, data := evidence.Encode(p, m)
			events = append(events, ledger.Prepared{Type: p.EventType(), Time: int64(i), Media: evidence.Media, Meta: meta, Data: data})
		}
		return journal.AttemptStream(h.Registered.Attempt), events
	})
	benchmarkAudit(b, s)
}
