package warden

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
)

// Lister names attempts that may not be at their end, from wherever it is quick to know. It is a
// hint: what it names is read from the ledger, and a full scan finds what it doesn't.
type Lister interface {
	Unfinished(ctx context.Context) ([]evidence.AttemptID, error)
}

// Action is what a supervisor did with an attempt, or why it did nothing.
type Action string

const (
	ActionRecovered   Action = "recovered"   // fenced, its custody closed, finished
	ActionCancelled   Action = "cancelled"   // listed by its change, never opened: completed and cancelled
	ActionUnconfirmed Action = "unconfirmed" // fenced; its custody stays open, and the next pass tries again
	ActionRemoved     Action = "removed"     // fenced, its custody closed; to finish it takes a newer version of this program
	ActionCleared     Action = "cleared"     // custody that a file keeps was closed: what it named is gone
	ActionSwept       Action = "swept"       // finished before; leftover directories or its lock file were removed
	ActionRunning     Action = "running"     // its runner, or a recovery, holds the lock within its deadline
	ActionElsewhere   Action = "elsewhere"   // claimed from another home or machine: never touched
	ActionWaiting     Action = "waiting"     // a recovery failed a short while ago
	ActionUnlisted    Action = "unlisted"    // the lister doesn't know it; the full scan does
	ActionFailed      Action = "failed"      // something broke
	ActionUnread      Action = "unread"      // listings of attempts that this version can't read: only shown
	ActionUnknown     Action = "unknown"     // an object with our labels that no open custody names: only shown
)

// Supervised is one attempt, or one thing, that a pass met.
type Supervised struct {
	Attempt    evidence.AttemptID `json:"attempt,omitempty"`
	Action     Action             `json:"action"`
	Outcome    evidence.Outcome   `json:"outcome,omitempty"` // of a finished attempt
	Detail     string             `json:"detail,omitempty"`
	Generation uint64             `json:"generation,omitempty"`
	Object     *Object            `json:"object,omitempty"` // what no attempt of this ledger names
	Err        error              `json:"-"`                // of a failure
}

// Pass says how one pass of a supervisor goes.
type Pass struct {
	Lister  Lister        // nil: the locks of the home are the only hint
	Audit   bool          // read the whole ledger too
	Strays  bool          // show what carries our labels and no open custody names; reads the whole ledger if there is any
	Custody *CustodyFiles // custody that no ledger keeps; nil: none
	Patient bool          // leave an attempt alone for a while after a recovery of it failed
}

// Supervise makes one pass over this home's attempts (req G8). An attempt whose lock is free has no
// runner any more: it is recovered. One whose runner holds the lock is left alone until its hard
// deadline passed. Attempts go in parallel, each under its own deadline; one that fails or never comes
// back holds up no other, and neither does a source of names: it is shown as ActionFailed. Cancelling ctx begins no
// more; what is under way comes to its end.
//
// The error is not nil only where locks say nothing: the home lies on a network filesystem.
func (w *Warden) Supervise(ctx context.Context, p Pass, progress executor.Progress) ([]Supervised, error) {
	if w.Local != nil {
		if err := w.Local(w.Home.Dir); err != nil {
			return nil, err
		}
	}
	tasks, out := w.candidates(ctx, p)
	var mu sync.Mutex
	var all sync.WaitGroup
	room := make(chan struct{}, maxRecoveries)
	for _, t := range tasks {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-room }()
			one, met := w.turn(ctx, t, progress)
			if !met {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, one)
		})
	}
	all.Wait()
	if p.Strays && ctx.Err() == nil {
		strays, err := attend(w, ctx, "strays", scanBound, func(ctx context.Context) ([]Supervised, error) { return w.strays(ctx, p.Custody), nil })
		if err != nil {
			s, _ := failed(fmt.Errorf("look for what no custody names: %w", err))
			strays = append(strays, s)
		}
		out = append(out, strays...)
	}
	slices.SortFunc(out, func(a, b Supervised) int {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Detail, b.Detail), a.Object.compare(b.Object))
	})
	return out, nil
}

func failed(err error) (Supervised, bool) {
	return Supervised{Action: ActionFailed, Detail: err.Error(), Err: err}, true
}

