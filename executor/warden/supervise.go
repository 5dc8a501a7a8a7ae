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
// deadline passed. Attempts go in parallel, each under its own deadline; one that fails holds up
// no other. Cancelling ctx begins no more; what is under way comes to its end.
func (w *Warden) Supervise(ctx context.Context, p Pass, progress executor.Progress) ([]Supervised, error) {
	if w.Local != nil {
		if err := w.Local(w.Home.Dir); err != nil {
			return nil, err
		}
	}
	ids, out, err := w.candidates(ctx, p)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	room := make(chan struct{}, maxRecoveries)
	for _, work := range ids {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-room }()
			one, met := work(context.WithoutCancel(ctx), progress)
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
		out = append(out, w.strays(ctx, p.Custody)...)
	}
	slices.SortFunc(out, func(a, b Supervised) int {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Detail, b.Detail), a.Object.compare(b.Object))
	})
	return out, nil
}

// task is one attempt's turn; it says whether there is anything to show.
type task func(ctx context.Context, progress executor.Progress) (Supervised, bool)

// candidates lists whatever may need a hand.
func (w *Warden) candidates(ctx context.Context, p Pass) ([]task, []Supervised, error) {
	var ids []evidence.AttemptID
	for _, hint := range []func() ([]evidence.AttemptID, error){w.Home.locked, w.Home.leftovers} {
		found, err := hint()
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, found...)
	}
	var known []evidence.AttemptID
	if p.Lister != nil {
		var err error
		if known, err = p.Lister.Unfinished(ctx); err != nil {
			return nil, nil, fmt.Errorf("list the unfinished attempts: %w", err)
		}
		ids = append(ids, known...)
	}
	var out []Supervised
	var tasks []task
	if p.Audit {
		u, err := w.Journal.Unfinished(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, id := range u.Attempts {
			if p.Lister != nil && !slices.Contains(known, id) {
				out = append(out, Supervised{Attempt: id, Action: ActionUnlisted, Detail: "the ledger has it unfinished, the list doesn't"})
			}
		}
		ids = append(ids, u.Attempts...)
		for _, l := range u.Listed {
			if time.Since(time.Unix(0, l.Time)) > openingPatience {
				tasks = append(tasks, func(ctx context.Context, _ executor.Progress) (Supervised, bool) { return w.cancelListed(ctx, l), true })
			}
		}
	}
	kept, err := w.keptTasks(p.Custody)
	if err != nil {
		return nil, nil, err
	}
	tasks = append(tasks, kept...)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		tasks = append(tasks, func(ctx context.Context, progress executor.Progress) (Supervised, bool) {
			s, met := w.superviseOne(ctx, id, p.Patient, progress)
			s.Attempt = id
			return s, met
		})
	}
	return tasks, out, nil
}

func failed(err error) (Supervised, bool) {
	return Supervised{Action: ActionFailed, Detail: err.Error(), Err: err}, true
}

