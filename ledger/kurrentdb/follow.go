package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
)

// follower keeps the cache up to the ledger's part of $all. Subscriptions never resume by
// themselves: it subscribes again behind the last event it took, once it has seen that the cluster
// still has that event.
type follower struct {
	s    *Store
	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}

	looked bool // at what the cache says of metadata; of the follower's own goroutine

	mu      sync.Mutex
	grown   chan struct{} // closed and replaced whenever something below changes
	cursor  uint64        // the commit position up to which nothing was missed
	started bool          // cursor counts
	bad     error         // why the ledger can't be trusted
	stuck   bool          // bad is an event it couldn't take, or a log that was replaced: it has ended
	lastErr error         // why the last subscription ended
}

const (
	arrivalsAhead = 1024 // delivered and not yet taken
	takeAtOnce    = 256
)

func newFollower(s *Store) *follower {
	f := &follower{s: s, grown: make(chan struct{}), done: make(chan struct{})}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

func (f *follower) end() {
	f.stop()
	<-f.done
}

// change sets the follower's state and wakes those who wait.
func (f *follower) change(set func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set()
	close(f.grown)
	f.grown = make(chan struct{})
}

// damage is why the ledger can't be trusted, if it can't.
func (f *follower) damage() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bad
}

func (f *follower) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stuck
}

// wait waits until cond holds. It fails when the ledger turns out damaged, or ctx ends: then the
// node lags, or none can be reached.
func (f *follower) wait(ctx context.Context, what string, cond func() (bool, error)) error {
	for {
		f.mu.Lock()
		grown, bad, last := f.grown, f.bad, f.lastErr
		f.mu.Unlock()
		if ok, err := cond(); ok || err != nil {
			return err
		}
		if bad != nil {
			return bad
		}
		select {
		case <-ctx.Done():
			if last != nil {
				return fmt.Errorf("waiting for %s: %w (the last subscription ended: %w)", what, ctx.Err(), last)
			}
			return fmt.Errorf("waiting for %s, which the node hasn't delivered: %w", what, ctx.Err())
		case <-f.ctx.Done():
			return ErrClosed
		case <-grown:
		}
	}
}

// reached tells whether the cursor has passed a position.
func (f *follower) reached(position uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started && f.cursor >= position
}

func (f *follower) run() {
	defer close(f.done)
	for wait := firstBackoff; ; wait = min(2*wait, lastBackoff) {
		progress, err := f.once()
		if f.ctx.Err() != nil {
			return
		}
		var damaged *ledger.DamagedError
		if errors.As(err, &damaged) {
			f.change(func() { f.bad, f.stuck = damaged, true })
			return
		}
		f.change(func() { f.lastErr = err })
		if progress {
			wait = firstBackoff
		}
		if pause(f.ctx, wait) != nil {
			return
		}
	}
}

// once follows one subscription to its end.
func (f *follower) once() (progress bool, err error) {
	after, err := f.resume()
	if err != nil {
		return false, err
	}
	sub, err := f.s.all(f.ctx, after)
	if err != nil {
		return false, err
	}
	defer sub.close()
	f.change(func() {
		f.started, f.lastErr = true, nil
		if after != nil {
			f.cursor = max(f.cursor, after.Commit)
		}
	})
	arrivals := make(chan arrival, arrivalsAhead)
	ended := make(chan error, 1)
	go func() {
		defer close(arrivals)
		ended <- f.receive(sub, arrivals)
	}()
	batch := make([]arrival, 0, takeAtOnce)
	for a := range arrivals {
		batch = append(batch[:0], a)
	more:
		for len(batch) < takeAtOnce {
			select {
			case a, ok := <-arrivals:
				if !ok {
					break more
				}
				batch = append(batch, a)
			default:
				break more
			}
		}
		progress = true
		if err := f.take(batch); err != nil {
			sub.close()
			for range arrivals { // let the receiver end
			}
			return progress, err
		}
	}
	err = <-ended
	sub.drop(err)
	return progress, err
}

