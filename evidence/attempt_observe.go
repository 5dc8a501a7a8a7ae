package evidence

import (
	"fmt"
	"slices"
)

// observe folds what only the attempt's own, unfenced runner may append.
func (a *Attempt) observe(p Payload) error {
	switch {
	case a.Claimed == nil:
		return fmt.Errorf("the attempt is not claimed")
	case a.Fenced():
		return fmt.Errorf("the attempt was fenced")
	case a.Voided != nil:
		return fmt.Errorf("the claim is void")
	}
	switch e := p.(type) {
	case PreflightObserved, WorkspaceMutated, PolicyChecked:
		return a.contain(p)
	case SourceMaterialized:
		if a.Materialized != nil || a.SourceRefusal != nil {
			return fmt.Errorf("the source was settled already")
		}
		if err := a.mayPrepare(); err != nil {
			return err
		}
		a.Materialized, a.Snapshot = &e, SnapshotHeld
		return nil
	case SourceRefused:
		if a.Materialized != nil || a.SourceRefusal != nil {
			return fmt.Errorf("the source was settled already")
		}
		a.SourceRefusal = &e
		return nil
	case RuntimeObserved:
		return a.runtime(e)
	case IsolationObserved:
		if err := a.holds(e.Handle); err != nil {
			return err
		}
		if a.Isolation != nil {
			return fmt.Errorf("isolation was observed already")
		}
		a.Isolation = &e
		return nil
	case StartOrdered:
		if err := a.holds(e.Handle); err != nil {
			return err
		}
		if a.Run.Ordered {
			return fmt.Errorf("the start was ordered already")
		}
		a.Run.Ordered = true
		return a.mayStart()
	}
	return a.observeRun(p)
}

// observeRun folds what is seen from the start order on.
func (a *Attempt) observeRun(p Payload) error {
	if e, ok := p.(StopOrdered); ok {
		if a.Run.Exited != nil {
			return fmt.Errorf("the container had exited")
		}
		if e.Handle != nil {
			if err := a.holds(*e.Handle); err != nil {
				return err
			}
		}
		a.Run.Stops = append(slices.Clip(a.Run.Stops), e)
		return nil
	}
	if !a.Run.Ordered {
		return fmt.Errorf("no start was ordered")
	}
	switch e := p.(type) {
	case ContainerStarted:
		if a.Run.Started || a.Run.StartFailed != nil || a.Run.Exited != nil {
			return fmt.Errorf("the start was settled already")
		}
		a.Run.Started = true
		return a.holds(e.Handle)
	case StartFailed:
		if a.Run.Started || a.Run.StartFailed != nil || a.Run.Exited != nil {
			return fmt.Errorf("the start was settled already")
		}
		a.Run.StartFailed = &e
		return a.holds(e.Handle)
	case KernelObserved:
		if !a.Run.Started || a.Run.Kernel != nil || a.Run.Exited != nil {
			return fmt.Errorf("it belongs once between start and exit")
		}
		a.Run.Kernel = &e
		return a.holds(e.Handle)
	case ContainerExited:
		if a.Run.Exited != nil {
			return fmt.Errorf("the exit was observed already")
		}
		a.Run.Exited = &e
		return a.holds(e.Handle)
	case OutputCaptured:
		if a.Run.Exited == nil || a.Run.Output != nil {
			return fmt.Errorf("it belongs once after the exit")
		}
		a.Run.Output = &e
		return a.holds(e.Handle)
	}
	return fmt.Errorf("it does not belong in an attempt's stream")
}

// holds refuses an observation of anything but the attempt's own container, which must be known
// and not yet gone.
func (a *Attempt) holds(h HandleKey) error {
	c, ok := a.Custodies.MainContainer()
	if !ok || c.Handle != h {
		return fmt.Errorf("custody %s is not the attempt's own container", h)
	}
	if c.Container == nil {
		return fmt.Errorf("custody %s has no container yet", h)
	}
	if c.Closed {
		return fmt.Errorf("custody %s is closed", h)
	}
	return nil
}

