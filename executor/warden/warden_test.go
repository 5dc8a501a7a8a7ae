package warden

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/ledger"
)

func TestRun(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	id := y.register(t, y.registration("one"))
	var stages []string
	res, err := y.warden.Run(t.Context(), y.request(id), func(stage, _ string) { stages = append(stages, stage) })
	require.NoError(t, err)
	require.True(t, res.Finished)
	require.Equal(t, "ok", res.Verdict.Detail, res.Verdict.Causes)
	y.trulySucceeded(t, res)
	require.Equal(t, evidence.SnapshotGone, res.Record.Snapshot)
	require.NotNil(t, res.Record.Manifest)
	require.Equal(t, []string{"snapshot", "snapshot", "probe", "create", "isolation", "start", "exit", "removed"}, stages)
	entries, err := os.ReadDir(filepath.Join(y.home, "locks"))
	require.NoError(t, err)
	require.Empty(t, entries)
	entries, err = os.ReadDir(filepath.Join(y.home, "execution"))
	require.NoError(t, err)
	require.Empty(t, entries)

	claimed := res.Fold.Claimed
	now, err := bootTime()
	require.NoError(t, err)
	require.Greater(t, claimed.Deadline, now)
	require.Equal(t, evidence.HomeID{1}, claimed.Home.Home)
	require.NotZero(t, claimed.Home.Inode)

	_, err = y.warden.Run(t.Context(), y.request(id), nil)
	var taken *journal.NotPendingError
	require.ErrorAs(t, err, &taken, "a finished attempt runs no second time")
	require.Equal(t, 1, y.daemon.Count(fakedaemon.CallCreate))
}

// req G2: of several runners one gets the attempt.
func TestOnlyOneRuns(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	id := y.register(t, y.registration("one"))
	var mu sync.Mutex
	var all sync.WaitGroup
	ran := 0
	for range 8 {
		all.Go(func() {
			_, err := y.warden.Run(t.Context(), y.request(id), nil)
			var held *HeldError
			var taken *journal.NotPendingError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				ran++
			case !errors.As(err, &held) && !errors.As(err, &taken):
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, ran)
	require.Equal(t, 1, y.daemon.Count(fakedaemon.CallStart))
}

// Refused before the claim: nothing is recorded and nothing left behind.
func TestRefusedBeforeClaim(t *testing.T) {
	for name, set := range map[string]func(t *testing.T, y *yard, r *RunRequest){
		"disk is nearly full": func(_ *testing.T, y *yard, _ *RunRequest) { // req N10
			y.warden.free = func(string) (uint64, error) { return minFree - 1, nil }
		},
		"home on a network": func(_ *testing.T, y *yard, _ *RunRequest) {
			y.warden.Local = func(string) error { return errors.New("NFS") }
		},
		"another process has it": func(t *testing.T, y *yard, r *RunRequest) {
			l, err := y.warden.Home.Lock(r.Attempt)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, l.Close()) })
		},
		"another generation": func(_ *testing.T, _ *yard, r *RunRequest) { r.Generation = 1 },
		"no such attempt":    func(_ *testing.T, _ *yard, r *RunRequest) { r.Attempt = "none" },
		"no such source":     func(_ *testing.T, _ *yard, r *RunRequest) { r.Path = "/nowhere" },
		"unknown reduction":  func(_ *testing.T, _ *yard, r *RunRequest) { r.Accepted = []evidence.Reduction{"none"} },
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, fakedaemon.Options{})
			req := y.request(y.register(t, y.registration("one")))
			before, err := y.ledger.Size(t.Context())
			require.NoError(t, err)
			set(t, y, &req)
			_, err = y.warden.Run(t.Context(), req, nil)
			require.Error(t, err)
			after, err := y.ledger.Size(t.Context())
			require.NoError(t, err)
			require.Equal(t, before, after)
			require.Empty(t, y.daemon.Requests())
			require.NoDirExists(t, filepath.Join(y.home, "execution"))
		})
	}
	t.Run("the command was cancelled already", func(t *testing.T) {
		y := newYard(t, fakedaemon.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		id := y.register(t, y.registration("one"))
		cancel()
		_, err := y.warden.Run(ctx, y.request(id), nil)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// req B6: a source that may not be mounted ends the attempt, with its reason recorded.
func TestSourceRefused(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(t *testing.T, y *yard)
		code string
	}{
		"fifo": {func(t *testing.T, y *yard) {
			require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(y.source, "link")))
		}, string(source.CodeLinkAbsolute)},
		"home inside": {func(t *testing.T, y *yard) { y.source = filepath.Dir(y.home) }, string(source.CodeHoldsHome)},
		"open parent": {func(t *testing.T, y *yard) {
			require.NoError(t, os.MkdirAll(filepath.Join(y.home, "execution", "one", "1"), 0o755))
			require.NoError(t, os.Chmod(filepath.Join(y.home, "execution", "one", "1"), 0o755))
		}, string(source.CodeParent)},
		"execution is no directory": {func(t *testing.T, y *yard) {
			require.NoError(t, os.WriteFile(filepath.Join(y.home, "execution"), nil, 0o600))
		}, sourceFailed},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, fakedaemon.Options{})
			id := y.register(t, y.registration("one"))
			c.set(t, y)
			res, err := y.warden.Run(t.Context(), y.request(id), nil)
			require.NoError(t, err)
			require.True(t, res.Finished)
			require.Equal(t, "source_refused", res.Verdict.Detail, res.Verdict.Causes)
			require.Equal(t, 4, res.Verdict.Exit)
			require.Equal(t, c.code, res.Fold.SourceRefusal.Code)
			_, err = y.journal.Kept(t.Context(), *res.Fold.SourceRefusal.Detail)
			require.NoError(t, err)
			require.Zero(t, y.daemon.Count(fakedaemon.CallCreate))
			require.Empty(t, y.snapshots(t))
		})
	}
}