// receive reads the subscription until it ends. A checkpoint is an arrival of nothing.
func (f *follower) receive(sub *subscription, to chan<- arrival) error {
	for {
		m, err := sub.next()
		if err != nil {
			return err
		}
		var a arrival
		switch {
		case m.EventAppeared != nil:
			a, err = f.s.arrivalOf(f.ctx, m.EventAppeared)
			var foreign *misplaced
			if errors.As(err, &foreign) {
				return &ledger.DamagedError{What: foreign.Error()}
			}
			if err != nil {
				return err
			}
		case m.CheckPointReached != nil:
			a = arrival{position: *m.CheckPointReached, metaOf: checkpointMark}
		default:
			continue
		}
		select {
		case to <- a:
		case <-f.ctx.Done():
			return f.ctx.Err()
		}
	}
}

// checkpointMark stands in for a stream's name where only a position arrived.
const checkpointMark = "\x00checkpoint"

func (f *follower) take(batch []arrival) error {
	kept := batch[:0:0]
	for _, a := range batch {
		if a.metaOf != checkpointMark {
			kept = append(kept, a)
		}
	}
	if len(kept) > 0 {
		if err := f.s.cache.take(kept); err != nil {
			return err
		}
	}
	bad := f.damage()
	if !f.looked || bad != nil || len(kept) > 0 && slices.ContainsFunc(kept, func(a arrival) bool { return a.metaOf != "" }) {
		var err error
		if bad, err = f.s.hidden(f.ctx); err != nil {
			return err
		}
		f.looked = true
	}
	last := batch[len(batch)-1].position.Commit
	f.change(func() { f.cursor, f.bad = max(f.cursor, last), bad })
	return nil
}

// hidden is the damage of the first stream whose metadata hides events now. What arrived says where
// to look: it may be history, and taken back since.
func (s *Store) hidden(ctx context.Context) (damage, failure error) {
	streams, err := s.cache.hidden()
	if err != nil {
		return nil, err
	}
	for _, stream := range streams {
		ctx, cancel := s.limit(ctx)
		r, err := s.readOne(ctx, "$$"+stream, esdb.Backwards, esdb.End{})
		cancel()
		why := ""
		switch {
		case err != nil && kindOf(err) == deleted:
			why = "its metadata was deleted for ever (tombstone)"
		case err != nil && kindOf(err) == notFound:
			why = "its metadata hides events, and can't be read any more"
		case err != nil:
			return nil, err
		case r != nil:
			why = hides(r)
		}
		if why != "" {
			return &ledger.DamagedError{What: fmt.Sprintf("stream %s: %s", stream, why)}, nil
		}
	}
	return nil, nil
}

// resume finds the position to go on behind, and checks that the cluster still has the last event
// the cache knows: a log restored from a backup is shorter, or goes on differently.
func (f *follower) resume() (*esdb.Position, error) {
	e, p, ok, err := f.s.cache.last()
	if err != nil || !ok {
		return nil, err
	}
	var found *esdb.RecordedEvent
	for start := time.Now(); ; {
		ctx, cancel := context.WithTimeout(f.ctx, f.s.opts.Patience)
		page, err := f.s.readAll(ctx, esdb.Forwards, p.position, 1)
		cancel()
		if err != nil {
			return nil, err
		}
		found = nil
		if len(page) > 0 {
			found = page[0]
		}
		if found != nil && found.Position == p.position && found.EventID == idOf(p.leaf) {
			return &p.position, nil
		}
		// A node that lags, or one that doesn't know yet that it no longer leads, catches up.
		if time.Since(start) > min(replaceAfter, f.s.opts.Patience/3) {
			break
		}
		f.s.link.abandon()
		if err := pause(f.ctx, lastBackoff); err != nil {
			return nil, err
		}
	}
	if !f.s.link.leader() && found == nil {
		return nil, fmt.Errorf("the node lags: it doesn't have index %d yet, which was seen on another", p.index)
	}
	what := "its log ends before that"
	if found != nil {
		what = fmt.Sprintf("it has revision %d of stream %s there", found.EventNumber, found.StreamID)
	}
	return nil, &ledger.DamagedError{What: fmt.Sprintf(
		"the cluster no longer has index %d (stream %s, version %s) where it was: %s; the log was restored from a backup, cut or replaced", p.index, e.Stream, e.Version, what)}
}
