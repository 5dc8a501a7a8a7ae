//go:build live

package faults

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/sqlite"
)

// fuse ends its process at one point of its life. Points are named: what, how often so far, and
// whether before or after it.
type fuse struct {
	at string

	mu   sync.Mutex
	seen map[string]int
}

const (
	wordPoint  = "point"
	wordStored = "stored"
)

func (f *fuse) point(what, when string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[when+what]++
	name := fmt.Sprintf("%s %d %s", what, f.seen[when+what], when)
	fmt.Println(wordPoint, name)
	if name == f.at {
		perish()
	}
}

func (f *fuse) before(what string) { f.point(what, "before") }
func (f *fuse) after(what string)  { f.point(what, "after") }

// fused tells of each append before it, and of what was acknowledged.
type fused struct {
	ledger.Ledger
	fuse *fuse
}

func (l *fused) Append(ctx context.Context, id ledger.StreamID, v ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	l.fuse.before(nameOf(events))
	done, err := l.Ledger.Append(ctx, id, v, events...)
	if err == nil {
		for _, e := range done.Events {
			fmt.Println(wordStored, e.Stream, uint64(e.Version), e.Type)
		}
	}
	l.fuse.after(nameOf(events))
	return done, err
}

// mortalRunner runs one attempt: home, source, socket, attempt, and the point it dies at.
func mortalRunner(args []string) error {
	home, src, socket, id := args[0], args[1], args[2], evidence.AttemptID(args[3])
	f := &fuse{at: args[4], seen: map[string]int{}}
	store, err := sqlite.Open(context.Background(), filepath.Join(home, "ledger.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	driver, err := docker.Open(socket)
	if err != nil {
		return err
	}
	s := &site{home: home, source: src}
	dog, err := warden.StartWatchdog("/proc/self/exe", childWatchdog, socket)
	if err != nil {
		return err
	}
	s.dog = dog
	j := journal.New(journal.Config{Ledger: &fused{store, f}, Actor: "runner"})
	w := s.wardenOf(j, &hooked{Driver: driver, before: f.before, after: f.after})
	_, err = w.Run(context.Background(), warden.RunRequest{Attempt: id, Path: src, Accepted: accepted}, nil)
	return err
}

// deadly are the points that the short form kills at: around each intent and what it is for, with the
// container made, running, exited and removed.
var deadly = []string{
	"append AttemptClaimed 1 after",
	"append SourceMaterialized 1 after",
	"append CustodyTaken 1 before",
	"create 1 before",
	"create 1 after",
	"append ContainerCreated 1 after",
	"start 1 before",
	"start 1 after",
	"append ContainerStarted 1 after",
	"remove 1 before",
	"remove 1 after",
	"append RemovalObserved 1 before",
	"append AttemptFinished 1 before",
	"append AttemptFinished 1 after",
}

// liveDeath is where, or how long after its start, a runner is killed.
type liveDeath struct {
	at    string
	while time.Duration
}

// lives runs an attempt in a process of its own until it ends or is killed.
func (s *liveSite) lives(t *testing.T, id evidence.AttemptID, d liveDeath) (points, stored []string, killed bool) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, childMortal, s.home, s.source, s.socket, string(id), d.at)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	if d.while > 0 {
		timer := time.AfterFunc(d.while, func() { cmd.Process.Kill() }) // an error means that it ended before
		defer timer.Stop()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case wordPoint:
			points = append(points, rest)
		case wordStored:
			stored = append(stored, rest)
		default:
			t.Errorf("the runner said %q", lines.Text())
		}
	}
	if err = cmd.Wait(); err != nil {
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		require.True(t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "%v", err)
	}
	return points, stored, err != nil
}

