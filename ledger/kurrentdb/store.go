package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/baildock/baildock/ledger"
)

// Options tune a store. The zero value is right for most, but rebuilds its cache at every Open.
type Options struct {
	// Cache is the file that the tree and the events' places are kept in: local, made when it isn't
	// there, and rebuilt from the cluster when it is deleted. Several processes may share it. Empty:
	// in memory, gone at Close.
	Cache string

	// CallTimeout bounds one call to the cluster. 0 means 10 seconds.
	CallTimeout time.Duration

	// Patience bounds one operation with all its retries, and how long a node that lags is waited
	// for. 0 means 30 seconds.
	Patience time.Duration

	// MustExist refuses a ledger without events.
	MustExist bool
}

// Store is a ledger on an EventStoreDB or KurrentDB cluster. It is safe for concurrent use, and any
// number of processes on any number of machines may use the same ledger at once.
type Store struct {
	target target
	names  names
	opts   Options
	link   *link
	cache  *cache
	follow *follower

	mu       sync.RWMutex // guards closed, and entering against closing
	closed   bool
	closing  chan struct{} // closed by Close; ends subscriptions
	inFlight sync.WaitGroup
}

var (
	_ ledger.Ledger  = (*Store)(nil)
	_ ledger.Exhibit = exhibit{}
)

// EmptyError says that there is no ledger of this name on the cluster.
type EmptyError struct {
	URL    string // without its password
	Ledger string
}

func (e *EmptyError) Error() string {
	return fmt.Sprintf("the cluster at %s holds no ledger named %q", e.URL, e.Ledger)
}

// Open connects to the ledger that a connection string names, and brings the cache up to what the
// cluster holds. A ledger that was damaged opens, so that it can be audited: everything else then
// fails with *ledger.DamagedError.
func Open(ctx context.Context, url string, opts Options) (*Store, error) {
	t, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	if opts.CallTimeout <= 0 {
		opts.CallTimeout = callTimeout
	}
	if opts.Patience <= 0 {
		opts.Patience = patience
	}
	c, err := openCache(opts.Cache, t.ledger)
	if err != nil {
		return nil, err
	}
	s := &Store{
		target: t, names: namesOf(t.ledger), opts: opts, cache: c,
		link: newLink(t.config, opts.CallTimeout), closing: make(chan struct{}),
	}
	s.follow = newFollower(s)
	go s.follow.run()
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// ready waits until the cache holds what the cluster held when Open began.
func (s *Store) ready(ctx context.Context) error {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	err := s.catchUp(ctx)
	var damaged *ledger.DamagedError
	if errors.As(err, &damaged) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open ledger: %w", s.explain(err))
	}
	if size, err := s.cache.size(); err != nil {
		return err
	} else if s.opts.MustExist && size == 0 {
		return &EmptyError{URL: s.target.redacted, Ledger: s.target.ledger}
	}
	return nil
}

// limit bounds an operation by the store's patience. What began may outlive its caller's context
// only through settle.
func (s *Store) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.opts.Patience)
}

// settle is limit for what has begun: it goes on when the caller's context ends.
func (s *Store) settle(ctx context.Context) (context.Context, context.CancelFunc) {
	return s.limit(context.WithoutCancel(ctx))
}

// enter counts a call in, so that Close waits for it. The caller must leave().
func (s *Store) enter() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	s.inFlight.Add(1)
	return nil
}

func (s *Store) leave() { s.inFlight.Done() }

// begin is enter for a call that a cancelled context or a damaged ledger refuses. Its context ends
// with the store's patience.
func (s *Store) begin(ctx context.Context) (context.Context, func(), error) {
	if err := s.enter(); err != nil {
		return nil, nil, err
	}
	err := ctx.Err()
	if err == nil {
		err = s.follow.damage()
	}
	if err != nil {
		s.leave()
		return nil, nil, err
	}
	limited, cancel := s.limit(ctx)
	return limited, func() { cancel(); s.leave() }, nil
}

// Close refuses new calls, lets those in flight finish, ends subscriptions, and closes the
// connection. Closing again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.closing)
	s.mu.Unlock()
	s.inFlight.Wait()
	s.follow.end()
	s.link.close()
	return s.cache.close()
}
