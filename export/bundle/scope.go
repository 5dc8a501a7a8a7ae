package bundle

import (
	"fmt"
	"maps"
	"math"
	"slices"

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
// the first event that satisfies both conditions. The stream `ledger` is held whole, up to the
// bundle's index.
type Need struct {
	Stream    string
	Judgement *ledger.Index  // a basis is held up to the first event with a larger index; nil for a stream only cited
	Cited     ledger.Version // the largest version a judged stream names; NoStream for none
}

// Role is the role of the needed stream.
func (n Need) Role() Role {
	if n.Judgement != nil {
		return Basis
	}
	return Cited
}

// Enough reports whether a stream that ends with `last` is held far enough.
func (n Need) Enough(last ledger.Event) bool {
	return (n.Judgement == nil || last.Index > *n.Judgement) && last.Version >= n.Cited
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

// Needs returns what the judged attempts need beside themselves, sorted by stream: the stream
// `ledger`, the streams their claims read, the streams of their changes, and those whose probes
// they cite.
func Needs(attempts ...[]Placed) []Need {
	needs := map[string]*Need{}
	need := func(stream string) *Need {
		if needs[stream] == nil {
			needs[stream] = &Need{Stream: stream, Cited: ledger.NoStream}
		}
		return needs[stream]
	}
	for _, a := range attempts {
		at, claim := Judgement(a)
		basis := func(stream string) {
			if n := need(stream); n.Judgement == nil || *n.Judgement < at {
				n.Judgement = &at
			}
		}
		basis(evidence.LedgerStream)
		if claim != nil {
			for _, b := range claim.Basis {
				basis(b.Stream)
			}
		}
		for _, e := range a {
			switch p := e.Payload.(type) {
			case evidence.AttemptRegistered:
				if p.Binding != nil {
					basis(evidence.ChangePrefix + string(p.Binding.Change))
				}
			case evidence.RuntimeObserved:
				if p.Probe != nil && p.Probe.Version <= math.MaxInt64 {
					n := need(p.Probe.Stream)
					n.Cited = max(n.Cited, ledger.Version(p.Probe.Version))
				}
			}
		}
	}
	for _, a := range attempts {
		if len(a) > 0 {
			delete(needs, string(a[0].Stream))
		}
	}
	out := make([]Need, 0, len(needs))
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		out = append(out, *needs[name])
	}
	return out
}
