package executor

import (
	"context"
	"errors"
	"slices"

	"github.com/baildock/baildock/evidence"
)

// Sighting is a daemon and an image as they were before a create.
type Sighting struct {
	Runtime    Runtime
	RuntimeErr error
	Image      Image
	ImageErr   error
}

// Look probes the daemon and inspects the image, both at once. A caller may do so while it
// prepares the source, and hand the sighting to Run.
func Look(ctx context.Context, d Driver, id evidence.ImageID) Sighting {
	image := launch(func() (Image, error) { return d.ImageInspect(ctx, id.String()) })
	var s Sighting
	s.Runtime, s.RuntimeErr = guarded(func() (Runtime, error) { return d.Probe(ctx) })
	o := <-image
	s.Image, s.ImageErr = o.value, o.err
	return s
}

// premises are what the plan rests on: the daemon and the image before the create.
type premises struct {
	runtime  Runtime
	image    Image
	proven   *evidence.Basis // the probe that shows the seccomp profile that can't be named
	unproven bool            // there is none
}

// Refusal codes of a runtime observation that don't come from the driver's probe.
const (
	RefusedUnreachable  = "daemon_unreachable" // no answer
	RefusedDaemonError  = "daemon_error"       // an answer that is an error
	RefusedEvents       = "events_unavailable" // its events can't be followed
	RefusedProof        = "probe_unreadable"   // the runtime's stream can't be read
	RefusedNoImage      = "image_missing"      // no such local image; nothing is pulled
	RefusedImageError   = "image_unreadable"   // the image can't be inspected
	RefusedImageID      = "image_mismatched"   // the daemon answered with another image
	RefusedImageEnv     = "image_environment"  // it declares an entry that the recipe doesn't (req A4)
	RefusedImageLabels  = "image_labels"       // it declares labels of ours (req E2)
	RefusedImageVolumes = "image_volumes"      // it declares volumes
	RefusedImageOS      = "image_platform"     // it isn't for Linux
)

// daemonCode names a failed probe.
func daemonCode(err error) string {
	var f *Fault
	if errors.As(err, &f) && f.Answered {
		return RefusedDaemonError
	}
	return RefusedUnreachable
}

// look subscribes to the daemon's events, observes the runtime and the image and records both.
// It ends the run unless everything is as the recipe and the claim want it.
func (r *run) look(ctx context.Context) error {
	r.Progress("probe", "")
	events := launch(func() (EventStream, error) { return r.Driver.Events(r.life) })
	if r.job.Sighting == nil {
		s := Look(r.life, r.Driver, r.job.Recipe.Image)
		r.job.Sighting = &s
	}
	s := *r.job.Sighting
	r.premises.runtime, r.premises.image = s.Runtime, s.Image
	refusals := slices.Clone(s.Runtime.Refusals)
	subscribed := <-events
	switch {
	case s.RuntimeErr != nil:
		refusals = append(refusals, Refusal{daemonCode(s.RuntimeErr), s.RuntimeErr.Error()})
	case subscribed.err != nil:
		refusals = append(refusals, Refusal{RefusedEvents, subscribed.err.Error()})
	}
	if subscribed.err == nil {
		go r.watch.follow(subscribed.value)
	}
	if s.RuntimeErr == nil {
		refusals = append(refusals, imageRefusals(s.Image, s.ImageErr, r.job)...)
	}
	if s.RuntimeErr == nil && r.premises.runtime.Seccomp == evidence.SeccompReported && len(r.premises.runtime.Reductions) == 0 {
		var err error
		if r.premises.proven, err = r.prove(ctx); err != nil {
			refusals = append(refusals, Refusal{RefusedProof, err.Error()})
		}
		// req C4: what the API can't name must have been seen on this runtime before.
		r.premises.unproven = r.premises.proven == nil
	}
	e, err := r.observed(evidence.BeforeCreate, r.premises.runtime, s.RuntimeErr, refusals)
	if err != nil {
		return err
	}
	e.Probe = r.premises.proven
	if err := r.ledger.record(e); err != nil {
		return err
	}
	if len(e.Refusals) > 0 {
		r.Progress("refused", e.Refusals[0])
		return errEnded
	}
	for _, reduction := range e.Reductions {
		if !slices.Contains(r.job.Accepted, reduction) { // req C8: the fold says which
			r.Progress("refused", "reduction "+string(reduction)+" is not accepted")
			return errEnded
		}
	}
	return nil
}

func (r *run) prove(ctx context.Context) (*evidence.Basis, error) {
	if r.job.Prove == nil {
		return nil, nil
	}
	return r.job.Prove(ctx, r.premises.runtime.Identity)
}

// observed makes the event of one observation of the daemon.
func (r *run) observed(p evidence.ObservationPoint, rt Runtime, err error, refusals []Refusal) (evidence.RuntimeObserved, error) {
	e := evidence.RuntimeObserved{Point: p}
	if err == nil {
		e.Identity, e.Seccomp = &rt.Identity, rt.Seccomp
		e.Reductions = slices.Clone(rt.Reductions)
		if r.premises.unproven {
			e.Reductions = append(e.Reductions, evidence.ReducedSeccomp)
		}
	}
	var lines []string
	for _, f := range refusals {
		e.Refusals = append(e.Refusals, f.Code)
		lines = append(lines, f.Code+": "+f.Detail)
	}
	var keepErr error
	if e.Detail, keepErr = r.detail(lines...); keepErr != nil {
		return e, keepErr
	}
	return e, nil
}
