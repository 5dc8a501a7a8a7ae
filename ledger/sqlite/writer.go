package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/ledger"
)

const (
	// maxGroup bounds the jobs in one transaction, so that the first doesn't wait for ever.
	maxGroup = 256
	// maxGroupBytes bounds what one transaction adds to the log.
	maxGroupBytes = 8 << 20
)

// job is one write. do runs inside a transaction shared with other jobs. A verdict refuses this
// job alone, which then must have written nothing; a failure undoes the whole group.
type job struct {
	do    func(*writer) (verdict, failure error)
	then  func(*writer) error // runs after the commit, before the reply; may be nil
	bytes int
	last  bool // close afterwards
	reply chan error

	verdict error
}

// writer owns the writing connection. Only its goroutine touches it.
type writer struct {
	s     *Store
	conn  *conn // nil after it had to be given up
	tree  ledger.Frontier
	known bool // tree and heads match what this process last saw committed
	heads headCache
	grew  bool // the open transaction added events

	nodes []ledger.Hash // scratch of insert
	row   []byte        // scratch of insert
}

// submit queues a job and waits for its result. A cancelled context refuses only before the job
// is queued.
func (s *Store) submit(ctx context.Context, j *job) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	return s.queue(ctx, j)
}

// queue is submit for a caller that has entered.
func (s *Store) queue(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.reply = make(chan error, 1)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case s.jobs <- j:
	}
	return <-j.reply
}

// settle waits until reads can be trusted again, or says why they can't.
func (s *Store) settle(ctx context.Context) error {
	return s.queue(ctx, &job{do: func(*writer) (error, error) { return nil, nil }})
}

func (w *writer) run() {
	defer close(w.s.written)
	group := make([]*job, 0, maxGroup)
	for {
		group = w.collect(group[:0])
		w.write(group)
		for i, j := range group {
			if j.last {
				j.reply <- w.giveUp()
				return
			}
			group[i] = nil
		}
	}
}

// collect waits for a job and takes those that wait behind it.
func (w *writer) collect(group []*job) []*job {
	j := <-w.s.jobs
	for bytes := 0; ; {
		group = append(group, j)
		bytes += j.bytes
		if j.last || len(group) == maxGroup || bytes >= maxGroupBytes {
			return group
		}
		select {
		case j = <-w.s.jobs:
		default:
			return group
		}
	}
}

// write runs a group in one transaction and replies to each job.
func (w *writer) write(group []*job) {
	err := w.begin()
	for i := 0; err == nil && i < len(group); i++ {
		group[i].verdict, err = group[i].do(w)
	}
	if err != nil {
		w.undo()
		w.reply(group, func(*job) error { return explain(err, w.s.path, "write to the ledger") })
		return
	}
	if err := w.conn.run("COMMIT"); err != nil {
		w.s.unsettled.Store(!neverWhole(err))
		w.undo()
		// Settling at once matters: a crash before it could bring the events back.
		settled := w.settle()
		w.reply(group, func(j *job) error {
			why := explain(errors.Join(err, settled), w.s.path, "commit to the ledger")
			if j.verdict != nil { // it wrote nothing, but may have been judged by what is now lost
				return why
			}
			return fmt.Errorf("%w: %w", ledger.ErrUnknownOutcome, why)
		})
		return
	}
	if w.grew {
		w.s.growth.tell()
	}
	w.reply(group, func(j *job) error {
		if j.verdict == nil && j.then != nil {
			return j.then(w)
		}
		return j.verdict
	})
}

func (w *writer) reply(group []*job, result func(*job) error) {
	for _, j := range group {
		if !j.last {
			j.reply <- result(j)
		}
	}
}

// begin starts a transaction that may write, and makes sure the cached tree and heads are those
// of the file.
func (w *writer) begin() error {
	if w.conn == nil {
		c, err := openReady(context.Background(), w.s.path, w.s.opts)
		if err != nil {
			return err
		}
		w.conn = c
	}
	if err := w.settle(); err != nil {
		return err
	}
	if err := w.conn.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	w.grew = false
	return w.refresh()
}

// neverWhole tells that a commit failed because the disk was full while it wrote to the log. Then
// its last frame, without which none counts, isn't whole, and no crash can bring the events back.
// Reading must go on in this case: it is how one gets out of it.
func neverWhole(err error) bool { return errors.Is(err, sqlite3.FULL) }

// settle commits a change of its own after a commit failed. It lands where the failed one lay in
// the log, and the log's chained checksums make what is left behind it unreadable.
func (w *writer) settle() error {
	if !w.s.unsettled.Load() {
		return nil
	}
	if w.conn == nil {
		return errors.New("a commit failed and its connection was lost; the next write tries to settle its outcome")
	}
	for _, sql := range []string{"BEGIN IMMEDIATE", "UPDATE settled SET times = times + 1", "COMMIT"} {
		if err := w.conn.run(sql); err != nil {
			w.undo()
			return fmt.Errorf("a commit failed and its outcome can't be settled yet: %w", err)
		}
	}
	w.s.unsettled.Store(false)
	return nil
}

// undo ends the transaction, and forgets what was cached in it. A connection that can't even roll
// back is given up.
func (w *writer) undo() {
	w.forget()
	if w.conn == nil || w.conn.db.GetAutocommit() {
		return
	}
	if err := w.conn.exec("ROLLBACK"); err != nil && !w.conn.db.GetAutocommit() {
		_ = w.giveUp() // the caller's error is the one to report
	}
}

func (w *writer) giveUp() error {
	if w.conn == nil {
		return nil
	}
	c := w.conn
	w.conn = nil
	return c.close()
}
