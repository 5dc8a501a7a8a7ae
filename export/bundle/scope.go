package bundle

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Placed is a decoded event at its place.
type Placed struct {
	ledger.Event
	Leaf    ledger.Hash
	Payload evidence.Payload
	Meta    evidence.Meta
}

// Decode reads the payloads of a stream's events strictly (req R7).
func Decode(events []ledger.Event) ([]Placed, error) {
	out := make([]Placed, len(events))
	for i, e := range events {
		if e.Media != evidence.Media {
			return nil, fmt.Errorf("stream %s, version %s: media type %q is not %s", e.Stream, e.Version, e.Media, evidence.Media)
		}
		p, m, err := evidence.Decode(e.Type, e.Meta, e.Data)
		if err != nil {
			return nil, fmt.Errorf("stream %s, version %s: %w", e.Stream, e.Version, err)
		}
		out[i] = Placed{Event: e, Leaf: e.Leaf(), Payload: p, Meta: m}
	}
	return out, nil
}

// Need is a stream that a bundle must hold beside the judged ones, and how far: from version 0 to
// the first event that satisfies every condition. The stream `ledger` is held whole, up to the
// bundle's index.
type Need struct {
	Stream    string
	Judgement *ledger.Index  // a basis is held up to the first event with a larger index; nil for a stream only cited
	Cited     ledger.Version // the largest version a judged stream or a judgement names; NoStream for none
	Counted   bool           // an attempt that an approval counts: its end is enough, nothing follows it that matters
	Judged    bool           // a judged stream, which other judgements rest on: it goes on to the bundle's index
}

// Role is the role of the needed stream.
func (n Need) Role() Role {
	switch {
	case n.Judged:
		return Judged
	case n.Counted:
		return Counted
	case n.Judgement != nil:
		return Basis
	}
	return Cited
}

// Length returns how many events of a stream are needed; ok is false when it doesn't hold as many.
func (n Need) Length(events []Placed) (length int, ok bool) {
	finished := false
	for i, e := range events {
		if _, end := e.Payload.(evidence.AttemptFinished); end && n.Counted {
			finished = true
		}
		if (n.Judgement == nil || finished || e.Index > *n.Judgement) && e.Version >= n.Cited {
			return i + 1, true
		}
	}
	return len(events), false
}

// Judgement returns the index of an attempt's judgement, which is its claim's or, without one,
// its registration's; and the claim.
func Judgement(attempt []Placed) (at ledger.Index, claim *evidence.AttemptClaimed) {
	for i, e := range attempt {
		if i == 0 {
			at = e.Index
		}
		if c, ok := e.Payload.(evidence.AttemptClaimed); ok {
			return e.Index, &c
		}
	}
	return at, nil
}

// BindingOf returns what an attempt is bound to; nil for an ad hoc one.
func BindingOf(attempt []Placed) *evidence.Binding {
	for _, e := range attempt {
		if r, ok := e.Payload.(evidence.AttemptRegistered); ok {
			return r.Binding
		}
	}
	return nil
}

// Probed is an observation of a runtime that relies on a probe.
type Probed struct {
	Placed
	evidence.RuntimeObserved
}

// Probes returns the observations of an attempt before an index that rely on a probe.
func Probes(attempt []Placed, before ledger.Index) []Probed {
	var out []Probed
	for _, e := range attempt {
		if o, ok := e.Payload.(evidence.RuntimeObserved); ok && o.Probe != nil && e.Index < before {
			out = append(out, Probed{e, o})
		}
	}
	return out
}

// Admission is an approval or an integration as a change's stream holds it.
type Admission struct {
	Placed
	Version uint64
	Context evidence.ContextDigest
	Relied  []evidence.AttemptRelied
	Basis   []evidence.Basis
	Grounds evidence.Grounds
}

// AdmissionOf reads an event that judges a context; ok is false for every other.
func AdmissionOf(e Placed) (a Admission, ok bool) {
	switch p := e.Payload.(type) {
	case evidence.ContextApproved:
		return Admission{e, p.Version, p.Context, p.Attempts, p.Basis, p.Grounds}, true
	case evidence.ChangeIntegrated:
		return Admission{e, p.Version, p.Context, p.Attempts, p.Basis, p.Grounds}, true
	}
	return Admission{}, false
}

