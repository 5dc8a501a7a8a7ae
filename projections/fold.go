package projections

import (
	"context"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

// item is one decoded event. It keeps no bytes of the event.
type item struct {
	index   ledger.Index
	stream  ledger.StreamID
	kind    journal.Kind
	id      string             // in the stream's name
	attempt evidence.AttemptID // of an attempt's stream with a legal name
	version ledger.Version
	typ     string
	time    int64
	bytes   int64
	payload evidence.Payload // nil: a user's event, or err
	meta    evidence.Meta
	err     error // why it can't be read
}

// decode reads an event. Users' events stay as they are.
func decode(e ledger.Event) item {
	it := item{index: e.Index, stream: e.Stream, version: e.Version, typ: e.Type, time: e.Time, bytes: int64(len(e.Data))}
	if it.kind, it.id = journal.KindOf(e.Stream); it.kind == journal.KindUser {
		return it
	}
	it.payload, it.meta, it.err = journal.Decode(e)
	if it.err != nil {
		it.payload, it.meta = nil, evidence.Meta{}
	}
	if it.kind == journal.KindAttempt {
		if id, err := evidence.ParseAttemptID(it.id); err == nil {
			it.attempt = id
		}
	}
	return it
}

// live is an attempt folded in memory, and what its row holds beside the fold.
type live struct {
	id            evidence.AttemptID
	fold          evidence.Attempt
	first, last   ledger.Index
	version       ledger.Version
	registered    int64
	actor         string // who registered it
	taken         map[evidence.HandleKey]taken
	claimed       *int64
	finished      *int64
	finishedIndex *ledger.Index
	problem       string
}

// add folds the next event of the stream. What can't be read or can't follow is a problem of the
// attempt, which stays where it was.
func (l *live) add(it item) {
	l.last, l.version = it.index, it.version
	if l.problem != "" {
		return
	}
	err := it.err
	if err == nil {
		if r, ok := it.payload.(evidence.AttemptRegistered); ok && r.Attempt != it.attempt {
			err = fmt.Errorf("index %d registers attempt %s in the stream of another", it.index, r.Attempt)
		} else {
			err = l.fold.Apply(it.payload)
		}
	}
	if err != nil {
		l.problem = err.Error()
		l.problem = l.problem[:min(len(l.problem), maxProblem)]
		if l.fold.State == evidence.StateNone {
			l.first, l.registered, l.actor = it.index, it.time, it.meta.Actor
		}
		return
	}
	switch p := it.payload.(type) {
	case evidence.AttemptRegistered:
		l.first, l.registered, l.actor = it.index, it.time, it.meta.Actor
	case evidence.CustodyTaken:
		if l.taken == nil {
			l.taken = map[evidence.HandleKey]taken{}
		}
		l.taken[p.Handle] = taken{it.index, it.time, it.meta.Actor}
	case evidence.AttemptClaimed:
		l.claimed = &it.time
	case evidence.AttemptFinished:
		l.finished, l.finishedIndex = &it.time, &it.index
	}
}

// folds keeps unfinished attempts between batches, so that each event is folded once. It is a
// cache: an attempt that isn't there is folded again from its stream.
type folds struct {
	led   ledger.Ledger
	live  map[evidence.AttemptID]*live
	dirty []*live // touched by the present batch
	seen  map[*live]bool
}

func newFolds(led ledger.Ledger) *folds {
	f := &folds{led: led}
	f.forget()
	return f
}

// forget drops everything, for instance because the file is somewhere else than thought.
func (f *folds) forget() {
	f.live, f.seen, f.dirty = map[evidence.AttemptID]*live{}, map[*live]bool{}, nil
}

// add folds a batch.
func (f *folds) add(ctx context.Context, items []item) error {
	for _, it := range items {
		if it.attempt == "" {
			continue
		}
		l := f.live[it.attempt]
		if l == nil {
			var err error
			if l, err = f.load(ctx, it); err != nil {
				return err
			}
			f.live[it.attempt] = l
		}
		l.add(it)
		if !f.seen[l] && (l.fold.State != evidence.StateNone || l.problem != "") {
			f.seen[l] = true
			f.dirty = append(f.dirty, l)
		}
	}
	return nil
}

// load folds what its stream held before an event.
func (f *folds) load(ctx context.Context, it item) (*live, error) {
	l := &live{id: it.attempt}
	if it.version == 0 {
		return l, nil
	}
	for e, err := range f.led.ReadStream(ctx, it.stream, 0) {
		if err != nil {
			return nil, err
		}
		if e.Version >= it.version {
			break
		}
		l.add(decode(e))
	}
	return l, nil
}

// settle ends a batch: its rows are stored.
func (f *folds) settle() {
	for _, l := range f.dirty {
		delete(f.seen, l)
		if l.fold.State == evidence.StateFinished {
			delete(f.live, l.id)
		}
	}
	f.dirty = f.dirty[:0]
	if len(f.live) > maxLive {
		f.live = map[evidence.AttemptID]*live{}
	}
}
