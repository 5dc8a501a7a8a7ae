package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Decode reads a product event strictly. It fails with *BadEventError, which wraps
// *evidence.UnknownEventError when only the type or schema is newer than this version.
func Decode(e ledger.Event) (evidence.Payload, evidence.Meta, error) {
	if e.Media != evidence.Media {
		return nil, evidence.Meta{}, bad(e, "media", evidence.Media, e.Media)
	}
	p, m, err := evidence.Decode(e.Type, e.Meta, e.Data)
	if err != nil {
		b := bad(e, "meta and data", "a known event in its canonical encoding", err.Error())
		b.Err = err
		return nil, m, b
	}
	if m.Actor == "" || len(m.Actor) > evidence.MaxActor {
		return nil, m, bad(e, "actor", fmt.Sprintf("1 to %d bytes", evidence.MaxActor), fmt.Sprintf("%d bytes", len(m.Actor)))
	}
	return p, m, nil
}

// IsUnknown reports whether an error says only that an event is newer than this version.
func IsUnknown(err error) bool {
	var u *evidence.UnknownEventError
	return errors.As(err, &u)
}

// Attempt is one attempt as its stream tells it.
type Attempt struct {
	Fold    evidence.Attempt
	Version ledger.Version // of the stream's last event
	Events  []ledger.Event // the whole stream
}

// Attempt reads an attempt. It fails with *NotFoundError when none is registered.
func (j *Journal) Attempt(ctx context.Context, id evidence.AttemptID) (Attempt, error) {
	a, err := j.readAttempt(ctx, id)
	if err == nil && a.Fold.State == evidence.StateNone {
		return Attempt{}, &NotFoundError{Kind: KindAttempt, ID: string(id)}
	}
	return a, err
}

// readAttempt is Attempt without asking that one is registered: a stream may hold a seal alone.
func (j *Journal) readAttempt(ctx context.Context, id evidence.AttemptID) (Attempt, error) {
	if _, err := evidence.ParseAttemptID(string(id)); err != nil {
		return Attempt{}, err
	}
	a := Attempt{Version: ledger.NoStream}
	return a, a.readOn(ctx, j, AttemptStream(id))
}

// readOn folds what was added to the stream since.
func (a *Attempt) readOn(ctx context.Context, j *Journal, stream ledger.StreamID) error {
	for e, err := range j.ledger.ReadStream(ctx, stream, a.Version+1) {
		if err != nil {
			return fmt.Errorf("read %s: %w", stream, err)
		}
		p, _, err := Decode(e)
		if err != nil {
			return err
		}
		if err := ApplyAttempt(&a.Fold, e, p); err != nil {
			return err
		}
		a.Version, a.Events = e.Version, append(a.Events, e)
	}
	return nil
}

// ApplyAttempt folds one decoded event of an attempt's stream; the registration must name the
// stream's own attempt. It fails with *BadEventError, leaving the attempt unchanged.
func ApplyAttempt(a *evidence.Attempt, e ledger.Event, p evidence.Payload) error {
	if r, ok := p.(evidence.AttemptRegistered); ok && AttemptStream(r.Attempt) != e.Stream {
		return bad(e, "attempt", string(e.Stream), string(AttemptStream(r.Attempt)))
	}
	if err := a.Apply(p); err != nil {
		return badHistory(e, err)
	}
	return nil
}

// Change is one change as its stream tells it.
type Change struct {
	Fold *evidence.Change
	Head ledger.Head
}

// Change reads a change. It fails with *NotFoundError when it was never opened.
func (j *Journal) Change(ctx context.Context, id evidence.ChangeID) (Change, error) {
	if _, err := evidence.ParseChangeID(string(id)); err != nil {
		return Change{}, err
	}
	c := Change{Fold: &evidence.Change{}}
	head, err := j.fold(ctx, ChangeStream(id), c.Fold)
	if err != nil {
		return Change{}, err
	}
	if !c.Fold.Exists() {
		return Change{}, &NotFoundError{Kind: KindChange, ID: string(id)}
	}
	c.Head = head
	return c, nil
}

// Policy is one policy as its stream tells it.
type Policy struct {
	Fold evidence.Policy
	Head ledger.Head
}

// Policy reads a policy. It fails with *NotFoundError when it was never opened.
func (j *Journal) Policy(ctx context.Context, id evidence.PolicyID) (Policy, error) {
	if _, err := evidence.ParsePolicyID(string(id)); err != nil {
		return Policy{}, err
	}
	var p Policy
	head, err := j.fold(ctx, PolicyStream(id), &p.Fold)
	if err != nil {
		return Policy{}, err
	}
	if p.Fold.Epoch == 0 {
		return Policy{}, &NotFoundError{Kind: KindPolicy, ID: string(id)}
	}
	p.Head = head
	return p, nil
}
