package projections

import (
	"context"
	"errors"
	"fmt"

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
	runtimes map[string]bool // those with an identity in the file
	changes  map[evidence.ChangeID]*liveChange
}

func newFacts(led ledger.Ledger) *facts {
	f := &facts{led: led}
	f.forget()
	return f
}

func (f *facts) forget() {
	f.words, f.runtimes, f.changes = map[string]int64{}, map[string]bool{}, map[evidence.ChangeID]*liveChange{}
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
	case journal.KindChange:
		if err := f.admission(ctx, c, it); err != nil {
			return err
		}
		return f.change(ctx, c, it)
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

func (f *facts) runtime(c *conn, it *item, id evidence.RuntimeIdentity) error {
	name := id.Digest().String()
	if f.runtimes[name] {
		return nil
	}
	if len(f.runtimes) >= maxWords {
		clear(f.runtimes)
	}
	f.runtimes[name] = true
	b := id.Build
	return c.run(`INSERT INTO runtime_rows (runtime, engine, machine, version, api, kernel, os, arch, runner, first_index)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (runtime) DO UPDATE SET engine = excluded.engine, machine = excluded.machine, version = excluded.version,
		api = excluded.api, kernel = excluded.kernel, os = excluded.os, arch = excluded.arch, runner = excluded.runner
		WHERE engine IS NULL`,
		name, id.Daemon.Engine, orNull(text(id.Daemon.Machine)), b.Version, b.API, b.Kernel, b.OS, b.Arch, b.Runtime, int64(it.index))
}

func (f *facts) probed(c *conn, it *item) error {
	var probe any
	if e, ok := it.payload.(evidence.RuntimeProbed); ok && e.ProvesSeccomp() {
		probe = int64(it.index)
	}
	return c.run(`INSERT INTO runtime_rows (runtime, first_index, probed) VALUES (?, ?, ?)
		ON CONFLICT (runtime) DO UPDATE SET probed = coalesce(excluded.probed, probed)`,
		"sha256:"+it.id, int64(it.index), probe)
}

// admission stores an approval or integration, judged by its basis.
func (f *facts) admission(ctx context.Context, c *conn, it *item) error {
	var version uint64
	var of evidence.ContextDigest
	var relied []evidence.AttemptRelied
	var basis []evidence.Basis
	kind := "approval"
	switch p := it.payload.(type) {
	case evidence.ContextApproved:
		version, of, relied, basis = p.Version, p.Context, p.Attempts, p.Basis
	case evidence.ChangeIntegrated:
		version, of, relied, basis, kind = p.Version, p.Context, p.Attempts, p.Basis, "integration"
	default:
		return nil
	}
	var void any
	for _, b := range basis {
		at, err := f.breaking(ctx, b, it.index)
		if err != nil {
			return err
		}
		if old, is := void.(int64); at != nil && (!is || *at < old) {
			void = *at
		}
	}
	names := make([]evidence.AttemptID, len(relied))
	for i, r := range relied {
		names[i] = r.Attempt
	}
	return c.run("INSERT OR REPLACE INTO admission_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		int64(it.index), it.id, int64(version), of.String(), kind, words(names), void, it.time, it.meta.Actor)
}

// breaking is the first event between a basis and a judgement that changes an epoch or a context.
func (f *facts) breaking(ctx context.Context, b evidence.Basis, judgement ledger.Index) (*int64, error) {
	for e, err := range f.led.ReadStream(ctx, ledger.StreamID(b.Stream), ledger.Version(min(b.Version, 1<<62))+1) {
		switch {
		case err != nil:
			return nil, err
		case e.Index >= judgement:
			return nil, nil
		case evidence.ChangesBasis(e.Type):
			at := int64(e.Index)
			return &at, nil
		}
	}
	return nil, nil
}

// liveChange is a change folded in memory.
type liveChange struct {
	fold        evidence.Change
	first, last ledger.Index
	problem     string
}

func (l *liveChange) add(it *item) {
	l.last = it.index
	if l.problem != "" {
		return
	}
	err := it.err
	if err == nil {
		if o, ok := it.payload.(evidence.ChangeOpened); ok && string(o.Change) != it.id {
			err = fmt.Errorf("index %d opens change %s in the stream of another", it.index, o.Change)
		} else {
			if ok {
				l.first = it.index
			}
			err = l.fold.Apply(it.payload)
		}
	}
	if err != nil {
		l.problem = err.Error()
		l.problem = l.problem[:min(len(l.problem), maxProblem)]
		if !l.fold.Exists() {
			l.first = it.index
		}
	}
}

func (f *facts) change(ctx context.Context, c *conn, it *item) error {
	id, err := evidence.ParseChangeID(it.id)
	if err != nil {
		return nil // nothing that can be named is in such a stream
	}
	l := f.changes[id]
	if l == nil {
		if l, err = f.loadChange(ctx, it); err != nil {
			return err
		}
		if len(f.changes) >= maxChanges {
			clear(f.changes)
		}
		f.changes[id] = l
	}
	l.add(it)
	if !l.fold.Exists() && l.problem == "" {
		return nil // a seal alone
	}
	x := &l.fold
	var digest, policy, epoch, integrated any
	if x.Context != nil {
		digest, policy, epoch = x.ContextDigest.String(), string(x.Context.Policy), int64(x.Context.Epoch)
	}
	if x.Integrated != nil {
		integrated = int64(x.Integrated.Version)
	}
	return c.run("INSERT OR REPLACE INTO change_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		it.id, x.Opened.Repository.String(), int64(x.Version), orNull(x.Revision), digest, policy, epoch,
		int64(len(x.Openings)), int64(len(x.Approvals)), integrated, int64(l.first), int64(l.last), orNull(l.problem))
}

// loadChange folds what the stream held before an event.
func (f *facts) loadChange(ctx context.Context, it *item) (*liveChange, error) {
	l := &liveChange{}
	if it.version == 0 {
		return l, nil
	}
	for e, err := range f.led.ReadStream(ctx, it.stream, 0) {
		if err != nil {
			return nil, err
		}
		if e.Version >= it.version {
			return l, nil
		}
		before := decode(e)
		l.add(&before)
	}
	return nil, errors.New("the ledger lost events of stream " + string(it.stream))
}

// custody stores an attempt's daemon objects.
func (l *live) custody(c *conn) error {
	for _, x := range l.fold.Custodies {
		err := c.run("INSERT OR REPLACE INTO custody_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			string(l.id), x.Handle.String(), string(x.Kind), x.Name, orNull(text(x.Container)), x.Request.String(), x.Daemon.Engine,
			orNull(string(x.State)), truth(x.Open()), truth(x.Abandoned), orNull(x.Unconfirmed), int64(l.last))
		if err != nil {
			return err
		}
	}
	return nil
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
