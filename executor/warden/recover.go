package warden

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/ledger"
)

// Codes of a snapshot that a recovery could not remove.
const (
	snapshotElsewhere = "other_home" // it lies in the home it was claimed from
)

// RecoverRequest asks to end an attempt in place of its runner.
type RecoverRequest struct {
	Attempt    evidence.AttemptID
	Generation uint64            // exactly the one the attempt stands at
	By         evidence.FencedBy // decides how the attempt ends (req G4)
	Reason     string            // for people, kept as a blob that may be withheld; may be empty
	Abandon    bool              // give up custody that stays unconfirmed, after a recovery before did
}

// UnconfirmedError says that a recovery took the attempt from its runner and could not confirm that
// nothing of it exists any more. The attempt stays running, and its custody open (req G6).
type UnconfirmedError struct {
	Attempt    evidence.AttemptID
	Generation uint64 // to retry at
	Open       []evidence.Custody
	Claimed    *evidence.AttemptClaimed // says on which host, from which home; nil: nobody claimed it, or the claim can't be read
}

func (e *UnconfirmedError) Error() string {
	var codes []string
	for _, c := range e.Open {
		id := "unknown"
		if c.Container != nil {
			id = c.Container.Hex()
		}
		codes = append(codes, fmt.Sprintf("container %s: %s", id, c.Unconfirmed))
	}
	return fmt.Sprintf("attempt %s is fenced, but its cleanup is unconfirmed (%s); it was %s and stays running: retry at generation %d",
		e.Attempt, strings.Join(codes, ", "), claimedFrom(e.Claimed), e.Generation)
}

// TooEarlyError says that custody may not be given up yet: no recovery before tried to close it.
type TooEarlyError struct {
	Attempt    evidence.AttemptID
	Generation uint64 // where it stands
}

func (e *TooEarlyError) Error() string {
	return fmt.Sprintf("attempt %s can't be abandoned: no recovery of it stayed unconfirmed yet; recover it first, at generation %d",
		e.Attempt, e.Generation)
}

// Recover takes an attempt from its runner, alive or not, closes its custody, removes its snapshots
// and finishes it (req G4, G6, G7). It is the same for an operator's cancel and recover and for a
// supervisor. A pending attempt can only be cancelled, for which nothing but the ledger is needed;
// an attempt without open custody needs no daemon.
//
// It fails with *journal.GenerationError, *journal.NotRunningError, *journal.NotFoundError or
// *TooEarlyError, having recorded nothing, and with *UnconfirmedError, beside a Result, when the
// attempt stays running. A cancelled ctx ends nothing once the attempt was read: the recovery has
// RecoverBound, and every step a bound of its own.
func (w *Warden) Recover(ctx context.Context, req RecoverRequest, progress executor.Progress) (_ Result, err error) {
	a, err := w.Journal.Attempt(ctx, req.Attempt)
	if err != nil {
		return Result{}, err
	}
	if req.Abandon && !TriedBefore(a) && a.Fold.State != evidence.StateFinished {
		return Result{}, &TooEarlyError{Attempt: req.Attempt, Generation: a.Fold.Generation}
	}
	here := false
	if a.Fold.State == evidence.StateRunning {
		if here, err = w.claimedHere(a.Fold.Claimed); err != nil {
			return Result{}, err
		}
	}
	finished := false
	// Who recovers holds the lock where it can: a live runner keeps it and is fenced all the same.
	if here && a.Fold.Generation == req.Generation {
		lock, lockErr := w.Home.Lock(req.Attempt)
		var held *HeldError
		switch {
		case lockErr == nil:
			defer func() { err = errors.Join(err, lock.release(finished)) }()
		case !errors.As(lockErr, &held):
			return Result{}, lockErr
		}
	}
	life, end := context.WithTimeout(context.WithoutCancel(ctx), RecoverBound)
	defer end()
	res, err := w.recover(life, req, progress)
	finished = res.Finished
	return res, err
}

// release lets go of a lock, and deletes its file if the attempt is finished.
func (l *Lock) release(finished bool) error {
	if finished {
		return l.Delete()
	}
	return l.Close()
}

// claimedHere reports whether a claim was made from this home, and not from a copy of it. It fails where
// this home doesn't know itself: then nobody may act on either answer.
func (w *Warden) claimedHere(c *evidence.AttemptClaimed) (bool, error) {
	here, err := w.Home.Identity()
	return err == nil && c != nil && sameHome(c.Home, here), err
}

// sameHome compares machine, home and inode. Without a machine ID a machine is known only for as
// long as it doesn't boot.
func sameHome(a, b evidence.HomeIdentity) bool {
	if a.Home != b.Home || a.Inode != b.Inode || (a.Machine == nil) != (b.Machine == nil) {
		return false
	}
	if a.Machine == nil {
		return a.Boot == b.Boot
	}
	return *a.Machine == *b.Machine
}

