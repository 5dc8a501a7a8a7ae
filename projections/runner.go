package projections

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/ledger"
)

// runner follows the log into one file.
type runner struct {
	led  ledger.Ledger
	at   ledger.Index // where the folds in memory stand
	fold *folds
	rest *facts
}

func newRunner(led ledger.Ledger) *runner {
	return &runner{led: led, fold: newFolds(led), rest: newFacts(led)}
}

// forget drops what is held in memory of another place in the log.
func (r *runner) forget() {
	r.fold.forget()
	r.rest.forget()
}

// position is where the file stands: the next index, and the leaf hash of the event before it.
type position struct {
	next ledger.Index
	leaf []byte
}

func (c *conn) position() (p position, err error) {
	err = c.each(func(s *sqlite3.Stmt) error {
		p.next, p.leaf = ledger.Index(s.ColumnInt64(0)), s.ColumnBlob(1, nil)
		return nil
	}, "SELECT next, leaf FROM position")
	return p, err
}

// checkPosition refuses a file that followed another log, or one whose end was lost.
func (r *runner) checkPosition(ctx context.Context, c *conn) error {
	p, err := c.position()
	if err != nil || p.next == 0 {
		return err
	}
	for e, err := range r.led.ReadAll(ctx, p.next-1) {
		if err != nil {
			return err
		}
		if leaf := e.Leaf(); !bytes.Equal(leaf[:], p.leaf) {
			return fmt.Errorf("%w: they followed another ledger", errStale)
		}
		return nil
	}
	return fmt.Errorf("%w: they are ahead of the ledger", errStale)
}

// catchUp reads from where the file stands to the log's present end. It may share the file with
// other processes: each batch looks whether the file is where this process left it.
func (r *runner) catchUp(ctx context.Context, c *conn, progress Progress) error {
	if err := r.checkPosition(ctx, c); err != nil {
		return err
	}
	for {
		size, err := r.led.Size(ctx)
		if err != nil {
			return err
		}
		p, err := c.position()
		if err != nil {
			return err
		}
		if uint64(p.next) >= size {
			return nil
		}
		if err := r.follow(ctx, c, p.next, func(next ledger.Index) { progress(uint64(next), max(size, uint64(next))) }); err != nil {
			return err
		}
	}
}

// follow stores batches from an index on, until the end or until another process went ahead.
func (r *runner) follow(ctx context.Context, c *conn, from ledger.Index, stored func(ledger.Index)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.at != from {
		r.forget()
	}
	r.at = from
	for b, err := range readAhead(ctx, r.led, from) {
		if err != nil {
			return err
		}
		ours, err := r.store(ctx, c, b)
		if err != nil {
			r.forget() // the file was rolled back, the folds were not
			return err
		}
		if !ours {
			r.forget()
			return nil
		}
		stored(r.at)
	}
	return nil
}

// store folds a batch and stores the rows it touched, in one transaction.
func (r *runner) store(ctx context.Context, c *conn, b batch) (ours bool, err error) {
	err = c.transact(func() error {
		p, err := c.position()
		if err != nil {
			return err
		}
		if ours = p.next == r.at; !ours {
			return nil
		}
		for i := range b.items {
			if err := r.rest.add(ctx, c, &b.items[i]); err != nil {
				return err
			}
		}
		if err := r.rest.settle(c); err != nil {
			return err
		}
		if err := r.fold.add(ctx, b.items); err != nil {
			return err
		}
		for _, l := range r.fold.dirty {
			if err := c.run(upsert, l.row().values()...); err != nil {
				return err
			}
			if err := l.custody(c); err != nil {
				return err
			}
		}
		return c.run("UPDATE position SET next = ?, leaf = ?", int64(b.next), b.leaf[:])
	})
	if err == nil && ours {
		r.fold.settle()
		r.at = b.next
	}
	return ours, err
}

// batch is a run of events, decoded.
type batch struct {
	items []item
	next  ledger.Index
	leaf  ledger.Hash // of the last event
}

// raw is a run of events as read.
type raw struct {
	events []ledger.Event
	last   ledger.Event
}

func (r raw) decode() batch {
	b := batch{items: make([]item, len(r.events)), next: r.last.Index + 1, leaf: r.last.Leaf()}
	for i, e := range r.events {
		b.items[i] = decode(e)
	}
	return b
}

// readAhead reads batches, and decodes them side by side, while earlier ones are stored. They
// come in order.
func readAhead(ctx context.Context, led ledger.Ledger, from ledger.Index) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		type decoded struct {
			batch chan batch // of capacity 1, so that no decoder ever waits
			err   error
		}
		ahead := make(chan decoded, batchesAhead)
		go func() {
			defer close(ahead)
			for r, err := range batches(ctx, led, from) {
				d := decoded{make(chan batch, 1), err}
				if err == nil {
					go func() { d.batch <- r.decode() }()
				}
				select {
				case ahead <- d:
				case <-ctx.Done():
					return
				}
			}
		}()
		defer func() { // the reader is gone before the ledger may be closed
			cancel()
			for range ahead {
			}
		}()
		for d := range ahead {
			if d.err != nil {
				yield(batch{}, d.err)
				return
			}
			if !yield(<-d.batch, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(batch{}, err)
		}
	}
}

func batches(ctx context.Context, led ledger.Ledger, from ledger.Index) iter.Seq2[raw, error] {
	return func(yield func(raw, error) bool) {
		var r raw
		events, size := 0, 0
		flush := func() bool {
			ok := yield(r, nil)
			r, events, size = raw{}, 0, 0
			return ok
		}
		for e, err := range led.ReadAll(ctx, from) {
			if err != nil {
				yield(raw{}, err)
				return
			}
			r.events = append(r.events, e)
			r.last, events, size = e, events+1, size+len(e.Meta)+len(e.Data)
			if (events == batchEvents || size >= batchBytes) && !flush() {
				return
			}
		}
		if events > 0 {
			flush()
		}
	}
}
