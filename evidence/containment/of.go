package containment

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/baildock/baildock/evidence"
)

// Blobs is what is at hand beside the events, each opened against the digest that an event names. Nil
// is withheld, or missing.
type Blobs struct {
	Recipe      *evidence.Recipe
	Environment *evidence.Environment
	Values      []evidence.ControlValue // of IsolationObserved
}

// Of views an attempt. It is total: an attempt that is still running, or was refused, has its object too.
func Of(a *evidence.Attempt, b Blobs) Evidence {
	r := evidence.RecordOf(a)
	contained := a.Contained()
	e := Evidence{
		Schema: Schema, Version: Version, Attempt: a.Registered.Attempt, Profile: known(a.Registered.Profile), Containment: NotApplicable,
		Claim: r.Claim, Reductions: reductions(r.Reductions),
		Requested: requestedOf(a, b.Recipe), Preflight: preflightOf(a), Image: imageOf(a, b),
		Controls: controlsOf(a), Environment: environmentOf(a, b.Environment), Workspace: workspaceOf(a),
		Execution: executionOf(a, r), Cleanup: cleanupOf(a),
	}
	if contained {
		e.Containment = Applicable
	}
	e.fit()
	return e
}

func reductions(all []evidence.Reduction) []evidence.Reduction {
	out := make([]evidence.Reduction, 0, len(all))
	for _, r := range all[:min(len(all), MaxItems)] {
		out = append(out, known(r))
	}
	return out
}

func requestedOf(a *evidence.Attempt, r *evidence.Recipe) Requested {
	q := Requested{State: StateWithheld, Platform: Withheld, Network: Withheld, ImageProvenance: Withheld, Executable: Withheld, Writable: []string{},
		Paths: Paths{Repository: "${REPOSITORY_ROOT}", Workspace: "${RUN_ROOT}/workspace", Evidence: "${RUN_ROOT}/evidence"}}
	if r == nil {
		return q
	}
	q.State, q.Executable, q.Arguments = StateKnown, lastName(r.Executable), len(r.Args)
	q.Limits = &Limits{WallNS: uint64(r.Limits.Wall), Output: r.Limits.Output, Memory: r.Limits.Memory,
		Scratch: r.Limits.Scratch, PIDs: r.Limits.PIDs, NanoCPUs: r.Limits.NanoCPUs}
	q.Platform, q.Network, q.ImageProvenance = None, Unreadable, "local-id"
	if table, ok := evidence.ProfileByDigest(a.Registered.Table); ok {
		q.Network, q.UID, q.GID = string(known(table.Network)), table.UID, table.GID
	}
	if c := r.Contained; c != nil {
		q.Platform, q.Network, q.UID, q.GID = string(known(c.Platform)), string(known(c.Network)), c.UID, c.GID
		q.ImageProvenance = "digest-required"
		for _, p := range c.Writable {
			q.Writable = append(q.Writable, writable(p))
		}
	}
	return q
}

func preflightOf(a *evidence.Attempt) Preflight {
	p := Preflight{State: StateNotReached, Reductions: []evidence.Reduction{}, Checks: []PreflightCheck{}}
	switch {
	case !a.Contained():
		p.State = StateNotApplicable
	case a.Preflight != nil:
		p.State = State(a.Preflight.Result)
		p.Reductions = reductions(a.Preflight.Reductions)
		for _, c := range a.Preflight.Checks {
			p.Checks = append(p.Checks, PreflightCheck{Name: word(c.Name), Result: known(c.Result), Code: code(c.Code)})
		}
	}
	return p
}

