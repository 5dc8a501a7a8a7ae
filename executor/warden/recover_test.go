package warden

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/fakedaemon"
)

var stages = []stage{claimed, placed, taken, lost, made, running, exited, putDownBody}

// req G4, req G7, req B6, req E4, req E5: wherever a runner died, its attempt ends as the use case
// that ends it says, once nothing of it is left, and not before.
func TestRecoverWhereverItDied(t *testing.T) {
	cells := 0
	for _, at := range stages {
		for by, want := range map[evidence.FencedBy]evidence.Outcome{
			evidence.FencedByCancel:    evidence.OutcomeCancelled,
			evidence.FencedByRecover:   evidence.OutcomeIncomplete,
			evidence.FencedBySupervise: evidence.OutcomeIncomplete,
		} {
			cells++
			t.Run(at.String()+" "+string(by), func(t *testing.T) {
				t.Parallel()
				y := newYard(t, fakedaemon.Options{})
				y.programs(at)
				h := y.die(t, "one", at)
				before := len(y.daemon.Requests())
				res, err := y.recoverBy(t, h.id, 1, by)
				if at == taken {
					var open *UnconfirmedError
					require.ErrorAs(t, err, &open)
					require.EqualValues(t, 2, open.Generation)
					require.Equal(t, executor.OpenUnanswered, open.Open[0].Unconfirmed)
					require.False(t, res.Finished)
					require.Equal(t, 6, res.Verdict.Exit)
					require.Len(t, y.snapshots(t), 1, "a late container may mount it")
					require.FileExists(t, filepath.Join(y.home, "locks", "one"))
					y.sound(t)
					return
				}
				require.NoError(t, err)
				require.True(t, res.Finished)
				require.Equal(t, want, res.Verdict.Outcome, res.Verdict.Causes)
				require.EqualValues(t, 2, res.Record.Generation)
				require.Equal(t, "because", reasonOf(t, y, res.Fold))
				require.NotEqual(t, evidence.OutcomeSuccess, res.Record.Outcome)
				y.atRest(t, h)
				if at < taken {
					require.Len(t, y.daemon.Requests(), before, "no daemon is needed")
					y.sound(t)
					return
				}
				c, _ := res.Fold.Custodies.MainContainer()
				require.Equal(t, map[stage]evidence.CleanupState{
					lost: evidence.CleanupRemoved, made: evidence.CleanupRemoved, running: evidence.CleanupForceKilled,
					exited: evidence.CleanupTerminated, putDownBody: evidence.CleanupForceKilled,
				}[at], c.State)
				require.Equal(t, at == lost, c.Discovered)
				y.sound(t, h.container)
			})
		}
	}
	require.Equal(t, 24, cells)
}

// req G4: a pending attempt is cancelled by two events, and by nothing else.
func TestCancelPending(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	id := y.register(t, y.registration("one"))
	for _, by := range []evidence.FencedBy{evidence.FencedByRecover, evidence.FencedBySupervise} {
		_, err := y.recoverBy(t, id, 0, by)
		var idle *journal.NotRunningError
		require.ErrorAs(t, err, &idle)
	}
	_, err := y.recoverBy(t, id, 1, evidence.FencedByCancel)
	var moved *journal.GenerationError
	require.ErrorAs(t, err, &moved)
	require.EqualValues(t, 0, moved.Generation)

	res, err := y.recoverBy(t, id, 0, evidence.FencedByCancel)
	require.NoError(t, err)
	require.True(t, res.Finished)
	require.Equal(t, "cancelled_by_operator", res.Verdict.Detail)
	require.EqualValues(t, 1, res.Record.Generation)
	require.Empty(t, y.daemon.Requests())
	require.NoDirExists(t, filepath.Join(y.home, "locks"))
	_, err = y.warden.Run(t.Context(), y.request(id), nil)
	var taken *journal.NotPendingError
	require.ErrorAs(t, err, &taken)

	_, err = y.recoverBy(t, id, 1, evidence.FencedByCancel)
	require.ErrorAs(t, err, &moved)
	require.Equal(t, evidence.StateFinished, moved.State)
	_, err = y.recoverBy(t, "none", 0, evidence.FencedByCancel)
	var absent *journal.NotFoundError
	require.ErrorAs(t, err, &absent)
	y.sound(t)
}

