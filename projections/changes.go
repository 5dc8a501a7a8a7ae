package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// policy stores where a policy stands.
func (f *facts) policy(c *conn, it *item) error {
	e, ok := it.payload.(evidence.EpochAdvanced)
	if _, err := evidence.ParsePolicyID(it.id); err != nil || !ok {
		return nil // nothing that can be named, or a seal
	}
	return c.run(`INSERT INTO policy_rows VALUES (?1, ?2, ?3, ?3)
		ON CONFLICT (policy) DO UPDATE SET epoch = excluded.epoch, last_index = excluded.last_index`, it.id, int64(e.Epoch), int64(it.index))
}

// admission stores an approval or integration, judged by its basis.
func (f *facts) admission(ctx context.Context, c *conn, it *item, l *liveChange) error {
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
	revision := ""
	if l.problem == "" {
		revision = l.fold.Revision
	}
	return c.run("INSERT OR REPLACE INTO admission_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		int64(it.index), it.id, int64(version), orNull(revision), of.String(), kind, words(names), void, it.time, it.meta.Actor)
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

// change stores what a change's stream tells so far, and returns its fold; nil: nothing that can be named is
// there.
func (f *facts) change(ctx context.Context, c *conn, it *item) (*liveChange, error) {
	id, err := evidence.ParseChangeID(it.id)
	if err != nil {
		return nil, nil // no change has such a name
	}
	l := f.changes[id]
	if l == nil {
		if l, err = f.loadChange(ctx, it); err != nil {
			return nil, err
		}
		if len(f.changes) >= maxChanges {
			clear(f.changes)
		}
		f.changes[id] = l
	}
	l.add(it)
	if !l.fold.Exists() && l.problem == "" {
		return nil, nil // a seal alone
	}
	x := &l.fold
	var digest, policy, epoch, integrated any
	if x.Context != nil {
		digest, policy, epoch = x.ContextDigest.String(), string(x.Context.Policy), int64(x.Context.Epoch)
	}
	if x.Integrated != nil {
		integrated = int64(x.Integrated.Version)
	}
	return l, c.run("INSERT OR REPLACE INTO change_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
