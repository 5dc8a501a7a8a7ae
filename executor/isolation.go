package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/baildock/baildock/evidence"
)

// Refusal codes of an IsolationObserved: why a created container was not started.
const (
	RefusedInspect   = "inspect_failed"
	RefusedAbsent    = "inspect_absent"   // the daemon no longer has it
	RefusedState     = "state_unexpected" // it isn't freshly created
	RefusedControls  = "controls_unequal"
	RefusedUnknown   = "unknown_field" // a field outside the profile's table that isn't zero
	RefusedAttach    = "attach_failed"
	RefusedWait      = "wait_failed"
	RefusedWatchdog  = "watchdog_failed"
	RefusedLost      = "events_lost"
	RefusedInterfere = "interfered" // somebody acted on it already
)

const statusCreated = "created"

// harness is what a container is put into before it starts.
type harness struct {
	output Output
	exits  <-chan Exit
	guard  Guard
}

// isolate looks at the container that was created, holds it against the profile and the daemon
// against the one before, and gets ready what must be there before a start: the attached output
// (req D1), the registered wait, the watchdog (req D5). The start is ordered in the commit that
// holds the observation, and only if everything is equal (req C5).
func (r *run) isolate(ctx context.Context) error {
	inspecting := launch(func() (Inspection, error) { return r.Driver.Inspect(r.life, r.custody.id) })
	probing := launch(func() (Runtime, error) { return r.Driver.Probe(r.life) })
	attaching := launch(func() (Output, error) { return r.Driver.Attach(r.life, r.custody.id) })
	waiting := launch(func() (<-chan Exit, error) { return r.Driver.Wait(r.life, r.custody.id) })
	guarding := launch(func() (Guard, error) { return r.Watchdog.Guard(r.life, r.custody.id) })

	var refusals []Refusal
	failed := func(code string, err error) {
		if err != nil {
			refusals = append(refusals, Refusal{code, err.Error()})
			r.notePanic(err)
		}
	}
	attached, registered, guard := <-attaching, <-waiting, <-guarding
	r.harness.output, r.harness.exits, r.harness.guard = attached.value, registered.value, guard.value
	inspected := <-inspecting
	iso := r.compare(inspected.value, inspected.err, failed)
	failed(RefusedAttach, attached.err)
	failed(RefusedWait, registered.err)
	failed(RefusedWatchdog, guard.err)

	probed := <-probing
	r.notePanic(probed.err)
	var again []Refusal
	if probed.err != nil {
		again = []Refusal{{daemonCode(probed.err), probed.err.Error()}}
	} else {
		again = probed.value.Refusals
	}
	before, err := r.observed(evidence.BeforeStart, probed.value, probed.err, again)
	if err != nil {
		return err
	}
	same := len(again) == 0 && probed.value.Identity.Equal(r.premises.runtime.Identity) // req C3
	s := r.watch.seen()
	failed(RefusedLost, s.lost)
	if len(s.foreign) > 0 {
		failed(RefusedInterfere, fmt.Errorf("seen before the start: %v", s.foreign))
		r.custody.last = nil // somebody may have started it since
	}
	observed, err := r.isolation(iso, refusals)
	if err != nil {
		return err
	}
	equal := 0
	for _, f := range iso.Findings {
		if f.Equal {
			equal++
		}
	}
	r.Progress("isolation", fmt.Sprintf("%d/%d", equal, len(iso.Findings)))
	if err := r.cancelled(ctx); err != nil {
		return err
	}
	if !same || len(observed.Refusals) > 0 {
		if err := r.ledger.record(before, observed); err != nil {
			return err
		}
		r.Progress("refused", "the container is not what the profile wants")
		return errEnded
	}
	if err := r.ledger.record(before, observed, evidence.StartOrdered{Handle: r.plan.Handle}); err != nil {
		return err
	}
	r.course.ordered = true
	return nil
}

