package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/kurrentdb/peer"
)

func said(what string) ledger.Prepared {
	return ledger.Prepared{Type: "Said", Time: 1, Media: "text/plain", Meta: []byte("m"), Data: []byte(what)}
}

func mustAppend(t testing.TB, s *Store, stream ledger.StreamID, expected ledger.Version, what ...string) ledger.Appended {
	t.Helper()
	events := make([]ledger.Prepared, len(what))
	for i, w := range what {
		events[i] = said(w)
	}
	done, err := s.Append(context.Background(), stream, expected, events...)
	require.NoError(t, err)
	return done
}

// sound recomputes everything.
func sound(t testing.TB, s *Store) *ledger.Checker {
	t.Helper()
	check := ledger.NewChecker()
	for e, err := range s.ReadAll(context.Background(), 0) {
		require.NoError(t, err)
		_, err := check.Check(e)
		require.NoError(t, err)
	}
	root, err := s.Root(context.Background(), check.Size())
	require.NoError(t, err)
	require.Equal(t, check.Root(), root)
	return check
}

// settles waits until the number of goroutines is back to what it was.
func settles(t *testing.T, before int) {
	t.Helper()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before }, 20*time.Second, 10*time.Millisecond,
		"goroutines stay: %d before", before)
}

// Trap (b): closing with calls in flight.
func TestCloseWithCallsInFlight(t *testing.T) {
	c := cluster(t, peer.Options{})
	for range 5 {
		s, err := Open(t.Context(), c.URL(), quick)
		require.NoError(t, err)
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				for v := 0; ; v++ {
					if _, _, err := s.Head(context.Background(), ledger.StreamID(fmt.Sprintf("s%d", i))); err != nil {
						require.ErrorIs(t, err, ErrClosed)
						return
					}
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		require.NoError(t, s.Close())
		wg.Wait()
	}
}

// Trap (c): the client never sends requires-leader. A follower that lags would answer.
func TestLeaderIsAsked(t *testing.T) {
	c := cluster(t, peer.Options{Nodes: 2})
	s := open(t, c.URL(), quick)
	mustAppend(t, s, "a", ledger.NoStream, "one")
	c.Node(1).Hold()
	mustAppend(t, s, "a", 0, "two")
	other := open(t, "esdb://"+c.Node(1).Address()+"?tls=false", quick) // the follower, by its own address
	last, ok, err := other.Head(t.Context(), "a")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, ledger.Version(1), last.Version)
	require.Equal(t, uint64(2), sound(t, other).Size())
}

// Trap (d): a failed discovery closes the client for good.
func TestDiscoveryFails(t *testing.T) {
	c := cluster(t, peer.Options{Nodes: 3})
	s := open(t, c.URL("maxDiscoverAttempts=1"), quick)
	mustAppend(t, s, "a", ledger.NoStream, "one")
	for i := range 3 {
		c.Node(i).Stop()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, _, err := s.Head(ctx, "a")
	require.Error(t, err)
	for i := range 3 {
		require.NoError(t, c.Node(i).Start())
	}
	mustAppend(t, s, "a", 0, "two")
	require.Equal(t, uint64(2), sound(t, s).Size())
}

// Trap (e): what is too large for one request isn't sent as one, on a server with the default limit
// that counts types and metadata.
func TestSizes(t *testing.T) {
	c := cluster(t, peer.Options{})
	s := open(t, c.URL(), quick)
	large := ledger.Prepared{Type: strings.Repeat("T", ledger.MaxType), Media: "a/b", Meta: make([]byte, ledger.MaxMeta), Data: make([]byte, ledger.MaxData)}
	_, err := s.Append(t.Context(), "a", ledger.NoStream, large)
	require.NoError(t, err)
	many := make([]ledger.Prepared, ledger.MaxBatch)
	for i := range many {
		many[i] = ledger.Prepared{Type: "T", Media: "a/b", Time: int64(i), Meta: make([]byte, ledger.MaxMeta), Data: make([]byte, 12<<10)}
	}
	done, err := s.Append(t.Context(), "b", ledger.NoStream, many...)
	require.NoError(t, err)
	require.Len(t, done.Events, ledger.MaxBatch)
	again, err := s.Append(t.Context(), "b", ledger.NoStream, many...)
	require.NoError(t, err)
	require.Equal(t, done.Last().Leaf(), again.Last().Leaf())
	require.Equal(t, uint64(1+ledger.MaxBatch), sound(t, s).Size())
	for _, name := range c.Streams() {
		if strings.Contains(name, ":s:") {
			require.NoError(t, c.Redact(name, 0, []byte("other bytes")))
		}
	}
	for _, err := range s.ReadStream(t.Context(), "a", 0) {
		var damaged *ledger.DamagedError
		require.ErrorAs(t, err, &damaged, "the bytes of a large event were changed")
	}
}

// Trap (f): a read stream that isn't drained leaks. Reads that stop early leave nothing behind.
func TestReadsLeaveNothing(t *testing.T) {
	c := cluster(t, peer.Options{})
	s := open(t, c.URL(), quick)
	for i := range 10 {
		mustAppend(t, s, "a", ledger.Version(i*100-1), batchOf(i, 100)...)
	}
	before := runtime.NumGoroutine()
	for range 200 {
		for _, err := range s.ReadAll(t.Context(), 3) {
			require.NoError(t, err)
			break
		}
		for _, err := range s.ReadStream(t.Context(), "a", 3) {
			require.NoError(t, err)
			break
		}
	}
	settles(t, before+2)
}

func batchOf(name, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%d/%d", name, i)
	}
	return out
}

