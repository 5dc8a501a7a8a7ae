package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/baildock/baildock/evidence"
)

// Status of a stopped container that could not be read.
const (
	statusExited     = "exited"
	statusAbsent     = "absent"
	statusUnreadable = "unreadable"
)

// conclude observes how the command ended and records it with its output and the daemon as it is
// then. Whatever fails here leaves its mark in the event; nothing is inferred.
func (r *run) conclude(context.Context) error {
	r.probeAfter()
	e := evidence.ContainerExited{Handle: r.plan.Handle, Status: statusUnreadable}
	in, err := r.settled()
	switch {
	case err == nil:
		r.custody.last, r.course.over = &in, !in.Running
		e.Status, e.ExitCode, e.OOMFlag = in.Status, in.ExitCode, in.OOMKilled
		e.StartedAt, e.FinishedAt = in.StartedAt, in.FinishedAt
	case errors.Is(err, ErrAbsent):
		e.Status, r.course.over = statusAbsent, true
	default:
		r.notePanic(err)
		r.fault("inspect_failed")
	}
	e.Duration = uint64(max(r.course.exited.Sub(r.course.started), 0))
	r.joinLive(&e)

	s := r.sighted(e)
	e.OOMEvent, e.Interference = s.oom, s.foreign
	if err == nil && r.changed(in) {
		e.Interference = append(e.Interference, "changed_configuration")
		slices.Sort(e.Interference)
	}
	e.Faults = slices.Sorted(maps.Keys(r.course.faults))
	if e.Status == statusExited {
		r.Progress("exit", fmt.Sprint(e.ExitCode))
	}

	output, kept := r.beside.capture.result(r.plan.Handle)
	if r.course.unsure && e.Status != statusExited && !output.Incomplete {
		output.Incomplete, output.Code = true, "exit_not_seen" // a daemon that died ends its streams too
	}
	err = r.ledger.keep(kept...)
	if err == nil {
		err = r.ledger.record(e, output)
	}
	probed := <-r.beside.probing
	r.notePanic(probed.err)
	if err != nil {
		return err
	}
	again := probed.value.Refusals
	if probed.err != nil {
		again = []Refusal{{daemonCode(probed.err), probed.err.Error()}}
	}
	after, err := r.observed(evidence.AfterExit, probed.value, probed.err, again)
	if err != nil {
		return err
	}
	// It is stored in the commit that orders the removal.
	r.course.after = []evidence.Payload{after}
	return nil
}

// joinLive takes what ran beside the watch: the start's events, the stop's, the kill, the kernel.
func (r *run) joinLive(e *evidence.ContainerExited) {
	if r.beside.recording != nil {
		r.recorded(<-r.beside.recording)
	}
	if r.beside.kernel != nil {
		var err error
		if e.OOMKills, err = r.beside.kernel.end(); err != nil {
			r.fault("kernel_look_failed") // what it would have counted is not known
			r.note(err)
		}
	}
	if r.halt.event != nil {
		if o := <-r.halt.event; o.err != nil {
			e.Unrecorded = r.halt.cause // req D5: the verdict says that it could not be stored
			r.notePanic(o.err)
		}
	}
	if r.halt.kill != nil {
		if o := <-r.halt.kill; o.err != nil {
			r.fault("kill_failed")
		}
	}
}

// sighted sums up the events once the die arrived, and holds wait, events and inspection against
// each other: three sources that must tell one story.
func (r *run) sighted(e evidence.ContainerExited) sight {
	if e.Status != statusUnreadable {
		select {
		case <-r.watch.died:
		case <-r.watch.broken:
		case <-time.After(dieBound):
		}
	}
	s := r.watch.seen()
	r.watch.end()
	waited := r.course.exit != nil && r.course.exit.Err == nil
	if e.Status == statusExited && (waited && r.course.exit.Code != e.ExitCode || s.died && !s.agrees(e.ExitCode)) {
		r.fault("exit_codes_differ")
	}
	if e.Status == statusExited && s.died && s.diedAt < e.FinishedAt {
		// The daemon tells of an exit only after it happened: the one inspected is another, later one.
		r.fault("exit_times_differ")
	}
	return s
}

// settled inspects until the container doesn't run any more.
func (r *run) settled() (Inspection, error) {
	give := time.Now().Add(exitBound)
	for pause := pollFirst; ; pause = min(2*pause, pollLast) {
		in, err := r.Driver.Inspect(r.life, r.custody.id)
		if err != nil || !in.Running || time.Now().After(give) {
			return in, err
		}
		time.Sleep(pause)
	}
}

// changed reports whether the container after its exit is still the one that was inspected
// before the start (req C9).
func (r *run) changed(in Inspection) bool {
	iso := r.Driver.Compare(r.plan, r.premises.image, r.premises.runtime, in)
	return len(iso.Unknown) > 0 || in.RestartCount != 0 ||
		slices.ContainsFunc(iso.Findings, func(f Finding) bool { return !f.Equal })
}