func (a *Attempt) runtime(e RuntimeObserved) error {
	if e.Identity == nil && len(e.Refusals) == 0 {
		return fmt.Errorf("it has neither an identity nor a refusal")
	}
	slot, ready := &a.BeforeCreate, a.Materialized != nil && len(a.Custodies) == 0
	switch e.Point {
	case BeforeCreate:
	case BeforeStart:
		c, ok := a.Custodies.MainContainer()
		slot, ready = &a.BeforeStart, ok && c.Container != nil && !a.Run.Ordered
	case AfterExit:
		slot, ready = &a.AfterExit, a.Run.Exited != nil
	default:
		return fmt.Errorf("observation point %q is not known", e.Point)
	}
	if !ready || *slot != nil {
		return fmt.Errorf("point %s doesn't belong here", e.Point)
	}
	*slot = &e
	return nil
}

// mayCreate holds custody to law 2: the runtime was seen and accepted, by the unfenced runner.
func (a *Attempt) mayCreate() error {
	switch {
	case a.Claimed == nil:
		return fmt.Errorf("the attempt is not claimed")
	case a.Fenced():
		return fmt.Errorf("the attempt was fenced")
	case a.Voided != nil:
		return fmt.Errorf("the claim is void")
	case a.Materialized == nil:
		return fmt.Errorf("the source is not in place")
	case a.BeforeCreate == nil || len(a.BeforeCreate.Refusals) > 0:
		return fmt.Errorf("the runtime was not accepted")
	case len(a.unaccepted()) > 0:
		return fmt.Errorf("reduction %s was not accepted", a.unaccepted()[0])
	case a.Run.Ordered:
		return fmt.Errorf("the start was ordered already")
	}
	return nil
}

// mayStart holds the start to req C5: everything observed equal, nothing unknown.
func (a *Attempt) mayStart() error {
	c, _ := a.Custodies.MainContainer()
	switch {
	case c.Warnings > 0 || c.Discovered:
		return fmt.Errorf("the create had warnings or lost its reply")
	case a.BeforeStart == nil || !a.sameRuntime(a.BeforeStart):
		return fmt.Errorf("the runtime is not the one the container was created under")
	case a.Isolation == nil || !a.Isolation.holds(a.Registered.Table):
		return fmt.Errorf("isolation was not observed equal")
	}
	return a.kindsHold()
}

// kindsHold refuses a start whose controls are known in a way they can't be. Without a reduction
// each kind must be one that carries a full claim by the profile's table (req C6). A probe stands
// for the seccomp profile alone, and must be named (req C4).
func (a *Attempt) kindsHold() error {
	table, _ := ProfileByDigest(a.Registered.Table)
	for i, c := range a.Isolation.Controls {
		spec := table.Controls[i]
		if c.Kind == Probed && (c.ID != CtlSeccomp || a.BeforeCreate.Probe == nil) {
			return fmt.Errorf("control %s is called probed, and no probe that is named saw it", spec.Name)
		}
		if len(a.BeforeCreate.Reductions) == 0 && !slices.Contains(spec.Full, c.Kind) {
			return fmt.Errorf("control %s is only %s, which carries no full claim, and nothing reduces it", spec.Name, c.Kind)
		}
	}
	return nil
}

// holds reports whether every control of the profile with this table was found equal.
func (e *IsolationObserved) holds(table ProfileDigest) bool {
	if e.Unknown > 0 || len(e.Refusals) > 0 {
		return false
	}
	want, known := ProfileByDigest(table)
	if !known || len(want.Controls) != len(e.Controls) {
		return false
	}
	for i, c := range e.Controls {
		if c.ID != want.Controls[i].ID || !c.Equal || c.Kind == Unavailable || c.Kind == Requested {
			return false
		}
	}
	return true
}

// sameRuntime reports whether an observation equals the one before create, in both parts, and
// refuses nothing.
func (a *Attempt) sameRuntime(o *RuntimeObserved) bool {
	return a.BeforeCreate != nil && a.BeforeCreate.Identity != nil && o != nil && o.Identity != nil &&
		len(o.Refusals) == 0 && a.BeforeCreate.Identity.Equal(*o.Identity)
}

// unaccepted lists reductions of the runtime that the claim doesn't accept.
func (a *Attempt) unaccepted() []Reduction {
	var out []Reduction
	if a.Claimed == nil {
		return nil
	}
	var seen []Reduction
	if a.Preflight != nil {
		seen = a.Preflight.Reductions
	}
	if a.BeforeCreate != nil {
		seen = slices.Concat(seen, a.BeforeCreate.Reductions)
	}
	for _, r := range seen {
		if !slices.Contains(a.Claimed.Accepted, r) && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}
