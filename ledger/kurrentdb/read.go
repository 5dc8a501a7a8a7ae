package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
)

// readAll reads a few events of $all, of anybody's.
func (s *Store) readAll(ctx context.Context, direction esdb.Direction, from esdb.AllPosition, n uint64) ([]*esdb.RecordedEvent, error) {
	var out []*esdb.RecordedEvent
	err := s.link.retrying(ctx, func(ctx context.Context, db *esdb.Client) error {
		r, err := db.ReadAll(ctx, esdb.ReadAllOptions{Direction: direction, From: from}, n)
		if err != nil {
			return err
		}
		defer r.Close()
		out = nil
		for {
			e, err := r.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			out = append(out, e.OriginalEvent())
		}
	})
	return out, err
}

// catchUp waits until the cache holds every event that was in the ledger when it was called. It
// looks back from the end of $all to the ledger's last event, or to where the follower is: the
// server filters subscriptions, not reads.
func (s *Store) catchUp(ctx context.Context) error {
	if err := s.follow.damage(); err != nil {
		return err
	}
	var from esdb.AllPosition = esdb.End{}
	for {
		page, err := s.readAll(ctx, esdb.Backwards, from, backEvents)
		if err != nil {
			return err
		}
		for _, e := range page {
			if s.follow.reached(e.Position.Commit) {
				return s.follow.damage()
			}
			if s.ours(e.StreamID) {
				return s.follow.wait(ctx, fmt.Sprintf("revision %d of stream %s", e.EventNumber, e.StreamID), func() (bool, error) {
					return s.follow.reached(e.Position.Commit), nil
				})
			}
			from = e.Position
		}
		if len(page) == 0 { // none of them is ours; still, what was cached must be there
			return s.follow.wait(ctx, "a subscription", func() (bool, error) { return s.follow.reached(0), nil })
		}
	}
}

// ours tells whether the follower is sent a stream's events.
func (s *Store) ours(stream string) bool {
	return strings.HasPrefix(stream, s.names.events) || strings.HasPrefix(stream, s.names.metadata)
}

// streamPage reads events of a stream as they are stored, as many as fit. more tells that there may
// be others behind them.
func (s *Store) streamPage(ctx context.Context, stream ledger.StreamID, from ledger.Version) (page []*esdb.RecordedEvent, more bool, err error) {
	err = s.link.retrying(ctx, func(ctx context.Context, db *esdb.Client) error {
		page, more = nil, false
		r, err := db.ReadStream(ctx, s.names.event(stream), esdb.ReadStreamOptions{From: esdb.Revision(uint64(from))}, pageEvents)
		if err != nil {
			return err
		}
		defer r.Close()
		for bytes := 0; ; {
			e, err := r.Recv()
			if errors.Is(err, io.EOF) {
				more = len(page) == pageEvents
				return nil
			}
			if err != nil {
				return err
			}
			page = append(page, e.OriginalEvent())
			if bytes += len(e.OriginalEvent().Data); bytes >= pageBytes {
				more = true
				return nil
			}
		}
	})
	if err != nil && kindOf(err) == notFound {
		return nil, false, nil
	}
	return page, more, err
}

// events reads a page of a stream, checked and with indexes.
func (s *Store) events(ctx context.Context, stream ledger.StreamID, from ledger.Version) (events []ledger.Event, more bool, err error) {
	known, err := s.cache.version(stream)
	if err != nil {
		return nil, false, err
	}
	var page []*esdb.RecordedEvent
	for wait := firstBackoff; ; wait = min(2*wait, lastBackoff) {
		if page, more, err = s.streamPage(ctx, stream, from); err != nil {
			return nil, false, s.explain(s.tombstone(stream, err))
		}
		last := from - 1 + ledger.Version(len(page))
		if more || last >= known {
			break
		}
		// The node lags behind what we saw, or hides it. The follower learns which.
		if err := s.follow.damage(); err != nil {
			return nil, false, err
		}
		if err := pause(ctx, wait); err != nil {
			return nil, false, s.short(stream, last, known, err)
		}
	}
	for i, r := range page {
		e, leaf, err := s.decode(ctx, r)
		if err != nil {
			return nil, false, s.damagedBy(err)
		}
		if want := from + ledger.Version(i); e.Version != want {
			return nil, false, &ledger.DamagedError{What: fmt.Sprintf("stream %s has version %s where %s was expected: events are hidden or lost", stream, e.Version, want)}
		}
		p, err := s.placeOf(ctx, &e, leaf)
		if err != nil {
			return nil, false, err
		}
		e.Index = p.index
		events = append(events, e)
	}
	return events, more, nil
}

