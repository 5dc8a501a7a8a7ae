package kurrentdb

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/kurrentdb/peer"
)

// Each benchmark lets the client alone and the ledger take turns on the same cluster, in memory, so
// that what else the machine does hits both alike. Events have a leaf of about 300 bytes.

func benchEvent() ledger.Prepared {
	b := make([]byte, 190)
	_, _ = rand.Read(b) // never fails
	return ledger.Prepared{Type: "ContainerStarted", Time: time.Now().UnixNano(), Media: "application/cbor", Meta: b[:40], Data: b[40:]}
}

func rawEvent() esdb.EventData {
	b := make([]byte, 300)
	_, _ = rand.Read(b)
	return esdb.EventData{EventID: uuid.New(), EventType: "ContainerStarted", ContentType: esdb.ContentTypeBinary, Data: b}
}

// appends measures appends of `batch` events by `writers` at once, in turns of both.
func appends(b *testing.B, writers, batch int) {
	c := cluster(b, peer.Options{})
	db := raw(b, c)
	s := open(b, c.URL(), Options{Cache: filepath.Join(b.TempDir(), "cache.db")})
	turn := max(256/batch, 8)
	ours, theirs := make([]ledger.Version, writers), make([]uint64, writers)
	var took, raw time.Duration
	each := func(f func(w int)) time.Duration {
		start := time.Now()
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for range turn {
					f(w)
				}
			})
		}
		wg.Wait()
		return time.Since(start)
	}
	n := 0
	for b.Loop() {
		raw += each(func(w int) {
			events := make([]esdb.EventData, batch)
			for i := range events {
				events[i] = rawEvent()
			}
			var expected esdb.ExpectedRevision = esdb.NoStream{}
			if theirs[w] > 0 {
				expected = esdb.Revision(theirs[w] - 1)
			}
			if _, err := db.AppendToStream(context.Background(), fmt.Sprintf("raw-%d", w), esdb.AppendToStreamOptions{ExpectedRevision: expected}, events...); err != nil {
				b.Error(err)
			}
			theirs[w] += uint64(batch)
		})
		took += each(func(w int) {
			events := make([]ledger.Prepared, batch)
			for i := range events {
				events[i] = benchEvent()
			}
			if _, err := s.Append(context.Background(), ledger.StreamID(fmt.Sprintf("ours-%d", w)), ours[w]-1, events...); err != nil {
				b.Error(err)
			}
			ours[w] += ledger.Version(batch)
		})
		n += writers * turn * batch
	}
	b.ReportMetric(raw.Seconds()/took.Seconds(), "ratio-to-client")
	b.ReportMetric(float64(n)/took.Seconds(), "events/s")
	b.ReportMetric(float64(n)/raw.Seconds(), "client-events/s")
}

func BenchmarkAppendOne(b *testing.B)       { appends(b, 1, 1) }
func BenchmarkAppendOne16(b *testing.B)     { appends(b, 16, 1) }
func BenchmarkAppendBatch64(b *testing.B)   { appends(b, 1, 64) }
func BenchmarkAppendBatch64x4(b *testing.B) { appends(b, 4, 64) }

// BenchmarkReplay reads everything in order, checked against the tree, beside the client's own
// filtered subscription to the same events, unchecked.
func BenchmarkReplay(b *testing.B) {
	const streams, perStream, batch = 50, 400, 100
	c := cluster(b, peer.Options{})
	db := raw(b, c)
	s := open(b, c.URL(), Options{Cache: filepath.Join(b.TempDir(), "cache.db")})
	for v := 0; v < perStream; v += batch {
		for i := range streams {
			events := make([]ledger.Prepared, batch)
			for k := range events {
				events[k] = benchEvent()
			}
			_, err := s.Append(context.Background(), ledger.StreamID(fmt.Sprintf("s%d", i)), ledger.Version(v-1), events...)
			require.NoError(b, err)
		}
	}
	const total = streams * perStream
	var took, raw time.Duration
	for b.Loop() {
		start := time.Now()
		sub, err := db.SubscribeToAll(context.Background(), esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: &esdb.SubscriptionFilter{
			Type: esdb.StreamFilterType, Prefixes: []string{s.names.events},
		}})
		require.NoError(b, err)
		for n := 0; n < total; {
			m := sub.Recv()
			if m.SubscriptionDropped != nil {
				b.Fatal(m.SubscriptionDropped.Error)
			}
			if m.EventAppeared != nil {
				n++
			}
		}
		require.NoError(b, sub.Close())
		raw += time.Since(start)
		start = time.Now()
		n := 0
		for _, err := range s.ReadAll(context.Background(), 0) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		took += time.Since(start)
		require.Equal(b, total, n)
	}
	events := float64(b.N) * total
	b.ReportMetric(raw.Seconds()/took.Seconds(), "ratio-to-client")
	b.ReportMetric(events/took.Seconds(), "events/s")
	b.ReportMetric(events/raw.Seconds(), "client-events/s")
}

// BenchmarkOpen opens a ledger of 50,000 events: with its cache, and with none.
func BenchmarkOpen(b *testing.B) {
	const streams, batch = 500, 100
	c := cluster(b, peer.Options{})
	cache := filepath.Join(b.TempDir(), "cache.db")
	s, err := Open(context.Background(), c.URL(), Options{Cache: cache})
	require.NoError(b, err)
	for i := range streams {
		events := make([]ledger.Prepared, batch)
		for k := range events {
			events[k] = benchEvent()
		}
		_, err := s.Append(context.Background(), ledger.StreamID(fmt.Sprintf("attempt-%08x", i)), ledger.NoStream, events...)
		require.NoError(b, err)
	}
	require.NoError(b, s.Close())
	var warm, cold time.Duration
	for b.Loop() {
		for file, took := range map[string]*time.Duration{cache: &warm, "": &cold} {
			start := time.Now()
			s, err := Open(context.Background(), c.URL(), Options{Cache: file})
			require.NoError(b, err)
			*took += time.Since(start)
			require.NoError(b, s.Close())
		}
	}
	info, err := os.Stat(cache)
	require.NoError(b, err)
	b.ReportMetric(warm.Seconds()*1e3/float64(b.N), "with-cache-ms")
	b.ReportMetric(float64(b.N)*streams*batch/cold.Seconds(), "rebuilt-events/s")
	b.ReportMetric(float64(info.Size())/streams/batch, "cache-bytes/event")
}
