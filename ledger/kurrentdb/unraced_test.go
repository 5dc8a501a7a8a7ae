//go:build !race

package kurrentdb

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/kurrentdb/peer"
)

// What the client does when its discovery failed, which the race detector takes for a race: a channel
// is closed under those who send.

// Trap (a): with the server down, callers of the client hang and ignore their context. Ours come
// back, and nothing of them stays once the server does.
func TestUnracedServerDown(t *testing.T) {
	c := cluster(t, peer.Options{})
	s := open(t, c.URL("maxDiscoverAttempts=2"), Options{CallTimeout: 300 * time.Millisecond, Patience: time.Second})
	mustAppend(t, s, "a", ledger.NoStream, "one")
	before := runtime.NumGoroutine()
	c.Node(0).Stop()
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
			defer cancel()
			_, _, err := s.Head(ctx, ledger.StreamID(fmt.Sprintf("s%d", i)))
			require.Error(t, err)
		})
		wg.Go(func() {
			_, err := s.Append(context.Background(), ledger.StreamID(fmt.Sprintf("w%d", i)), ledger.NoStream, said("x"))
			require.Error(t, err)
		})
	}
	returned := make(chan struct{})
	go func() { wg.Wait(); close(returned) }()
	select {
	case <-returned:
	case <-time.After(20 * time.Second):
		t.Fatal("callers hang")
	}
	require.NoError(t, c.Node(0).Start())
	require.Eventually(t, func() bool {
		_, err := s.Append(context.Background(), "a", 0, said("two"))
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	sound(t, s)
	settles(t, before+8) // a connection of the new client more or less
}

// Trap (a), shown on the client itself, so that the fence is known to be needed.
func TestUnracedClientHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config, err := esdb.ParseConnectionString("esdb://" + l.Addr().String() + "?tls=false&maxDiscoverAttempts=1")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	config.Logger = esdb.NoopLogging()
	db, err := esdb.NewClient(config)
	require.NoError(t, err)
	const callers = 8
	back := make(chan error, callers)
	for range callers {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			back <- guarded(func() error {
				_, err := db.AppendToStream(ctx, "s", esdb.AppendToStreamOptions{})
				return err
			})
		}()
	}
	require.Error(t, <-back, "the one that found out")
	time.Sleep(time.Second)
	stuck := callers - 1 - len(back)
	require.Positive(t, stuck, "a client that no longer hangs needs less of a fence")
	for range len(back) {
		<-back
	}
	require.NoError(t, guarded(db.Close))
	for range stuck { // trap (b): they meet the closed client in a panic
		var p *panicError
		require.ErrorAs(t, <-back, &p)
	}
}
