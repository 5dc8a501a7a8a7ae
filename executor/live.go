package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/baildock/baildock/evidence"
)

// live starts the container and stays with it until it exited and its output came to an end.
func (r *run) live(ctx context.Context) error {
	stdout, err := r.ledger.salt()
	if err != nil {
		return err
	}
	stderr, err := r.ledger.salt()
	if err != nil {
		return err
	}
	r.capture = newCapture(r.job.Recipe.Limits.Output, stdout, stderr, r.tee)
	go r.capture.read(r.output)

	r.Progress("start", "")
	err = r.Driver.Start(r.life, r.id)
	r.started = time.Now() // req D3: command time runs from the daemon's reply
	if err != nil {
		return r.startFailed(err)
	}
	r.ran = true
	lapse := time.NewTimer(r.job.Recipe.Limits.Wall)
	defer lapse.Stop()
	r.kernel = r.watchKernel()
	r.recording = launch(r.recordStart)
	r.await(ctx, lapse.C)
	r.drain(ctx, lapse.C)
	return nil
}

// recordStart stores the start and the first look of the kernel beside the watch, which must not
// wait for the ledger.
func (r *run) recordStart() (struct{}, error) {
	var none struct{}
	if err := r.ledger.record(evidence.ContainerStarted{Handle: r.plan.Handle}); err != nil {
		return none, err
	}
	findings, ok := <-r.kernel.first
	if !ok {
		return none, nil // the look panicked: its end says so
	}
	controls, ref, err := r.controls(findings)
	if err != nil {
		return none, err
	}
	return none, r.ledger.record(evidence.KernelObserved{Handle: r.plan.Handle, Controls: controls, Values: ref})
}

// await stays with the running container until it exited or, once stopped, gave no sign of it.
func (r *run) await(ctx context.Context, lapse <-chan time.Time) {
	cancel, over, broken, ended := ctx.Done(), r.capture.exceeded, r.watch.broken, r.capture.done
	recorded, died := r.recording, r.watch.died
	var late <-chan time.Time
	for {
		stop := evidence.StopCause("")
		select {
		case e, ok := <-r.exits:
			r.exited = time.Now()
			if !ok {
				e = Exit{Err: errors.New("the wait ended without a word")}
			}
			r.exit = &e
			if e.Err == nil {
				return
			}
			// The container may still run. It is killed, and inspected until it doesn't.
			r.fault("wait_failed")
			r.stop(evidence.StopFault)
			return
		case <-died:
			// The command has ended; the daemon still clears up before it answers the wait.
			died = nil
			r.probeAfter()
		case <-lapse:
			stop = evidence.StopTimeout
		case <-cancel:
			stop = evidence.StopCancelled
		case <-over:
			stop = evidence.StopOutput
		case <-broken:
			stop = evidence.StopFault
		case <-ended:
			ended = nil
			if r.capture.failure() != nil {
				stop = evidence.StopFault
			}
		case o := <-recorded:
			r.recorded(o)
			recorded = nil
			if o.err != nil { // fenced, or nowhere to record: nothing may run any more
				stop = evidence.StopFault
			}
		case <-late:
			r.fault("exit_not_seen")
			r.exited = time.Now()
			return
		}
		if stop == "" {
			continue
		}
		r.stop(stop)
		// The first cause wins: no other is looked at any more.
		cancel, over, broken, lapse = nil, nil, nil, nil
		late = time.After(exitBound)
	}
}

// probeAfter begins the observation of the daemon after the exit.
func (r *run) probeAfter() {
	if r.probing == nil {
		r.probing = launch(func() (Runtime, error) { return r.Driver.Probe(r.life) })
	}
}

// recorded takes the outcome of recordStart once.
func (r *run) recorded(o outcome[struct{}]) {
	r.recording = nil
	r.note(o.err)
}

// drain takes the output that is still under way after the exit. Wall time runs on, so a timeout
// reached here is a timeout (req D4), and so are the other causes.
func (r *run) drain(ctx context.Context, lapse <-chan time.Time) {
	bound := time.NewTimer(drainBound)
	defer bound.Stop()
	for ended := false; !ended && r.cause == ""; {
		select {
		case <-r.capture.done:
			ended = true
		case <-bound.C:
			return
		case <-lapse:
			r.stop(evidence.StopTimeout)
		case <-ctx.Done():
			r.stop(evidence.StopCancelled)
		case <-r.capture.exceeded:
		}
		if r.capture.over() && r.cause == "" {
			r.stop(evidence.StopOutput)
		}
	}
	select {
	case <-r.capture.done:
	case <-bound.C:
	}
}

// stop ends the container for a cause. The event is tried beside the kill, which waits for
// nothing (req D5). Only the first cause counts.
func (r *run) stop(cause evidence.StopCause) {
	if r.cause != "" {
		return
	}
	r.cause = cause
	r.Progress("stop", string(cause))
	h, after := r.plan.Handle, time.Since(r.started)
	r.stopping = launch(func() (struct{}, error) {
		return struct{}{}, r.ledger.recordWithin(stopBound,
			evidence.StopOrdered{Handle: &h, Cause: cause, After: uint64(max(after, 0))})
	})
	if r.exit == nil || r.exit.Err != nil {
		r.kill()
	}
}

// kill kills the container beside the caller, again and again until the daemon took it.
func (r *run) kill() {
	if r.killing != nil {
		return
	}
	r.watch.kills()
	r.killed = true
	r.killing = launch(func() (struct{}, error) {
		var err error
		for give := time.After(exitBound); ; {
			if err = r.Driver.Kill(r.life, r.id); err == nil || errors.Is(err, ErrAbsent) {
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

// startFailed records a start that the daemon refused or left unanswered. An unanswered one may
// have happened: it is killed, and observed if it ran.
func (r *run) startFailed(err error) error {
	e := evidence.StartFailed{Handle: r.plan.Handle, Code: "start_error"}
	var f *Fault
	if answered := errors.As(err, &f) && f.Answered; !answered && !errors.Is(err, ErrAbsent) {
		e.Code = "start_unanswered"
		r.kill()
	}
	r.notePanic(err)
	r.Progress("refused", e.Code)
	detail, keepErr := r.detail(err.Error())
	e.Detail = detail
	r.note(keepErr)
	r.note(r.ledger.record(e))
	if r.killing != nil {
		if o := <-r.killing; o.err != nil {
			r.fault("kill_failed")
		}
	}
	in, err := r.Driver.Inspect(r.life, r.id)
	if err == nil && in.Status == statusCreated {
		r.last, r.over = &in, true
		return errEnded // it never ran: there is no exit and no output
	}
	if errors.Is(err, ErrAbsent) {
		r.over = true
		return errEnded
	}
	r.ran, r.exited = true, time.Now()
	select {
	case x, ok := <-r.exits:
		if ok {
			r.exit = &x
		}
	case <-time.After(exitBound):
		r.fault("exit_not_seen")
	}
	select {
	case <-r.capture.done:
	case <-time.After(drainBound):
	}
	return nil
}

// fault remembers a daemon call that failed while the command was under way.
func (r *run) fault(code string) { r.faults[code] = true }

// cancelled ends the run, before the command was started, if the caller gave up.
func (r *run) cancelled(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	r.Progress("stop", string(evidence.StopCancelled))
	e := evidence.StopOrdered{Cause: evidence.StopCancelled}
	if r.onRecord {
		e.Handle = &r.plan.Handle
	}
	if err := r.ledger.record(e); err != nil {
		return fmt.Errorf("cancelled: %w", err)
	}
	return errEnded
}
