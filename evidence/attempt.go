package evidence

import (
	"fmt"
	"slices"
)

// State is where an attempt stands.
type State string

const (
	StateNone     State = ""         // no event yet
	StatePending  State = "pending"  // registered, generation 0
	StateRunning  State = "running"  // claimed, or fenced and not finished
	StateFinished State = "finished" // has its record
)

// Attempt is one run of one command under one recipe, folded from its stream. The zero value is
// the attempt before its first event. Exported fields are for reading.
type Attempt struct {
	State      State
	Generation uint64 // 0 pending, 1 claimed, +1 per fence

	Registered    AttemptRegistered
	Claimed       *AttemptClaimed
	Voided        *ClaimVoided
	Preflight     *PreflightObserved
	Materialized  *SourceMaterialized
	SourceRefusal *SourceRefused
	BeforeCreate  *RuntimeObserved
	BeforeStart   *RuntimeObserved
	AfterExit     *RuntimeObserved
	Custodies     Custodies
	Isolation     *IsolationObserved
	Run           RunSeen
	Mutated       *WorkspaceMutated
	Policy        *PolicyChecked
	Snapshot      SnapshotState
	Fences        []AttemptFenced
	Finished      *AttemptFinished
	Derivation    Derivation // of a finished attempt

	lastType string // of the event before, StreamSealed apart
}

// RunSeen is what was seen of the command itself.
type RunSeen struct {
	Ordered     bool // StartOrdered: candidate code may have run
	Started     bool
	StartFailed *StartFailed
	Kernel      *KernelObserved
	Stops       []StopOrdered // before the exit, in order
	Exited      *ContainerExited
	Output      *OutputCaptured
}

// SnapshotState tells what became of the source snapshot.
type SnapshotState string

const (
	SnapshotNone SnapshotState = ""
	SnapshotHeld SnapshotState = "held"
	SnapshotGone SnapshotState = "gone"
	SnapshotKept SnapshotState = "left" // it could not be removed
)

// IllegalEventError says that an event can't follow what came before: the history is corrupt.
type IllegalEventError struct {
	Type string
	Why  string
}

func (e *IllegalEventError) Error() string { return fmt.Sprintf("illegal %s: %s", e.Type, e.Why) }

// Fenced reports whether the attempt was taken from its runner, or ended before it had one.
func (a *Attempt) Fenced() bool { return len(a.Fences) > 0 }

// Apply folds the next event of the stream. It fails with *IllegalEventError, leaving the attempt
// unchanged, when the event can't legally follow.
func (a *Attempt) Apply(p Payload) error {
	if _, seal := p.(StreamSealed); seal {
		return nil
	}
	next := *a
	next.Custodies = slices.Clone(a.Custodies)
	if err := next.apply(p); err != nil {
		return &IllegalEventError{Type: p.EventType(), Why: err.Error()}
	}
	next.lastType = p.EventType()
	*a = next
	return nil
}

func (a *Attempt) apply(p Payload) error {
	if a.State == StateFinished {
		if e, ok := p.(CandidateDerived); ok {
			return a.Derivation.Apply(e)
		}
		return fmt.Errorf("the attempt is finished")
	}
	if a.State == StateNone {
		e, ok := p.(AttemptRegistered)
		if !ok {
			return fmt.Errorf("an attempt opens with AttemptRegistered")
		}
		a.State, a.Registered = StatePending, e
		return e.Check()
	}
	switch e := p.(type) {
	case AttemptRegistered:
		return fmt.Errorf("the attempt is registered already")
	case AttemptClaimed:
		return a.claim(e)
	case ClaimVoided:
		if a.lastType != "AttemptClaimed" {
			return fmt.Errorf("it does not directly follow AttemptClaimed")
		}
		a.Voided = &e
		return nil
	case AttemptFenced:
		if e.Generation != a.Generation+1 {
			return fmt.Errorf("it makes generation %d out of %d", e.Generation, a.Generation)
		}
		if e.By != FencedByCancel && a.Claimed == nil {
			return fmt.Errorf("a pending attempt can only be cancelled")
		}
		a.Generation, a.State = e.Generation, StateRunning
		a.Fences = append(slices.Clip(a.Fences), e)
		return nil
	case CustodyTaken:
		if err := a.mayCreate(); err != nil {
			return err
		}
		return a.Custodies.Apply(e)
	case CreateRuledOut, ContainerCreated, RemovalOrdered, RemovalObserved, CleanupUnconfirmed:
		return a.Custodies.Apply(p)
	case CustodyAbandoned:
		if !a.Fenced() {
			return fmt.Errorf("only a recovered attempt's custody can be abandoned")
		}
		return a.Custodies.Apply(p)
	case SnapshotRemoved:
		return a.snapshot(SnapshotGone)
	case SnapshotLeft:
		return a.snapshot(SnapshotKept)
	case AttemptFinished:
		return a.finish(e)
	}
	return a.observe(p)
}