// short is the error about a stream that ends before what was seen of it.
func (s *Store) short(stream ledger.StreamID, last, known ledger.Version, cause error) error {
	if errors.Is(cause, context.Canceled) {
		return cause
	}
	if !s.link.leader() {
		return fmt.Errorf("the node lags: stream %s ends at version %s there, and version %s was seen: %w", stream, last, known, cause)
	}
	return &ledger.DamagedError{What: fmt.Sprintf("stream %s ends at version %s, but version %s was seen: it was truncated or deleted", stream, last, known), Err: cause}
}

// tombstone names a stream that was deleted for ever.
func (s *Store) tombstone(stream ledger.StreamID, err error) error {
	if kindOf(err) != deleted {
		return err
	}
	return &ledger.DamagedError{What: fmt.Sprintf("stream %s was deleted for ever (tombstone)", stream), Err: err}
}

// damagedBy makes a misplaced event a damage.
func (s *Store) damagedBy(err error) error {
	var foreign *misplaced
	if errors.As(err, &foreign) {
		return &ledger.DamagedError{What: foreign.Error()}
	}
	return err
}

// placeOf finds the index of an event that was read, and checks that it is the one the tree
// commits to.
func (s *Store) placeOf(ctx context.Context, e *ledger.Event, leaf ledger.Hash) (p place, err error) {
	err = s.follow.wait(ctx, fmt.Sprintf("version %s of stream %s", e.Version, e.Stream), func() (ok bool, err error) {
		p, ok, err = s.cache.place(e.Stream, e.Version)
		return ok, err
	})
	if err == nil && p.leaf != leaf {
		err = &ledger.DamagedError{What: fmt.Sprintf("index %d, stream %s, version %s: the event was changed (leaf %s, the tree has %s)", p.index, e.Stream, e.Version, leaf, p.leaf)}
	}
	return p, err
}

// ReadStream implements ledger.Store.
func (s *Store) ReadStream(ctx context.Context, stream ledger.StreamID, from ledger.Version) iter.Seq2[ledger.Event, error] {
	return func(yield func(ledger.Event, error) bool) {
		if _, err := ledger.ParseStreamID(string(stream)); err != nil {
			yield(ledger.Event{}, err)
			return
		}
		end := ledger.Version(math.MaxInt64)
		for next := max(from, 0); next <= end; {
			page, more, err := s.readPage(ctx, stream, next)
			if err == nil && more && end == math.MaxInt64 { // the end as it is now
				var last ledger.Event
				if last, _, err = s.Head(ctx, stream); err == nil {
					end = last.Version
				}
			}
			for _, e := range page {
				if e.Version > end {
					return
				}
				if !yield(e, nil) {
					return
				}
				next = e.Version + 1
			}
			if err != nil {
				yield(ledger.Event{}, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

func (s *Store) readPage(ctx context.Context, stream ledger.StreamID, from ledger.Version) ([]ledger.Event, bool, error) {
	limited, end, err := s.begin(ctx)
	if err != nil {
		return nil, false, err
	}
	defer end()
	page, more, err := s.events(limited, stream, from)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return page, more, err
}

// Head implements ledger.Store.
func (s *Store) Head(ctx context.Context, stream ledger.StreamID) (ledger.Event, bool, error) {
	if _, err := ledger.ParseStreamID(string(stream)); err != nil {
		return ledger.Event{}, false, err
	}
	limited, end, err := s.begin(ctx)
	if err != nil {
		return ledger.Event{}, false, err
	}
	defer end()
	e, ok, err := s.head(limited, stream)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return e, ok && err == nil, err
}

func (s *Store) head(ctx context.Context, stream ledger.StreamID) (ledger.Event, bool, error) {
	known, err := s.cache.version(stream)
	if err != nil {
		return ledger.Event{}, false, err
	}
	for wait := firstBackoff; ; wait = min(2*wait, lastBackoff) {
		r, err := s.readOne(ctx, s.names.event(stream), esdb.Backwards, esdb.End{})
		if err != nil && kindOf(err) != notFound {
			return ledger.Event{}, false, s.explain(s.tombstone(stream, err))
		}
		last := ledger.NoStream
		if r != nil {
			last = ledger.Version(r.EventNumber)
		}
		if last >= known {
			if r == nil {
				return ledger.Event{}, false, nil
			}
			e, leaf, err := s.decode(ctx, r)
			if err != nil {
				return ledger.Event{}, false, s.damagedBy(err)
			}
			p, err := s.placeOf(ctx, &e, leaf)
			e.Index = p.index
			return e, err == nil, err
		}
		if err := s.follow.damage(); err != nil {
			return ledger.Event{}, false, err
		}
		if err := pause(ctx, wait); err != nil {
			return ledger.Event{}, false, s.short(stream, last, known, err)
		}
	}
}
