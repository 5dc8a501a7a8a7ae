package warden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/ledger"
)

// names is a lister that knows these.
type names []evidence.AttemptID

func (n names) Unfinished(context.Context) ([]evidence.AttemptID, error) { return n, nil }

func (y *yard) pass(t testing.TB, p Pass) map[evidence.AttemptID]Supervised {
	met, err := y.warden.Supervise(context.Background(), p, nil)
	require.NoError(t, err)
	out := map[evidence.AttemptID]Supervised{}
	for _, m := range met {
		require.NotContains(t, out, m.Attempt, "%v", met)
		out[m.Attempt] = m
	}
	return out
}

// req G8, req G9: whatever dead runners of this home left is ended in one pass, all side by side; what
// can't be proved gone stays open and is tried again; nothing else is touched.
func TestSupervise(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	y.programs(running)
	husks := map[stage]husk{}
	var ours []evidence.ContainerID
	for _, at := range []stage{claimed, placed, taken, lost, made, running, putDownBody} {
		h := y.die(t, fmt.Sprintf("dead-%d", at), at)
		husks[at] = h
		ours = append(ours, h.container)
	}
	pending := y.register(t, y.registration("pending"))
	away := y.die(t, "away", made, func(c *journal.Claim, _ *evidence.DaemonIdentity) { c.Home.Home[3]++ })
	copied := y.die(t, "copied", made, func(c *journal.Claim, _ *evidence.DaemonIdentity) { c.Home.Inode++ })
	machine := y.die(t, "machine", made, func(c *journal.Claim, _ *evidence.DaemonIdentity) { c.Home.Machine = &evidence.MachineID{1} })

	met := y.pass(t, Pass{Lister: names{"dead-0", "dead-1"}})
	for at, h := range husks {
		if at == taken {
			require.Equal(t, ActionUnconfirmed, met[h.id].Action)
			require.EqualValues(t, 2, met[h.id].Generation)
			here, err := y.warden.Home.Identity()
			require.NoError(t, err)
			require.Contains(t, met[h.id].Detail, fmt.Sprintf("claimed from home %s (inode %d) on machine %s", here.Home, here.Inode, here.Machine))
			continue
		}
		require.Equal(t, ActionRecovered, met[h.id].Action, "%s: %v", at, met[h.id])
		require.Equal(t, evidence.OutcomeIncomplete, met[h.id].Outcome)
		require.Equal(t, evidence.StateFinished, y.stored(t, h.id).State)
		require.NoDirExists(t, filepath.Join(y.home, "execution", string(h.id)))
	}
	for _, h := range []husk{away, copied, machine} { // found by their lock files
		require.Equal(t, ActionElsewhere, met[h.id].Action)
		require.Contains(t, met[h.id].Detail, "claimed from home")
		require.EqualValues(t, 1, y.stored(t, h.id).Generation)
		_, there := y.daemon.Container(h.container.Hex())
		require.True(t, there)
	}
	require.Len(t, y.daemon.Containers(), 3)
	require.Equal(t, evidence.StatePending, y.stored(t, pending).State)
	require.NotContains(t, met, pending)

	// The next pass has one attempt left to try; a patient one leaves it alone for a while.
	patient := y.pass(t, Pass{Patient: true})
	require.Equal(t, ActionWaiting, patient["dead-2"].Action)
	require.EqualValues(t, 2, y.stored(t, "dead-2").Generation, "a waiting attempt's stream doesn't grow")
	again := y.pass(t, Pass{})
	require.Equal(t, ActionUnconfirmed, again["dead-2"].Action)
	require.EqualValues(t, 3, again["dead-2"].Generation)
	require.Len(t, again, 4)
	y.sound(t, ours...)
}

// req G8: a full scan finds what neither the list nor the home's files name.
func TestSuperviseAuditsItsList(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	h := y.die(t, "one", claimed)
	require.NoError(t, os.Remove(filepath.Join(y.home, "locks", "one")))
	require.Empty(t, y.pass(t, Pass{Lister: names{}}))
	met, err := y.warden.Supervise(t.Context(), Pass{Lister: names{}, Audit: true}, nil)
	require.NoError(t, err)
	require.Len(t, met, 2)
	require.Equal(t, ActionRecovered, met[0].Action)
	require.Equal(t, ActionUnlisted, met[1].Action)
	y.atRest(t, h)
}

