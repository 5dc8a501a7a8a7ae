package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/baildock/baildock/evidence"
)

// errStalled means that the recorder did not answer in time. What it was given may still be stored.
var errStalled = errors.New("the ledger did not answer in time")

// scribe hands events to the recorder one append at a time, in order, and never waits for it
// longer than a bound: a container must be killed and removed whatever the ledger does. It works
// on a context of its own, so that a cancelled run is still recorded.
type scribe struct {
	rec     Recorder
	life    context.Context
	random  io.Reader
	turn    chan struct{} // holds one token while an append is under way
	stalled atomic.Bool
}

func newScribe(life context.Context, rec Recorder, random io.Reader) *scribe {
	return &scribe{rec: rec, life: life, random: random, turn: make(chan struct{}, 1)}
}

// record stores events of one instant.
func (s *scribe) record(events ...evidence.Payload) error {
	return s.recordWithin(recordBound, events...)
}

func (s *scribe) recordWithin(bound time.Duration, events ...evidence.Payload) error {
	err := s.do(bound, func(ctx context.Context) error { return s.rec.Record(ctx, events...) })
	if err != nil {
		return fmt.Errorf("record %s: %w", events[0].EventType(), err)
	}
	return nil
}

func (s *scribe) keep(w ...evidence.Withholdable) error {
	err := s.do(recordBound, func(ctx context.Context) error { return s.rec.Keep(ctx, w...) })
	if err != nil {
		return fmt.Errorf("keep evidence: %w", err)
	}
	return nil
}

func (s *scribe) do(bound time.Duration, f func(context.Context) error) error {
	patient := bound == recordBound
	if s.stalled.Load() {
		bound = min(bound, stalledBound)
	}
	stalled := func() error {
		if patient { // a stop event that came late says nothing about the ledger
			s.stalled.Store(true)
		}
		return errStalled
	}
	ctx, cancel := context.WithTimeout(s.life, bound)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return stalled()
	}
	done := launch(func() (struct{}, error) {
		defer func() { <-s.turn }()
		return struct{}{}, f(ctx)
	})
	select {
	case o := <-done:
		return o.err
	case <-ctx.Done():
	}
	select {
	case o := <-done: // both came at once, or the recorder minded its context
		return o.err
	case <-time.After(stalledBound):
		return stalled()
	}
}

// salt draws a fresh salt.
func (s *scribe) salt() (evidence.Salt, error) {
	var salt evidence.Salt
	if _, err := io.ReadFull(s.random, salt[:]); err != nil {
		return salt, fmt.Errorf("draw a salt: %w", err)
	}
	return salt, nil
}

// withhold keeps bytes under a fresh salt and returns the reference for the event.
func (s *scribe) withhold(b []byte) (evidence.BlobRef, error) {
	salt, err := s.salt()
	if err != nil {
		return evidence.BlobRef{}, err
	}
	w := evidence.Withhold(salt, b)
	return w.Ref, s.keep(w)
}

// detail keeps lines for people; none gives no reference.
func (s *scribe) detail(lines ...string) (*evidence.BlobRef, error) {
	if len(lines) == 0 {
		return nil, nil
	}
	text := strings.Join(lines, "\n") + "\n"
	if len(text) > maxDetail {
		const cut = "\n(cut)\n"
		text = strings.ToValidUTF8(text[:maxDetail-len(cut)], "") + cut
	}
	ref, err := s.withhold([]byte(text))
	if err != nil {
		return nil, err
	}
	return &ref, nil
}
