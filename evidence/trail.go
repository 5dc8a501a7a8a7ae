package evidence

// EventIndex is an event's dense place in the ledger's one order. Admission cites events by it.
type EventIndex uint64

// ChangeTrail folds a change's stream and remembers where what admission cites was said.
type ChangeTrail struct {
	Fold      Change
	VersionAt EventIndex   // of the last VersionAdded or, without one, of ChangeOpened
	ContextAt EventIndex   // of the present context
	PathsAt   EventIndex   // of Fold.Paths
	Listed    []EventIndex // of Fold.Openings, in the same order

	// Ended is the index of the last event that ended a context without setting another.
	Ended EventIndex
}

// Apply folds the next event. It fails as Change.Apply does, leaving the trail unchanged.
func (t *ChangeTrail) Apply(at EventIndex, p Payload) error {
	if err := t.Fold.Apply(p); err != nil {
		return err
	}
	switch p.(type) {
	case ChangeOpened:
		t.VersionAt, t.Ended = at, at
	case VersionAdded:
		t.VersionAt, t.Ended = at, at
	case ContextSet:
		t.ContextAt = at
	case ChangeIntegrated:
		t.Ended = at
	case PathsChecked:
		t.PathsAt = at
	case AttemptOpened:
		t.Listed = append(t.Listed, at)
	}
	return nil
}

// Exhibit is what admission reads of the change.
func (t *ChangeTrail) Exhibit() ChangeExhibit {
	f := &t.Fold
	x := ChangeExhibit{Version: f.Version, Revision: f.Revision, Context: f.Context, Paths: f.Paths, PathsAt: t.PathsAt, ContextAt: t.ContextAt, EndedAt: t.Ended}
	if b, ok := f.Binding(); ok {
		x.Binding = b
	}
	return x
}

// Present lists the places in Fold.Openings of the attempts listed for the present context.
func (t *ChangeTrail) Present() []int {
	var out []int
	for i, o := range t.Fold.Openings {
		if t.Fold.Context != nil && o.Version == t.Fold.Version && o.Context == t.Fold.ContextDigest {
			out = append(out, i)
		}
	}
	return out
}

// PolicyTrail folds a policy's stream.
type PolicyTrail struct {
	Fold    Policy
	EpochAt EventIndex // of the event that began the present epoch
}

// Apply folds the next event. It fails as Policy.Apply does, leaving the trail unchanged.
func (t *PolicyTrail) Apply(at EventIndex, p Payload) error {
	if err := t.Fold.Apply(p); err != nil {
		return err
	}
	if _, ok := p.(EpochAdvanced); ok {
		t.EpochAt = at
	}
	return nil
}

// Exhibit is what admission reads of the policy.
func (t *PolicyTrail) Exhibit() PolicyExhibit {
	return PolicyExhibit{Epoch: t.Fold.Epoch, EpochAt: t.EpochAt}
}

// AttemptTrail folds an attempt's stream.
type AttemptTrail struct {
	Fold Attempt
	at   attemptPlaces
	data PlainDigest // of the registration as its stream holds it
}

type attemptPlaces struct {
	registered, claimed, isolation, cleanup, finished EventIndex
}

// Apply folds the next event. It fails as Attempt.Apply does, leaving the trail unchanged.
func (t *AttemptTrail) Apply(at EventIndex, p Payload) error {
	if err := t.Fold.Apply(p); err != nil {
		return err
	}
	switch e := p.(type) {
	case AttemptRegistered:
		t.at.registered, t.data = at, Sum[plainMeaning](Marshal(e))
	case AttemptClaimed:
		t.at.claimed = at
	case IsolationObserved:
		t.at.isolation = at
	case RemovalObserved, CreateRuledOut, CleanupUnconfirmed, CustodyAbandoned, CustodyTaken:
		t.at.cleanup = at
	case AttemptFinished:
		t.at.finished = at
	}
	return nil
}

// Exhibit is what admission reads of an attempt that its change lists. A trail without events
// gives one of an attempt that never opened.
func (t *AttemptTrail) Exhibit(listing Opening, listedAt EventIndex) AttemptExhibit {
	a := &t.Fold
	x := AttemptExhibit{
		Attempt: listing.Attempt, ListedAt: listedAt, State: a.State, Generation: a.Generation,
		Open: uint64(len(a.Custodies.Open())), CleanupAt: t.at.cleanup, IsolationAt: t.at.isolation, FinishedAt: t.at.finished,
		ClaimedAt: t.at.claimed, RegisteredAt: t.at.registered,
	}
	if a.State != StateNone {
		x.Registered, x.AsListed = &a.Registered, t.data == listing.Registration
	}
	if a.Claimed != nil {
		x.Claimed = a.Claimed.Generation
	}
	if o := a.BeforeCreate; o != nil && o.Identity != nil {
		d := o.Identity.Digest()
		x.Runtime = &d
	}
	if a.Voided != nil {
		x.Void = &t.at.claimed
	}
	x.Isolated = a.Run.Ordered && a.Isolation != nil && a.Isolation.holds(a.Registered.Table)
	if a.Finished != nil {
		r := RecordOf(a)
		x.Record, x.Stored = &r, a.Finished.Record
	}
	return x
}