// req E5, req G6: custody that can't be closed is given up only after a recovery said so, and then
// keeps its handle in the record and its directory in place.
func TestAbandon(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	h := y.die(t, "one", taken)
	req := RecoverRequest{Attempt: h.id, Generation: 1, By: evidence.FencedByRecover, Abandon: true}
	_, err := y.warden.Recover(t.Context(), req, nil)
	var early *TooEarlyError
	require.ErrorAs(t, err, &early)
	require.EqualValues(t, 1, y.stored(t, h.id).Generation, "nothing was recorded")

	_, err = y.recoverBy(t, h.id, 1, evidence.FencedByRecover)
	var open *UnconfirmedError
	require.ErrorAs(t, err, &open)
	_, err = y.warden.Recover(t.Context(), req, nil)
	var moved *journal.GenerationError
	require.ErrorAs(t, err, &moved)
	require.Equal(t, open.Generation, moved.Generation, "the generation to retry at")

	req.Generation = open.Generation
	res, err := y.warden.Recover(t.Context(), req, nil)
	require.NoError(t, err)
	require.True(t, res.Finished)
	require.Equal(t, evidence.OutcomeIndeterminate, res.Record.Outcome)
	require.Equal(t, "custody_abandoned", res.Record.Detail)
	require.Equal(t, 6, res.Verdict.Exit)
	require.Equal(t, h.handle, res.Record.Cleanup[0].Handle)
	require.True(t, res.Record.Cleanup[0].Abandoned)
	require.Equal(t, evidence.SnapshotHeld, res.Record.Snapshot)
	require.Len(t, y.snapshots(t), 1)
	y.sound(t)
	out, err := y.warden.Supervise(t.Context(), Pass{Audit: true}, nil)
	require.NoError(t, err)
	require.Empty(t, out)
	require.Len(t, y.snapshots(t), 1, "no sweep takes it either")
}

// req E5: a late create that came after all is found and removed, whatever was tried before.
func TestAbandonFindsWhatCame(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	h := y.die(t, "one", lost)
	y.daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallList, Effect: fakedaemon.Refuse{}})
	_, err := y.recoverBy(t, h.id, 1, evidence.FencedByRecover)
	var open *UnconfirmedError
	require.ErrorAs(t, err, &open)
	require.Equal(t, executor.OpenLookup, open.Open[0].Unconfirmed)
	res, err := y.warden.Recover(t.Context(), RecoverRequest{Attempt: h.id, Generation: 2, By: evidence.FencedByRecover, Abandon: true}, nil)
	require.NoError(t, err)
	require.Equal(t, "recovered", res.Verdict.Detail, "nothing had to be given up")
	y.atRest(t, h)
	y.sound(t, h.container)
}

// req G7: every entry under the attempt's generations goes, whatever its name and kind; links are
// removed and not followed; nothing beside them is touched.
func TestRecoverClearsDirectories(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	h := y.die(t, "one", placed)
	y.leave(t, h.id, "snapshot-of-a-dead-copy")
	y.leave(t, "two", "snapshot-of-another")
	outside := filepath.Join(y.home, "precious")
	require.NoError(t, os.WriteFile(outside, []byte("x"), 0o600))
	generation := filepath.Join(y.home, "execution", "one", "1")
	require.NoError(t, os.Symlink(outside, filepath.Join(generation, "link")))
	require.NoError(t, os.Symlink(y.source, filepath.Join(generation, "dirlink")))
	require.NoError(t, os.WriteFile(filepath.Join(generation, "file"), nil, 0o400))
	res, err := y.recoverBy(t, h.id, 1, evidence.FencedByRecover)
	require.NoError(t, err)
	require.Equal(t, evidence.SnapshotGone, res.Record.Snapshot)
	require.NoDirExists(t, filepath.Join(y.home, "execution", "one"))
	require.FileExists(t, outside)
	require.FileExists(t, filepath.Join(y.source, "a.txt"))
	require.DirExists(t, filepath.Join(y.home, "execution", "two", "1", "snapshot-of-another"))
}

