package executor

import (
	"errors"
	"time"

	"github.com/baildock/baildock/evidence"
)

// halt is how the command was stopped, if it was.
type halt struct {
	cause  evidence.StopCause       // the first; "" while there is none
	killed bool                     // we sent a kill, or are about to
	event  <-chan outcome[struct{}] // of the stop's event
	kill   <-chan outcome[struct{}] // of the kill
}

// stop ends the container for a cause. The event is tried beside the kill, which waits for
// nothing (req D5). Only the first cause counts.
func (r *run) stop(cause evidence.StopCause) {
	if r.halt.cause != "" {
		return
	}
	r.halt.cause = cause
	r.Progress("stop", string(cause))
	h, after := r.plan.Handle, time.Since(r.course.started)
	r.halt.event = launch(func() (struct{}, error) {
		return struct{}{}, r.ledger.recordWithin(stopBound,
			evidence.StopOrdered{Handle: &h, Cause: cause, After: uint64(max(after, 0))})
	})
	if r.course.exit == nil || r.course.exit.Err != nil {
		r.kill()
	}
}

// kill kills the container beside the caller, again and again until the daemon took it.
func (r *run) kill() {
	if r.halt.kill != nil {
		return
	}
	r.watch.kills()
	r.halt.killed = true
	r.halt.kill = launch(func() (struct{}, error) {
		var err error
		for give := time.After(exitBound); ; {
			if err = r.Driver.Kill(r.life, r.custody.id); err == nil || errors.Is(err, ErrAbsent) {
				return struct{}{}, nil
			}
			select {
			case <-time.After(killPause):
			case <-give:
				return struct{}{}, err
			case <-r.life.Done():
				return struct{}{}, err
			}
		}
	})
}