// Check refuses a registration whose parts have no legal shape.
func (e AttemptRegistered) Check() error {
	if _, err := ParseAttemptID(string(e.Attempt)); err != nil {
		return err
	}
	if e.Binding != nil {
		if _, err := ParseChangeID(string(e.Binding.Change)); err != nil {
			return err
		}
		if e.Binding.Version == 0 {
			return fmt.Errorf("change versions start at 1")
		}
	}
	if p, known := ProfileByDigest(e.Table); known && p.Name != e.Profile {
		return fmt.Errorf("it names profile %s with the table of %s", e.Profile, p.Name)
	}
	if e.Profile != ProfileContained && (e.Policy != nil || e.Salts != nil) {
		return fmt.Errorf("profile %s has no workspace policy and no committed environment", e.Profile)
	}
	return e.Subject.Check()
}

func (a *Attempt) claim(e AttemptClaimed) error {
	if a.State != StatePending {
		return fmt.Errorf("the attempt is %s, not pending", a.State)
	}
	if e.Generation != a.Generation+1 {
		return fmt.Errorf("it makes generation %d out of %d", e.Generation, a.Generation)
	}
	if !sortedUnique(e.Basis, func(b Basis) string { return b.Stream }) || len(e.Basis) > MaxBasis {
		return fmt.Errorf("its basis is not sorted, repeats a stream or names more than %d", MaxBasis)
	}
	if !sortedUnique(e.Accepted, func(r Reduction) string { return string(r) }) {
		return fmt.Errorf("its accepted reductions are not sorted or repeat")
	}
	a.State, a.Generation, a.Claimed = StateRunning, e.Generation, &e
	return nil
}

func sortedUnique[T any](s []T, key func(T) string) bool {
	for i := 1; i < len(s); i++ {
		if key(s[i-1]) >= key(s[i]) {
			return false
		}
	}
	return true
}

func (a *Attempt) snapshot(to SnapshotState) error {
	if a.State != StateRunning {
		return fmt.Errorf("the attempt is %s", a.State)
	}
	if len(a.Custodies.Open()) > 0 {
		return fmt.Errorf("a container that may mount it is not confirmed gone")
	}
	if to == SnapshotGone && a.abandoned() {
		return fmt.Errorf("a container that was given up may still mount it")
	}
	if a.Snapshot == SnapshotGone || a.Snapshot == to {
		return fmt.Errorf("the snapshot is %s already", a.Snapshot)
	}
	a.Snapshot = to
	return nil
}

func (a *Attempt) finish(e AttemptFinished) error {
	if a.State != StateRunning {
		return fmt.Errorf("the attempt is %s", a.State)
	}
	if open := a.Custodies.Open(); len(open) > 0 {
		return fmt.Errorf("custody %s is open", open[0].Handle)
	}
	if a.Snapshot == SnapshotHeld && !a.abandoned() {
		return fmt.Errorf("nothing says what became of the snapshot")
	}
	if want := RecordOf(a).Digest(); e.Record != want {
		return fmt.Errorf("record digest %s is not the derived %s", e.Record, want)
	}
	a.State, a.Finished = StateFinished, &e
	a.Derivation = a.MayDerive()
	return nil
}

func (a *Attempt) abandoned() bool {
	return slices.ContainsFunc(a.Custodies, func(c Custody) bool { return c.Abandoned })
}

// Fold applies events in order to a new attempt.
func Fold(events ...Payload) (Attempt, error) {
	var a Attempt
	for i, p := range events {
		if err := a.Apply(p); err != nil {
			return a, fmt.Errorf("event %d: %w", i, err)
		}
	}
	return a, nil
}
