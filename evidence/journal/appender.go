package journal

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Appender owns the version of one attempt's stream at one generation. It is safe for concurrent
// use; appends go one after the other.
type Appender struct {
	turn   turn // whose holder alone changes what follows
	j      *Journal
	stream ledger.StreamID

	mu   sync.Mutex // guards fold against readers, who don't wait for a turn
	fold evidence.Attempt

	version    ledger.Version
	generation uint64        // the one this appender writes for
	cause      []byte        // ID of the claim
	finished   *ledger.Event // AttemptFinished, once it is there
	stale      bool          // the stream may be further than the fold
}

// Appender returns an appender for an attempt as it was read, at the generation it had then.
func (j *Journal) Appender(a Attempt) *Appender {
	p := &Appender{
		turn: newTurn(), j: j, stream: AttemptStream(a.Fold.Registered.Attempt), fold: a.Fold, version: a.Version, generation: a.Fold.Generation,
	}
	for i := range a.Events {
		p.notice(a.Events[i])
	}
	return p
}

// Attempt is the fold of all events this appender knows of. It doesn't wait for an append under way,
// whose events are not known before it returns.
func (p *Appender) Attempt() evidence.Attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fold
}

// Append folds the payloads and appends them in one commit; they are durable when it returns. It
// fails with *evidence.IllegalEventError (wrapped), appending nothing, when one can't legally
// follow; with ErrFenced when the generation moved on; with ledger.ErrUnknownOutcome (wrapped)
// when it could not be learnt whether they were stored, after which the next call reads the
// stream again first. While another append is under way it waits, as long as ctx allows.
func (p *Appender) Append(ctx context.Context, payloads ...evidence.Payload) ([]ledger.Event, error) {
	if err := p.turn.take(ctx); err != nil {
		return nil, err
	}
	defer p.turn.pass()
	return p.append(ctx, func() ([]evidence.Payload, error) { return payloads, nil })
}

// Finish derives the record and appends AttemptFinished with its digest. When the attempt is
// finished already, by whomever, it returns that record and event.
func (p *Appender) Finish(ctx context.Context) (evidence.Record, ledger.Event, error) {
	if err := p.turn.take(ctx); err != nil {
		return evidence.Record{}, ledger.Event{}, err
	}
	defer p.turn.pass()
	_, err := p.append(ctx, func() ([]evidence.Payload, error) {
		return []evidence.Payload{evidence.AttemptFinished{Record: evidence.RecordOf(&p.fold).Digest()}}, nil
	})
	if p.finished != nil {
		return evidence.RecordOf(&p.fold), *p.finished, nil
	}
	return evidence.Record{}, ledger.Event{}, err
}

// append appends what decide makes of the present fold. It prepares the events once and again
// only after a conflict, which proves that they were not stored, changed what they hold.
func (p *Appender) append(ctx context.Context, decide func() ([]evidence.Payload, error)) ([]ledger.Event, error) {
	var prepared []ledger.Prepared
	for range maxRaces {
		if p.stale || p.fold.Generation != p.generation {
			if err := p.catchUp(ctx); err != nil {
				return nil, err
			}
		}
		if p.fold.Generation != p.generation {
			return nil, &FencedError{Attempt: p.fold.Registered.Attempt, Generation: p.fold.Generation, State: p.fold.State}
		}
		payloads, err := decide()
		if err != nil {
			return nil, err
		}
		if !holds(prepared, payloads) {
			if prepared, err = p.j.prepare(p.cause, payloads...); err != nil {
				return nil, err
			}
		}
		next, err := foldPrepared(p.fold, prepared)
		if err != nil {
			return nil, fmt.Errorf("attempt %s: %w", p.fold.Registered.Attempt, err)
		}
		done, err := p.j.append(ctx, p.stream, p.version, prepared)
		if err == nil {
			p.know(next)
			p.version, p.generation = done[len(done)-1].Version, next.Generation
			for _, e := range done {
				p.notice(e)
			}
			return done, nil
		}
		p.stale = true
		if !isConflict(err) {
			return nil, err
		}
	}
	return nil, tooManyRaces(p.stream)
}

// foldPrepared folds events as a reader will: out of their bytes. So what reaches the ledger can
// be read back, and the fold shares no memory with the caller's payloads.
func foldPrepared(a evidence.Attempt, prepared []ledger.Prepared) (evidence.Attempt, error) {
	for _, e := range prepared {
		p, _, err := evidence.Decode(e.Type, e.Meta, e.Data)
		if err != nil {
			return a, err
		}
		if err := a.Apply(p); err != nil {
			return a, err
		}
	}
	return a, nil
}

// holds reports whether the prepared events were made of these payloads.
func holds(prepared []ledger.Prepared, payloads []evidence.Payload) bool {
	if len(prepared) != len(payloads) {
		return false
	}
	for i, p := range payloads {
		if prepared[i].Type != p.EventType() || !bytes.Equal(prepared[i].Data, evidence.Marshal(p)) {
			return false
		}
	}
	return true
}

// catchUp folds what others appended since.
func (p *Appender) catchUp(ctx context.Context) error {
	p.stale = true
	a := Attempt{Fold: p.fold, Version: p.version}
	if err := a.readOn(ctx, p.j, p.stream); err != nil {
		return err
	}
	p.know(a.Fold)
	p.version, p.stale = a.Version, false
	for _, e := range a.Events {
		p.notice(e)
	}
	return nil
}

func (p *Appender) know(fold evidence.Attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fold = fold
}

func (p *Appender) notice(e ledger.Event) {
	switch e.Type {
	case evidence.AttemptFinished{}.EventType():
		p.finished = &e
	case evidence.AttemptClaimed{}.EventType():
		p.cause = causeOf(&e)
	}
}

// turn is a lock whose waiters mind their context: its holder may wait for a ledger that doesn't
// answer, and nobody else has to.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("another append is under way: %w", ctx.Err())
	}
}

func (t turn) pass() { <-t }
