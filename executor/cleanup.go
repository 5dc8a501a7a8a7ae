package executor

import (
	"errors"
	"fmt"
	"time"

	"github.com/baildock/baildock/evidence"
)

// Codes of an unconfirmed cleanup.
const (
	OpenUnanswered = "create_unanswered" // no container carries the labels, and a late create may still come
	OpenAmbiguous  = "owner_ambiguous"   // several containers carry the labels
	OpenLookup     = "lookup_failed"
	OpenLabels     = "labels_mismatched" // the container of that ID doesn't carry our labels: not ours to remove
	OpenPresent    = "still_present"
	OpenUnreadable = "inspect_failed"
	OpenReplaced   = "daemon_replaced" // the daemon that says "absent" is not the one that created
	OpenUnprobed   = "daemon_unreachable"
)

// cleanup leaves nothing behind, whatever ended the run (req E9), and never depends on the
// caller's context. What it can't confirm stays under custody.
func (r *run) cleanup() {
	if r.ordered && !r.over { // broken off while it may run
		r.kill()
		r.last = nil
		if o := <-r.killing; o.err != nil {
			r.note(fmt.Errorf("kill: %w", o.err))
		}
	}
	switch r.creation {
	case notTaken:
	case unsent:
		r.ruleOut(evidence.CreateRuledOut{Handle: r.plan.Handle, Proof: evidence.ProofNotSent})
	case refused:
		r.ruleOut(r.proof)
	case sent:
		if r.find() {
			r.remove()
		}
	case created:
		r.remove()
	}
	if r.output != nil {
		r.note(r.output.Close())
	}
	if err := r.tee.close(); err != nil {
		r.Progress("tee", err.Error())
	}
}

func (r *run) ruleOut(e evidence.CreateRuledOut) {
	// Custody that could not be recorded needs no closing, and the recorder refuses to.
	r.note(r.ledger.record(e))
}

// find looks once, by both labels, for the container of a create whose reply was lost. What it
// finds is stored first and removed in the next step.
func (r *run) find() bool {
	ids, err := r.Driver.FindOwned(r.life, r.plan.Request, r.plan.Handle)
	switch {
	case err != nil:
		return r.open(evidence.CleanupUnverifiable, OpenLookup, errors.Join(r.lost, err))
	case len(ids) == 0: // req E5: absence of a name proves nothing
		return r.open(evidence.CleanupUnverifiable, OpenUnanswered, r.lost)
	case len(ids) > 1:
		return r.open(evidence.CleanupUnverifiable, OpenAmbiguous, r.lost)
	}
	r.id, r.creation = ids[0], created
	r.watch.aim(r.id)
	r.arrival = evidence.ContainerCreated{Handle: r.plan.Handle, Container: r.id, Discovered: true}
	return true
}

// open records that custody stays open, and why.
func (r *run) open(s evidence.CleanupState, code string, cause error) bool {
	r.Progress("unconfirmed", code)
	var lines []string
	if cause != nil {
		lines = append(lines, cause.Error())
	}
	detail, err := r.detail(lines...)
	r.note(err)
	r.note(r.ledger.record(evidence.CleanupUnconfirmed{Handle: r.plan.Handle, State: s, Code: code, Detail: detail}))
	return false
}

// remove removes the container by full ID, after both its labels were checked, and confirms that
// it is gone (req E3).
func (r *run) remove() {
	order := r.after
	if !r.onRecord {
		order = append(order, r.arrival)
	}
	if !r.owned() {
		// What the daemon answered to our create is kept (req E4); what a lookup found and an
		// inspection contradicts is not.
		if len(order) > 0 && !r.arrival.Discovered {
			r.note(r.ledger.record(order...))
		}
		return
	}
	order = append(order, evidence.RemovalOrdered{Handle: r.plan.Handle, Container: r.id})
	if err := r.ledger.record(order...); err != nil {
		r.note(err)
		if !r.onRecord {
			// The ledger doesn't know the ID and nothing was started. Removed now, its custody
			// could never be closed; left alone, recovery finds it by its labels (law 2, req E5).
			return
		}
		// The ID is on record and the container ran or may run: it goes, whatever the ledger does.
	}
	r.onRecord = true
	r.watch.end()
	s := r.removed(r.vanish())
	if !r.gone {
		return
	}
	released := launch(func() (struct{}, error) { return struct{}{}, r.release() })
	r.Progress("removed", string(s))
	r.note(r.ledger.record(evidence.RemovalObserved{Handle: r.plan.Handle, State: s}))
	r.note((<-released).err)
}