// About reports whether the admission is of the context that a binding names.
func (a Admission) About(b evidence.Binding) bool {
	return a.Version == b.Version && a.Context == b.Context
}

// scope collects needs.
type scope struct{ needs map[string]*Need }

func (s scope) need(stream string) *Need {
	if s.needs[stream] == nil {
		s.needs[stream] = &Need{Stream: stream, Cited: ledger.NoStream}
	}
	return s.needs[stream]
}

func (s scope) basis(stream string, at ledger.Index) *Need {
	n := s.need(stream)
	if n.Judgement == nil || *n.Judgement < at {
		n.Judgement = &at
	}
	return n
}

func (s scope) cited(b evidence.Basis) {
	if b.Version <= math.MaxInt64 {
		n := s.need(b.Stream)
		n.Cited = max(n.Cited, ledger.Version(b.Version))
	}
}

// attempt adds what one judged attempt rests on.
func (s scope) attempt(a []Placed) {
	at, claim := Judgement(a)
	s.basis(evidence.LedgerStream, at)
	if claim != nil {
		for _, b := range claim.Basis {
			s.basis(b.Stream, at)
		}
	}
	for _, p := range Probes(a, math.MaxInt64) {
		s.cited(*p.Probe)
	}
	if b := BindingOf(a); b != nil {
		s.basis(evidence.ChangePrefix+string(b.Change), at)
	}
}

// admission adds what one admission in a change's stream rests on, and the attempts it counts:
// every one listed for its context before it (req T3), and those of the canaries that qualify a runtime; and
// the probes that the attempts it relies on cite, since what is checked of them is checked of those too.
func (s scope) admission(change []Placed, a Admission, streams map[string][]Placed) {
	s.basis(evidence.LedgerStream, a.Index)
	s.basis(string(a.Stream), a.Index)
	for _, b := range a.Basis {
		n := s.basis(b.Stream, a.Index)
		if strings.HasPrefix(b.Stream, evidence.AttemptPrefix) {
			n.Counted = true
			s.cited(b)
		}
	}
	for _, r := range a.Relied {
		for _, p := range Probes(streams[evidence.AttemptPrefix+string(r.Attempt)], a.Index) {
			s.cited(*p.Probe)
		}
	}
	for _, e := range change {
		o, ok := e.Payload.(evidence.AttemptOpened)
		if !ok || e.Index >= a.Index {
			continue
		}
		var r evidence.AttemptRegistered
		if err := evidence.Unmarshal(o.Registration, &r); err == nil && r.Binding != nil && a.About(*r.Binding) {
			s.basis(evidence.AttemptPrefix+string(o.Attempt), a.Index).Counted = true
		}
	}
	for _, id := range canaries(change, a, streams) {
		s.basis(evidence.AttemptPrefix+string(id), a.Index).Counted = true
	}
}

// Runtimes returns the runtimes' streams that an admission rests on.
func (a Admission) Runtimes() []evidence.Basis {
	var out []evidence.Basis
	for _, b := range a.Basis {
		if strings.HasPrefix(b.Stream, evidence.RuntimePrefix) {
			out = append(out, b)
		}
	}
	return out
}

// canaries returns the attempts of the canaries that qualify the runtimes an admission rests on (req H7).
func canaries(change []Placed, a Admission, streams map[string][]Placed) []evidence.AttemptID {
	var corpus *evidence.Corpus
	tables := map[evidence.AttemptID]evidence.ProfileDigest{}
	for _, e := range change {
		if e.Index >= a.Index {
			break
		}
		switch p := e.Payload.(type) {
		case evidence.ContextSet:
			if p.Context.Digest() == a.Context {
				corpus = p.Context.Corpus
			}
		case evidence.AttemptOpened:
			var r evidence.AttemptRegistered
			if err := evidence.Unmarshal(p.Registration, &r); err == nil {
				tables[p.Attempt] = r.Table
			}
		}
	}
	if corpus == nil {
		return nil
	}
	var out []evidence.AttemptID
	for _, b := range a.Runtimes() {
		t, err := RuntimeTrail(b.Stream, streams[b.Stream])
		if err != nil {
			continue // a fold says so
		}
		for _, r := range a.Relied {
			bound := evidence.Bound{Runtime: t.Runtime, Table: tables[r.Attempt], Corpus: *corpus}
			for _, c := range bound.Cite(t.UpTo(b.Version)) {
				out = append(out, c.Observed.Attempt)
			}
		}
	}
	return out
}