// TestLiveCrashMatrix kills a runner on the real daemon around its appends and calls, and at random
// instants; a supervisor ends its attempt within two passes, and nothing of it is left.
//
// req G9, req G8, req E1, req E5, req F2, req D5, req G7
func TestLiveCrashMatrix(t *testing.T) {
	s := newLiveSite(t, machineSocket())
	random := 6
	if full() {
		random = 60
	}
	draw := rand.New(rand.NewPCG(seeded(t), 0))
	begun := time.Now()
	id := s.registers(t, "sleep", "300ms")
	points, stored, killed := s.lives(t, id, liveDeath{})
	lasted := time.Since(begun)
	require.False(t, killed)
	require.Greater(t, len(stored), 15)
	require.Equal(t, evidence.OutcomeSuccess, verdict(s, t, id).Outcome)
	s.nothingLeft(t, id)
	require.Subset(t, points, deadly, "a point that no runner comes to")
	var all []liveDeath
	for _, p := range points {
		if full() || slices.Contains(deadly, p) {
			all = append(all, liveDeath{at: p})
		}
	}
	named := len(all)
	for range random {
		all = append(all, liveDeath{while: 1 + time.Duration(draw.Int64N(int64(lasted)))})
	}
	var sum tally
	var ids []evidence.AttemptID
	for _, d := range all {
		t.Run(strings.ReplaceAll(fmt.Sprint(d.at, d.while), " ", "_"), func(t *testing.T) {
			id := s.registers(t, "sleep", "300ms")
			ids = append(ids, id)
			_, acknowledged, killed := s.lives(t, id, d)
			if slices.Contains(deadly, d.at) {
				require.True(t, killed, "it never came to that point")
			}
			sum.add(s.afterDeath(t, id, acknowledged))
		})
	}
	s.passes(t, 1) // finds what a create made that was under way when its runner died
	for _, id := range ids {
		require.Empty(t, s.ours(t, id))
	}
	t.Logf("count: %d deaths (%d points of %d, %d random); %s", len(all), named, len(points), random, &sum)
	require.Equal(t, len(all), sum.n)
	require.GreaterOrEqual(t, len(all), len(deadly)+6)
}

func verdict(s *liveSite, t testing.TB, id evidence.AttemptID) evidence.Verdict {
	a := s.stored(t, id)
	return evidence.VerdictOf(&a.Fold)
}

// afterDeath holds what a dead runner left against the invariants, and again after a supervisor.
func (s *liveSite) afterDeath(t *testing.T, id evidence.AttemptID, acknowledged []string) string {
	before := s.stored(t, id)
	var kept []string
	for _, e := range before.Events {
		kept = append(kept, fmt.Sprint(e.Stream, " ", uint64(e.Version), " ", e.Type))
	}
	require.Subset(t, kept, acknowledged, "an acknowledged event is lost")
	handles := map[string]bool{}
	for _, k := range before.Fold.Custodies.Open() {
		handles[k.Handle.String()] = true
	}
	for _, c := range s.ours(t, id) {
		require.True(t, handles[c.Labels[executor.LabelHandle]], "container %v is left and no open custody names it: %s", c.Names, types(before))
	}
	s.passes(t, 2)
	s.audit(t)
	a := s.stored(t, id)
	v := evidence.VerdictOf(&a.Fold)
	require.Empty(t, s.ours(t, id))
	switch {
	case before.Fold.State == evidence.StatePending:
		require.Equal(t, evidence.StatePending, a.Fold.State)
		require.NoDirExists(t, filepath.Join(s.home, "execution", string(id)))
		return "pending"
	case before.Fold.State == evidence.StateFinished:
		s.nothingLeft(t, id)
		return "finished before"
	}
	require.NotEqual(t, evidence.OutcomeSuccess, v.Outcome)
	if a.Fold.State != evidence.StateFinished { // req E5: the create may come yet
		open := a.Fold.Custodies.Open()
		require.Len(t, open, 1)
		require.Nil(t, open[0].Container)
		require.Equal(t, executor.OpenUnanswered, open[0].Unconfirmed)
		require.Equal(t, 6, v.Exit)
		return "open"
	}
	s.nothingLeft(t, id)
	return "recovered " + v.Detail
}
