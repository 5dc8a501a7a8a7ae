package projections

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/baildock/baildock/ledger"
)

// Progress is told how far a catch-up or a rebuild is, in events, after every batch.
type Progress func(done, total uint64)

// Projections is one process's hold on the file. It is safe for concurrent use; operations go one
// after the other.
type Projections struct {
	path     string
	led      ledger.Ledger
	progress Progress
	patience time.Duration // of a statement that somebody wrote

	mu   sync.Mutex
	lock *fileLock
	conn *conn       // nil: not open
	file os.FileInfo // what conn has open
	run  *runner
}

// Open opens the projections of a ledger, building them first when the file is missing, of
// another form, of another ledger or damaged. progress may be nil.
func Open(ctx context.Context, path string, led ledger.Ledger, progress Progress) (*Projections, error) {
	if progress == nil {
		progress = func(uint64, uint64) {}
	}
	lock, err := openLock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open projections: %w", err)
	}
	p := &Projections{path: path, led: led, progress: progress, patience: maxTime, lock: lock}
	if err := p.CatchUp(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close releases the file.
func (p *Projections) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.drop(), p.lock.f.Close())
}

// CatchUp reads the log to its present end. Every question does so first.
func (p *Projections) CatchUp(ctx context.Context) error {
	return p.with(ctx, func(*conn) error { return nil })
}

// Rebuild folds everything again from the first event, into a new file that takes the place of
// the present one.
func (p *Projections) Rebuild(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.rebuild(ctx, true)
	return errors.Join(err, p.lock.release())
}

// errStale means that the file must be rebuilt: it is missing, or not of this form, or not of this
// ledger.
var errStale = errors.New("projections are missing or out of date")

// with runs f on a file that has caught up, under the shared lock. A file that must be rebuilt,
// or turns out to be damaged, is rebuilt once.
func (p *Projections) with(ctx context.Context, f func(*conn) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for tries := 0; ; tries++ {
		err := p.once(ctx, f)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errStale) && !isDamage(err) || tries == 1 {
			return fmt.Errorf("projections %s: %w", p.path, err)
		}
		// A file that turned out to be bad is not asked again whether it is.
		err = p.rebuild(ctx, isDamage(err))
		if err = errors.Join(err, p.lock.release()); err != nil {
			return fmt.Errorf("rebuild projections %s: %w", p.path, err)
		}
	}
}

func (p *Projections) once(ctx context.Context, f func(*conn) error) (err error) {
	if err := p.lock.share(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.lock.release()) }()
	if err := p.reopen(); err != nil {
		return err
	}
	old := p.conn.db.SetInterrupt(ctx)
	defer p.conn.db.SetInterrupt(old)
	if err := p.run.catchUp(ctx, p.conn, p.progress); err != nil {
		return err
	}
	return f(p.conn)
}

// reopen makes sure that what is open is the file in place now, and that it has this form.
func (p *Projections) reopen() error {
	now, err := os.Stat(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.Join(errStale, p.drop())
	}
	if err != nil {
		return err
	}
	if p.conn != nil && os.SameFile(now, p.file) {
		return nil
	}
	if err := p.drop(); err != nil {
		return err
	}
	c, err := openConn(p.path)
	if err != nil {
		return err
	}
	if err := c.checkForm(); err != nil {
		return errors.Join(err, c.close())
	}
	p.conn, p.file, p.run = c, now, newRunner(p.led)
	return nil
}

// drop closes what is open.
func (p *Projections) drop() error {
	c := p.conn
	p.conn, p.file, p.run = nil, nil, nil
	if c == nil {
		return nil
	}
	return c.close()
}
