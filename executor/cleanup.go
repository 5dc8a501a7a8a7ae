package executor

import (
	"fmt"

	"github.com/baildock/baildock/evidence"
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
	c := r.closing()
	r.watch.end()
	switch r.creation {
	case notTaken:
	case unsent:
		// Custody that could not be recorded needs no closing, and the recorder refuses to.
		c.record(evidence.CreateRuledOut{Handle: r.plan.Handle, Proof: evidence.ProofNotSent})
	case refused:
		c.record(r.proof)
	case sent:
		if c.find(r.lost, nil) {
			c.remove()
		}
	case created:
		before := r.after
		if !r.onRecord {
			before = append(before, r.arrival)
		}
		c.remove(before...)
	}
	r.notes = append(r.notes, c.errs...)
	if r.output != nil {
		r.note(r.output.Close())
	}
	if err := r.tee.close(); err != nil {
		r.Progress("tee", err.Error())
	}
}

// closing is the end of what this run created. The watchdog of a container that is gone is
// released; while one may exist, it stays.
func (r *run) closing() *closing {
	return &closing{
		driver: r.Driver, life: r.life, ledger: r.ledger, progress: r.Progress, detail: r.detail,
		handle: r.plan.Handle, request: r.plan.Request, daemon: r.runtime.Identity.Daemon, id: r.id,
		recorded: r.onRecord, last: r.last, killed: r.killed,
		departed: func() error {
			if r.guard == nil {
				return nil
			}
			return r.guard.Release()
		},
	}
}
