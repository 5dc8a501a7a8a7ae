package journal

import (
	"context"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Derived records which revision a finished attempt's output proposes (req I3). Saying the same
// again returns the first event. It fails with *evidence.IllegalEventError (wrapped) for an
// attempt that nothing can be derived from.
func (j *Journal) Derived(ctx context.Context, id evidence.AttemptID, c evidence.CandidateDerived) (ledger.Event, error) {
	for range maxRaces {
		a, err := j.Attempt(ctx, id)
		if err != nil {
			return ledger.Event{}, err
		}
		if have := a.Fold.Derivation.Done; have != nil {
			return a.derivedAs(*have, c)
		}
		next := a.Fold
		if err := next.Apply(c); err != nil {
			return ledger.Event{}, fmt.Errorf("attempt %s: %w", id, err)
		}
		prepared, err := j.prepare(nil, c)
		if err != nil {
			return ledger.Event{}, err
		}
		done, err := j.append(ctx, AttemptStream(id), a.Version, prepared)
		if err == nil {
			return done[0], nil
		}
		if !isConflict(err) {
			return ledger.Event{}, err
		}
	}
	return ledger.Event{}, tooManyRaces(AttemptStream(id))
}

// derivedAs returns the event of the candidate that was derived, if it is this one.
func (a Attempt) derivedAs(have, c evidence.CandidateDerived) (ledger.Event, error) {
	sameManifest := (have.Manifest == nil) == (c.Manifest == nil) && (c.Manifest == nil || *have.Manifest == *c.Manifest)
	if have.Revision != c.Revision || !sameManifest {
		return ledger.Event{}, fmt.Errorf("attempt %s: another candidate (%s) was derived from it before", a.Fold.Registered.Attempt, have)
	}
	for _, e := range a.Events {
		if e.Type == c.EventType() {
			return e, nil
		}
	}
	return ledger.Event{}, fmt.Errorf("attempt %s: its candidate has no event", a.Fold.Registered.Attempt)
}
