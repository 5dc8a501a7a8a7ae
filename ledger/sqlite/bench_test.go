package sqlite

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/ledger"
)

// benchEvent is an event of a usual size: a leaf of about 300 bytes, different every time.
func benchEvent() ledger.Prepared {
	b := make([]byte, 190)
	_, _ = rand.Read(b) // never fails
	return ledger.Prepared{Type: "ContainerStarted", Time: time.Now().UnixNano(), Media: "application/cbor", Meta: b[:40], Data: b[40:]}
}

// rawSync returns the time of one write and fdatasync of n bytes at the end of a file.
func rawSync(b *testing.B, dir string, n, rounds int) time.Duration {
	b.Helper()
	f, err := os.Create(filepath.Join(dir, "raw"))
	require.NoError(b, err)
	defer f.Close()
	data := make([]byte, n)
	_, _ = rand.Read(data)
	start := time.Now()
	for range rounds {
		_, err := f.Write(data)
		require.NoError(b, err)
		require.NoError(b, unix.Fdatasync(int(f.Fd())))
	}
	return time.Since(start) / time.Duration(rounds)
}

// req U1: one writer, one event a commit, against a raw write and fdatasync of the same bytes.
// The two take turns, so that a noisy disk hits both alike.
func BenchmarkU1AppendOne(b *testing.B) {
	dir := b.TempDir()
	s := open(b, filepath.Join(dir, "l.db"), Options{})
	const streams, turn = 50, 200
	next := make([]ledger.Version, streams)
	leaf := len(ledger.MarshalLeaf(ledger.Event{Stream: "attempt-00000000", Version: 300, Prev: make([]byte, 32), Type: "ContainerStarted", Time: time.Now().UnixNano(), Media: "application/cbor", Meta: make([]byte, 40), Data: make([]byte, 150)}))
	var ours, raw time.Duration
	n, rawN := 0, 0
	for b.Loop() {
		if n%turn == 0 {
			b.StopTimer()
			raw += rawSync(b, dir, leaf, turn) * turn
			rawN += turn
			b.StartTimer()
		}
		i := n % streams
		p := benchEvent()
		start := time.Now()
		_, err := s.Append(testContext, ledger.StreamID(fmt.Sprintf("attempt-%08x", i*0x9e3779b1)), next[i]-1, p)
		ours += time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		next[i]++
		n++
	}
	perOurs, perRaw := ours.Seconds()/float64(n), raw.Seconds()/float64(rawN)
	b.ReportMetric(perRaw/perOurs, "ratio-to-raw")
	b.ReportMetric(perRaw*1e6, "raw-µs")
	b.ReportMetric(float64(leaf), "leaf-bytes")
}

// req U2: 64 writers, one event an append, each on its own stream.
func BenchmarkU2Append64(b *testing.B) {
	const writers = 64
	dir := b.TempDir()
	raw := rawSync(b, dir, 300, 500)
	shim, name := newShim(b)
	s := open(b, filepath.Join(dir, "l.db"), Options{vfs: name})
	var syncs atomic.Int64
	shim.on(func(op operation) (error, bool) {
		if op.kind == "sync" {
			syncs.Add(1)
		}
		return nil, false
	})
	defer shim.on(nil)
	var left atomic.Int64
	left.Store(int64(b.N))
	times := make([][]time.Duration, writers)
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range writers {
		wg.Go(func() {
			stream := ledger.StreamID(fmt.Sprintf("attempt-%08x", w*0x9e3779b1))
			for v := ledger.NoStream; left.Add(-1) >= 0; v++ {
				start := time.Now()
				if _, err := s.Append(testContext, stream, v, benchEvent()); err != nil {
					b.Error(err)
					return
				}
				times[w] = append(times[w], time.Since(start))
			}
		})
	}
	wg.Wait()
	took := b.Elapsed()
	all := slices.Concat(times...)
	slices.Sort(all)
	perSecond := float64(b.N) / took.Seconds()
	b.ReportMetric(perSecond, "events/s")
	b.ReportMetric(perSecond*raw.Seconds(), "ratio-to-raw")
	b.ReportMetric(float64(b.N)/float64(max(syncs.Load(), 1)), "events/sync")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(raw.Microseconds()), "raw-µs")
}

// replayEvents is the size of the ledger that replay reads.
const replayEvents = 500_000

// replayLedger makes a ledger of replayEvents over 5,000 streams.
func replayLedger(b *testing.B) *Store {
	b.Helper()
	s := open(b, filepath.Join(b.TempDir(), "l.db"), Options{})
	const streams = 5000
	batch := make([]ledger.Prepared, 100)
	for i := range replayEvents / len(batch) {
		for k := range batch {
			batch[k] = benchEvent()
		}
		v := ledger.Version(i/streams*len(batch)) - 1
		_, err := s.Append(testContext, ledger.StreamID(fmt.Sprintf("attempt-%08x", i%streams*0x9e3779b1)), v, batch...)
		require.NoError(b, err)
	}
	return s
}

// req U3: replay of everything with chains, indexes and the tree checked, against the same replay
// without.
func BenchmarkU3ReplayChecked(b *testing.B) {
	s := replayLedger(b)
	b.ReportAllocs()
	var plain, checked time.Duration
	for b.Loop() {
		start := time.Now()
		for _, err := range s.ReadAll(testContext, 0) {
			if err != nil {
				b.Fatal(err)
			}
		}
		plain += time.Since(start)
		start = time.Now()
		check := ledger.NewChecker()
		for e, err := range s.ReadAll(testContext, 0) {
			if err == nil {
				_, err = check.Check(e)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		checked += time.Since(start)
		root, err := s.Root(testContext, replayEvents)
		require.NoError(b, err)
		require.Equal(b, root, check.Root())
	}
	events := float64(b.N) * replayEvents
	b.ReportMetric(events/checked.Seconds(), "events/s")
	b.ReportMetric(events/plain.Seconds(), "unchecked/s")
	b.ReportMetric(plain.Seconds()/checked.Seconds(), "ratio-to-unchecked")
}
