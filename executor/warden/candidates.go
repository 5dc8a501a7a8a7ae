package warden

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
)

// task is one attempt's, or one custody's, turn.
type task struct {
	name string     // tells it apart from every other
	of   Supervised // what it is about, for a turn that never comes back
	do   func(ctx context.Context, progress executor.Progress) (s Supervised, met bool)
}

// found is what one source of names knows.
type found struct {
	ids    []evidence.AttemptID
	listed []journal.Listing
	unread int
	kept   []evidence.HandleKey
}

// hint is one source of names.
type hint struct {
	what  string
	ask   func(ctx context.Context) (found, error)
	found found
	err   error
}

func (w *Warden) hints(p Pass) (all []*hint, list, ledger *hint) {
	of := func(what string, ask func(ctx context.Context) (found, error)) *hint {
		h := &hint{what: what, ask: ask}
		all = append(all, h)
		return h
	}
	of("this home's locks", func(context.Context) (f found, err error) { f.ids, err = w.Home.locked(); return f, err })
	of("this home's directories", func(context.Context) (f found, err error) { f.ids, err = w.Home.leftovers(); return f, err })
	if p.Lister != nil {
		list = of("the list of unfinished attempts", func(ctx context.Context) (f found, err error) {
			f.ids, err = p.Lister.Unfinished(ctx)
			return f, err
		})
	}
	if p.Audit {
		ledger = of("the unfinished attempts of the ledger", func(ctx context.Context) (found, error) {
			u, err := w.Journal.Unfinished(ctx)
			return found{ids: u.Attempts, listed: u.Listed, unread: u.Unread}, err
		})
	}
	if p.Custody != nil {
		of("the custody files", func(context.Context) (f found, err error) { f.kept, err = p.Custody.handles(); return f, err })
	}
	return all, list, ledger
}

// candidates lists whatever may need a hand. A source that fails is shown, and the others count.
func (w *Warden) candidates(ctx context.Context, p Pass) (tasks []task, out []Supervised) {
	hints, list, ledger := w.hints(p)
	var all sync.WaitGroup
	for _, h := range hints {
		all.Go(func() { h.found, h.err = attend(w, ctx, h.what, scanBound, h.ask) })
	}
	all.Wait()
	var ids []evidence.AttemptID
	for _, h := range hints {
		if h.err != nil {
			if ctx.Err() == nil { // told to end, it failed for no other reason
				s, _ := failed(fmt.Errorf("%s can't be read: %w", h.what, h.err))
				out = append(out, s)
			}
			continue
		}
		ids = append(ids, h.found.ids...)
		for _, l := range h.found.listed {
			if time.Since(time.Unix(0, l.Time)) > openingPatience {
				tasks = append(tasks, w.listedTask(l))
			}
		}
		for _, k := range h.found.kept {
			tasks = append(tasks, w.keptTask(p.Custody, k))
		}
		if n := h.found.unread; n > 0 {
			out = append(out, Supervised{Action: ActionUnread,
				Detail: fmt.Sprintf("%d listings of attempts can't be read by this version of baildock: a newer one completes them", n)})
		}
	}
	if ledger != nil && list != nil && list.err == nil {
		for _, id := range ledger.found.ids {
			if !slices.Contains(list.found.ids, id) {
				out = append(out, Supervised{Attempt: id, Action: ActionUnlisted, Detail: "the ledger has it unfinished, the list doesn't"})
			}
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		tasks = append(tasks, w.attemptTask(id, p.Patient))
	}
	return tasks, out
}

func (w *Warden) attemptTask(id evidence.AttemptID, patient bool) task {
	return task{name: "attempt " + string(id), of: Supervised{Attempt: id},
		do: func(ctx context.Context, progress executor.Progress) (Supervised, bool) {
			s, met := w.superviseOne(ctx, id, patient, progress)
			s.Attempt = id
			return s, met
		}}
}

func (w *Warden) listedTask(l journal.Listing) task {
	return task{name: "attempt " + string(l.Attempt), of: Supervised{Attempt: l.Attempt},
		do: func(ctx context.Context, _ executor.Progress) (Supervised, bool) { return w.cancelListed(ctx, l), true }}
}

// turn gives a task its time: RecoverBound, and what its last records may take beyond.
func (w *Warden) turn(ctx context.Context, t task, progress executor.Progress) (Supervised, bool) {
	type answer struct {
		Supervised
		met bool
	}
	a, err := attend(w, context.WithoutCancel(ctx), t.name, RecoverBound, func(ctx context.Context) (answer, error) {
		s, met := t.do(ctx, progress)
		return answer{s, met}, nil
	})
	if err != nil {
		a.Supervised, a.met = failed(err)
		a.Attempt, a.Object = t.of.Attempt, t.of.Object
	}
	return a.Supervised, a.met
}

// errHangs says that something neither ended nor minded its deadline, as on a disk that never answers.
var errHangs = errors.New("it did not come to its end in time, and is left behind")

// attend calls f under a bound and leaves it behind where it minds neither bound nor ctx. What was left
// behind keeps the locks it holds, and is not begun again before it ended.
func attend[T any](w *Warden, ctx context.Context, name string, bound time.Duration, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	var none T
	if old, ok := w.behind.Load(name); ok {
		if len(old.(chan answer)) == 0 {
			return none, fmt.Errorf("an earlier pass began it: %w", errHangs)
		}
		w.behind.Delete(name)
	}
	life, end := context.WithTimeout(ctx, bound)
	defer end()
	done := make(chan answer, 1)
	go func() {
		v, err := f(life)
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a.v, a.err
	case <-life.Done():
	}
	select {
	case a := <-done:
		return a.v, a.err
	case <-time.After(leaveBound):
		w.behind.Store(name, done)
		return none, errHangs
	}
}
