package verify

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

// judged is one attempt the bundle is about, folded.
type judged struct {
	events   []bundle.Placed
	fold     evidence.Attempt
	record   evidence.Record
	finished ledger.Index
}

// undecodable tells what is newer than this program from what is wrong.
func (v *verification) undecodable(err error) {
	var unknown *evidence.UnknownEventError
	if errors.As(err, &unknown) {
		v.report.skip(CheckEvents, "%v; a newer version can read it", err)
		return
	}
	v.report.fail(CheckEvents, "%v", err)
}

// scope checks that the bundle holds exactly the streams its judged attempts and changes need, in their roles
// and as far as they are needed.
func (v *verification) scope() {
	var judged [][]bundle.Placed
	want := map[string]bundle.Role{}
	for _, s := range v.payload.Streams {
		if s.Role == bundle.Judged {
			judged = append(judged, v.streams[s.Name])
			want[s.Name] = bundle.Judged
		}
	}
	needs := bundle.Needs(judged, v.streams)
	for _, n := range needs {
		want[n.Stream] = n.Role()
	}
	for _, s := range v.payload.Streams {
		if want[s.Name] != s.Role {
			v.report.fail(CheckStreams, "stream %s is there as %s; what is judged makes it %q", s.Name, s.Role, want[s.Name])
		}
		delete(want, s.Name)
	}
	for name, role := range want {
		v.report.fail(CheckStreams, "stream %s is needed as %s and missing", name, role)
	}
	v.report.pass(CheckStreams, "%d streams from version 0 without a gap", len(v.payload.Streams))
	v.complete(needs)
}

// complete checks that every needed stream is held to its first event behind the judgement, and no
// further (req T3).
func (v *verification) complete(needs []bundle.Need) {
	for _, n := range needs {
		events := v.streams[n.Stream]
		if len(events) == 0 {
			continue // CheckStreams failed
		}
		length, ok := n.Length(events)
		switch {
		case !ok:
			v.report.fail(CheckCompleteness, "stream %s ends at index %d; nothing shows that it held no more before the judgement", n.Stream, events[len(events)-1].Index)
		case n.Stream != evidence.LedgerStream && !n.Judged && length < len(events):
			v.report.fail(CheckCompleteness, "stream %s holds more than the first event behind the judgement", n.Stream)
		}
	}
	v.report.pass(CheckCompleteness, "every basis stream is held to its first event behind the judgement")
}

// history folds every stream. The attempts' records are derived again on the way.
func (v *verification) history() bool {
	for _, s := range v.payload.Streams {
		events := v.streams[s.Name]
		if _, change := bundle.ChangeOf(events); s.Role == bundle.Judged && !change {
			j, err := v.judge(s.Name, events)
			if err != nil {
				v.report.fail(CheckHistory, "%v", err)
				return false
			}
			v.attempt = append(v.attempt, j)
			continue
		}
		if s.Role == bundle.Counted {
			if err := v.count(s.Name, events); err != nil {
				v.report.fail(CheckHistory, "%v", err)
				return false
			}
			continue
		}
		if err := v.foldOther(s.Name, events); err != nil {
			v.report.fail(CheckHistory, "%v", err)
			return false
		}
	}
	if err := v.epochs(); err != nil {
		v.report.fail(CheckHistory, "%v", err)
		return false
	}
	v.report.pass(CheckHistory, "every event may follow those before it")
	v.report.pass(CheckRecord, "the record derived again has the stored digest")
	v.report.pass(CheckRequest, "every daemon object carries the digest of the request")
	return !v.failed(CheckRecord)
}

func (v *verification) failed(name string) bool { return v.report.Check(name).Result == Fail }