// recover fences an attempt and ends it, for as long as life lasts.
func (w *Warden) recover(life context.Context, req RecoverRequest, progress executor.Progress) (Result, error) {
	reason, err := w.keepWords(life, req.Reason)
	if err != nil {
		return Result{}, err
	}
	p, err := w.Journal.Fence(life, req.Attempt, req.Generation, req.By, reason)
	if err != nil {
		return Result{}, err
	}
	c := &recovery{Warden: w, req: req, life: life, rec: &recorder{journal: w.Journal, appender: p}, appender: p}
	res, err := c.end(progress)
	if errors.Is(err, journal.ErrFenced) { // another recovery took over
		now, readErr := w.Journal.Attempt(life, req.Attempt)
		if readErr != nil {
			return res, errors.Join(err, readErr)
		}
		return Result{}, &journal.GenerationError{
			Attempt: req.Attempt, Asked: req.Generation + 1, Generation: now.Fold.Generation, State: now.Fold.State,
		}
	}
	return res, err
}

func (w *Warden) keepWords(ctx context.Context, text string) (*evidence.BlobRef, error) {
	if text == "" {
		return nil, nil
	}
	var salt evidence.Salt
	if _, err := io.ReadFull(w.Random, salt[:]); err != nil {
		return nil, fmt.Errorf("draw a salt: %w", err)
	}
	blob := evidence.Withhold(salt, []byte(text))
	if err := w.Journal.Keep(ctx, blob); err != nil {
		return nil, err
	}
	return &blob.Ref, nil
}

// recovery is one fenced attempt on its way to its end.
type recovery struct {
	*Warden
	req      RecoverRequest
	life     context.Context
	rec      *recorder
	appender *journal.Appender
}

// end closes custody, removes the snapshots and finishes.
func (c *recovery) end(progress executor.Progress) (Result, error) {
	fold := c.appender.Attempt()
	if fold.State == evidence.StateFinished {
		return c.result()
	}
	err := c.reconciler(c.rec, progress).Reconcile(c.life, fold.Custodies.Open()...)
	if err != nil {
		return c.stand(), err
	}
	fold = c.appender.Attempt()
	if open := fold.Custodies.Open(); len(open) > 0 {
		if !c.req.Abandon {
			return c.stand(), &UnconfirmedError{Attempt: c.req.Attempt, Generation: fold.Generation, Open: open, Claimed: fold.Claimed}
		}
		for _, custody := range open {
			if err := c.rec.Record(c.life, evidence.CustodyAbandoned{Handle: custody.Handle}); err != nil {
				return c.stand(), err
			}
		}
	}
	if err := c.settleSnapshot(); err != nil {
		return c.stand(), err
	}
	return c.result()
}

func (w *Warden) reconciler(rec executor.Recorder, progress executor.Progress) executor.Reconciler {
	return executor.Reconciler{Driver: w.Driver, Recorder: rec, Progress: progress, Random: w.Random, Places: w.hostPlaces()}
}

// hostPlaces are the host paths that evidence names by their role, apart from an attempt's own.
func (w *Warden) hostPlaces() []executor.Place {
	var out []executor.Place
	for _, r := range w.Reserved {
		if r.Kind == source.ReservedSocket {
			out = append(out, executor.Place{Path: r.Path, Role: "${DOCKER_SOCKET}"})
		}
	}
	return append(out, executor.Place{Path: w.Home.Dir, Role: "${BAILDOCK_HOME}"})
}

// settleSnapshot removes what the attempt left under this home and records what became of it. An
// abandoned container may mount it: then it stays, and nothing is said (req G7).
func (c *recovery) settleSnapshot() error {
	fold := c.appender.Attempt()
	for _, custody := range fold.Custodies {
		if custody.Abandoned {
			return nil
		}
	}
	if fold.Snapshot == evidence.SnapshotGone {
		return nil
	}
	here, err := c.claimedHere(fold.Claimed)
	if err != nil {
		return err
	}
	if !here {
		if fold.Snapshot != evidence.SnapshotHeld {
			return nil
		}
		return c.rec.Record(c.life, evidence.SnapshotLeft{Code: snapshotElsewhere})
	}
	removed, err := c.Home.clear(c.req.Attempt)
	switch {
	case err != nil && fold.Snapshot == evidence.SnapshotKept:
		return nil // that it is left is recorded
	case err != nil:
		detail, keepErr := c.keepWords(c.life, executor.Portable(err.Error(), c.hostPlaces()...)+"\n")
		return errors.Join(keepErr, c.rec.Record(c.life, evidence.SnapshotLeft{Code: snapshotStuck, Detail: detail}))
	case removed == 0 && fold.Snapshot == evidence.SnapshotNone:
		return nil // there never was one
	}
	return c.rec.Record(c.life, evidence.SnapshotRemoved{})
}

// result finishes the attempt.
func (c *recovery) result() (Result, error) {
	record, event, err := c.appender.Finish(c.life)
	if err != nil {
		return c.stand(), fmt.Errorf("finish attempt %s: %w", c.req.Attempt, err)
	}
	res := c.stand()
	res.Finished, res.Record, res.Index = true, record, event.Index
	return res, nil
}

// stand says where the attempt stands now.
func (c *recovery) stand() Result {
	fold := c.appender.Attempt()
	return Result{Attempt: c.req.Attempt, Fold: fold, Verdict: evidence.VerdictOf(&fold), Index: ledger.Index(c.rec.last.Load())}
}