// release ends the watchdog of a container that is gone. While one may exist, it stays.
func (r *run) release() error {
	if r.guard == nil {
		return nil
	}
	return r.guard.Release()
}

// owned checks both labels of the container behind the ID.
func (r *run) owned() bool {
	if r.last == nil {
		in, err := r.Driver.Inspect(r.life, r.id)
		switch {
		case errors.Is(err, ErrAbsent):
			return true // whose it was no longer matters: there is nothing to remove
		case err != nil:
			return r.open(evidence.CleanupUnverifiable, OpenUnreadable, err)
		}
		r.last = &in
	}
	if r.last.Request != r.plan.Request.String() || r.last.Handle != r.plan.Handle.String() {
		return r.open(evidence.CleanupUnverifiable, OpenLabels, fmt.Errorf("labels %q and %q", r.last.Request, r.last.Handle))
	}
	return true
}

// departure is how a removal went.
type departure struct {
	already bool  // the daemon had no such container before we removed it
	gone    bool  // the daemon says that there is no such container
	present bool  // it says that there is
	err     error // the last failed call
	probe   <-chan outcome[Runtime]
}

// vanish removes and inspects until the daemon says "no such container". A lost reply or an
// error of a removal proves nothing; only the inspection counts.
func (r *run) vanish() departure {
	give := time.Now().Add(removalBound)
	var d departure
	err := r.Driver.Remove(r.life, r.id)
	probe := func() <-chan outcome[Runtime] {
		return launch(func() (Runtime, error) { return r.Driver.Probe(r.life) })
	}
	for calls, pause := 0, pollFirst; ; calls, pause = calls+1, min(2*pause, pollLast) {
		// The daemon that says "no such container" must be the one that made it. After a removal
		// that it confirmed, its identity may be read beside the inspection; otherwise absence rests
		// on the inspection alone, and the identity is read after it.
		confirmed := err == nil
		if confirmed {
			d.probe = probe()
		}
		_, look := r.Driver.Inspect(r.life, r.id)
		d.gone, d.present, d.err = errors.Is(look, ErrAbsent), look == nil, errors.Join(err, look)
		d.already = d.gone && calls == 0 && errors.Is(err, ErrAbsent)
		if d.gone || calls == removalCalls || time.Now().After(give) {
			if !confirmed {
				d.probe = probe()
			}
			return d
		}
		time.Sleep(pause)
		if err != nil || calls%8 == 7 {
			err = r.Driver.Remove(r.life, r.id)
		}
	}
}

// removed judges a removal; custody stays open unless the container is confirmed gone.
func (r *run) removed(d departure) evidence.CleanupState {
	probed := <-d.probe
	switch {
	case !d.gone && d.present:
		r.open(evidence.CleanupIncomplete, OpenPresent, d.err)
	case !d.gone:
		r.open(evidence.CleanupUnverifiable, OpenUnreadable, d.err)
	case probed.err != nil:
		r.open(evidence.CleanupUnverifiable, OpenUnprobed, probed.err)
	case !probed.value.Identity.Daemon.SameHost(r.runtime.Identity.Daemon):
		r.open(evidence.CleanupUnverifiable, OpenReplaced, nil)
	default:
		r.gone = true
	}
	switch { // req E6
	case d.already:
		return evidence.CleanupAbsent
	case r.last == nil || r.last.Status == statusCreated:
		return evidence.CleanupRemoved
	case r.killed || r.last.Running:
		return evidence.CleanupForceKilled
	}
	return evidence.CleanupTerminated
}
