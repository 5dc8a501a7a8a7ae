package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
)

// ReadAll implements ledger.Store. It ends with the event that was last when it began.
func (s *Store) ReadAll(ctx context.Context, from ledger.Index) iter.Seq2[ledger.Event, error] {
	return func(yield func(ledger.Event, error) bool) {
		size, err := s.Size(ctx)
		if err != nil {
			yield(ledger.Event{}, err)
			return
		}
		if uint64(from) < size {
			s.inOrder(ctx, from, ledger.Index(size), yield)
		}
	}
}

// Subscribe implements ledger.Store.
func (s *Store) Subscribe(ctx context.Context, from ledger.Index) iter.Seq2[ledger.Event, error] {
	return func(yield func(ledger.Event, error) bool) { s.inOrder(ctx, from, math.MaxUint64, yield) }
}

// inOrder yields the events from an index up to `end`, waiting for those that aren't there yet.
func (s *Store) inOrder(ctx context.Context, from, end ledger.Index, yield func(ledger.Event, error) bool) {
	if err := errors.Join(ctx.Err(), s.open()); err != nil {
		yield(ledger.Event{}, s.ended(ctx, err))
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.closing:
			cancel(ErrClosed)
		case <-ctx.Done():
		}
	}()
	r := ordered{s: s, next: from, end: end}
	for wait, failed := firstBackoff, 0; ; wait = min(2*wait, lastBackoff) {
		before := r.next
		more, err := r.subscription(ctx, yield)
		if !more {
			return
		}
		if r.next > before {
			wait, failed = firstBackoff, 0
		}
		var damaged *ledger.DamagedError
		failed++
		given := end != math.MaxUint64 && failed > maxSubscriptions
		if ctx.Err() != nil || errors.As(err, &damaged) || given || kindOf(err) == refused {
			yield(ledger.Event{}, s.ended(ctx, err))
			return
		}
		if pause(ctx, wait) != nil {
			yield(ledger.Event{}, s.ended(ctx, err))
			return
		}
	}
}

// maxSubscriptions bounds how often a read starts again without an event in between.
const maxSubscriptions = 20

func (s *Store) open() error {
	if err := s.enter(); err != nil {
		return err
	}
	s.leave()
	return s.follow.damage()
}

// ended is the error a read ends with: the caller's own, when that is the cause.
func (s *Store) ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return s.explain(err)
}

// ordered reads events in the ledger's order, through one subscription after another.
type ordered struct {
	s         *Store
	next, end ledger.Index
	places    []place // of the events from next on, as far as looked up
}

// subscription reads one subscription. It ends without an error and with more false when the
// reader has all it wanted.
func (r *ordered) subscription(ctx context.Context, yield func(ledger.Event, error) bool) (more bool, err error) {
	at, after, err := r.start()
	if err != nil {
		return true, err
	}
	sub, err := r.s.all(ctx, after)
	if err != nil {
		return true, err
	}
	defer sub.close()
	if r.end != math.MaxUint64 { // there is more to come: a silent node is given up
		dog := watch(r.s.link.timeout, sub.stop)
		defer dog.end()
		return r.read(ctx, sub, at, dog, yield)
	}
	return r.read(ctx, sub, at, nil, yield)
}

func (r *ordered) read(ctx context.Context, sub *subscription, at ledger.Index, dog *watchdog, yield func(ledger.Event, error) bool) (more bool, err error) {
	for {
		m, err := sub.next()
		if err != nil {
			sub.drop(err)
			return true, err
		}
		if m.EventAppeared == nil {
			continue
		}
		if dog != nil {
			dog.alive()
		}
		a, err := r.s.arrivalOf(ctx, m.EventAppeared)
		if err != nil {
			return true, r.s.damagedBy(err)
		}
		if a.metaOf != "" {
			continue
		}
		if at < r.next {
			at++
			continue
		}
		if err := r.check(ctx, &a); err != nil {
			return true, err
		}
		a.event.Index = r.next
		r.next++
		at = r.next
		if dog != nil {
			dog.end()
		}
		if !yield(a.event, nil) || r.next == r.end {
			return false, nil
		}
		if dog != nil {
			dog.alive()
		}
	}
}

// start finds where to subscribe so that the next event comes soon: behind its predecessor, or
// behind the last event there is. at is the index of the first event that will come.
func (r *ordered) start() (at ledger.Index, after *esdb.Position, err error) {
	r.places = nil
	size, err := r.s.cache.size()
	if err != nil {
		return 0, nil, err
	}
	at = min(r.next, ledger.Index(size))
	if at == 0 {
		return 0, nil, nil
	}
	p, err := r.s.cache.from(nil, at-1, 1)
	if err != nil {
		return 0, nil, err
	}
	if len(p) == 0 {
		return 0, nil, fmt.Errorf("the ledger's cache lacks index %d; delete it, and it is made again", at-1)
	}
	return at, &p[0].position, nil
}

// check compares an event with the place that the tree has for it.
func (r *ordered) check(ctx context.Context, a *arrival) error {
	if len(r.places) == 0 {
		err := r.s.follow.wait(ctx, fmt.Sprintf("index %d", r.next), func() (ok bool, err error) {
			r.places, err = r.s.cache.from(r.places[:0], r.next, pageEvents)
			return len(r.places) > 0, err
		})
		if err != nil {
			return err
		}
	}
	p := r.places[0]
	r.places = r.places[1:]
	if p.leaf != a.leaf {
		return &ledger.DamagedError{What: fmt.Sprintf("index %d: stream %s, version %s isn't the event the tree has there (leaf %s, the tree has %s)",
			r.next, a.event.Stream, a.event.Version, a.leaf, p.leaf)}
	}
	return nil
}