// req G8: a runner that holds its lock is left alone within its hard deadline, and only there.
func TestSuperviseAndLiveRunners(t *testing.T) {
	for name, c := range map[string]struct {
		bend   func(*journal.Claim, *evidence.DaemonIdentity)
		action Action
	}{
		"within its deadline":     {func(*journal.Claim, *evidence.DaemonIdentity) {}, ActionRunning},
		"past its deadline":       {func(c *journal.Claim, _ *evidence.DaemonIdentity) { c.Deadline = 1 }, ActionRecovered},
		"past it in another boot": {func(c *journal.Claim, _ *evidence.DaemonIdentity) { c.Deadline = 1; c.Home.Boot[0]++ }, ActionRunning},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, fakedaemon.Options{})
			y.programs(running)
			h := y.die(t, "one", running, c.bend)
			lock, err := y.warden.Home.Lock(h.id)
			require.NoError(t, err)
			defer func() { require.NoError(t, lock.Close()) }()
			met := y.pass(t, Pass{Audit: true})
			require.Equal(t, c.action, met[h.id].Action, "%v", met[h.id])
			if c.action == ActionRunning {
				require.EqualValues(t, 1, y.stored(t, h.id).Generation, "never fenced")
				require.Len(t, y.daemon.Containers(), 1)
				return
			}
			require.Equal(t, evidence.StateFinished, y.stored(t, h.id).State)
			require.Empty(t, y.daemon.Containers())
			require.FileExists(t, lock.path, "its holder deletes it")
			y.sound(t, h.container)
		})
	}
	t.Run("fenced by another a moment ago", func(t *testing.T) {
		y := newYard(t, fakedaemon.Options{})
		h := y.die(t, "one", made, func(c *journal.Claim, _ *evidence.DaemonIdentity) { c.Deadline = 1 })
		lock, err := y.warden.Home.Lock(h.id)
		require.NoError(t, err)
		defer func() { require.NoError(t, lock.Close()) }()
		require.NoError(t, fence(y.journal, h.id))
		require.Equal(t, ActionRunning, y.pass(t, Pass{})[h.id].Action, "two supervisors don't fence each other")
	})
}

// req G8: one attempt that hangs holds up no other.
func TestSuperviseInParallel(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	stuck := y.die(t, "stuck", made)
	others := []husk{y.die(t, "b", made), y.die(t, "c", lost), y.die(t, "z", claimed)}
	y.daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallRemove, Effect: fakedaemon.Ignored{}, Times: fakedaemon.Always,
		If: func(r fakedaemon.Request) bool { return r.Object == stuck.container.Hex() }})
	done := make(chan map[evidence.AttemptID]Supervised, 1)
	go func() { done <- y.pass(t, Pass{}) }()
	for _, h := range others {
		require.Eventually(t, func() bool { return y.stored(t, h.id).State == evidence.StateFinished }, 10*time.Second, 5*time.Millisecond)
	}
	require.Equal(t, evidence.StateRunning, y.stored(t, stuck.id).State)
	require.Equal(t, ActionUnconfirmed, (<-done)[stuck.id].Action)
}

// req G8: cancelled, a supervisor begins nothing more, and what it began comes to its end.
func TestSuperviseEndsInOrder(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	h := y.die(t, "one", made)
	ctx, cancel := context.WithCancel(t.Context())
	y.beforeType("AttemptFenced", func(*journal.Journal) error { cancel(); return nil })
	met, err := y.warden.Supervise(ctx, Pass{}, nil)
	require.NoError(t, err)
	require.Len(t, met, 1)
	require.Equal(t, ActionRecovered, met[0].Action, met[0].Detail)
	y.atRest(t, h)
	other := y.die(t, "two", made)
	met, err = y.warden.Supervise(ctx, Pass{}, nil)
	require.NoError(t, err)
	require.Empty(t, met)
	require.EqualValues(t, 1, y.stored(t, other.id).Generation)
}