// RuntimeTrail folds the stream of a runtime.
func RuntimeTrail(stream string, events []Placed) (evidence.RuntimeTrail, error) {
	var t evidence.RuntimeTrail
	var err error
	if t.Runtime, err = evidence.RuntimeOf(stream); err != nil {
		return t, err
	}
	for _, e := range events {
		if e.Version < 0 {
			return t, fmt.Errorf("stream %s has a negative version", stream)
		}
		if err := t.Follow(evidence.EventIndex(e.Index), uint64(e.Version), e.Payload); err != nil {
			return t, fmt.Errorf("stream %s, version %s: %w", stream, e.Version, err)
		}
	}
	return t, nil
}

// Needs returns what the judged attempts and changes need beside themselves, sorted by stream: the stream
// `ledger`, the streams the attempts' claims read, the streams of their changes, and those whose probes
// they cite; and for every approval and integration of their contexts, and of any context of a judged
// change, that the changes' streams hold, by stream name, what it rests on and the attempts it counts. The
// streams of the runtimes that admissions rest on, and of the attempts they rely on, must be there too, as far
// as they are read. A judged stream is listed where a judgement rests on it: it too must show that nothing
// before that judgement was left out.
func Needs(judged [][]Placed, streams map[string][]Placed) []Need {
	s := scope{needs: map[string]*Need{}}
	for _, a := range judged {
		if _, ok := ChangeOf(a); ok {
			s.basis(evidence.LedgerStream, a[0].Index)
			continue
		}
		s.attempt(a)
	}
	for _, b := range Bindings(judged) {
		change := streams[evidence.ChangePrefix+string(b.Change)]
		for _, e := range change {
			if a, ok := AdmissionOf(e); ok && a.About(b) {
				s.admission(change, a, streams)
			}
		}
	}
	for _, a := range judged {
		if len(a) > 0 && s.needs[string(a[0].Stream)] != nil {
			s.needs[string(a[0].Stream)].Judged = true
		}
	}
	out := make([]Need, 0, len(s.needs))
	for _, name := range slices.Sorted(maps.Keys(s.needs)) {
		out = append(out, *s.needs[name])
	}
	return out
}

// ChangeOf returns the change whose stream this is; ok is false for every other stream.
func ChangeOf(stream []Placed) (evidence.ChangeID, bool) {
	if len(stream) == 0 {
		return "", false
	}
	id, ok := strings.CutPrefix(string(stream[0].Stream), evidence.ChangePrefix)
	return evidence.ChangeID(id), ok
}

// Contexts returns the contexts that a change's stream approves or integrates, as bindings, each once, in
// their order.
func Contexts(change []Placed) []evidence.Binding {
	var out []evidence.Binding
	var opened evidence.ChangeOpened
	for _, e := range change {
		if o, ok := e.Payload.(evidence.ChangeOpened); ok {
			opened = o
		}
		if a, ok := AdmissionOf(e); ok {
			b := evidence.Binding{Repository: opened.Repository, Change: opened.Change, Version: a.Version, Context: a.Context}
			if !slices.Contains(out, b) {
				out = append(out, b)
			}
		}
	}
	return out
}

// Bindings returns what judged attempts are bound to and what judged changes judge, each once, in
// their order.
func Bindings(judged [][]Placed) []evidence.Binding {
	var out []evidence.Binding
	for _, a := range judged {
		var bindings []evidence.Binding
		if _, ok := ChangeOf(a); ok {
			bindings = Contexts(a)
		} else if b := BindingOf(a); b != nil {
			bindings = []evidence.Binding{*b}
		}
		for _, b := range bindings {
			if !slices.Contains(out, b) {
				out = append(out, b)
			}
		}
	}
	return out
}