// superviseOne decides about one attempt.
func (w *Warden) superviseOne(ctx context.Context, id evidence.AttemptID, patient bool, progress executor.Progress) (Supervised, bool) {
	a, err := w.Journal.Attempt(ctx, id)
	var absent *journal.NotFoundError
	switch {
	case errors.As(err, &absent):
		return Supervised{}, false // a lock or a directory of a registration that never came
	case journal.IsUnknown(err):
		return w.superviseUnread(ctx, id, progress)
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
	if !w.claimedHere(a.Fold.Claimed) {
		return elsewhere(a.Fold.Claimed), true
	}
	if wait := sinceFailure(a); patient && wait > 0 {
		return Supervised{Action: ActionWaiting, Generation: a.Fold.Generation,
			Detail: fmt.Sprintf("a recovery could not confirm its cleanup; the next try is in %v", wait.Round(time.Second))}, true
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
	life, end := context.WithTimeout(context.WithoutCancel(ctx), RecoverBound)
	defer end()
	res, err := w.recover(life, req, progress)
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
	if c == nil {
		return Supervised{Action: ActionElsewhere, Detail: "its claim can't be read by this version"}
	}
	machine := "a machine without an ID"
	if c.Home.Machine != nil {
		machine = "machine " + c.Home.Machine.String()
	}
	return Supervised{Action: ActionElsewhere, Detail: fmt.Sprintf("claimed from home %s (inode %d) on %s", c.Home.Home, c.Home.Inode, machine)}
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
	case a.Fold.Fenced() && age(a) < fencePatience:
		return nil, "another process recovers it", nil
	}
	return nil, "", nil
}

// age is how long ago the attempt's last event was written, by the writer's clock: a hint. A time to
// come counts as long ago.
func age(a journal.Attempt) time.Duration {
	since := time.Since(time.Unix(0, a.Events[len(a.Events)-1].Time))
	if since < 0 {
		return fencePatience
	}
	return since
}

// sinceFailure is how long an attempt is left alone yet, because recoveries of it failed: from
// firstPatience on, doubled by every fence, up to lastPatience.
func sinceFailure(a journal.Attempt) time.Duration {
	open := a.Fold.Custodies.Open()
	if !a.Fold.Fenced() || len(open) == 0 || !TriedBefore(a) {
		return 0
	}
	pause := firstPatience
	for range min(len(a.Fold.Fences), maxDoublings) - 1 {
		pause *= 2
	}
	return min(pause, lastPatience) - age(a)
}

// sweep removes what a finished attempt left in the home, while nobody holds its lock: its files
// and, unless a container that was given up may mount them, its directories.
func (w *Warden) sweep(a journal.Attempt) (s Supervised, met bool) {
	id := a.Fold.Registered.Attempt
	if a.Fold.Claimed != nil && !w.claimedHere(a.Fold.Claimed) {
		return Supervised{}, false
	}
	lock, err := w.Home.Lock(id)
	var held *HeldError
	if errors.As(err, &held) {
		return Supervised{}, false // its runner is just leaving
	}
	if err != nil {
		return failed(err)
	}
	removed := 0
	if !slices.ContainsFunc(a.Fold.Custodies, func(c evidence.Custody) bool { return c.Abandoned }) {
		removed, err = w.Home.clear(id)
	}
	if err = errors.Join(err, lock.Delete()); err != nil {
		return failed(err)
	}
	if removed == 0 {
		return Supervised{}, false
	}
	return Supervised{Action: ActionSwept, Outcome: evidence.VerdictOf(&a.Fold).Outcome, Detail: fmt.Sprintf("%d leftover directories", removed)}, true
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
		res, err = w.recover(context.WithoutCancel(ctx), RecoverRequest{
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

// superviseUnread closes what an attempt with events of a newer version holds (req E10). It is not
// finished, and its directories stay: whoever can read it does both.
func (w *Warden) superviseUnread(ctx context.Context, id evidence.AttemptID, progress executor.Progress) (Supervised, bool) {
	k, err := w.Journal.Keeper(ctx, id)
	if err != nil {
		return failed(err)
	}
	switch {
	case k.State() != evidence.StateRunning || len(k.Custodies().Open()) == 0:
		return Supervised{}, false
	case !w.claimedHere(k.Claimed()):
		return elsewhere(k.Claimed()), true
	}
	lock, err := w.Home.Lock(id)
	var held *HeldError
	if errors.As(err, &held) {
		return Supervised{Action: ActionRunning, Detail: "its runner is of a newer version, and lives", Generation: k.Generation()}, true
	}
	if err != nil {
		return failed(err)
	}
	life, end := context.WithTimeout(context.WithoutCancel(ctx), RecoverBound)
	defer end()
	rec := &recorder{journal: w.Journal, appender: k}
	err = rec.Record(life, evidence.AttemptFenced{Generation: k.Generation() + 1, By: evidence.FencedBySupervise})
	if err == nil {
		err = w.reconciler(rec, progress).Reconcile(life, k.Custodies().Open()...)
	}
	if err = errors.Join(err, lock.Close()); err != nil {
		return failed(err)
	}
	if open := k.Custodies().Open(); len(open) > 0 {
		u := &UnconfirmedError{Attempt: id, Generation: k.Generation(), Open: open}
		return Supervised{Action: ActionUnconfirmed, Detail: u.Error(), Generation: k.Generation()}, true
	}
	return Supervised{Action: ActionRemoved, Generation: k.Generation(),
		Detail: fmt.Sprintf("%d events need a newer version of baildock, which can finish it", k.Unread())}, true
}