// req G1: an attempt that its change lists and whose own stream never opened is completed with the
// registration listed, and cancelled.
func TestSuperviseCompletesListings(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	ctx := t.Context()
	r := y.registration("one")
	r.Subject = evidence.Subject{Kind: evidence.SubjectCommit, Revision: "0123456789abcdef0123456789abcdef01234567"}
	r.Change = "c"
	long := func() time.Time { return time.Now().Add(-time.Hour) }
	require.NoError(t, y.journal.OpenChange(ctx, "c", evidence.RepositoryID{1}))
	_, err := y.journal.AddVersion(ctx, "c", r.Subject.Revision)
	require.NoError(t, err)
	_, err = y.journal.SetContext(ctx, "c", journal.Requirement{Recipe: &r.Recipe, Environment: &r.Environment, Reductions: v1})
	require.NoError(t, err)
	crash := &hooked{Ledger: y.ledger, before: func(s ledger.StreamID, _ []ledger.Prepared) error {
		if s == journal.AttemptStream("one") {
			return errLost
		}
		return nil
	}}
	fresh := journal.New(journal.Config{Ledger: crash, Actor: "operator"})
	_, err = fresh.Register(ctx, r)
	require.ErrorIs(t, err, errLost)
	require.Empty(t, y.pass(t, Pass{Audit: true}), "a moment ago: its registration may be under way")

	r.Attempt = "two"
	crash.before = func(s ledger.StreamID, _ []ledger.Prepared) error {
		if s == journal.AttemptStream("two") {
			return errLost
		}
		return nil
	}
	_, err = journal.New(journal.Config{Ledger: crash, Actor: "operator", Now: long}).Register(ctx, r)
	require.ErrorIs(t, err, errLost)
	met := y.pass(t, Pass{Audit: true})
	require.Len(t, met, 1)
	require.Equal(t, ActionCancelled, met["two"].Action, met["two"].Detail)
	require.Equal(t, evidence.OutcomeCancelled, met["two"].Outcome)
	require.Equal(t, evidence.StateFinished, y.stored(t, "two").State)
	require.NotNil(t, y.stored(t, "two").Registered.Binding)
	require.Empty(t, y.daemon.Requests())
	y.sound(t)
}

// req G8: what killed runners left is swept once its attempt is finished and nobody holds its lock.
func TestSuperviseSweeps(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	h := y.die(t, "one", made)
	_, err := y.recoverBy(t, h.id, 1, evidence.FencedByRecover)
	require.NoError(t, err)
	left := y.leave(t, h.id, "snapshot-left")
	y.leave(t, "nobody", "snapshot-of-no-attempt")
	pending := y.register(t, y.registration("pending"))
	y.leave(t, pending, "snapshot-of-a-pending")

	lock, err := y.warden.Home.Lock(h.id)
	require.NoError(t, err)
	require.Empty(t, y.pass(t, Pass{}))
	require.DirExists(t, left, "its runner is just leaving")
	require.NoError(t, lock.Close())
	met := y.pass(t, Pass{})
	require.Len(t, met, 1)
	require.Equal(t, ActionSwept, met[h.id].Action)
	y2, err := filepath.Glob(filepath.Join(y.home, "execution", "*"))
	require.NoError(t, err)
	require.Len(t, y2, 2, "what no finished attempt owns stays")
	require.NoFileExists(t, filepath.Join(y.home, "locks", "one"))
	require.Empty(t, y.pass(t, Pass{}))
	y.sound(t, h.container)
}

// req G8: the lock files of attempts that are finished, whoever claimed them, and of IDs that no attempt
// has are deleted, and nothing else of those.
func TestSuperviseSweepsLocks(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	away := y.die(t, "away", claimed, func(c *journal.Claim, _ *evidence.DaemonIdentity) { c.Home.Inode++ })
	pending := y.register(t, y.registration("pending"))
	left := []string{y.leave(t, away.id, "snapshot-away"), y.leave(t, "nobody", "snapshot-of-no-attempt")}
	held := map[evidence.AttemptID]*Lock{}
	for _, id := range []evidence.AttemptID{away.id, pending, "nobody"} {
		l, err := y.warden.Home.Lock(id)
		require.NoError(t, err)
		held[id] = l
	}
	file := func(id evidence.AttemptID) string { return filepath.Join(y.home, "locks", string(id)) }
	y.pass(t, Pass{})
	for id, l := range held {
		require.FileExists(t, file(id), "it is held")
		require.NoError(t, l.Close())
	}
	require.Equal(t, ActionElsewhere, y.pass(t, Pass{})[away.id].Action)
	require.FileExists(t, file(away.id), "its end is not known here yet")
	require.FileExists(t, file(pending))
	require.NoFileExists(t, file("nobody"))

	_, err := y.recoverBy(t, away.id, 1, evidence.FencedByRecover)
	require.NoError(t, err)
	require.Empty(t, y.pass(t, Pass{}))
	require.NoFileExists(t, file(away.id))
	require.FileExists(t, file(pending))
	for _, dir := range left {
		require.DirExists(t, dir)
	}
}

