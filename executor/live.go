package executor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/baildock/baildock/evidence"
)

// course is what became of the command.
type course struct {
	ordered bool // its start was ordered
	over    bool // nothing of it runs any more, or it never did
	unsure  bool // its start failed without proof that it never ran
	started time.Time
	exited  time.Time
	exit    *Exit // what the wait returned
	faults  map[string]bool
	after   []evidence.Payload // the daemon after the exit, not stored yet
}

// beside is what goes on while the command runs and is joined after its exit.
type beside struct {
	capture   *capture
	kernel    *kernelWatch
	gauge     *gauge
	recording <-chan outcome[struct{}] // of the start's events
	probing   <-chan outcome[Runtime]  // of the daemon after the exit
}

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
	r.beside.capture = newCapture(r.job.Recipe.Limits.Output, stdout, stderr, r.job.Redact, r.tee)
	go r.beside.capture.read(r.harness.output)

	r.Progress("start", "")
	r.watch.starts()
	err = r.Driver.Start(r.life, r.custody.id)
	r.course.started = time.Now() // req D3: command time runs from the daemon's reply
	if err != nil {
		return r.startFailed(err)
	}
	lapse := time.NewTimer(r.job.Recipe.Limits.Wall)
	defer lapse.Stop()
	r.beside.kernel = r.watchKernel()
	r.beside.gauge = newGauge(r.job.Usage)
	defer r.beside.gauge.end()
	r.beside.recording = launch(r.recordStart)
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
	findings, ok := <-r.beside.kernel.first
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
	cancel, over, broken, ended := ctx.Done(), r.beside.capture.exceeded, r.watch.broken, r.beside.capture.done
	recorded, died, full := r.beside.recording, r.watch.died, r.beside.gauge.full
	var late <-chan time.Time
	for {
		stop := evidence.StopCause("")
		select {
		case e, ok := <-r.harness.exits:
			r.course.exited = time.Now()
			if !ok {
				e = Exit{Err: errors.New("the wait ended without a word")}
			}
			r.course.exit = &e
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
		case o := <-full:
			full = nil
			stop = r.outgrown(o)
		case <-broken:
			stop = evidence.StopFault
		case <-ended:
			ended = nil
			if r.beside.capture.failure() != nil {
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
			r.course.exited = time.Now()
			return
		}
		if stop == "" {
			continue
		}
		r.stop(stop)
		// The first cause wins: no other is looked at any more.
		cancel, over, broken, lapse, full = nil, nil, nil, nil, nil
		late = time.After(exitBound)
	}
}

// probeAfter begins the observation of the daemon after the exit.
func (r *run) probeAfter() {
	if r.beside.probing == nil {
		r.beside.probing = launch(func() (Runtime, error) { return r.Driver.Probe(r.life) })
	}
}

// recorded takes the outcome of recordStart once.
func (r *run) recorded(o outcome[struct{}]) {
	r.beside.recording = nil
	r.note(o.err)
}

// drain takes the output that is still under way after the exit. Wall time runs on, so a timeout
// reached here is a timeout (req D4), and so are the other causes.
func (r *run) drain(ctx context.Context, lapse <-chan time.Time) {
	bound := time.NewTimer(drainBound)
	defer bound.Stop()
	for ended := false; !ended && r.halt.cause == ""; {
		select {
		case <-r.beside.capture.done:
			ended = true
		case <-bound.C:
			return
		case <-lapse:
			r.stop(evidence.StopTimeout)
		case <-ctx.Done():
			r.stop(evidence.StopCancelled)
		case <-r.beside.capture.exceeded:
		}
		if r.beside.capture.over() && r.halt.cause == "" {
			r.stop(evidence.StopOutput)
		}
	}
	select {
	case <-r.beside.capture.done:
	case <-bound.C:
	}
}

// startFailed records a start that the daemon refused or left unanswered. Whatever it answered, the
// command may run: it is killed at once, and observed unless there is proof that it never ran.
func (r *run) startFailed(err error) error {
	e := evidence.StartFailed{Handle: r.plan.Handle, Code: startCode(err)}
	if e.Code == startForeign {
		r.watch.outrun()
	}
	if !errors.Is(err, ErrAbsent) {
		r.kill()
	}
	r.notePanic(err)
	r.Progress("refused", e.Code)
	detail, keepErr := r.detail(err.Error())
	e.Detail = detail
	r.note(keepErr)
	r.note(r.ledger.record(e))
	if r.halt.kill != nil {
		if o := <-r.halt.kill; o.err != nil {
			r.fault("kill_failed")
		}
	}
	in, err := r.Driver.Inspect(r.life, r.custody.id)
	waiting := err == nil && in.Status == statusCreated
	if waiting && e.Code == startError && !r.traces() {
		r.custody.last, r.course.over = &in, true
		return errEnded // refused, and it left no trace: there is no exit and no output
	}
	r.course.unsure = true
	r.course.exited = time.Now()
	if !waiting && !errors.Is(err, ErrAbsent) {
		select {
		case x, ok := <-r.harness.exits:
			if ok {
				r.course.exit = &x
			}
		case <-time.After(exitBound):
			r.fault("exit_not_seen")
		}
	} else if !r.traces() {
		return nil // no output is under way
	}
	select {
	case <-r.beside.capture.done:
	case <-time.After(drainBound):
	}
	return nil
}

// Codes of a StartFailed.
const (
	startError      = "start_error"
	startUnanswered = "start_unanswered"
	startForeign    = "start_foreign" // it ran already
)

func startCode(err error) string {
	var f *Fault
	switch answered := errors.As(err, &f) && f.Answered; {
	case answered && f.Status == http.StatusNotModified:
		return startForeign
	case !answered && !errors.Is(err, ErrAbsent):
		return startUnanswered
	}
	return startError
}

// traces reports whether anything shows that the container ran, or that somebody acted on it.
func (r *run) traces() bool {
	s := r.watch.seen()
	return s.ran || len(s.foreign) > 0 || r.beside.capture.arrived()
}

// fault remembers a daemon call that failed while the command was under way.
func (r *run) fault(code string) { r.course.faults[code] = true }

// cancelled ends the run, before the command was started, if the caller gave up.
func (r *run) cancelled(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	r.Progress("stop", string(evidence.StopCancelled))
	e := evidence.StopOrdered{Cause: evidence.StopCancelled}
	if r.custody.recorded {
		e.Handle = &r.plan.Handle
	}
	if err := r.ledger.record(e); err != nil {
		return fmt.Errorf("cancelled: %w", err)
	}
	return errEnded
}