// compare holds an inspection against the profile; what could not be inspected is unavailable.
func (r *run) compare(in Inspection, err error, failed func(string, error)) Isolation {
	if err != nil {
		code := RefusedInspect
		if errors.Is(err, ErrAbsent) {
			code = RefusedAbsent
		}
		failed(code, err)
		var iso Isolation
		for _, c := range r.plan.Profile.Controls {
			iso.Findings = append(iso.Findings, Finding{ID: c.ID, Kind: evidence.Unavailable, Reason: "missing"})
		}
		return iso
	}
	r.custody.last = &in
	if in.Status != statusCreated || in.Running || in.PID != 0 || in.RestartCount != 0 {
		failed(RefusedState, fmt.Errorf("the container is %q, process %d", in.Status, in.PID))
	}
	iso := r.Driver.Compare(r.plan, r.premises.image, r.premises.runtime, in)
	for i, f := range iso.Findings {
		if f.ID == evidence.CtlSeccomp && f.Equal && f.Kind == evidence.Accepted && r.premises.proven != nil {
			iso.Findings[i].Kind = evidence.Probed // req C6: what the daemon reports, another container showed
		}
	}
	return iso
}

// isolation makes the event of a comparison.
func (r *run) isolation(iso Isolation, refusals []Refusal) (evidence.IsolationObserved, error) {
	e := evidence.IsolationObserved{Handle: r.plan.Handle, Unknown: uint64(len(iso.Unknown))}
	var lines []string
	for _, f := range iso.Findings {
		if !f.Equal {
			lines = append(lines, fmt.Sprintf("control %d: expected %s, found %s (%s)", f.ID, r.portable(f.Expected), r.portable(f.Found), f.Reason))
		}
	}
	if len(lines) > 0 || len(iso.Findings) != len(r.plan.Profile.Controls) {
		e.Refusals = append(e.Refusals, RefusedControls)
	}
	if len(iso.Unknown) > 0 {
		e.Refusals = append(e.Refusals, RefusedUnknown)
		lines = append(lines, iso.Unknown...)
	}
	for _, f := range refusals {
		e.Refusals = append(e.Refusals, f.Code)
		lines = append(lines, f.Code+": "+f.Detail)
	}
	var err error
	if e.Controls, e.Values, err = r.controls(iso.Findings); err != nil {
		return e, err
	}
	e.Detail, err = r.detail(lines...)
	return e, err
}

// controls turns findings into evidence: each value under a salt of its own, all of them in one
// blob that may be withheld.
func (r *run) controls(fs []Finding) ([]evidence.Control, evidence.BlobRef, error) {
	controls := make([]evidence.Control, 0, len(fs))
	values := make([]evidence.ControlValue, 0, len(fs))
	for _, f := range fs {
		salt, err := r.ledger.salt()
		if err != nil {
			return nil, evidence.BlobRef{}, err
		}
		v := evidence.ControlValue{ID: f.ID, Salt: salt, Expected: r.portable(f.Expected), Found: r.portable(f.Found)}
		values = append(values, v)
		controls = append(controls, evidence.Control{
			ID: f.ID, Kind: f.Kind, Equal: f.Equal, Value: evidence.SaltedSum(salt, []byte(v.Found)), Reason: f.Reason,
		})
	}
	ref, err := r.ledger.withhold(evidence.Marshal(values))
	return controls, ref, err
}

// seen is what evidence calls the directory that the container sees.
func (r *run) seen(path string) Place {
	if r.job.Profile.Writable {
		return Place{Path: path, Role: WorkspaceRole}
	}
	return Place{Path: path, Role: SnapshotRole}
}

// portable takes the source's host path, and whatever is sensitive, out of a value that was compared
// already.
func (r *run) portable(value string) string {
	return r.job.Redact.String(Portable(value, r.seen(r.plan.Source)))
}

// detail keeps lines for people, without this host's paths and sensitive values; none gives no
// reference.
func (r *run) detail(lines ...string) (*evidence.BlobRef, error) {
	places := append([]Place{r.seen(r.job.Source)}, r.job.Places...)
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = r.job.Redact.String(Portable(line, places...))
	}
	return r.ledger.detail(out...)
}
