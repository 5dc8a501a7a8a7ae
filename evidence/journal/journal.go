package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Config is what a Journal stands on.
type Config struct {
	Ledger ledger.Ledger
	Actor  string           // who writes: 1..evidence.MaxActor bytes, in the meta of every event
	Now    func() time.Time // wall clock of events, a claim only; nil: time.Now
	Random io.Reader        // nonces; nil: crypto/rand
}

// Journal reads and appends typed events. It holds no state of its own and is safe for concurrent
// use.
type Journal struct {
	ledger ledger.Ledger
	actor  string
	now    func() time.Time
	random io.Reader
	opened atomic.Bool // the genesis event was seen once; it never goes away
}

// New makes a journal. It panics on a Config without a ledger or with an illegal actor, which are
// programming errors.
func New(c Config) *Journal {
	if c.Ledger == nil {
		panic("journal: no ledger")
	}
	if c.Actor == "" || len(c.Actor) > evidence.MaxActor {
		panic(fmt.Sprintf("journal: actor %q has not 1 to %d bytes", c.Actor, evidence.MaxActor))
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	return &Journal{ledger: c.Ledger, actor: c.Actor, now: c.Now, random: c.Random}
}

// prepare makes events of payloads, once. cause is the ID of the event that led to them, or nil.
func (j *Journal) prepare(cause []byte, payloads ...evidence.Payload) ([]ledger.Prepared, error) {
	out := make([]ledger.Prepared, len(payloads))
	for i, p := range payloads {
		m := evidence.Meta{Schema: evidence.SchemaVersion, Actor: j.actor, Cause: cause}
		if _, err := io.ReadFull(j.random, m.Nonce[:]); err != nil {
			return nil, fmt.Errorf("prepare %s: read random nonce: %w", p.EventType(), err)
		}
		meta, data := evidence.Encode(p, m)
		out[i] = ledger.Prepared{Type: p.EventType(), Time: j.now().UnixNano(), Media: evidence.Media, Meta: meta, Data: data}
	}
	return out, nil
}

// append stores prepared events and resolves an unknown outcome by sending the same bytes to the
// same place again. It fails with *ledger.ConflictError, with ledger.ErrUnknownOutcome (wrapped)
// when patience or ctx ended first, or with another error when nothing was stored.
func (j *Journal) append(ctx context.Context, stream ledger.StreamID, expected ledger.Version, events []ledger.Prepared) ([]ledger.Event, error) {
	done, err := j.ledger.Append(ctx, stream, expected, events...)
	pause := time.Duration(0)
	for try := 0; errors.Is(err, ledger.ErrUnknownOutcome) && try < maxUnknown; try++ {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("append to %s: %w (gave up: %w)", stream, err, ctx.Err())
		case <-time.After(pause):
		}
		pause = min(max(2*pause, firstPause), maxPause)
		var again error
		done, again = j.ledger.Append(ctx, stream, expected, events...)
		var conflict *ledger.ConflictError
		if again != nil && !errors.Is(again, ledger.ErrUnknownOutcome) && !errors.As(again, &conflict) {
			// The retry was refused; what became of the first try is as unknown as before.
			again = fmt.Errorf("%w: retry: %w", ledger.ErrUnknownOutcome, again)
		}
		err = again
	}
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", stream, err)
	}
	return done.Events, nil
}

func isConflict(err error) bool {
	var c *ledger.ConflictError
	return errors.As(err, &c)
}

// folder is a state folded from one stream.
type folder interface {
	Apply(evidence.Payload) error
}

// fold applies a stream from its first event and returns its end.
func (j *Journal) fold(ctx context.Context, stream ledger.StreamID, f folder) (ledger.Head, error) {
	head := ledger.EmptyHead
	var last ledger.Event
	for e, err := range j.ledger.ReadStream(ctx, stream, 0) {
		if err != nil {
			return head, fmt.Errorf("read %s: %w", stream, err)
		}
		p, _, err := Decode(e)
		if err != nil {
			return head, err
		}
		if err := f.Apply(p); err != nil {
			return head, badHistory(e, err)
		}
		last, head.Version = e, e.Version
	}
	if head.Version != ledger.NoStream {
		head = last.Head()
	}
	return head, nil
}

// update appends what decide makes of the present end of a stream, reading and deciding again
// when somebody else wrote first. No payloads means that there is nothing to do.
func update[F folder](ctx context.Context, j *Journal, stream ledger.StreamID, fresh func() F, decide func(F) ([]evidence.Payload, error)) ([]ledger.Event, error) {
	if err := j.requireGenesis(ctx); err != nil {
		return nil, err
	}
	for range maxRaces {
		f := fresh()
		head, err := j.fold(ctx, stream, f)
		if err != nil {
			return nil, err
		}
		payloads, err := decide(f)
		if err != nil || len(payloads) == 0 {
			return nil, err
		}
		for _, p := range payloads {
			if err := f.Apply(p); err != nil {
				return nil, fmt.Errorf("stream %s: %w", stream, err)
			}
		}
		events, err := j.prepare(nil, payloads...)
		if err != nil {
			return nil, err
		}
		done, err := j.append(ctx, stream, head.Version, events)
		if !isConflict(err) {
			return done, err
		}
	}
	return nil, tooManyRaces(stream)
}

func tooManyRaces(stream ledger.StreamID) error {
	return fmt.Errorf("stream %s changed %d times while it was being written; somebody writes it in a loop", stream, maxRaces)
}