// Trap (g): a creation time that doesn't parse ends the client's process.
func TestCreated(t *testing.T) {
	c := cluster(t, peer.Options{})
	s := open(t, c.URL(), quick)
	mustAppend(t, s, "a", ledger.NoStream, "one", "two")
	for _, created := range []string{"", "yesterday", "99999999999999999999999999"} {
		require.NoError(t, c.SpoilCreated("baildock:main:e:a", 0, created))
		require.Equal(t, uint64(2), sound(t, s).Size())
		require.Equal(t, uint64(2), sound(t, open(t, c.URL(), quick)).Size())
	}
}

// Every way a write can fail, at every write of an append, its retry and the next: each event is
// there once, and its writer knows.
//
// req R1, req R3
func TestWriteFaults(t *testing.T) {
	c := cluster(t, peer.Options{Nodes: 3})
	s := open(t, c.URL(), Options{CallTimeout: 300 * time.Millisecond, Patience: 20 * time.Second})
	total := 0
	for _, f := range peer.Faults() {
		for _, times := range []int{1, 2} {
			stream := ledger.StreamID(fmt.Sprintf("s-%d-%d", f, times))
			c.Script(func(n int, _ peer.Write) peer.Fault {
				if n < times {
					return f
				}
				return peer.NoFault
			})
			done := mustAppend(t, s, stream, ledger.NoStream, "one", "two")
			require.Greater(t, c.Writes(), 1, "%s was never tried again", f)
			require.Equal(t, ledger.Version(1), done.Last().Version)
			mustAppend(t, s, stream, 1, "three")
			_, err := s.Append(t.Context(), stream, 1, said("other"))
			var conflict *ledger.ConflictError
			require.ErrorAs(t, err, &conflict, "%s", f)
			require.Equal(t, ledger.Version(2), conflict.Actual)
			total += 3
		}
	}
	c.Script(nil)
	require.Equal(t, uint64(total), sound(t, s).Size())
	require.Equal(t, sound(t, s).Root(), sound(t, open(t, c.URL(), quick)).Root())
}

// An outcome that stays unknown says so, and is known later.
func TestUnknownOutcome(t *testing.T) {
	for _, f := range []peer.Fault{peer.TimeoutDone, peer.TimeoutLost, peer.SilentDone, peer.CutAfter} {
		t.Run(f.String(), func(t *testing.T) {
			c := cluster(t, peer.Options{})
			s := open(t, c.URL(), Options{CallTimeout: 200 * time.Millisecond, Patience: time.Second})
			c.Script(func(int, peer.Write) peer.Fault { return f })
			_, err := s.Append(t.Context(), "a", ledger.NoStream, said("one"))
			require.ErrorIs(t, err, ledger.ErrUnknownOutcome)
			c.Script(nil)
			again := open(t, c.URL(), quick)
			mustAppend(t, again, "a", ledger.NoStream, "one")
			require.Equal(t, uint64(1), sound(t, again).Size())
		})
	}
	// No node at all: nothing was sent, and the error doesn't say that it might be stored.
	down := cluster(t, peer.Options{})
	s := open(t, down.URL("maxDiscoverAttempts=1"), Options{CallTimeout: 300 * time.Millisecond, Patience: time.Second})
	down.Node(0).Stop()
	require.Eventually(t, func() bool {
		_, err := s.Append(t.Context(), "a", ledger.NoStream, said("one"))
		require.Error(t, err)
		return !errors.Is(err, ledger.ErrUnknownOutcome) // the first may still have gone out on the old connection
	}, 20*time.Second, 10*time.Millisecond)
	// Refused by every try.
	c := cluster(t, peer.Options{Users: map[string]peer.User{}})
	_, err := Open(t.Context(), c.URL(), Options{CallTimeout: time.Second, Patience: 2 * time.Second})
	require.ErrorContains(t, err, "doesn't know this user")
	require.NotErrorIs(t, err, ledger.ErrUnknownOutcome)
}