// hooked is a ledger where somebody else comes in before an append.
type hooked struct {
	ledger.Ledger
	before func(ledger.StreamID, []ledger.Prepared) error
}

func (h *hooked) Append(ctx context.Context, s ledger.StreamID, v ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	if err := h.before(s, events); err != nil {
		return ledger.Appended{}, err
	}
	return h.Ledger.Append(ctx, s, v, events...)
}

// beforeType calls f before the first append that holds an event of a type.
func (y *yard) beforeType(typ string, f func(plain *journal.Journal) error) {
	plain := y.journal
	done := false
	h := &hooked{Ledger: y.ledger, before: func(_ ledger.StreamID, events []ledger.Prepared) error {
		for _, e := range events {
			if e.Type == typ && !done {
				done = true
				return f(plain)
			}
		}
		return nil
	}}
	y.journal = journal.New(journal.Config{Ledger: h, Actor: "runner"})
	y.warden.Journal = y.journal
}

// req H5: a claim that lost a race creates nothing, says so, and finishes.
func TestVoidClaim(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	ctx := t.Context()
	r := y.registration("one")
	r.Subject = evidence.Subject{Kind: evidence.SubjectCommit, Revision: "0123456789abcdef0123456789abcdef01234567"}
	r.Change = "c"
	require.NoError(t, y.journal.OpenChange(ctx, "c", evidence.RepositoryID{1}))
	_, err := y.journal.AddVersion(ctx, "c", r.Subject.Revision)
	require.NoError(t, err)
	_, err = y.journal.SetContext(ctx, "c", journal.Requirement{Recipe: &r.Recipe, Environment: &r.Environment, Reductions: v1})
	require.NoError(t, err)
	id := y.register(t, r)
	y.beforeType("AttemptClaimed", func(j *journal.Journal) error {
		_, err := j.AdvanceEpoch(ctx, evidence.DefaultPolicy)
		return err
	})
	res, err := y.warden.Run(ctx, y.request(id), nil)
	require.NoError(t, err)
	require.True(t, res.Finished)
	require.Equal(t, "void_claim", res.Verdict.Detail)
	require.Equal(t, 4, res.Verdict.Exit)
	require.NotNil(t, res.Fold.Voided)
	require.Empty(t, y.daemon.Requests())
	require.NoDirExists(t, filepath.Join(y.home, "execution"))
}

// fence takes the attempt away, as a recovery does.
func fence(j *journal.Journal, id evidence.AttemptID) error {
	a, err := j.Attempt(context.Background(), id)
	if err != nil {
		return err
	}
	_, err = j.Appender(a).Append(context.Background(), evidence.AttemptFenced{Generation: a.Fold.Generation + 1, By: evidence.FencedByCancel})
	return err
}

