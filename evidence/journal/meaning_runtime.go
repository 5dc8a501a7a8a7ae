package journal

import (
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// runtimeSeen is what observations of a runtime may rely on, by version.
type runtimeSeen struct {
	trail  evidence.RuntimeTrail
	leaves []ledger.Hash
	proves []bool // a probe that saw the seccomp filter
}

func (m *Meaning) visitRuntime(e ledger.Event, p evidence.Payload) error {
	r := m.runtimes[e.Stream]
	if r == nil {
		id, err := evidence.RuntimeOf(string(e.Stream))
		if err != nil {
			return bad(e, "stream", "a name that holds a legal ID", err.Error())
		}
		r = &runtimeSeen{trail: evidence.RuntimeTrail{Runtime: id}}
		put(&m.runtimes, e.Stream, r)
	}
	if c, ok := p.(evidence.CanaryObserved); ok {
		if err := m.judgeCanary(e, c); err != nil {
			return err
		}
		if _, skip := m.unread[e.Stream]; skip {
			return nil
		}
	}
	if err := r.trail.Follow(evidence.EventIndex(e.Index), uint64(e.Version), p); err != nil {
		return badHistory(e, err)
	}
	probe, isProbe := p.(evidence.RuntimeProbed)
	r.leaves = append(r.leaves, e.Leaf())
	r.proves = append(r.proves, isProbe && probe.ProvesSeccomp())
	return nil
}

// judgeCanary holds an observation to the attempt it rests on, which must have finished before with
// exactly the record named. Whether that record bears the canary out is for a qualification to say.
func (m *Meaning) judgeCanary(e ledger.Event, c evidence.CanaryObserved) error {
	stream := AttemptStream(c.Attempt)
	if _, skip := m.unread[stream]; skip {
		m.carry(e, evidence.SchemaVersion) // what it rests on can't be judged, so nor can it
		return nil
	}
	s := m.attempts[stream]
	if s == nil || s.after == nil {
		return bad(e, "attempt", "one that finished before", string(stream))
	}
	if run := s.after.canary; run == nil || run.Record != c.Record {
		found := "an attempt that a change lists"
		if run != nil {
			found = run.Record.String()
		}
		return bad(e, "record", c.Record.String()+", of an ad hoc attempt", found)
	}
	return nil
}

// qualifying adds what the runtimes of the attempts relied on were seen to hold, at the versions that the
// basis names, and returns their streams.
func (m *Meaning) qualifying(e ledger.Event, the *evidence.Case, relied []evidence.AttemptRelied, basis []evidence.Basis) (map[ledger.StreamID]bool, error) {
	c, want := the.Change.Context, map[ledger.StreamID]bool{}
	if !c.RequireQualified || c.Corpus == nil {
		return want, nil
	}
	the.Canaries, the.Runs = map[evidence.RuntimeDigest][]evidence.CanarySeen{}, map[evidence.AttemptID]*evidence.CanaryRun{}
	for _, a := range relied {
		s := m.attempts[AttemptStream(a.Attempt)]
		if s == nil || s.after == nil || s.after.exhibit == nil || s.after.exhibit.Runtime == nil {
			continue // the decision refuses it
		}
		id := *s.after.exhibit.Runtime
		stream := runtimeStream(id)
		want[stream] = true
		for _, b := range basis {
			if ledger.StreamID(b.Stream) != stream {
				continue
			}
			r := m.runtimes[stream]
			if r == nil || b.Version >= uint64(len(r.leaves)) {
				return nil, bad(e, "basis", "an event before this one", describe(b))
			}
			if leaf := evidence.LeafDigest(r.leaves[b.Version]); leaf != b.Leaf {
				return nil, bad(e, "basis", fmt.Sprintf("leaf %s at version %d of %s", leaf, b.Version, stream), b.Leaf.String())
			}
			the.Canaries[id] = r.trail.UpTo(b.Version)
		}
		bound := evidence.Bound{Runtime: id, Table: s.after.exhibit.Registered.Table, Corpus: *c.Corpus}
		for _, seen := range bound.Cite(the.Canaries[id]) {
			if x := m.attempts[AttemptStream(seen.Observed.Attempt)]; x != nil && x.after != nil {
				the.Runs[seen.Observed.Attempt] = x.after.canary
			}
		}
	}
	return want, nil
}
