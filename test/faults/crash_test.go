package faults

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/sqlite"
)

// mortal is a ledger that kills its process at one append, and tells of each that was acknowledged.
type mortal struct {
	ledger.Ledger
	at    int // from 1; 0 = never
	after bool

	mu sync.Mutex
	n  int
}

func (m *mortal) Append(ctx context.Context, id ledger.StreamID, v ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	m.mu.Lock()
	m.n++
	dies := m.n == m.at
	m.mu.Unlock()
	if dies && !m.after {
		perish()
	}
	done, err := m.Ledger.Append(ctx, id, v, events...)
	if err == nil {
		for i, e := range events {
			fmt.Printf("%s %d %s\n", id, uint64(v+1)+uint64(i), e.Type)
		}
	}
	if dies {
		perish()
	}
	return done, err
}

// perish is kill -9 of this process: nothing of it runs any more.
func perish() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func runner(args []string) error {
	home, src, socket := args[0], args[1], args[2]
	at, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	store, err := sqlite.Open(context.Background(), filepath.Join(home, "ledger.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	driver, err := docker.Open(socket)
	if err != nil {
		return err
	}
	s := &site{home: home, source: src}
	ours := &mortal{Ledger: store, at: at, after: args[4] == "after"}
	j := journal.New(journal.Config{Ledger: ours, Actor: "runner"})
	_, err = s.wardenOf(j, driver).Run(context.Background(), warden.RunRequest{Attempt: "one", Path: src, Accepted: accepted}, nil)
	fmt.Printf(appendsLine, ours.n)
	return err
}

// appendsLine is what a runner that comes to its end says last.
const appendsLine = "appends %d\n"

// crash is one death: at an append, at a request, or after a while.
type crash struct {
	append int
	after  bool // the append was acknowledged; the request is done all the same
	call   fakedaemon.Call
	nth    int
	while  time.Duration
}

func (c crash) String() string {
	switch {
	case c.append > 0:
		return fmt.Sprintf("append %d after=%v", c.append, c.after)
	case c.call != "":
		return fmt.Sprintf("%s %d done=%v", c.call, c.nth, c.after)
	}
	return fmt.Sprintf("after %v", c.while)
}

// mortality is a site on a real disk and a real socket.
func mortality(t *testing.T) *site {
	top := t.TempDir()
	s := &site{home: filepath.Join(top, "home"), source: filepath.Join(top, "source")}
	require.NoError(t, os.Mkdir(s.home, 0o700))
	require.NoError(t, os.Mkdir(s.source, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.source, "a.txt"), []byte("one\n"), 0o644))
	s.daemon = fakedaemon.Start(t, fakedaemon.Options{})
	id, err := s.daemon.AddImage(fakedaemon.Image{Name: "tool:1"})
	require.NoError(t, err)
	require.NoError(t, s.image.UnmarshalText([]byte(id)))
	s.daemon.Script("/tool", scenes[0].program)
	store, err := sqlite.Open(t.Context(), filepath.Join(s.home, "ledger.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s.memory = store
	s.journal = journal.New(journal.Config{Ledger: store, Actor: "init"})
	require.NoError(t, s.journal.Init(t.Context(), keys()))
	s.register(t, s.registration("one"))
	s.driver, err = docker.Open(s.daemon.Socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.driver.Close()) })
	return s
}

// dies runs the runner until it dies or ends, and returns what it was told to be stored, and, of one that
// came to its end, in how many appends.
func (s *site) dies(t *testing.T, c crash) (acknowledged []string, appends int, killed bool) {
	self, err := os.Executable()
	require.NoError(t, err)
	order := "before"
	if c.after {
		order = "after"
	}
	cmd := exec.Command(self, childRunner, s.home, s.source, s.daemon.Socket, strconv.Itoa(c.append), order)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	started := make(chan struct{})
	if c.call != "" {
		var effect fakedaemon.Effect = fakedaemon.DropBefore{}
		if c.after {
			effect = fakedaemon.DropReply{}
		}
		// The runner may ask before its parent knows that it started.
		kill := func() bool { <-started; return cmd.Process.Kill() == nil }
		s.daemon.Fault(fakedaemon.Fault{Call: c.call, Nth: 1, Effect: effect, If: func(r fakedaemon.Request) bool {
			return r.Nth == c.nth && kill()
		}})
	}
	require.NoError(t, cmd.Start())
	close(started)
	if c.while > 0 {
		timer := time.AfterFunc(c.while, func() { cmd.Process.Kill() }) // an error means that it ended before
		defer timer.Stop()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n, _ := fmt.Sscanf(lines.Text()+"\n", appendsLine, &appends); n == 1 {
			continue
		}
		acknowledged = append(acknowledged, lines.Text())
	}
	err = cmd.Wait()
	if err != nil {
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		require.True(t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "%v", err)
	}
	return acknowledged, appends, err != nil
}

// TestCrashMatrix kills the runner at every append, before and after it, at every request, done or
// not, and at random instants; then a supervisor comes.
//
// req G9, req G8, req E1, req E5, req F2, req G3
func TestCrashMatrix(t *testing.T) {
	var sum tally
	random := 20
	if full() {
		random = 300
	}
	seed := seeded(t)
	var all []crash
	s := mortality(t)
	begun := time.Now()
	events, appends, killed := s.dies(t, crash{})
	lasted := time.Since(begun)
	require.False(t, killed)
	require.Greater(t, len(events), 15)
	require.Greater(t, appends, 10)
	for n := range appends {
		all = append(all, crash{append: n + 1}, crash{append: n + 1, after: true})
	}
	seen := map[fakedaemon.Call]int{}
	for _, r := range s.daemon.Requests() {
		seen[r.Call]++
		all = append(all, crash{call: r.Call, nth: seen[r.Call]}, crash{call: r.Call, nth: seen[r.Call], after: true})
	}
	points := len(all)
	draw := rand.New(rand.NewPCG(seed, 0))
	for range random {
		all = append(all, crash{while: 1 + time.Duration(draw.Int64N(int64(lasted)))})
	}
	t.Run("points", func(t *testing.T) {
		for i, c := range all {
			t.Run(strings.ReplaceAll(c.String(), " ", "_"), func(t *testing.T) {
				t.Parallel()
				s := mortality(t)
				acknowledged, _, killed := s.dies(t, c)
				if i < points {
					require.True(t, killed, "it never came to that point")
				}
				sum.add(s.afterCrash(t, acknowledged, killed))
			})
		}
	})
	t.Logf("count: %d deaths (%d points, %d random); %s", len(all), points, random, &sum)
	require.Equal(t, len(all), sum.n)
	require.Equal(t, 2*(appends+len(s.daemon.Requests())), points, "each append and each request, before and after")
	require.Greater(t, points, 60)
}

// afterCrash holds what a dead runner left against the invariants, and again after a supervisor.
func (s *site) afterCrash(t *testing.T, acknowledged []string, killed bool) string {
	a := s.stored(t, "one")
	var kept []string
	for _, e := range a.Events {
		kept = append(kept, fmt.Sprintf("%s %d %s", e.Stream, uint64(e.Version), e.Type))
	}
	for _, line := range acknowledged {
		require.Contains(t, kept, line, "an acknowledged event is lost")
	}
	s.audit(t)
	s.daemon.ClearFaults()
	s.left(t, a)
	if a.Fold.State == evidence.StateFinished {
		if killed {
			require.Contains(t, []string{"ok"}, evidence.VerdictOf(&a.Fold).Detail, "killed after its finish")
		}
	}
	passes := 0
	for ; passes < 2; passes++ {
		w := s.wardenOf(journal.New(journal.Config{Ledger: s.memory, Actor: "supervisor"}), s.driver)
		_, err := w.Supervise(t.Context(), warden.Pass{Audit: true}, nil)
		require.NoError(t, err)
	}
	s.audit(t)
	before, a := a, s.stored(t, "one")
	s.left(t, a)
	v := evidence.VerdictOf(&a.Fold)
	switch {
	case before.Fold.State == evidence.StatePending:
		require.Equal(t, evidence.StatePending, a.Fold.State)
		return "pending"
	case before.Fold.State == evidence.StateFinished:
		require.NoFileExists(t, filepath.Join(s.home, "locks", "one"))
		require.Empty(t, s.snapshots(t))
		return "finished before"
	}
	require.NotEqual(t, evidence.OutcomeSuccess, v.Outcome)
	if a.Fold.State != evidence.StateFinished { // req E5: the create may come yet
		open := a.Fold.Custodies.Open()
		require.Len(t, open, 1)
		require.Nil(t, open[0].Container)
		require.Equal(t, "create_unanswered", open[0].Unconfirmed)
		require.Empty(t, s.daemon.Containers())
		return "open"
	}
	require.Empty(t, s.daemon.Containers())
	require.Empty(t, s.snapshots(t))
	require.NoFileExists(t, filepath.Join(s.home, "locks", "one"))
	return "recovered " + v.Detail
}