// judge folds one judged attempt and derives its record.
func (v *verification) judge(name string, events []bundle.Placed) (*judged, error) {
	id, ok := strings.CutPrefix(name, evidence.AttemptPrefix)
	if !ok {
		return nil, fmt.Errorf("stream %s is judged and is neither an attempt's nor a change's", name)
	}
	j := &judged{events: events}
	for _, e := range events {
		if f, ok := e.Payload.(evidence.AttemptFinished); ok && j.fold.Finished == nil {
			j.record, j.finished = evidence.RecordOf(&j.fold), e.Index
			if got := j.record.Digest(); got != f.Record {
				v.report.fail(CheckRecord, "stream %s: the events give record %s; stored is %s", name, got, f.Record)
				return j, nil
			}
		}
		if err := j.fold.Apply(e.Payload); err != nil {
			return nil, fmt.Errorf("stream %s, version %s: %w", name, e.Version, err)
		}
	}
	if j.fold.Finished == nil {
		return nil, fmt.Errorf("stream %s: the attempt is not finished", name)
	}
	if string(j.fold.Registered.Attempt) != id {
		return nil, fmt.Errorf("stream %s registers attempt %q", name, j.fold.Registered.Attempt)
	}
	v.requests(name, j)
	return j, v.listed(name, j)
}

// requests recomputes the request digest from what the attempt is bound to.
func (v *verification) requests(name string, j *judged) {
	req, ok := j.fold.Request()
	for _, c := range j.fold.Custodies {
		if !ok || c.Request != req.Digest() {
			v.report.fail(CheckRequest, "stream %s: custody %s carries request %s, which isn't the attempt's", name, c.Handle, c.Request)
		}
	}
}

// listed checks that a change's attempt was listed in the change's stream first, with the very
// bytes of its registration (req G1).
func (v *verification) listed(name string, j *judged) error {
	b := j.fold.Registered.Binding
	if b == nil {
		return nil
	}
	stream := evidence.ChangePrefix + string(b.Change)
	for _, e := range v.streams[stream] {
		o, ok := e.Payload.(evidence.AttemptOpened)
		if !ok || o.Attempt != j.fold.Registered.Attempt {
			continue
		}
		first := j.events[0]
		if sha256.Sum256(o.Registration) != sha256.Sum256(first.Data) {
			return fmt.Errorf("stream %s lists %s with another registration", stream, name)
		}
		if e.Index >= first.Index {
			return fmt.Errorf("stream %s lists %s after it opened", stream, name)
		}
		return nil
	}
	return fmt.Errorf("stream %s doesn't list %s", stream, name)
}

// folder is a state folded from one stream.
type folder interface {
	Apply(evidence.Payload) error
}

// foldOther folds a basis or cited stream.
func (v *verification) foldOther(name string, events []bundle.Placed) error {
	f, err := v.folderOf(name, events)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := f.Apply(e.Payload); err != nil {
			return fmt.Errorf("stream %s, version %s: %w", name, e.Version, err)
		}
	}
	return nil
}

func (v *verification) folderOf(name string, events []bundle.Placed) (folder, error) {
	switch {
	case name == evidence.LedgerStream:
		return &evidence.Keyring{}, nil
	case strings.HasPrefix(name, evidence.PolicyPrefix):
		return &evidence.Policy{}, nil
	case strings.HasPrefix(name, evidence.RuntimePrefix):
		id, err := evidence.RuntimeOf(name)
		return &observations{evidence.RuntimeTrail{Runtime: id}}, err
	case strings.HasPrefix(name, evidence.ChangePrefix):
		for _, e := range events {
			if o, ok := e.Payload.(evidence.ChangeOpened); ok && evidence.ChangePrefix+string(o.Change) != name {
				return nil, fmt.Errorf("stream %s opens change %q", name, o.Change)
			}
		}
		return &evidence.Change{}, nil
	}
	return nil, fmt.Errorf("stream %s is of no kind that a judgement rests on", name)
}

// observations is the fold of a runtime's stream, for what belongs there.
type observations struct{ trail evidence.RuntimeTrail }

func (o *observations) Apply(p evidence.Payload) error { return o.trail.Follow(0, 0, p) }
