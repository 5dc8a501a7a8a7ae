package kurrentdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
)

// Append implements ledger.Store. The returned events share their bytes with the prepared ones.
//
// The call is repeated, with the same IDs and the same expected revision, until its outcome is
// known: the server then finds what an earlier try stored.
func (s *Store) Append(ctx context.Context, stream ledger.StreamID, expected ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	if err := ledger.CheckAppend(stream, expected, events); err != nil {
		return ledger.Appended{}, err
	}
	limited, end, err := s.begin(ctx)
	if err != nil {
		return ledger.Appended{}, err
	}
	defer end()
	for {
		head, actual, err := s.predecessor(limited, stream, expected)
		if err != nil {
			return ledger.Appended{}, refusal(ctx, err)
		}
		if head == nil {
			return ledger.Appended{}, &ledger.ConflictError{Stream: stream, Expected: expected, Actual: actual}
		}
		made, leaves := ledger.Chain(stream, *head, events...)
		proposals := propose(made, leaves)
		if err := s.spill(limited, proposals); err != nil {
			return ledger.Appended{}, refusal(ctx, err)
		}
		// From here on it is under way, and its caller waits for the result.
		settling, cancel := s.settle(ctx)
		err = s.send(settling, stream, expected, proposals)
		if err == nil {
			err = s.number(settling, made, leaves)
		}
		cancel()
		if !errors.Is(err, errMoved) {
			if err != nil {
				return ledger.Appended{}, err
			}
			return ledger.Appended{Events: made}, nil
		}
	}
}

// refusal is the error of an append of which nothing was sent.
func refusal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// predecessor finds the event to chain behind. It is nil, and the stream's last version is given,
// when the stream doesn't have it.
func (s *Store) predecessor(ctx context.Context, stream ledger.StreamID, expected ledger.Version) (*ledger.Head, ledger.Version, error) {
	if expected == ledger.NoStream {
		head := ledger.EmptyHead
		return &head, 0, nil
	}
	p, ok, err := s.cache.place(stream, expected)
	if err != nil {
		return nil, 0, err
	}
	if ok {
		return &ledger.Head{Version: expected, Leaf: p.leaf}, 0, nil
	}
	last, ok, err := s.head(ctx, stream)
	if err != nil {
		return nil, 0, err
	}
	if !ok || last.Version < expected {
		if !ok {
			last.Version = ledger.NoStream
		}
		return nil, last.Version, nil
	}
	if p, ok, err = s.cache.place(stream, expected); err == nil && !ok { // it has the last, so it has this
		err = fmt.Errorf("the ledger's cache lacks version %s of stream %s; delete it, and it is made again", expected, stream)
	}
	return &ledger.Head{Version: expected, Leaf: p.leaf}, 0, err
}

func (s *Store) spill(ctx context.Context, proposals []proposal) error {
	for _, p := range proposals {
		if p.kept == nil {
			continue
		}
		if err := s.writeObject(ctx, s.names.spill(p.leaf), p.kept, nil); err != nil {
			return fmt.Errorf("store a large event: %w", s.explain(err))
		}
	}
	return nil
}

// errMoved means that the stream reached the expected version after a conflict was answered: the
// append is judged again.
var errMoved = errors.New("the stream moved")

// send brings the events into their stream, or ends in one of the ways that Append may end in.
func (s *Store) send(ctx context.Context, stream ledger.StreamID, expected ledger.Version, proposals []proposal) error {
	data := make([]esdb.EventData, len(proposals))
	for i := range proposals {
		data[i] = proposals[i].data
	}
	opts := esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}, RequiresLeader: true}
	if expected != ledger.NoStream {
		opts.ExpectedRevision = esdb.Revision(uint64(expected))
	}
	perhaps := false // an earlier try may have stored the events
	for wait, tries := firstBackoff, 1; ; wait, tries = min(2*wait, lastBackoff), tries+1 {
		err := s.link.call(ctx, func(ctx context.Context, db *esdb.Client) error {
			_, err := db.AppendToStream(ctx, s.names.event(stream), opts, data...)
			return err
		})
		if err == nil {
			return nil
		}
		switch kindOf(err) {
		case wrongRevision:
			if err = s.conflict(ctx, stream, expected); !errors.Is(err, errLags) {
				return err
			}
		case deleted:
			return s.tombstone(stream, err)
		case refused, notFound:
			if !perhaps {
				return s.explain(err)
			}
		case ambiguous:
			s.link.doubt(tries)
			perhaps = perhaps || !errors.Is(err, errUnsent)
		}
		if pause(ctx, wait) != nil {
			if !perhaps {
				return s.explain(err) // every try was answered, and none was done
			}
			return fmt.Errorf("append to stream %s: %w: %w", stream, ledger.ErrUnknownOutcome, s.explain(err))
		}
	}
}

// errLags is a conflict answered by a node that hasn't got the event that we saw.
var errLags = errors.New("the node lags behind what was seen")

// conflict is a wrong expected version with the actual one, read from the head: the client has it
// in a message's text only.
func (s *Store) conflict(ctx context.Context, stream ledger.StreamID, expected ledger.Version) error {
	last, ok, err := s.head(ctx, stream)
	if err != nil {
		return err
	}
	actual := ledger.NoStream
	if ok {
		actual = last.Version
	}
	switch {
	case actual == expected:
		return errMoved
	case actual < expected:
		if _, seen, err := s.cache.place(stream, expected); err != nil || seen {
			return errors.Join(errLags, err)
		}
	}
	return &ledger.ConflictError{Stream: stream, Expected: expected, Actual: actual}
}

// number waits until the events have their indexes. They are stored; should the node lag for too
// long, the outcome is one to ask for again.
func (s *Store) number(ctx context.Context, events []ledger.Event, leaves []ledger.Hash) error {
	last := &events[len(events)-1]
	var places []place
	err := s.follow.wait(ctx, fmt.Sprintf("version %s of stream %s", last.Version, last.Stream), func() (ok bool, err error) {
		places, err = s.cache.places(places[:0], last.Stream, events[0].Version, last.Version)
		return len(places) == len(events), err
	})
	if err != nil {
		return fmt.Errorf("append to stream %s: %w: the events are stored, and their indexes not known yet: %w", last.Stream, ledger.ErrUnknownOutcome, err)
	}
	for i := range events {
		if places[i].leaf != leaves[i] {
			return &ledger.DamagedError{What: fmt.Sprintf("stream %s took version %s, which it had already: it was deleted and opened again", last.Stream, events[i].Version)}
		}
		events[i].Index = places[i].index
	}
	return nil
}
