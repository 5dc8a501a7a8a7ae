package kurrentdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/kurrentdb/peer"
)

// childEnv makes the test binary a writer: "URL CACHE NAME COUNT".
const childEnv = "BAILDOCK_TEST_WRITER"

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		if err := write(strings.Fields(what)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// write appends to a stream everybody wants and to one of its own, in turns, and prints what it was
// told is stored.
func write(args []string) error {
	count, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := Open(ctx, args[0], Options{Cache: args[1], CallTimeout: time.Second, Patience: 30 * time.Second})
	if err != nil {
		return err
	}
	own, shared := ledger.NoStream, ledger.NoStream
	for i := range count {
		done, err := s.Append(ctx, ledger.StreamID(args[2]), own, said(fmt.Sprintf("%s own %d", args[2], i)))
		if err != nil {
			return fmt.Errorf("own %d: %w", i, err)
		}
		own++
		acknowledged(done)
		p := said(fmt.Sprintf("%s shared %d", args[2], i))
		for {
			done, err := s.Append(ctx, "shared", shared, p)
			var conflict *ledger.ConflictError
			if errors.As(err, &conflict) {
				shared = conflict.Actual
				continue
			}
			if err != nil {
				return fmt.Errorf("shared %d: %w", i, err)
			}
			shared++
			acknowledged(done)
			break
		}
	}
	return s.Close()
}

func acknowledged(done ledger.Appended) {
	for _, e := range done.Events {
		fmt.Printf("%d %s %s %s\n", e.Index, e.Stream, e.Version, e.ID())
	}
}

// req R1, req R3: writers in several processes, some of which share a cache, while nodes die, the
// leader moves, connections break and commits time out: every acknowledged event is there once,
// where its writer was told, and no place was given twice.
func TestProcesses(t *testing.T) {
	const writers, each = 4, 120
	c := cluster(t, peer.Options{Nodes: 3})
	s := open(t, c.URL(), quick)
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	outs := make([]bytes.Buffer, writers)
	errs := make([]bytes.Buffer, writers)
	done := make(chan error, writers)
	c.Script(func(n int, _ peer.Write) peer.Fault {
		if n%11 == 10 {
			return peer.Faults()[n/11%len(peer.Faults())]
		}
		return peer.NoFault
	})
	for i := range writers {
		cmd := exec.Command(self)
		cache := filepath.Join(dir, fmt.Sprintf("cache-%d.db", i/2)) // two and two share one
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s w%d %d", childEnv, c.URL(), cache, i, each))
		cmd.Stdout, cmd.Stderr = &outs[i], &errs[i]
		require.NoError(t, cmd.Start())
		go func() { done <- cmd.Wait() }()
	}
	// The cluster's own troubles, until the writers are through.
	leader := 0
	for running := writers; running > 0; {
		select {
		case err := <-done:
			running--
			require.NoError(t, err, "%s", errs)
		case <-time.After(300 * time.Millisecond):
			next := (leader + 1) % 3
			c.MoveLeader(next)
			c.Node(leader).Stop()
			require.NoError(t, c.Node(leader).Start())
			c.Node(next).Cut()
			leader = next
		}
	}
	c.Script(nil)
	check := ledger.NewChecker()
	stored := map[string]bool{}
	for e, err := range s.ReadAll(t.Context(), 0) {
		require.NoError(t, err)
		leaf, err := check.Check(e)
		require.NoError(t, err)
		stored[fmt.Sprintf("%d %s %s %s", e.Index, e.Stream, e.Version, leaf.EventID())] = true
	}
	require.Equal(t, uint64(2*writers*each), check.Size(), "nothing is there twice")
	require.Equal(t, ledger.Version(writers*each-1), check.Head("shared").Version)
	lines := 0
	for i := range outs {
		for line := range strings.Lines(outs[i].String()) {
			require.True(t, stored[strings.TrimSpace(line)], "writer %d was told %q", i, line)
			lines++
		}
	}
	require.Equal(t, 2*writers*each, lines)
}

// Goroutines and memory stay flat over 10,000 operations with faults.
func TestNoLeaks(t *testing.T) {
	const rounds = 500
	c := cluster(t, peer.Options{Nodes: 3})
	s := open(t, c.URL(), Options{Cache: filepath.Join(t.TempDir(), "cache.db"), CallTimeout: time.Second, Patience: 20 * time.Second})
	faults := []peer.Fault{peer.NotReady, peer.TimeoutLost, peer.TimeoutDone, peer.CutBefore, peer.CutAfter}
	c.Script(func(n int, _ peer.Write) peer.Fault {
		if n%50 == 49 {
			return faults[n/50%len(faults)]
		}
		return peer.NoFault
	})
	operations := 0
	round := func(i int) {
		stream := ledger.StreamID(fmt.Sprintf("s%d", i%20))
		at := ledger.Version(i/20*4) - 1
		for k := range ledger.Version(4) {
			mustAppend(t, s, stream, at+k, fmt.Sprintf("%d/%d", i, k))
		}
		for range 4 {
			_, _, err := s.Head(t.Context(), stream)
			require.NoError(t, err)
			_, err = s.Size(t.Context())
			require.NoError(t, err)
			_, err = s.Append(t.Context(), stream, ledger.NoStream, said("late"))
			require.Error(t, err)
		}
		for range 2 {
			for _, err := range s.ReadStream(t.Context(), stream, 0) {
				require.NoError(t, err)
				break
			}
			for _, err := range s.ReadAll(t.Context(), 2) {
				require.NoError(t, err)
				break
			}
		}
		if i%100 == 99 {
			c.MoveLeader(i / 100 % 3)
			c.Leader().Cut()
		}
		operations += 20
	}
	for i := range rounds / 5 {
		round(i)
	}
	goroutines, heap := runtime.NumGoroutine(), liveHeap()
	for i := rounds / 5; i < rounds; i++ {
		round(i)
	}
	require.Equal(t, 10_000, operations)
	settles(t, goroutines+8)
	// The peer keeps what was appended in memory, in this process: about a kilobyte an event.
	require.Less(t, int64(liveHeap())-int64(heap), int64(rounds*4*4/5*2048+4<<20), "heap grew")
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