// Reads and subscriptions whose connection is cut anywhere go on where they were.
func TestReadsAreCut(t *testing.T) {
	c := cluster(t, peer.Options{Nodes: 3})
	s := open(t, c.URL(), quick)
	for i := range 4 {
		mustAppend(t, s, "a", ledger.Version(i*100-1), batchOf(i, 100)...)
	}
	for _, after := range []int{0, 1, 150, 399} {
		c.CutReads(1, 2, after)
		require.Equal(t, uint64(400), sound(t, s).Size())
		c.CutReads(2, 2, after)
		n := 0
		for _, err := range s.ReadStream(t.Context(), "a", 0) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 400, n)
		c.CutReads(0, 0, 0)
	}
	// A subscription sees its node go away, the leader move, and every event once.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	next := ledger.Index(0)
	for e, err := range s.Subscribe(ctx, 0) {
		require.NoError(t, err)
		require.Equal(t, next, e.Index)
		next++
		switch next {
		case 100:
			c.Node(0).Cut()
		case 400:
			c.MoveLeader(1)
			c.Node(0).Stop()
			go func() { mustAppend(t, s, "a", 399, "after") }()
		}
		if next == 401 {
			break
		}
	}
	require.Equal(t, ledger.Index(401), next)
}

// A node that lags is waited for, never taken for a rollback; a leader that lost the others isn't
// either.
func TestLag(t *testing.T) {
	c := cluster(t, peer.Options{Nodes: 3})
	opts := quick
	opts.Cache = t.TempDir() + "/cache.db"
	s := open(t, c.URL(), opts)
	mustAppend(t, s, "a", ledger.NoStream, "one")
	c.Node(1).Hold()
	mustAppend(t, s, "a", 0, "two")
	require.NoError(t, s.Close())

	// A reader that prefers the follower knows from its cache what the follower lacks.
	late := time.AfterFunc(time.Second, c.Node(1).Release)
	defer late.Stop()
	f := open(t, "esdb://"+c.Node(1).Address()+"?tls=false&nodePreference=follower", opts)
	require.Equal(t, uint64(2), sound(t, f).Size())
	last, ok, err := f.Head(t.Context(), "a")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, ledger.Version(1), last.Version)

	// When it never catches up, it is said to lag.
	c.Node(1).Hold()
	g := open(t, c.URL(), opts)
	mustAppend(t, g, "a", 1, "three")
	require.NoError(t, g.Close())
	slow := opts
	slow.CallTimeout, slow.Patience = 500*time.Millisecond, time.Second
	_, err = Open(t.Context(), "esdb://"+c.Node(1).Address()+"?tls=false&nodePreference=follower", slow)
	require.Error(t, err)
	var damaged *ledger.DamagedError
	require.False(t, errors.As(err, &damaged), "%v", err)
	c.Node(1).Release()
}

// A leader that was cut off from the others goes on answering, and can commit nothing: another node is
// asked. When the partition heals, nothing is there twice.
func TestPartition(t *testing.T) {
	c := cluster(t, peer.Options{Nodes: 3})
	s := open(t, c.URL(), Options{CallTimeout: time.Second, Patience: 20 * time.Second})
	mustAppend(t, s, "a", ledger.NoStream, "one")
	for i := range 3 {
		c.Node(i).Isolate() // at first it still believes that it leads
		time.AfterFunc(200*time.Millisecond, func() { c.MoveLeader((i + 1) % 3) })
		mustAppend(t, s, "a", ledger.Version(i), fmt.Sprintf("on the other side %d", i))
		last, ok, err := s.Head(t.Context(), "a")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, ledger.Version(i+1), last.Version)
		c.Node(i).Rejoin()
	}
	require.Equal(t, uint64(4), sound(t, s).Size())
	require.Equal(t, sound(t, s).Root(), sound(t, open(t, c.URL(), quick)).Root())
}

// ReadAll of the client has no filter: the end of the ledger is found behind many events of others.
func TestBusyCluster(t *testing.T) {
	c := cluster(t, peer.Options{})
	s := open(t, c.URL(), quick)
	mustAppend(t, s, "a", ledger.NoStream, "one")
	for i := range 3000 {
		c.Inject(fmt.Sprintf("noise-%d", i%7), "Noise", []byte("of another program"))
	}
	require.Equal(t, uint64(1), sound(t, s).Size())
	mustAppend(t, s, "a", 0, "two")
	other := open(t, c.URL("ledger=other"), quick)
	size, err := other.Size(t.Context())
	require.NoError(t, err)
	require.Zero(t, size)
	mustAppend(t, other, "a", ledger.NoStream, "elsewhere")
	require.Equal(t, uint64(2), sound(t, open(t, c.URL(), quick)).Size())
	require.Equal(t, uint64(1), sound(t, other).Size())
}
