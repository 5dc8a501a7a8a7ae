package executor

import (
	"fmt"

	"github.com/baildock/baildock/evidence"
)

// cleanup leaves nothing behind, whatever ended the run (req E9), and never depends on the
// caller's context. What it can't confirm stays under custody.
func (r *run) cleanup() {
	if r.course.ordered && !r.course.over { // broken off while it may run
		r.kill()
		r.custody.last = nil
		if o := <-r.halt.kill; o.err != nil {
			r.note(fmt.Errorf("kill: %w", o.err))
		}
	}
	c := r.closing()
	r.watch.end()
	switch r.custody.stage {
	case notTaken:
	case unsent:
		// Custody that could not be recorded needs no closing, and the recorder refuses to.
		c.record(evidence.CreateRuledOut{Handle: r.plan.Handle, Proof: evidence.ProofNotSent})
	case refused:
		c.refuse(r.custody.refusal, r.custody.lost)
	case sent:
		if c.find(r.custody.lost, nil) {
			c.remove()
		}
	case created:
		before := r.course.after
		if !r.custody.recorded {
			before = append(before, r.custody.arrival)
		}
		c.remove(before...)
	}
	r.notes = append(r.notes, c.errs...)
	if r.harness.output != nil {
		r.note(r.harness.output.Close())
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
		handle: r.plan.Handle, request: r.plan.Request, daemon: r.premises.runtime.Identity.Daemon, id: r.custody.id,
		recorded: r.custody.recorded, last: r.custody.last, killed: r.halt.killed, unsure: r.course.unsure,
		departed: func() error {
			if r.harness.guard == nil {
				return nil
			}
			return r.harness.guard.Release()
		},
	}
}
