package warden

import (
	"context"
	"errors"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// superviseUnread closes what an attempt with events of a newer version holds (req E10). It is not
// finished, and its directories stay: whoever can read it does both.
func (w *Warden) superviseUnread(ctx context.Context, id evidence.AttemptID, patient bool, progress executor.Progress) (Supervised, bool) {
	k, err := w.Journal.Keeper(ctx, id)
	if err != nil {
		return failed(err)
	}
	if k.State() == evidence.StateFinished {
		if err := w.sweepLock(id, func(evidence.AttemptID) error { return nil }); err != nil {
			return failed(err)
		}
		return Supervised{}, false
	}
	if k.State() != evidence.StateRunning || len(k.Custodies().Open()) == 0 {
		return Supervised{}, false
	}
	here, err := w.claimedHere(k.Claimed())
	if err != nil {
		return failed(err)
	}
	if !here {
		return elsewhere(k.Claimed()), true
	}
	if wait := sinceFailure(k.Fences(), triedAll(k.Custodies(), k.Tried), k.LastTime()); patient && wait > 0 {
		return waiting(k.Generation(), wait), true
	}
	lock, err := w.Home.Lock(id)
	var held *HeldError
	if errors.As(err, &held) {
		return Supervised{Action: ActionRunning, Detail: "its runner is of a newer version, and lives", Generation: k.Generation()}, true
	}
	if err != nil {
		return failed(err)
	}
	rec := &recorder{journal: w.Journal, appender: k}
	err = rec.Record(ctx, evidence.AttemptFenced{Generation: k.Generation() + 1, By: evidence.FencedBySupervise})
	if err == nil {
		err = w.reconciler(rec, progress).Reconcile(ctx, k.Custodies().Open()...)
	}
	if err = errors.Join(err, lock.Close()); err != nil {
		return failed(err)
	}
	if open := k.Custodies().Open(); len(open) > 0 {
		u := &UnconfirmedError{Attempt: id, Generation: k.Generation(), Open: open, Claimed: k.Claimed()}
		return Supervised{Action: ActionUnconfirmed, Detail: u.Error(), Generation: k.Generation()}, true
	}
	return Supervised{Action: ActionRemoved, Generation: k.Generation(),
		Detail: fmt.Sprintf("%d events need a newer version of baildock, which can finish it", k.Unread())}, true
}