// A home that doesn't know itself takes nothing for somebody else's: it fails, and records nothing.
func TestSuperviseWithoutIdentity(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	h := y.die(t, "one", made)
	unread := y.die(t, "two", made)
	last, _, err := y.ledger.Head(t.Context(), journal.AttemptStream(unread.id))
	require.NoError(t, err)
	_, err = y.ledger.Append(t.Context(), last.Stream, last.Version, ledger.Prepared{
		Type: "SomethingNewer", Time: 1, Media: evidence.Media, Meta: last.Meta, Data: evidence.Marshal(map[int]int{1: 2}),
	})
	require.NoError(t, err)
	y.warden.Home.Dir = filepath.Join(y.home, "gone")
	met := y.pass(t, Pass{Audit: true})
	require.Equal(t, ActionFailed, met[h.id].Action, met[h.id].Detail)
	require.Equal(t, ActionFailed, met[unread.id].Action, met[unread.id].Detail)
	_, err = y.recoverBy(t, h.id, 1, evidence.FencedByRecover)
	require.ErrorContains(t, err, "look at the home")
	require.EqualValues(t, 1, y.stored(t, h.id).Generation)
}

// req E10: an attempt with events of a newer version has its containers removed all the same; to finish
// it takes who can read it.
func TestSuperviseWhatItCantRead(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	y.programs(running)
	h := y.die(t, "one", running)
	last, ok, err := y.ledger.Head(t.Context(), journal.AttemptStream(h.id))
	require.NoError(t, err)
	require.True(t, ok)
	_, err = y.ledger.Append(t.Context(), last.Stream, last.Version, ledger.Prepared{
		Type: "SomethingNewer", Time: 1, Media: evidence.Media, Meta: last.Meta, Data: evidence.Marshal(map[int]int{1: 2}),
	})
	require.NoError(t, err)
	_, err = y.journal.Attempt(t.Context(), h.id)
	require.True(t, journal.IsUnknown(err))
	_, err = y.recoverBy(t, h.id, 1, evidence.FencedByRecover)
	require.True(t, journal.IsUnknown(err), "an operator is told; nothing is guessed")

	met := y.pass(t, Pass{Audit: true})
	require.Equal(t, ActionRemoved, met[h.id].Action, met[h.id].Detail)
	require.Empty(t, y.daemon.Containers())
	k, err := y.journal.Keeper(t.Context(), h.id)
	require.NoError(t, err)
	require.Empty(t, k.Custodies().Open())
	require.EqualValues(t, 2, k.Generation())
	require.Equal(t, 1, k.Unread())
	require.Equal(t, evidence.StateRunning, k.State())
	_, err = k.Append(t.Context(), evidence.SnapshotRemoved{})
	require.Error(t, err)
	require.Empty(t, y.pass(t, Pass{Audit: true}), "and there is nothing more to do")
	require.Len(t, y.snapshots(t), 1, "its directory stays for who can read the attempt")
}

// req E10: a listing by a newer version hides nobody else.
func TestSuperviseNewerListing(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	h := y.die(t, "one", made)
	ctx := t.Context()
	require.NoError(t, os.Remove(filepath.Join(y.home, "locks", "one")), "the ledger alone names it")
	require.NoError(t, os.RemoveAll(filepath.Join(y.home, "execution", "one")))
	require.NoError(t, y.journal.OpenChange(ctx, "c", evidence.RepositoryID{1}))
	_, err := y.journal.AddVersion(ctx, "c", "0123456789abcdef0123456789abcdef01234567")
	require.NoError(t, err)
	last, _, err := y.ledger.Head(ctx, journal.ChangeStream("c"))
	require.NoError(t, err)
	_, err = y.ledger.Append(ctx, last.Stream, last.Version, ledger.Prepared{
		Type: "AttemptOpened", Time: 1, Media: evidence.Media, Meta: last.Meta, Data: evidence.Marshal(map[int]int{1: 2, 99: 1}),
	})
	require.NoError(t, err)
	met, err := y.warden.Supervise(ctx, Pass{Audit: true}, nil)
	require.NoError(t, err)
	require.Len(t, met, 2)
	require.Equal(t, ActionUnread, met[0].Action)
	require.Contains(t, met[0].Detail, "1 listings")
	require.Equal(t, ActionRecovered, met[1].Action, met[1].Detail)
	y.atRest(t, h)
}