// superviseOne decides about one attempt.
func (w *Warden) superviseOne(ctx context.Context, id evidence.AttemptID, patient bool, progress executor.Progress) (Supervised, bool) {
	a, err := w.Journal.Attempt(ctx, id)
	var absent *journal.NotFoundError
	switch {
	case errors.As(err, &absent): // a lock or a directory of a registration that never came
		if err := w.sweepUnregistered(ctx, id); err != nil {
			return failed(err)
		}
		return Supervised{}, false
	case journal.IsUnknown(err):
		return w.superviseUnread(ctx, id, patient, progress)
	case err != nil:
		return failed(err)
	}
	switch a.Fold.State {
	case evidence.StateFinished:
		return w.sweep(a)
	case evidence.StateRunning:
	default:
		return Supervised{}, false // pending: anybody may claim it
	}
	here, err := w.claimedHere(a.Fold.Claimed)
	if err != nil {
		return failed(err)
	}
	if !here {
		return elsewhere(a.Fold.Claimed), true
	}
	if wait := sinceFailure(len(a.Fold.Fences), TriedBefore(a), lastTime(a)); patient && wait > 0 {
		return waiting(a.Fold.Generation, wait), true
	}
	lock, why, err := w.take(a)
	if err != nil {
		return failed(err)
	}
	if why != "" {
		return Supervised{Action: ActionRunning, Detail: why, Generation: a.Fold.Generation}, true
	}
	finished := false
	if lock != nil {
		defer func() {
			if err := lock.release(finished); err != nil && progress != nil {
				progress("lock", err.Error())
			}
		}()
		// What was read before the lock was held may have moved on since.
		if a, err = w.Journal.Attempt(ctx, id); err != nil {
			return failed(err)
		}
		if a.Fold.State != evidence.StateRunning {
			return Supervised{}, false
		}
	}
	req := RecoverRequest{Attempt: id, Generation: a.Fold.Generation, By: evidence.FencedBySupervise}
	res, err := w.recover(ctx, req, progress)
	finished = res.Finished
	return said(res, err)
}

// said tells how a recovery went.
func said(res Result, err error) (Supervised, bool) {
	var open *UnconfirmedError
	var moved *journal.GenerationError
	switch {
	case errors.As(err, &open):
		return Supervised{Action: ActionUnconfirmed, Detail: open.Error(), Generation: open.Generation}, true
	case errors.As(err, &moved): // somebody else recovers it, or its runner finished it
		return Supervised{Action: ActionRunning, Detail: moved.Error(), Generation: moved.Generation}, true
	case err != nil:
		return failed(err)
	}
	return Supervised{Action: ActionRecovered, Outcome: res.Verdict.Outcome, Detail: res.Verdict.Detail, Generation: res.Fold.Generation}, true
}

func elsewhere(c *evidence.AttemptClaimed) Supervised {
	return Supervised{Action: ActionElsewhere, Detail: claimedFrom(c)}
}

// claimedFrom says on which host and from which home an attempt was claimed.
func claimedFrom(c *evidence.AttemptClaimed) string {
	if c == nil {
		return "claimed by what this version can't read"
	}
	machine := "a machine without an ID"
	if c.Home.Machine != nil {
		machine = "machine " + c.Home.Machine.String()
	}
	return fmt.Sprintf("claimed from home %s (inode %d) on %s", c.Home.Home, c.Home.Inode, machine)
}

// take takes the lock of an attempt whose runner is dead. The lock is nil, without a reason, when its
// runner holds it past its hard deadline; why says why the attempt is left alone.
func (w *Warden) take(a journal.Attempt) (l *Lock, why string, err error) {
	id := a.Fold.Registered.Attempt
	l, err = w.Home.Lock(id)
	var held *HeldError
	if !errors.As(err, &held) {
		return l, "", err
	}
	here, err := w.Home.Identity()
	if err != nil {
		return nil, "", err
	}
	now, err := bootTime()
	if err != nil {
		return nil, "", err
	}
	claim := a.Fold.Claimed
	switch {
	case claim.Home.Boot != here.Boot:
		// The runner died with its boot; whoever holds the lock recovers the attempt.
		return nil, "another process recovers it", nil
	case now <= claim.Deadline:
		return nil, fmt.Sprintf("its runner lives, and has %v left", time.Duration(claim.Deadline-now).Round(time.Second)), nil
	case a.Fold.Fenced() && age(lastTime(a)) < fencePatience:
		return nil, "another process recovers it", nil
	}
	return nil, "", nil
}

// cancelListed completes an attempt that its change lists and whose own stream never opened, and
// cancels it (req G1).
func (w *Warden) cancelListed(ctx context.Context, l journal.Listing) Supervised {
	a, err := w.Journal.Complete(ctx, l.Change, l.Attempt)
	if err == nil && a.Fold.State != evidence.StatePending {
		err = fmt.Errorf("attempt %s is %s by now", l.Attempt, a.Fold.State)
	}
	var res Result
	if err == nil {
		res, err = w.recover(ctx, RecoverRequest{
			Attempt: l.Attempt, Generation: a.Fold.Generation, By: evidence.FencedByCancel, Reason: "listed by its change and never opened\n",
		}, nil)
	}
	s := Supervised{Attempt: l.Attempt, Action: ActionCancelled, Outcome: res.Verdict.Outcome, Detail: res.Verdict.Detail, Generation: res.Fold.Generation}
	if err != nil {
		s, _ = failed(err)
		s.Attempt = l.Attempt
	}
	return s
}
