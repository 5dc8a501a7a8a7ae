package sqlite

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/baildock/baildock/ledger"
)

const (
	defaultBusyTimeout = 5 * time.Second

	// maxReaders bounds the connections that read at the same time. Each holds a page cache.
	maxReaders = 4
)

// ErrClosed is what a closed store answers.
var ErrClosed = errors.New("ledger is closed")

// Options tune a store. The zero value is right for most.
type Options struct {
	// BusyTimeout is how long a write waits while another process writes, before it is refused.
	// 0 means 5 seconds.
	BusyTimeout time.Duration

	// MustExist refuses to create a ledger where there is none.
	MustExist bool

	vfs string // SQLite's layer for files; tests inject faults here
}

// Store is a ledger in one SQLite file. It is safe for concurrent use, and several processes may
// have the same file open.
type Store struct {
	path string
	opts Options

	readers chan *conn // maxReaders places; nil where no connection was needed yet
	jobs    chan *job
	written chan struct{} // closed when the writer has ended

	mu       sync.RWMutex // guards closed, and entering against closing
	closed   bool
	closing  chan struct{} // closed by Close; ends subscriptions
	inFlight sync.WaitGroup

	growth    growth
	unsettled atomic.Bool // a commit failed and what it left isn't known yet
}

var _ ledger.Ledger = (*Store)(nil)

// Open opens the ledger at path, creating it with mode 0600 unless opts.MustExist. It refuses
// network file systems, files that aren't ledgers, and newer store forms (*FormError).
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	if opts.BusyTimeout <= 0 {
		opts.BusyTimeout = defaultBusyTimeout
	}
	path, err := prepareFile(path, opts)
	if err != nil {
		return nil, err
	}
	c, err := openReady(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	s := &Store{
		path: path, opts: opts,
		readers: make(chan *conn, maxReaders),
		jobs:    make(chan *job, maxGroup),
		written: make(chan struct{}),
		closing: make(chan struct{}),
	}
	s.growth.init()
	for range maxReaders {
		s.readers <- nil
	}
	w := &writer{s: s, conn: c}
	w.forget()
	go w.run()
	return s, nil
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

// Close refuses new calls, lets those in flight finish, ends subscriptions, and closes the file.
// Closing again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		<-s.written
		return nil
	}
	s.closed = true
	close(s.closing)
	s.mu.Unlock()

	s.inFlight.Wait()
	var errs []error
	for range maxReaders {
		if c := <-s.readers; c != nil {
			errs = append(errs, c.close())
		}
	}
	last := &job{do: func(w *writer) (error, error) { return nil, nil }, last: true, reply: make(chan error, 1)}
	s.jobs <- last
	errs = append(errs, <-last.reply)
	<-s.written
	return errors.Join(errs...)
}

// read runs f on a reading connection, once reads can be trusted.
func (s *Store) read(ctx context.Context, f func(*conn) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if s.unsettled.Load() {
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
	var c *conn
	select {
	case <-ctx.Done():
		return ctx.Err()
	case c = <-s.readers:
	}
	defer func() { s.readers <- c }()
	if err := ctx.Err(); err != nil {
		return err
	}
	if c == nil {
		opened, err := openConn(ctx, s.path, s.opts)
		if err == nil {
			err = opened.exec("PRAGMA query_only=ON")
		}
		if err != nil {
			return explain(err, s.path, "open the ledger for reading")
		}
		c = opened
	}
	return explain(f(c), s.path, "read the ledger")
}

// growth tells subscribers that events were added.
type growth struct {
	mu sync.Mutex
	ch chan struct{}
}

func (g *growth) init() { g.ch = make(chan struct{}) }

// next returns a channel that is closed when events are added after the call.
func (g *growth) next() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ch
}

func (g *growth) tell() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.ch)
	g.ch = make(chan struct{})
}