func imageOf(a *evidence.Attempt, b Blobs) Image {
	i := Image{State: StateNotReached, Configured: Withheld, RepositoryDigest: Withheld, LocalID: Withheld, ContainerBound: None}
	if r := b.Recipe; r != nil {
		i.LocalID, i.Configured, i.RepositoryDigest = r.Image.String(), r.Image.String(), None
		if r.Contained != nil && r.Contained.Reference != "" {
			i.Configured, i.RepositoryDigest = reference(r.Contained.Reference)
		}
	}
	seen := a.Isolation
	if seen == nil {
		return i
	}
	at := slices.IndexFunc(seen.Controls, func(c evidence.Control) bool { return c.ID == evidence.CtlImage })
	switch {
	case at < 0 || !observation(seen.Controls[at].Kind):
		i.State, i.ContainerBound = StateUnobserved, Unreadable
		return i
	case seen.Controls[at].Equal:
		i.State = StateBound
	default:
		i.State = StateMismatched
	}
	i.ContainerBound = Withheld
	if len(b.Values) == len(seen.Controls) {
		i.ContainerBound = boundImage(b.Values[at].Found)
	}
	return i
}

func observation(k evidence.EvidenceKind) bool {
	return k == evidence.Observed || k == evidence.Kernel
}

// controlsOf counts a control as held only if it was observed, and equal, on the container that ran
// (law 5). What the kernel showed of that container afterwards can only take away from it.
func controlsOf(a *evidence.Attempt) Controls {
	c := Controls{State: StateNotReached, List: []Control{}}
	if a.Isolation == nil {
		return c
	}
	ran := a.Run.Started
	kernel := map[evidence.ControlID]evidence.Control{}
	if k := a.Run.Kernel; k != nil {
		ran = ran && k.Handle == a.Isolation.Handle
		for _, o := range k.Controls {
			kernel[o.ID] = o
		}
	}
	table, _ := evidence.ProfileByDigest(a.Registered.Table)
	c.Unknown = a.Isolation.Unknown
	for _, o := range a.Isolation.Controls {
		one := Control{ID: o.ID, Name: Unreadable, Evidence: known(o.Kind)}
		if at := slices.IndexFunc(table.Controls, func(s evidence.ControlSpec) bool { return s.ID == o.ID }); at >= 0 {
			one.Name = word(table.Controls[at].Name)
		}
		one.State = controlState(o, ran)
		if k, ok := kernel[o.ID]; ok && k.Kind == evidence.Kernel {
			switch {
			case !k.Equal:
				one.State, one.Evidence = ControlUnequal, evidence.Kernel
			case ran && one.State != ControlUnequal && one.State != ControlUnavailable:
				one.State, one.Evidence = ControlHeld, evidence.Kernel
			}
		}
		c.count(one.State)
		c.List = append(c.List, one)
	}
	c.Total = len(c.List)
	c.State = StateHeld
	if !ran {
		c.State = StateNotReached
	}
	c.Interfered = a.Run.Exited != nil && len(a.Run.Exited.Interference) > 0
	if c.Unequal+c.Unavailable > 0 || c.Unknown > 0 || c.Interfered {
		c.State = StateNotHeld
	}
	return c
}

func controlState(o evidence.Control, ran bool) ControlState {
	switch {
	case o.Kind == evidence.Accepted && o.Equal:
		return ControlAccepted
	case o.Kind == evidence.Probed && o.Equal:
		return ControlProbed
	case !observation(o.Kind):
		return ControlUnavailable
	case !o.Equal:
		return ControlUnequal
	case !ran:
		return ControlNotRun
	}
	return ControlHeld
}

func (c *Controls) count(s ControlState) {
	*map[ControlState]*int{
		ControlHeld: &c.Held, ControlAccepted: &c.Accepted, ControlProbed: &c.Probed,
		ControlNotRun: &c.NotRun, ControlUnequal: &c.Unequal, ControlUnavailable: &c.Unavailable,
	}[s]++
}

func environmentOf(a *evidence.Attempt, b *evidence.Environment) Environment {
	e := Environment{State: StateKnown, Fixed: []string{}, Configured: []string{}, Values: "recorded"}
	if a.Contained() {
		e.Values = "not_recorded"
	}
	table, _ := evidence.ProfileByDigest(a.Registered.Table)
	for _, v := range table.Environment {
		e.Fixed = append(e.Fixed, variable(v.Name))
	}
	if b == nil {
		e.State = StateWithheld
		return e
	}
	for _, v := range b.Vars {
		e.Configured = append(e.Configured, variable(v.Name))
	}
	for _, v := range b.Committed {
		e.Configured = append(e.Configured, variable(v.Name))
	}
	slices.Sort(e.Configured)
	return e
}