// req G4, req G5: a fenced runner starts nothing more, and its own finish changes nothing.
func TestFenced(t *testing.T) {
	for _, c := range []struct {
		at      string
		started int
		open    bool // what it leaves to the recovery
	}{
		{"SourceMaterialized", 0, false},
		{"CustodyTaken", 0, false},
		{"ContainerCreated", 0, true},
		{"StartOrdered", 0, true},
		{"ContainerStarted", 1, true},
		{"ContainerExited", 1, true},
		{"RemovalObserved", 1, true},
	} {
		t.Run(c.at, func(t *testing.T) {
			y := newYard(t, fakedaemon.Options{})
			id := y.register(t, y.registration("one"))
			y.beforeType(c.at, func(j *journal.Journal) error { return fence(j, id) })
			res, err := y.warden.Run(t.Context(), y.request(id), nil)
			require.ErrorIs(t, err, executor.ErrFenced)
			require.False(t, res.Finished)
			require.Equal(t, c.started, y.daemon.Count(fakedaemon.CallStart))
			stored, err := y.journal.Attempt(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, evidence.StateRunning, stored.Fold.State)
			require.True(t, stored.Fold.Fenced())
			require.Equal(t, c.open, len(stored.Fold.Custodies.Open()) > 0)
			if c.at == "ContainerCreated" {
				require.Len(t, y.daemon.Containers(), 1, "never started, and found by its labels")
			} else {
				require.Empty(t, y.daemon.Containers())
			}
			require.FileExists(t, filepath.Join(y.home, "locks", string(id)), "only the holder of a finished attempt deletes its lock")
		})
	}
	t.Run("finished by somebody else", func(t *testing.T) {
		y := newYard(t, fakedaemon.Options{})
		id := y.register(t, y.registration("one"))
		y.beforeType("CustodyTaken", func(j *journal.Journal) error {
			if err := fence(j, id); err != nil {
				return err
			}
			a, err := j.Attempt(t.Context(), id)
			if err != nil {
				return err
			}
			p := j.Appender(a)
			if _, err := p.Append(t.Context(), evidence.SnapshotRemoved{}); err != nil {
				return err
			}
			_, _, err = p.Finish(t.Context())
			return err
		})
		res, err := y.warden.Run(t.Context(), y.request(id), nil)
		require.ErrorIs(t, err, executor.ErrFenced)
		require.True(t, res.Finished, "the attempt as it ended is what the runner reports")
		require.Equal(t, "cancelled_by_operator", res.Verdict.Detail)
	})
}

// req J3: cancelled while its source was read, before anything was created.
func TestCancelledBeforeStart(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	id := y.register(t, y.registration("one"))
	ctx, cancel := context.WithCancel(t.Context())
	res, err := y.warden.Run(ctx, y.request(id), func(stage, _ string) {
		if stage == "snapshot" {
			cancel()
		}
	})
	require.NoError(t, err)
	require.True(t, res.Finished)
	require.Equal(t, "cancelled_before_start", res.Verdict.Detail, res.Verdict.Causes)
	require.Zero(t, y.daemon.Count(fakedaemon.CallCreate))
	require.Empty(t, y.snapshots(t))
}

// req B6, req G6: while custody is open the attempt stays running and its snapshot in place.
func TestUnconfirmed(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	id := y.register(t, y.registration("one"))
	y.daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.DropBefore{}})
	res, err := y.warden.Run(t.Context(), y.request(id), nil)
	require.NoError(t, err)
	require.False(t, res.Finished)
	require.Equal(t, evidence.OutcomeIndeterminate, res.Verdict.Outcome)
	require.Equal(t, 6, res.Verdict.Exit)
	require.EqualValues(t, 1, res.Fold.Generation, "the generation to recover at")
	require.Len(t, y.snapshots(t), 1)
	require.FileExists(t, filepath.Join(y.home, "locks", string(id)))
	stored, err := y.journal.Attempt(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, res.Index, stored.Events[len(stored.Events)-1].Index)
}

func TestSnapshotStuck(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	id := y.register(t, y.registration("one"))
	y.beforeType("RemovalObserved", func(*journal.Journal) error {
		// What a mount that can't be undone looks like: another thing by that name.
		dirs := y.snapshots(t)
		require.Len(t, dirs, 1)
		require.NoError(t, source.Remove(dirs[0]))
		return os.WriteFile(dirs[0], nil, 0o600)
	})
	res, err := y.warden.Run(t.Context(), y.request(id), nil)
	require.NoError(t, err)
	require.True(t, res.Finished)
	require.Equal(t, "snapshot_left", res.Verdict.Detail, res.Verdict.Causes)
	require.Equal(t, evidence.SnapshotKept, res.Record.Snapshot)
}
