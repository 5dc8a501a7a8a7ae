package projections

import (
	"context"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

// facts makes every row that isn't an attempt's: the timeline, changes, admissions and runtimes.
// What it holds in memory is a cache of the file and of folds; forget drops it.
type facts struct {
	led      ledger.Ledger
	words    map[string]int64
	spans    map[int64]span  // of the present batch
	runtimes map[string]bool // those with an identity in the file
	changes  map[evidence.ChangeID]*liveChange
}

// span is the oldest and the newest time in a run of spanEvents events.
type span struct{ oldest, newest int64 }

func newFacts(led ledger.Ledger) *facts {
	f := &facts{led: led}
	f.forget()
	return f
}

func (f *facts) forget() {
	f.words, f.runtimes, f.changes, f.spans = map[string]int64{}, map[string]bool{}, map[evidence.ChangeID]*liveChange{}, map[int64]span{}
}

// add stores what one event tells.
func (f *facts) add(ctx context.Context, c *conn, it *item) error {
	if err := f.timeline(c, it); err != nil {
		return err
	}
	switch it.kind {
	case journal.KindAttempt:
		if o, ok := it.payload.(evidence.RuntimeObserved); ok && o.Identity != nil {
			return f.runtime(c, it, *o.Identity)
		}
	case journal.KindRuntime:
		return f.probed(c, it)
	case journal.KindPolicy:
		return f.policy(c, it)
	case journal.KindChange:
		l, err := f.change(ctx, c, it)
		if err != nil || l == nil {
			return err
		}
		return f.admission(ctx, c, it, l)
	}
	return nil
}

// word is the number of a name, given when it first appears.
func (f *facts) word(c *conn, s string) (int64, error) {
	if id, ok := f.words[s]; ok {
		return id, nil
	}
	if len(f.words) >= maxWords {
		clear(f.words)
	}
	var id int64
	read := func(s *sqlite3.Stmt) error { id = s.ColumnInt64(0); return nil }
	if err := c.each(read, "SELECT id FROM words WHERE word = ?", s); err != nil {
		return 0, err
	}
	if id == 0 {
		if err := c.run("INSERT INTO words (word) VALUES (?)", s); err != nil {
			return 0, err
		}
		id = c.db.LastInsertRowID()
	}
	f.words[s] = id
	return id, nil
}

func (f *facts) timeline(c *conn, it *item) error {
	stream, err := f.word(c, string(it.stream))
	if err != nil {
		return err
	}
	typ, err := f.word(c, it.typ)
	if err != nil {
		return err
	}
	var actor int64 // 0: none, since numbers start at 1
	if it.meta.Actor != "" {
		if actor, err = f.word(c, it.meta.Actor); err != nil {
			return err
		}
	}
	at := int64(it.index) / spanEvents
	if s, ok := f.spans[at]; ok {
		f.spans[at] = span{min(s.oldest, it.time), max(s.newest, it.time)}
	} else {
		f.spans[at] = span{it.time, it.time}
	}
	// Bound by hand: this runs for every event of the ledger.
	s, err := c.stmt(insertTimeline)
	if err != nil {
		return err
	}
	for i, n := range [...]int64{int64(it.index), stream, int64(it.version), typ, it.time, actor, it.bytes} {
		if err := s.BindInt64(i+1, n); err != nil {
			return err
		}
	}
	return s.Exec()
}

const insertTimeline = "INSERT INTO timeline_rows VALUES (?, ?, ?, ?, ?, nullif(?, 0), ?)"

// settle ends a batch: it widens the spans of its events.
func (f *facts) settle(c *conn) error {
	for at, s := range f.spans {
		err := c.run(`INSERT INTO timeline_spans VALUES (?, ?, ?)
			ON CONFLICT (span) DO UPDATE SET oldest = min(oldest, excluded.oldest), newest = max(newest, excluded.newest)`, at, s.oldest, s.newest)
		if err != nil {
			return err
		}
	}
	clear(f.spans)
	return nil
}
