package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/baildock/baildock/evidence"
)

// GenerationError says that an attempt isn't where a cancel or a recovery expected it.
type GenerationError struct {
	Attempt    evidence.AttemptID
	Asked      uint64 // generation named by the caller
	Generation uint64 // where the attempt stands; the one to retry at while it isn't finished
	State      evidence.State
}

func (e *GenerationError) Error() string {
	if e.State == evidence.StateFinished {
		return fmt.Sprintf("attempt %s is finished already, at generation %d", e.Attempt, e.Generation)
	}
	return fmt.Sprintf("attempt %s stands at generation %d, not %d", e.Attempt, e.Generation, e.Asked)
}

// NotRunningError says that there is nothing to recover: nobody ever claimed the attempt.
type NotRunningError struct {
	Attempt    evidence.AttemptID
	Generation uint64
}

func (e *NotRunningError) Error() string {
	return fmt.Sprintf("attempt %s is pending at generation %d: nobody ran it, so there is nothing to recover", e.Attempt, e.Generation)
}

// Fence takes an attempt from whoever has it, at exactly the generation named, and returns the
// appender that owns the next one. reason, if any, must be kept already (req G4).
//
// A pending attempt can only be cancelled: its fence and its finish are one commit, and the
// appender returned has nothing left to do.
//
// It fails with *GenerationError, appending nothing, when the attempt stands elsewhere or is
// finished, and with *NotRunningError when a pending one is to be recovered.
func (j *Journal) Fence(ctx context.Context, id evidence.AttemptID, generation uint64, by evidence.FencedBy, reason *evidence.BlobRef) (*Appender, error) {
	a, err := j.Attempt(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case a.Fold.State == evidence.StateFinished || a.Fold.Generation != generation:
		return nil, moved(a.Fold, generation)
	case a.Fold.State == evidence.StatePending && by != evidence.FencedByCancel:
		return nil, &NotRunningError{Attempt: id, Generation: generation}
	}
	p := j.Appender(a)
	fence := evidence.AttemptFenced{Generation: generation + 1, By: by, Reason: reason}
	err = p.fence(ctx, fence)
	// Somebody finished or fenced it in between: it is said as if it had been so at once.
	var illegal *evidence.IllegalEventError
	if errors.Is(err, ErrFenced) || errors.As(err, &illegal) {
		now, err := j.Attempt(ctx, id)
		if err != nil {
			return nil, err
		}
		return nil, moved(now.Fold, generation)
	}
	if err != nil {
		return nil, fmt.Errorf("fence %s: %w", id, err)
	}
	return p, nil
}

func moved(a evidence.Attempt, asked uint64) error {
	return &GenerationError{Attempt: a.Registered.Attempt, Asked: asked, Generation: a.Generation, State: a.State}
}

// fence appends a fence and, to a pending attempt, its end in the same commit.
func (p *Appender) fence(ctx context.Context, e evidence.AttemptFenced) error {
	if err := p.turn.take(ctx); err != nil {
		return err
	}
	defer p.turn.pass()
	_, err := p.append(ctx, func() ([]evidence.Payload, error) {
		if p.fold.State != evidence.StatePending {
			return []evidence.Payload{e}, nil
		}
		next := p.fold
		if err := next.Apply(e); err != nil {
			return nil, err
		}
		return []evidence.Payload{e, evidence.AttemptFinished{Record: evidence.RecordOf(&next).Digest()}}, nil
	})
	return err
}
