package sqlite

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

// req R2: two processes interleave 10,000 appends, and this one reads and appends meanwhile.
func TestTwoProcesses(t *testing.T) {
	const each = 5000
	path := filepath.Join(t.TempDir(), "l.db")
	s := open(t, path, Options{})
	a, b := child(t, "interleave", path, "first", fmt.Sprint(each)), child(t, "interleave", path, "second", fmt.Sprint(each))
	require.NoError(t, a.Start())
	require.NoError(t, b.Start())
	done := make(chan error, 1)
	go func() { done <- errors.Join(a.Wait(), b.Wait()) }()
	own := 0
	for running := true; running; {
		select {
		case err := <-done:
			require.NoError(t, err)
			running = false
		default:
			_, err := s.Append(testContext, "own", ledger.Version(own)-1, event(fmt.Sprint(own)))
			require.NoError(t, err)
			own++
			time.Sleep(5 * time.Millisecond)
		}
	}
	check := sound(t, s)
	require.Equal(t, uint64(2*each+own), check.Size())
	require.Equal(t, ledger.Version(2*each/10-1), check.Head("shared").Version)
	for _, stream := range []ledger.StreamID{"first", "second"} {
		require.Equal(t, ledger.Version(each-each/10-1), check.Head(stream).Version)
	}

	// They did take turns: the order isn't one process after the other.
	turns, before := 0, ledger.StreamID("")
	for e, err := range s.ReadAll(testContext, 0) {
		require.NoError(t, err)
		if e.Stream == "first" || e.Stream == "second" {
			if e.Stream != before {
				turns++
			}
			before = e.Stream
		}
	}
	require.Greater(t, turns, 10)
}

// req R2: a subscription sees what another process appends, within a second.
func TestSubscribeAcrossProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.db")
	s := open(t, path, Options{})
	cmd := child(t, "interleave", path, "other", "30")
	require.NoError(t, cmd.Start())
	seen := 0
	for _, err := range s.Subscribe(t.Context(), 0) {
		require.NoError(t, err)
		if seen++; seen == 30 {
			break
		}
	}
	require.NoError(t, cmd.Wait())
}

// req R2: kill -9 while appending loses nothing acknowledged and breaks nothing.
func TestKill(t *testing.T) {
	const rounds = 20
	path := filepath.Join(t.TempDir(), "l.db")
	total := 0
	for round := range rounds {
		cmd := child(t, "crash", path, fmt.Sprintf("round-%d", round))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		var acknowledged []string
		var killer *time.Timer
		for lines.Scan() {
			if killer == nil { // from the first acknowledged event on
				killer = time.AfterFunc(time.Duration(rand.IntN(60_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
			}
			acknowledged = append(acknowledged, lines.Text())
		}
		require.Error(t, cmd.Wait(), "it was killed")
		require.NotEmpty(t, acknowledged)
		total += len(acknowledged)

		s, err := Open(testContext, path, Options{})
		require.NoError(t, err)
		stored := map[string]bool{}
		check := ledger.NewChecker()
		for e, err := range s.ReadAll(testContext, 0) {
			require.NoError(t, err)
			leaf, err := check.Check(e)
			require.NoError(t, err)
			stored[fmt.Sprintf("%s %d %d %s", e.Stream, e.Version, e.Index, leaf.EventID())] = true
		}
		root, err := s.Root(testContext, check.Size())
		require.NoError(t, err)
		require.Equal(t, check.Root(), root)
		for _, line := range acknowledged[:len(acknowledged)-1] { // the last line may be cut
			require.True(t, stored[line], "round %d lost %s", round, line)
		}
		for w := range 4 { // pairs are appended together
			v := check.Head(ledger.StreamID(fmt.Sprintf("round-%d-%d", round, w))).Version
			require.Equal(t, ledger.Version(1), (v+2)%2, "half a batch was stored")
		}
		require.NoError(t, s.Close())
	}
	require.Greater(t, total, 10*rounds)
}

// An append behind another process's lock waits as long as it may, and is then refused.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.db")
	s := open(t, path, Options{BusyTimeout: 200 * time.Millisecond})
	_, err := s.Append(testContext, "a", ledger.NoStream, event("one"))
	require.NoError(t, err)

	cmd := child(t, "hold", path)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	held, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", held)

	start := time.Now()
	_, err = s.Append(testContext, "a", 0, event("two"))
	require.ErrorIs(t, err, sqlite3.BUSY)
	require.NotErrorIs(t, err, ledger.ErrUnknownOutcome)
	require.ErrorContains(t, err, "another process")
	require.GreaterOrEqual(t, time.Since(start), 200*time.Millisecond)
	n, err := versions(s, "a")
	require.NoError(t, err, "readers don't wait for writers")
	require.Equal(t, 1, n)

	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	_, err = s.Append(testContext, "a", 0, event("two"))
	require.NoError(t, err)
}

// Many that create the same ledger at once all end up with the same one.
func TestCreateTogether(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "l.db")
		const n = 6
		done := make(chan error, n)
		for i := range n {
			go func() {
				s, err := Open(testContext, path, Options{})
				if err == nil {
					_, err = s.Append(testContext, ledger.StreamID(fmt.Sprintf("s%d", i)), ledger.NoStream, event("x"))
					err = errors.Join(err, s.Close())
				}
				done <- err
			}()
		}
		for range n {
			require.NoError(t, <-done)
		}
		require.Equal(t, uint64(n), sound(t, open(t, path, Options{})).Size())
	}
}

// Appends that wait for one commit share the next.
func TestGroupCommit(t *testing.T) {
	shim, name := newShim(t)
	s := open(t, filepath.Join(t.TempDir(), "l.db"), Options{vfs: name})
	_, err := s.Append(testContext, "first", ledger.NoStream, event("x")) // a new log is synced once more
	require.NoError(t, err)
	const writers = 40
	release, held := make(chan struct{}), make(chan struct{})
	errs := make(chan error, writers+1)
	syncs := shim.count(operation{"sync", "wal"}, func() {
		go func() {
			errs <- s.submit(testContext, &job{do: func(*writer) (error, error) { close(held); <-release; return nil, nil }})
		}()
		<-held
		for i := range writers {
			go func() {
				// Half of them lose, which must cost the others nothing.
				_, err := s.Append(testContext, ledger.StreamID(fmt.Sprintf("s%d", i)), ledger.Version(i%2)-1, event("x"))
				var conflict *ledger.ConflictError
				if i%2 == 1 && errors.As(err, &conflict) {
					err = nil
				}
				errs <- err
			}()
		}
		for len(s.jobs) < writers {
			time.Sleep(time.Millisecond)
		}
		close(release)
		for range writers + 1 {
			require.NoError(t, <-errs)
		}
	})
	require.Equal(t, 1, syncs)
	require.Equal(t, uint64(1+writers/2), sound(t, s).Size())
}