func workspaceOf(a *evidence.Attempt) Workspace {
	w := Workspace{State: StateNotReached, Baseline: None, Policy: Policy{State: PolicyNone, Checks: []PolicyCheck{}}}
	if !a.Contained() {
		w.State = StateNotApplicable
		return w
	}
	if a.Materialized != nil {
		w.Baseline = a.Materialized.Manifest.String()
	}
	if m := a.Mutated; m != nil {
		w.Modified, w.Added, w.Deleted, w.Renamed, w.Code = m.Modified, m.Added, m.Deleted, m.Renamed, code(m.Code)
		switch {
		case m.Code != "":
			w.State = StateUnknown
		case m.Modified+m.Added+m.Deleted+m.Renamed > 0:
			w.State = StateChanged
		default:
			w.State = StateUnchanged
		}
	} else if a.Run.Started {
		w.State = StateUnknown
	}
	if a.Registered.Policy == nil {
		return w
	}
	w.Policy.State = PolicyUnchecked
	if p := a.Policy; p != nil {
		w.Policy.State = PolicyKept
		for _, c := range p.Checks {
			w.Policy.Checks = append(w.Policy.Checks, PolicyCheck{Name: word(string(c.Name)), Held: c.Held})
			if !c.Held {
				w.Policy.State = PolicyBroken
			}
		}
	}
	return w
}

func executionOf(a *evidence.Attempt, r evidence.Record) Execution {
	x := Execution{State: r.Outcome, Stage: stageOf(a), Detail: word(r.Detail), ExitCode: r.ExitCode, DurationN: r.Duration,
		TimedOut: r.Outcome == evidence.OutcomeTimedOut}
	stream := func(s *evidence.Stream) *Stream {
		if s == nil {
			return nil
		}
		return &Stream{Stored: s.Stored, Received: s.Received, EndOfStream: s.EndOfStream, Truncated: s.Truncated, Redacted: s.Redacted}
	}
	x.Stdout, x.Stderr = stream(r.Stdout), stream(r.Stderr)
	return x
}

func stageOf(a *evidence.Attempt) Stage {
	for _, s := range []struct {
		reached bool
		stage   Stage
	}{
		{a.State == evidence.StateFinished && a.Run.Exited != nil, StageFinished},
		{a.Policy != nil, StagePolicy},
		{a.Mutated != nil, StageMutations},
		{a.Run.Exited != nil, StageExit},
		{a.Run.Started, StageRun},
		{a.Run.Ordered, StageStart},
		{a.Isolation != nil, StageIsolation},
		{len(a.Custodies) > 0, StageCreate},
		{a.BeforeCreate != nil, StageRuntime},
		{a.Materialized != nil || a.SourceRefusal != nil, StageSource},
		{a.Preflight != nil, StagePreflight},
		{a.Claimed != nil, StageClaimed},
	} {
		if s.reached {
			return s.stage
		}
	}
	return StageRegistered
}

func cleanupOf(a *evidence.Attempt) Cleanup {
	c := Cleanup{State: StateNone, Containers: []Container{}, Workspace: map[evidence.SnapshotState]CopyState{
		evidence.SnapshotNone: CopyNone, evidence.SnapshotHeld: CopyHeld, evidence.SnapshotGone: CopyRemoved, evidence.SnapshotKept: CopyLeft,
	}[a.Snapshot]}
	left := c.Workspace == CopyHeld || c.Workspace == CopyLeft
	for _, o := range a.Custodies {
		left = left || !o.Closed
		c.Containers = append(c.Containers, Container{Hash: hashOf(o.Container), State: known(o.State), Absent: o.Closed})
	}
	switch {
	case left:
		c.State = StateIncomplete
	case len(c.Containers) > 0 || c.Workspace == CopyRemoved:
		c.State = StateComplete
	}
	return c
}

// hashOf names a container without its ID, which would select it.
func hashOf(id *evidence.ContainerID) string {
	if id == nil {
		return None
	}
	sum := sha256.Sum256([]byte(id.Hex()))
	return hex.EncodeToString(sum[:])[:hashDigits]
}