// req G8: a source of names that fails is shown, and the others count.
func TestSuperviseFailingSources(t *testing.T) {
	for name, fail := range map[string]func(t *testing.T, y *yard, p *Pass){
		"the list": func(_ *testing.T, _ *yard, p *Pass) { p.Lister = broken{} },
		"the locks": func(t *testing.T, y *yard, _ *Pass) {
			require.NoError(t, os.RemoveAll(filepath.Join(y.home, "locks")))
			require.NoError(t, os.Symlink("locks", filepath.Join(y.home, "locks")))
		},
		"the directories": func(t *testing.T, y *yard, _ *Pass) {
			require.NoError(t, os.RemoveAll(filepath.Join(y.home, "execution")))
			require.NoError(t, os.WriteFile(filepath.Join(y.home, "execution"), nil, 0o600))
		},
		"the custody files": func(t *testing.T, y *yard, p *Pass) {
			dir := filepath.Join(y.home, "custody")
			require.NoError(t, os.WriteFile(dir, nil, 0o600))
			p.Custody = &CustodyFiles{dir: dir}
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, fakedaemon.Options{})
			h := y.die(t, "one", claimed)
			p := Pass{Audit: true}
			fail(t, y, &p)
			met := y.pass(t, p)
			require.Equal(t, ActionFailed, met[""].Action)
			require.Contains(t, met[""].Detail, "can't be read")
			require.Error(t, met[""].Err)
			require.Contains(t, met, h.id)
			if name == "the locks" { // nobody can tell whether its runner lives
				require.Equal(t, ActionFailed, met[h.id].Action)
				require.EqualValues(t, 1, y.stored(t, h.id).Generation)
				return
			}
			require.NotEqual(t, ActionElsewhere, met[h.id].Action)
			require.EqualValues(t, 2, y.stored(t, h.id).Generation)
		})
	}
}

// A pass whose means fail says so, and records nothing.
func TestSuperviseRefused(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	h := y.die(t, "one", made)
	y.warden.Local = func(string) error { return errLost }
	_, err := y.warden.Supervise(t.Context(), Pass{}, nil)
	require.ErrorIs(t, err, errLost)
	y.warden.Local = nil
	require.EqualValues(t, 1, y.stored(t, h.id).Generation)
	h2 := &hooked{Ledger: y.ledger, before: func(ledger.StreamID, []ledger.Prepared) error { return errors.New("no space") }}
	y.warden.Journal = journal.New(journal.Config{Ledger: h2, Actor: "supervisor"})
	met := y.pass(t, Pass{})
	require.Equal(t, ActionFailed, met[h.id].Action)
	require.Contains(t, met[h.id].Detail, "no space")
}

type broken struct{}

func (broken) Unfinished(context.Context) ([]evidence.AttemptID, error) { return nil, errLost }

// BenchmarkSuperviseNothing is what a run pays for looking after a home where nothing is left, beside a
// plain read of one directory (req G8).
func BenchmarkSuperviseNothing(b *testing.B) {
	y := newYard(b, fakedaemon.Options{})
	require.NoError(b, os.MkdirAll(filepath.Join(y.home, "locks"), 0o700))
	var ours, plain time.Duration
	for b.Loop() {
		begin := time.Now()
		_, err := y.warden.Supervise(b.Context(), Pass{Patient: true}, nil)
		ours += time.Since(begin)
		require.NoError(b, err)
		begin = time.Now()
		_, err = os.ReadDir(filepath.Join(y.home, "locks"))
		plain += time.Since(begin)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(ours)/float64(plain), "×readdir")
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "µs/pass")
	b.ReportMetric(0, "ns/op")
}