// req G7: a directory that a link stands for is not entered, and the record says that it is left.
func TestRecoverFollowsNoLink(t *testing.T) {
	for _, which := range []string{"execution", "execution/one", "execution/one/1"} {
		t.Run(which, func(t *testing.T) {
			y := newYard(t, fakedaemon.Options{})
			h := y.die(t, "one", placed)
			moved := filepath.Join(filepath.Dir(y.home), "moved")
			require.NoError(t, os.Rename(filepath.Join(y.home, which), moved))
			require.NoError(t, os.Symlink(moved, filepath.Join(y.home, which)))
			res, err := y.recoverBy(t, h.id, 1, evidence.FencedByRecover)
			require.NoError(t, err)
			require.Equal(t, evidence.SnapshotKept, res.Record.Snapshot)
			var found []string
			require.NoError(t, filepath.WalkDir(moved, func(p string, _ os.DirEntry, err error) error { found = append(found, p); return err }))
			require.Greater(t, len(found), 1)
			y.sound(t)
		})
	}
}

// req G4, req G5, req G6: of several recoveries of one generation one has it; the others learn where to
// retry. With the watch of a ledger that everybody writes, the record is one.
func TestRecoverersRace(t *testing.T) {
	for range 10 {
		y := newYard(t, fakedaemon.Options{})
		h := y.die(t, "one", made)
		var all sync.WaitGroup
		var mu sync.Mutex
		ended, beaten := 0, 0
		for i := range 6 {
			all.Go(func() {
				by := evidence.FencedByRecover
				if i%2 == 0 {
					by = evidence.FencedByCancel
				}
				res, err := y.recoverBy(t, h.id, 1, by)
				var moved *journal.GenerationError
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && res.Finished:
					ended++
				case moved != nil || asGeneration(err, &moved):
					beaten++
				default:
					t.Errorf("%v", err)
				}
			})
		}
		all.Wait()
		require.Equal(t, 1, ended)
		require.Equal(t, 5, beaten)
		// One of the beaten may have had the lock; its file is swept.
		_, err := y.warden.Supervise(t.Context(), Pass{}, nil)
		require.NoError(t, err)
		y.atRest(t, h)
		y.sound(t, h.container)
	}
}

// req G5: a recovery that another one fences says so, and the attempt still ends once.
func TestRecovererIsFenced(t *testing.T) {
	for _, at := range []string{"RemovalOrdered", "RemovalObserved", "SnapshotRemoved", "AttemptFinished"} {
		t.Run(at, func(t *testing.T) {
			y := newYard(t, fakedaemon.Options{})
			h := y.die(t, "one", made)
			y.beforeType(at, func(j *journal.Journal) error { return fence(j, h.id) })
			_, err := y.recoverBy(t, h.id, 1, evidence.FencedByRecover)
			var moved *journal.GenerationError
			require.ErrorAs(t, err, &moved)
			require.EqualValues(t, 3, moved.Generation)
			res, err := y.recoverBy(t, h.id, 3, evidence.FencedByRecover)
			require.NoError(t, err)
			require.True(t, res.Finished)
			y.atRest(t, h)
			y.sound(t, h.container)
		})
	}
}

// req G4, req G5: a live runner is fenced, its container removed by ID, and what it reports is the
// attempt as the other ended it.
func TestRecoverALiveRunner(t *testing.T) {
	for by, detail := range map[evidence.FencedBy]string{
		evidence.FencedByCancel: "cancelled_by_operator", evidence.FencedByRecover: "recovered",
	} {
		t.Run(string(by), func(t *testing.T) {
			y := newYard(t, fakedaemon.Options{})
			y.programs(running)
			id := y.register(t, y.registration("one"))
			y.warden.patience = fencedPatience
			other := New(y.warden.Config)
			started := make(chan struct{})
			type end struct {
				res Result
				err error
			}
			ended := make(chan end, 1)
			go func() {
				var once sync.Once
				res, err := y.warden.Run(context.Background(), y.request(id), func(stage, _ string) {
					if stage == "start" {
						once.Do(func() { close(started) })
					}
				})
				ended <- end{res, err}
			}()
			<-started
			require.Eventually(t, func() bool { return y.stored(t, id).Run.Started }, 10*time.Second, 5*time.Millisecond)
			res, err := other.Recover(t.Context(), RecoverRequest{Attempt: id, Generation: 1, By: by}, nil)
			require.NoError(t, err)
			require.True(t, res.Finished)
			require.Equal(t, detail, res.Verdict.Detail)
			e := <-ended
			require.ErrorIs(t, e.err, executor.ErrFenced)
			require.True(t, e.res.Finished, "its own finish returns the attempt as it ended")
			require.Equal(t, res.Record, e.res.Record)
			require.Equal(t, res.Index, e.res.Index)
			require.Equal(t, 1, y.daemon.Count(fakedaemon.CallStart))
			c, _ := res.Fold.Custodies.MainContainer()
			require.Empty(t, y.daemon.Containers())
			require.NoFileExists(t, filepath.Join(y.home, "locks", "one"), "its holder deletes it")
			y.sound(t, *c.Container)
		})
	}
}

