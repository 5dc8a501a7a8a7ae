package faults

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
)

// audit holds the whole ledger against the rules of bytes and of meaning: chain, legal histories,
// judged claims, records that derive again.
func (s *site) audit(t testing.TB) {
	t.Helper()
	bytesOf, meaning := ledger.NewChecker(), journal.Meaning{}
	for e, err := range s.memory.ReadAll(context.Background(), 0) {
		require.NoError(t, err)
		_, err = bytesOf.Check(e)
		require.NoError(t, err)
		require.NoError(t, meaning.Visit(e))
	}
	require.Empty(t, meaning.Unread())
}

// check holds what a run left against the invariants. err is what the run returned. It takes the
// faults back first: what is checked is the truth.
func (s *site) check(t testing.TB, c scene, res warden.Result, err error) journal.Attempt {
	t.Helper()
	if !s.patient {
		require.LessOrEqual(t, time.Since(s.began), wall+warden.Allowance, "a recoverer would have fenced a living runner")
	}
	s.audit(t)
	a := s.stored(t, "one")
	s.intents(t, a)
	s.calm()
	for _, id := range s.strangers {
		_, there := s.daemon.Container(id)
		require.True(t, there, "a stranger's container is gone")
	}
	finished := a.Fold.State == evidence.StateFinished
	open := a.Fold.Custodies.Open()
	s.left(t, a)

	if err == nil {
		require.Equal(t, finished, res.Finished)
		require.Equal(t, evidence.VerdictOf(&a.Fold), res.Verdict, "what the runner says is what is stored")
	}
	if !finished {
		if len(open) == 0 {
			require.Error(t, err, "it didn't finish, nothing is open, and nobody says why")
		} else {
			require.Equal(t, 6, evidence.VerdictOf(&a.Fold).Exit)
			require.Equal(t, evidence.OutcomeIndeterminate, evidence.VerdictOf(&a.Fold).Outcome)
		}
		if a.Fold.Snapshot == evidence.SnapshotHeld && len(open) > 0 {
			require.Len(t, s.snapshots(t), 1, "a container may mount it")
		}
		if a.Fold.Claimed != nil {
			require.FileExists(t, filepath.Join(s.home, "locks", "one"), "recovery needs it")
		}
		return a
	}
	require.Empty(t, open)
	if a.Fold.Snapshot != evidence.SnapshotKept {
		require.Empty(t, s.snapshots(t))
	}
	if res.Finished {
		_, err := os.Lstat(filepath.Join(s.home, "locks", "one"))
		require.True(t, errors.Is(err, os.ErrNotExist), "the lock of a finished attempt")
	}
	v := evidence.VerdictOf(&a.Fold)
	if v.Outcome == evidence.OutcomeUnavailable {
		require.Empty(t, s.requests(fakedaemon.CallStart))
	}
	if v.Outcome == evidence.OutcomeSuccess {
		require.Equal(t, evidence.OutcomeSuccess, c.outcome, "a scene that can't succeed")
		s.trulySucceeded(t, a)
	}
	return a
}

// own reports whether a container is one that we made: it carries our labels and nobody made it to
// look so.
func own(c fakedaemon.Container, a journal.Attempt) bool {
	for _, k := range a.Fold.Custodies {
		if k.Container != nil && k.Container.Hex() == c.ID {
			return true
		}
		if c.Labels[executor.LabelHandle] == k.Handle.String() && !c.Twin {
			return true
		}
	}
	return false
}

// left holds every container of ours on the daemon against open custody.
func (s *site) left(t testing.TB, a journal.Attempt) {
	t.Helper()
	handles := map[string]bool{}
	for _, k := range a.Fold.Custodies.Open() {
		handles[k.Handle.String()] = true
	}
	for _, c := range s.daemon.Containers() {
		if slices.Contains(s.strangers, c.ID) || c.Twin {
			continue
		}
		require.True(t, own(c, a), "container %s (%s, %v) belongs to nobody", c.Name, c.Status, c.Labels)
		require.True(t, handles[c.Labels[executor.LabelHandle]], "container %s (%s) is left and no open custody names it: %s", c.Name, c.Status, types(a))
	}
}

