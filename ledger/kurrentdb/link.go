package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

// link keeps one client of the cluster at a time, and what the client needs to be fenced off:
//
//   - it may wait for ever and ignore its context: every call runs in a goroutine of its own, which
//     is left behind when its deadline is over;
//   - closing it under a running call panics: it is closed when its calls are over, and a call that
//     never ends meets its panic in its own goroutine, which catches it;
//   - a failed discovery ends it for good: a new one is made, by one caller for all;
//   - it never sends requires-leader: the header goes along here.
type link struct {
	config  *esdb.Configuration
	timeout time.Duration // of one call

	mu       sync.Mutex
	current  *client
	pending  chan struct{} // closed when the attempt to connect that is under way ends
	lastErr  error         // of the last attempt to connect
	closed   bool
	draining sync.WaitGroup // clients that are being closed
}

// client is one official client and the calls in flight on it.
type client struct {
	db    *esdb.Client
	ctx   context.Context // ends when the client is given up
	stop  context.CancelFunc
	calls sync.WaitGroup
}

func newLink(config *esdb.Configuration, timeout time.Duration) *link {
	return &link{config: config, timeout: timeout}
}

// acquire returns a connected client, counting a call in. The caller must release it.
func (l *link) acquire(ctx context.Context) (*client, error) {
	for wait := firstBackoff; ; wait = min(2*wait, lastBackoff) {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return nil, ErrClosed
		}
		if c := l.current; c != nil {
			c.calls.Add(1)
			l.mu.Unlock()
			return c, nil
		}
		if l.pending == nil {
			l.pending = make(chan struct{})
			go l.connect(l.pending)
		}
		pending := l.pending
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, l.unreachable(ctx.Err())
		case <-pending:
		}
		l.mu.Lock()
		failed := l.current == nil && !l.closed
		l.mu.Unlock()
		if failed {
			if err := pause(ctx, wait); err != nil {
				return nil, l.unreachable(err)
			}
		}
	}
}

// unreachable says why there was no client when a caller gave up.
func (l *link) unreachable(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastErr != nil {
		return fmt.Errorf("no node can be reached (%w): %w", l.lastErr, err)
	}
	return fmt.Errorf("no node answered: %w", err)
}

// connect makes a client and lets it discover a node. Nobody else uses it before it has: after a
// failed discovery its callers would hang.
func (l *link) connect(done chan struct{}) {
	db, err := esdb.NewClient(l.config)
	if err == nil {
		err = guarded(func() error {
			_, err := db.GetServerVersion()
			return err
		})
		if err != nil {
			_ = guarded(db.Close) // its discovery has failed; that is the error to tell
		}
	}
	l.mu.Lock()
	l.lastErr, l.pending = err, nil
	switch {
	case err != nil:
	case l.closed:
		_ = guarded(db.Close) // nobody waits for it any more
	default:
		l.current = &client{db: db}
		l.current.ctx, l.current.stop = context.WithCancel(context.Background())
	}
	l.mu.Unlock()
	close(done)
}

// retire gives a client up, so that the next call connects anew.
func (l *link) retire(c *client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == c {
		l.current = nil
		l.draining.Add(1)
		go l.drain(c)
	}
}

// drain closes a client once its calls are over, or can only be stuck.
func (l *link) drain(c *client) {
	defer l.draining.Done()
	c.stop() // ends subscriptions
	over := make(chan struct{})
	go func() { c.calls.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(l.timeout + grace):
		if raceDetector {
			return
		}
	}
	_ = guarded(c.db.Close) // it has nothing to tell
	<-over                  // what was stuck met the closed client, or came back
}

// close refuses new calls and waits until clients are closed, except for one that is stuck in its
// discovery: that ends by itself.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	if c := l.current; c != nil {
		l.current = nil
		l.draining.Add(1)
		go l.drain(c)
	}
	l.mu.Unlock()
	drained := make(chan struct{})
	go func() { l.draining.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(l.timeout + 2*grace):
	}
}

// call runs one operation of the client behind a deadline.
func (l *link) call(ctx context.Context, f func(ctx context.Context, db *esdb.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	c, err := l.acquire(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnsent, err)
	}
	done := make(chan error, 1)
	go func() {
		defer c.calls.Done()
		done <- guarded(func() error { return f(l.outgoing(ctx), c.db) })
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		select { // a call that heeds its context says more than its deadline
		case err = <-done:
		case <-time.After(grace):
			err = fmt.Errorf("%w: %w", errHung, context.Cause(ctx))
		}
	}
	if err != nil && breaks(err) {
		l.retire(c)
	}
	return err
}

// outgoing asks for the leader, unless the connection string prefers another kind of node.
func (l *link) outgoing(ctx context.Context) context.Context {
	if !l.leader() {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "requires-leader", "true")
}

func (l *link) leader() bool { return l.config.NodePreference == esdb.NodePreferenceLeader }

// guarded runs something of the client and turns its panic into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v}
		}
	}()
	return f()
}

// retrying repeats a call that changes nothing, or may be repeated, until it ends otherwise than
// ambiguously or ctx does.
func (l *link) retrying(ctx context.Context, f func(ctx context.Context, db *esdb.Client) error) error {
	for wait, tries := firstBackoff, 1; ; wait, tries = min(2*wait, lastBackoff), tries+1 {
		err := l.call(ctx, f)
		if err == nil || errors.Is(err, ErrClosed) {
			return err
		}
		l.doubt(tries)
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		if k := kindOf(err); k != ambiguous && k != redirect {
			return err
		}
		if pause(ctx, wait) != nil {
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// pause waits, or returns ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// doubt gives up a node that fails again and again, so that the next try asks another: one that was
// cut off from the others answers, and can do nothing.
func (l *link) doubt(tries int) {
	if tries%doubtAfter == 0 {
		l.abandon()
	}
}

// abandon gives the present client up, so that the next call discovers a node anew.
func (l *link) abandon() {
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	if c != nil {
		l.retire(c)
	}
}
