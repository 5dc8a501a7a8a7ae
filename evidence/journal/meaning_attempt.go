package journal

import (
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// attemptSeen is an open attempt, or what is left of a finished one.
type attemptSeen struct {
	trail      *evidence.AttemptTrail // nil once finished
	registered bool
	void       *evidence.Basis // of a claim that lost a race: what broke it
	voidAt     evidence.EventIndex
	after      *finishedSeen // once finished
}

// finishedSeen is what is kept of a finished attempt: enough to hold its candidate and the
// approvals that rely on it against it.
type finishedSeen struct {
	derivation evidence.Derivation
	exhibit    *evidence.AttemptExhibit // of a success that a change lists; dropped with the change's version
	version    uint64                   // of its AttemptFinished
	leaves     []ledger.Hash            // from there on, while there is an exhibit
	canary     *evidence.CanaryRun      // of one that is bound to no change: a canary may rest on it
}

func (m *Meaning) visitAttempt(e ledger.Event, p evidence.Payload) error {
	s := m.attempts[e.Stream]
	if s == nil {
		s = &attemptSeen{trail: &evidence.AttemptTrail{}}
		put(&m.attempts, e.Stream, s)
	}
	if s.after != nil {
		return s.visitAfter(e, p)
	}
	if err := m.judgeEvent(e, p, s); err != nil {
		return err
	}
	if err := applyTrail(s.trail, e, p); err != nil {
		return err
	}
	if a := &s.trail.Fold; a.State == evidence.StateFinished {
		// The fold has compared the record's digest with the one it derived itself.
		if m.Finished != nil {
			m.Finished(e, a)
		}
		s.after = &finishedSeen{derivation: a.Derivation, version: uint64(e.Version)}
		if b := a.Registered.Binding; b != nil && evidence.VerdictOf(a).Outcome == evidence.OutcomeSuccess && !m.settled(*b) {
			x := m.exhibit(s, *b, a.Registered.Attempt)
			s.after.exhibit, s.after.leaves = &x, []ledger.Hash{e.Leaf()}
		}
		if a.Registered.Binding == nil {
			s.after.canary = s.trail.CanaryRun()
		}
		s.trail, s.void = nil, nil
	}
	return nil
}

// visitAfter takes what may follow AttemptFinished.
func (s *attemptSeen) visitAfter(e ledger.Event, p evidence.Payload) error {
	switch p := p.(type) {
	case evidence.StreamSealed:
	case evidence.CandidateDerived:
		if err := s.after.derivation.Apply(p); err != nil {
			return badHistory(e, err)
		}
	default:
		return bad(e, "history", "nothing but seals and a candidate after AttemptFinished", e.Type)
	}
	if s.after.exhibit != nil {
		s.after.leaves = append(s.after.leaves, e.Leaf())
	}
	return nil
}

// applyTrail is ApplyAttempt for a trail.
func applyTrail(t *evidence.AttemptTrail, e ledger.Event, p evidence.Payload) error {
	if r, ok := p.(evidence.AttemptRegistered); ok && AttemptStream(r.Attempt) != e.Stream {
		return bad(e, "attempt", string(e.Stream), string(AttemptStream(r.Attempt)))
	}
	if err := t.Apply(evidence.EventIndex(e.Index), p); err != nil {
		return badHistory(e, err)
	}
	return nil
}

// judgeEvent checks what an attempt's own stream can't tell.
func (m *Meaning) judgeEvent(e ledger.Event, p evidence.Payload, s *attemptSeen) error {
	switch p := p.(type) {
	case evidence.AttemptRegistered:
		s.registered = true
		return m.judgeListing(e, p)
	case evidence.AttemptClaimed:
		void, err := m.judgeClaim(e, p, s.trail.Fold.Registered.Binding)
		s.void = void
		if void != nil {
			s.voidAt = evidence.EventIndex(m.indexOf(*void))
		}
		return err
	case evidence.ClaimVoided:
		if s.void == nil {
			return bad(e, "claim", "void", "valid: nothing came before it that changes its basis")
		}
		if p.Breaking != *s.void {
			return bad(e, "breaking event", describe(*s.void), describe(p.Breaking))
		}
	case evidence.RuntimeObserved:
		return m.judgeProbe(e, p)
	case evidence.CustodyTaken:
		if s.void != nil {
			return bad(e, "claim", "valid before anything is created", "void: "+describe(*s.void)+" came before it")
		}
		if req, ok := s.trail.Fold.Request(); ok && req.Digest() != p.Request {
			return bad(e, "request", req.Digest().String(), p.Request.String())
		}
	}
	return nil
}

// judgeProbe holds an observation to the probe it relies on: one of the same runtime that came
// before it and saw the seccomp filter (req C4).
func (m *Meaning) judgeProbe(e ledger.Event, o evidence.RuntimeObserved) error {
	if o.Probe == nil {
		return nil
	}
	if o.Identity == nil || o.Identity.Stream() != o.Probe.Stream {
		return bad(e, "probe", "one of the runtime observed", o.Probe.Stream)
	}
	s := ledger.StreamID(o.Probe.Stream)
	r := m.runtimes[s]
	if r == nil || o.Probe.Version >= uint64(len(r.leaves)) {
		if _, skip := m.unread[s]; skip {
			m.carry(e, evidence.SchemaVersion)
			return nil
		}
		return bad(e, "probe", "an event before this one", describe(*o.Probe))
	}
	if leaf := evidence.LeafDigest(r.leaves[o.Probe.Version]); leaf != o.Probe.Leaf {
		return bad(e, "probe", fmt.Sprintf("leaf %s at version %d of %s", leaf, o.Probe.Version, s), o.Probe.Leaf.String())
	}
	if !r.proves[o.Probe.Version] {
		return bad(e, "probe", "one that saw the seccomp filter", describe(*o.Probe))
	}
	return nil
}

func describe(b evidence.Basis) string {
	return fmt.Sprintf("version %d of %s (leaf %s)", b.Version, b.Stream, b.Leaf)
}

// judgeListing holds an attempt for a change against the listing that must come before it, so
// that no attempt is hidden from its change (req G1). A listing whose attempt opened with other
// data is void: it stays open for ever.
func (m *Meaning) judgeListing(e ledger.Event, r evidence.AttemptRegistered) error {
	if r.Binding == nil {
		return nil
	}
	stream := ChangeStream(r.Binding.Change)
	if _, skip := m.unread[stream]; skip {
		return nil
	}
	c := m.changes[stream]
	if c == nil {
		return bad(e, "binding", "a change that lists the attempt", "no stream "+string(stream))
	}
	want, ok := c.open[r.Attempt]
	if !ok {
		return bad(e, "binding", "a change that lists the attempt", string(stream)+" without it")
	}
	if got := evidence.PlainDigest(ledger.Blob{Data: e.Data}.Key()); got != want {
		return bad(e, "data", "the registration listed ("+want.String()+")", got.String())
	}
	delete(c.open, r.Attempt)
	return nil
}

// judgeClaim checks that a claim's basis is what it says and was current, and returns the event
// that makes the claim void, if there is one.
func (m *Meaning) judgeClaim(e ledger.Event, claim evidence.AttemptClaimed, b *evidence.Binding) (*evidence.Basis, error) {
	named := map[ledger.StreamID]uint64{}
	var first *evidence.Basis
	var firstAt ledger.Index
	for _, basis := range claim.Basis {
		s := ledger.StreamID(basis.Stream)
		if _, skip := m.unread[s]; skip {
			m.carry(e, evidence.SchemaVersion) // what the claim rests on can't be judged, so nor can it
			return nil, nil
		}
		x, err := m.judgeBasis(e, basis)
		if err != nil {
			return nil, err
		}
		named[s] = basis.Version
		if x != nil && (first == nil || x.index < firstAt) {
			g := m.grounds(s)
			first = &evidence.Basis{Stream: basis.Stream, Version: x.version, Leaf: evidence.LeafDigest(g.leaves[x.version])}
			firstAt = x.index
		}
	}
	if b == nil {
		return first, nil
	}
	return first, m.judgeCurrent(e, *b, named)
}

// judgeBasis checks that a basis of a change or a policy is what it says, and returns the first
// event behind it that takes its ground away.
func (m *Meaning) judgeBasis(e ledger.Event, b evidence.Basis) (*breaking, error) {
	g := m.grounds(ledger.StreamID(b.Stream))
	if g == nil {
		return nil, bad(e, "basis", "a change or a policy that exists", b.Stream)
	}
	if b.Version >= uint64(len(g.leaves)) {
		return nil, bad(e, "basis", fmt.Sprintf("a version of %s below %d", b.Stream, len(g.leaves)), fmt.Sprint(b.Version))
	}
	if leaf := evidence.LeafDigest(g.leaves[b.Version]); leaf != b.Leaf {
		return nil, bad(e, "basis", fmt.Sprintf("leaf %s at version %d of %s", leaf, b.Version, b.Stream), b.Leaf.String())
	}
	if x, ok := g.after(b.Version); ok {
		return &x, nil
	}
	return nil, nil
}

// indexOf is the index of an event that takes a ground away.
func (m *Meaning) indexOf(b evidence.Basis) ledger.Index {
	for _, x := range m.grounds(ledger.StreamID(b.Stream)).breaking {
		if x.version == b.Version {
			return x.index
		}
	}
	return 0
}

func (m *Meaning) grounds(s ledger.StreamID) *grounds {
	if c := m.changes[s]; c != nil {
		return &c.grounds
	}
	if p := m.policies[s]; p != nil {
		return &p.grounds
	}
	return nil
}

// judgeCurrent checks that the claim read its change and policy, and that both were current as
// it read them (req G2).
func (m *Meaning) judgeCurrent(e ledger.Event, b evidence.Binding, named map[ledger.StreamID]uint64) error {
	stream := ChangeStream(b.Change)
	version, ok := named[stream]
	if !ok {
		return bad(e, "basis", "the change's stream "+string(stream), "a basis without it")
	}
	now := m.changes[stream].at(version)
	if !now.set || now.binding != b {
		return bad(e, "basis", fmt.Sprintf("version %d and context %s of the change in force", b.Version, b.Context),
			fmt.Sprintf("version %d and context %s", now.binding.Version, now.binding.Context))
	}
	policy := PolicyStream(now.policy)
	version, ok = named[policy]
	if !ok {
		return bad(e, "basis", "the policy's stream "+string(policy), "a basis without it")
	}
	if epoch := m.policies[policy].epochAt(version); epoch != now.epoch {
		return bad(e, "basis", fmt.Sprintf("epoch %d of %s in force", now.epoch, policy), fmt.Sprint(epoch))
	}
	return nil
}