// intents holds every request that changes something against the events before it (law 2), and
// against what it may name (req E3, E7).
func (s *site) intents(t testing.TB, a journal.Attempt) {
	t.Helper()
	once := func(call fakedaemon.Call, intent string) {
		t.Helper()
		made := s.requests(call)
		require.LessOrEqual(t, len(made), 1, "%s is sent once", call)
		for _, r := range made {
			at, ok := s.watched.durable(intent)
			require.True(t, ok, "%s was sent without a durable %s: %s", call, intent, types(a))
			require.Greater(t, r.Seq, at, "%s was sent before its %s was durable", call, intent)
		}
	}
	once(fakedaemon.CallCreate, "CustodyTaken")
	once(fakedaemon.CallStart, "StartOrdered")
	ids := map[string]bool{}
	for _, k := range a.Fold.Custodies {
		if k.Container != nil {
			ids[k.Container.Hex()] = true
		}
	}
	for _, r := range s.requests(fakedaemon.CallStart, fakedaemon.CallRemove, fakedaemon.CallKill, fakedaemon.CallAttach, fakedaemon.CallWait) {
		require.True(t, ids[r.Object], "%s of %q, which custody doesn't name: %s", r.Call, r.Object, types(a))
	}
	for _, r := range s.requests(fakedaemon.CallRemove) {
		at, ok := s.watched.durable("RemovalOrdered")
		if !ok || r.Seq <= s.taken && r.Seq <= at {
			// Decision 0011: with the ID on record, a failed append doesn't keep a container alive.
			require.Positive(t, s.watched.unacknowledged(), "a removal without a durable order: %s", types(a))
			continue
		}
		require.True(t, r.Seq > at || s.patient, "a removal before its order was durable: %s", types(a))
	}
	for _, call := range []fakedaemon.Call{fakedaemon.CallStop, fakedaemon.CallRestart, fakedaemon.CallRename, fakedaemon.CallUpdate,
		fakedaemon.CallExecCreate, fakedaemon.CallPause, fakedaemon.CallImageRemove, fakedaemon.CallImageLoad, fakedaemon.CallCopyTo} {
		require.Empty(t, s.requests(call), "a run never makes a %s", call)
	}
}

func types(a journal.Attempt) string {
	var out []string
	for _, e := range a.Events {
		out = append(out, e.Type)
	}
	return strings.Join(out, " ")
}

// trulySucceeded holds a success against the daemon's own log and state, which no fault bends, and
// against every line of req F2.
func (s *site) trulySucceeded(t testing.TB, a journal.Attempt) {
	t.Helper()
	f := &a.Fold
	require.False(t, f.Fenced())
	main, ok := f.Custodies.MainContainer()
	require.True(t, ok)
	require.True(t, main.Ordered)
	require.True(t, main.Closed)
	var actions []string
	var startedAt int64
	for _, e := range s.daemon.EventLog() {
		if e.Type == "container" && e.Actor == main.Container.Hex() && e.Action != "top" { // which changes nothing
			if e.Action == "start" && startedAt == 0 {
				startedAt = e.TimeNano
			}
			actions = append(actions, e.Action)
		}
	}
	// Decision 0061: once the exit was observed, nothing that is done to the container can change it.
	require.Equal(t, "create attach start die", strings.Join(actions[:4], " "), "%v", actions)
	require.Contains(t, actions[4:], "destroy")
	// req C9: what ran to that exit is what our own request started.
	ours := s.requests(fakedaemon.CallStart)
	require.Len(t, ours, 1)
	require.Equal(t, http.StatusNoContent, ours[0].Status, "it ran already")
	require.Greater(t, startedAt, ours[0].Time.UnixNano(), "it was started before our request")
	require.NotNil(t, f.Run.Exited)
	require.Zero(t, f.Run.Exited.ExitCode)
	require.Equal(t, evidence.OOMNone, f.Run.Exited.OOMEvent)
	require.Empty(t, f.Run.Exited.Faults)
	require.Empty(t, f.Run.Exited.Interference)
	for _, o := range []*evidence.RuntimeObserved{f.BeforeStart, f.AfterExit} {
		require.NotNil(t, o)
		require.True(t, f.BeforeCreate.Identity.Equal(*o.Identity))
	}
	for _, k := range f.Isolation.Controls {
		require.True(t, k.Equal, "control %d", k.ID)
	}
	j := journal.New(journal.Config{Ledger: s.memory, Actor: "reader"})
	if s.contained != nil {
		s.trulyEdited(t, f, j)
	}
	for _, o := range []struct {
		of   evidence.Stream
		want string
	}{{f.Run.Output.Stdout, "hello\n"}, {f.Run.Output.Stderr, "warning\n"}} {
		kept, err := j.Kept(context.Background(), o.of.Bytes)
		require.NoError(t, err)
		require.Equal(t, o.want, string(kept.Bytes))
		require.True(t, o.of.EndOfStream)
		require.False(t, o.of.Truncated)
		require.EqualValues(t, len(o.want), o.of.Received)
	}
}

// unacknowledged is how many appends failed or are still under way.
func (w *watched) unacknowledged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}