// req G4: the last thing a runner does, its finish, loses against a fence, even of a command that
// exited 0 with all its output recorded.
func TestLateFinisher(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	id := y.register(t, y.registration("one"))
	var ended Result
	y.beforeType("AttemptFinished", func(*journal.Journal) error {
		var err error
		ended, err = y.recoverBy(t, id, 1, evidence.FencedByCancel)
		return err
	})
	res, _ := y.warden.Run(t.Context(), y.request(id), nil)
	require.True(t, res.Finished)
	require.Equal(t, "cancelled_by_operator", res.Verdict.Detail)
	require.Equal(t, ended.Record, res.Record)
	require.NotNil(t, res.Fold.Run.Exited)
	require.Zero(t, res.Fold.Run.Exited.ExitCode)
	require.NotNil(t, res.Record.Stdout)
	stored := y.stored(t, id)
	require.Equal(t, evidence.StateFinished, stored.State)
}

// Cancel against finish, at whatever moment: the attempt ends once, and both say the same of it.
func TestCancelAgainstFinish(t *testing.T) {
	outcomes := map[string]int{}
	for i := range 20 {
		y := newYard(t, fakedaemon.Options{})
		y.warden.patience = fencedPatience
		id := y.register(t, y.registration("one"))
		done := make(chan Result, 1)
		go func() {
			res, _ := y.warden.Run(context.Background(), y.request(id), nil)
			done <- res
		}()
		require.Eventually(t, func() bool { return y.stored(t, id).State != evidence.StatePending }, 10*time.Second, 100*time.Microsecond)
		time.Sleep(time.Duration(i) * 2 * time.Millisecond)
		_, cancelErr := y.recoverBy(t, id, 1, evidence.FencedByCancel)
		res := <-done
		if !res.Finished { // a create in flight at the fence; it is found by then
			for g := uint64(2); !res.Finished && g < 5; g++ {
				res, _ = y.recoverBy(t, id, g, evidence.FencedByCancel)
			}
		}
		require.True(t, res.Finished)
		stored := y.stored(t, id)
		require.Equal(t, evidence.StateFinished, stored.State)
		require.Equal(t, stored.Finished.Record, res.Record.Digest())
		if cancelErr == nil {
			require.Equal(t, evidence.OutcomeCancelled, res.Record.Outcome)
		}
		require.Empty(t, y.daemon.Containers())
		outcomes[res.Verdict.Detail]++
		if c, ok := stored.Custodies.MainContainer(); ok && c.Container != nil {
			y.sound(t, *c.Container)
		} else {
			y.sound(t)
		}
	}
	t.Log(outcomes)
}

// Attempts of another home are an operator's to end; their snapshots stay where they are.
func TestRecoverForAnotherHome(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	h := y.die(t, "one", made, func(c *journal.Claim, _ *evidence.DaemonIdentity) { c.Home.Inode++ })
	res, err := y.recoverBy(t, h.id, 1, evidence.FencedByRecover)
	require.NoError(t, err)
	require.True(t, res.Finished)
	require.Equal(t, evidence.SnapshotKept, res.Record.Snapshot)
	require.Empty(t, y.daemon.Containers())
	require.Len(t, y.snapshots(t), 1)
	y.sound(t, h.container)
}
