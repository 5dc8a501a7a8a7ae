package warden

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
)

// sweep removes what a finished attempt left in the home, while nobody holds its lock: its files
// and, unless a container that was given up may mount them, its directories. Of an attempt that was
// claimed elsewhere only the lock file is this home's: whoever lost the claim left it.
func (w *Warden) sweep(a journal.Attempt) (s Supervised, met bool) {
	here, err := w.claimedHere(a.Fold.Claimed)
	if err != nil {
		return failed(err)
	}
	ours := here || a.Fold.Claimed == nil
	removed := 0
	err = w.sweepLock(a.Fold.Registered.Attempt, func(id evidence.AttemptID) (err error) {
		if ours && !slices.ContainsFunc(a.Fold.Custodies, func(c evidence.Custody) bool { return c.Abandoned }) {
			removed, err = w.Home.clear(id)
		}
		return err
	})
	if err != nil {
		return failed(err)
	}
	if removed == 0 {
		return Supervised{}, false
	}
	return Supervised{Action: ActionSwept, Outcome: evidence.VerdictOf(&a.Fold).Outcome, Detail: fmt.Sprintf("%d leftover directories", removed)}, true
}

// sweepLock takes the lock of an attempt that nobody will run any more, calls before under it, and deletes the
// file. While somebody holds it nothing is done: he is just leaving.
func (w *Warden) sweepLock(id evidence.AttemptID, before func(evidence.AttemptID) error) error {
	lock, err := w.Home.Lock(id)
	var held *HeldError
	if errors.As(err, &held) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(before(id), lock.Delete())
}

// sweepUnregistered deletes the lock file of an ID that no attempt has. Its directories stay: nobody says whose
// they are.
func (w *Warden) sweepUnregistered(ctx context.Context, id evidence.AttemptID) error {
	lock, err := w.Home.Lock(id)
	var held *HeldError
	if errors.As(err, &held) {
		return nil
	}
	if err != nil {
		return err
	}
	// It may have been registered since, and its runner finds the lock held for a moment: the file stays then.
	_, err = w.Journal.Attempt(ctx, id)
	var absent *journal.NotFoundError
	if errors.As(err, &absent) {
		return lock.Delete()
	}
	return errors.Join(err, lock.Close())
}
