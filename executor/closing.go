package executor

import (
	"context"
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
	OpenKind       = "kind_unknown" // this version removes no such object
)

// exitKilled is the status of a process that SIGKILL ended.
const exitKilled = 137

// closing takes one custody to its end, or leaves it open and says why. It is the same for a
// runner, which knows the container it made, and for whoever comes after one that died.
type closing struct {
	driver   Driver
	life     context.Context // of daemon calls
	ledger   *scribe
	progress Progress
	detail   func(lines ...string) (*evidence.BlobRef, error) // keeps lines for people

	handle  evidence.HandleKey
	request evidence.RequestDigest
	daemon  evidence.DaemonIdentity // the custody was taken under
	id      evidence.ContainerID    // known before remove is called

	recorded bool         // the ID is on record
	last     *Inspection  // the newest; nil: none was made
	killed   bool         // we killed it
	unsure   bool         // it may have run although it is shown as never started
	orphaned bool         // its runner is gone, so that its exit may have been its watchdog's doing
	departed func() error // called beside the record of a confirmed removal; may be nil
	errs     []error      // what could not be recorded
}

func (c *closing) note(err error) {
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

// record stores events and reports whether they are stored.
func (c *closing) record(events ...evidence.Payload) bool {
	err := c.ledger.record(events...)
	c.note(err)
	return err == nil
}

// open records that custody stays open, and why. It is false, for its callers to return.
func (c *closing) open(s evidence.CleanupState, code string, cause error) bool {
	c.progress("unconfirmed", code)
	var lines []string
	if cause != nil {
		lines = append(lines, cause.Error())
	}
	detail, err := c.detail(lines...)
	c.note(err)
	c.record(evidence.CleanupUnconfirmed{Handle: c.handle, State: s, Code: code, Detail: detail})
	return false
}

// find looks by both labels for the container of a create whose answer proves nothing, and stores the
// ID of the one it finds: the step before its removal (req E4). Where there is none, a late create may
// still come: custody stays open, unless settle says that it dealt with it (req E5).
func (c *closing) find(lost error, settle func() bool) bool {
	ids, err := c.driver.FindOwned(c.life, c.request, c.handle)
	switch {
	case err != nil:
		return c.open(evidence.CleanupUnverifiable, OpenLookup, errors.Join(lost, err))
	case len(ids) == 0 && settle != nil && settle():
		return false
	case len(ids) == 0:
		return c.open(evidence.CleanupUnverifiable, OpenUnanswered, lost)
	case len(ids) > 1:
		return c.open(evidence.CleanupUnverifiable, OpenAmbiguous, lost)
	}
	c.id = ids[0]
	// An ID is ours once an inspection showed both labels. One that was listed and can't be inspected
	// is not kept: its absence would close custody of a container that it perhaps never was.
	switch err := c.look(); {
	case errors.Is(err, ErrAbsent):
		return c.open(evidence.CleanupUnverifiable, OpenLookup, fmt.Errorf("container %s was listed with our labels and is gone", c.id.Hex()))
	case err != nil:
		return c.open(evidence.CleanupUnverifiable, OpenUnreadable, err)
	case !c.carriesLabels():
		return c.foreign()
	}
	c.recorded = c.record(evidence.ContainerCreated{Handle: c.handle, Container: c.id, Discovered: true})
	if !c.recorded {
		// The ledger doesn't know the ID and nothing was started. Removed now, its custody could never
		// be closed; left alone, it is found by its labels again (law 2, req E5).
		return false
	}
	return true
}

// refuse ends custody whose create was answered with an error of the request. A daemon may answer so
// after it created; only with nothing listed under the labels, by the daemon that was asked, is the
// answer a proof.
func (c *closing) refuse(proof evidence.CreateRuledOut, answer error) {
	found := c.find(answer, func() bool {
		now, err := c.driver.Probe(c.life)
		switch {
		case err != nil:
			c.open(evidence.CleanupUnverifiable, OpenUnprobed, errors.Join(answer, err))
		case !now.Identity.Daemon.SameHost(c.daemon):
			c.open(evidence.CleanupUnverifiable, OpenReplaced, answer)
		default:
			c.record(proof)
		}
		return true
	})
	if found {
		c.remove()
	}
}

// look inspects the container unless an inspection is at hand.
func (c *closing) look() error {
	if c.last != nil {
		return nil
	}
	in, err := c.driver.Inspect(c.life, c.id)
	if err == nil {
		c.last = &in
	}
	return err
}

func (c *closing) carriesLabels() bool {
	return c.last.Request == c.request.String() && c.last.Handle == c.handle.String()
}

func (c *closing) foreign() bool {
	return c.open(evidence.CleanupUnverifiable, OpenLabels, fmt.Errorf("labels %q and %q", c.last.Request, c.last.Handle))
}

// owned checks both labels of the container behind the ID.
func (c *closing) owned() bool {
	err := c.look()
	switch {
	case errors.Is(err, ErrAbsent):
		return true // whose it was no longer matters: there is nothing to remove
	case err != nil:
		return c.open(evidence.CleanupUnverifiable, OpenUnreadable, err)
	case !c.carriesLabels():
		return c.foreign()
	}
	return true
}

// remove removes the container by full ID, after both its labels were checked, and confirms that
// it is gone (req E3). The events before go into the commit of the order, and are stored without
// one where there is nothing to order. An absence alone closes nothing: whatever the inspection
// says, under whatever boot, the order comes first.
func (c *closing) remove(before ...evidence.Payload) {
	if !c.owned() {
		if len(before) > 0 {
			c.record(before...)
		}
		return
	}
	ordered := c.record(append(before, evidence.RemovalOrdered{Handle: c.handle, Container: c.id})...)
	if !ordered && !c.recorded {
		return // as in find
	}
	// The ID is on record and the container ran or may run: it goes, whatever the ledger does.
	state, gone := c.judge(c.vanish())
	if !gone {
		return
	}
	departed := launch(func() (struct{}, error) {
		if c.departed == nil {
			return struct{}{}, nil
		}
		return struct{}{}, c.departed()
	})
	c.progress("removed", string(state))
	c.record(evidence.RemovalObserved{Handle: c.handle, State: state})
	c.note((<-departed).err)
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
func (c *closing) vanish() departure {
	give := time.Now().Add(removalBound)
	var d departure
	err := c.driver.Remove(c.life, c.id)
	probe := func() <-chan outcome[Runtime] {
		return launch(func() (Runtime, error) { return c.driver.Probe(c.life) })
	}
	for calls, pause := 0, pollFirst; ; calls, pause = calls+1, min(2*pause, pollLast) {
		// The daemon that says "no such container" must be the one that made it. After a removal
		// that it confirmed, its identity may be read beside the inspection; otherwise absence rests
		// on the inspection alone, and the identity is read after it.
		beside := err == nil && calls == 0
		if beside {
			d.probe = probe()
		}
		_, look := c.driver.Inspect(c.life, c.id)
		d.gone, d.present, d.err = errors.Is(look, ErrAbsent), look == nil, errors.Join(err, look)
		d.already = d.gone && calls == 0 && errors.Is(err, ErrAbsent)
		if d.gone || calls == removalCalls || time.Now().After(give) || c.life.Err() != nil {
			if !beside {
				d.probe = probe()
			}
			return d
		}
		time.Sleep(pause)
		if err != nil || calls%8 == 7 {
			err = c.driver.Remove(c.life, c.id)
		}
	}
}

// judge judges a removal; custody stays open unless the container is confirmed gone.
func (c *closing) judge(d departure) (state evidence.CleanupState, gone bool) {
	probed := <-d.probe
	switch {
	case !d.gone && d.present:
		return "", c.open(evidence.CleanupIncomplete, OpenPresent, d.err)
	case !d.gone:
		return "", c.open(evidence.CleanupUnverifiable, OpenUnreadable, d.err)
	case probed.err != nil:
		return "", c.open(evidence.CleanupUnverifiable, OpenUnprobed, probed.err)
	case !probed.value.Identity.Daemon.SameHost(c.daemon):
		return "", c.open(evidence.CleanupUnverifiable, OpenReplaced, nil)
	}
	switch { // req E6
	case d.already:
		return evidence.CleanupAbsent, true
	case c.last == nil || c.last.Status == statusCreated && !c.unsure:
		return evidence.CleanupRemoved, true
	case c.killed || c.last.Running || c.orphaned && c.last.ExitCode == exitKilled:
		return evidence.CleanupForceKilled, true
	}
	return evidence.CleanupTerminated, true
}
