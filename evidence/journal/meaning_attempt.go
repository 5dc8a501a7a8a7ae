package journal

import (
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// attemptSeen is an open attempt, or what is left of a finished one.
type attemptSeen struct {
	fold       *evidence.Attempt // nil once finished
	registered bool
	void       *evidence.Basis // of a claim that lost a race: what broke it
}

func (m *Meaning) visitAttempt(e ledger.Event, p evidence.Payload) error {
	s := m.attempts[e.Stream]
	if s == nil {
		s = &attemptSeen{fold: &evidence.Attempt{}}
		put(&m.attempts, e.Stream, s)
	}
	if s.fold == nil {
		if _, seal := p.(evidence.StreamSealed); !seal {
			return bad(e, "history", "nothing but seals after AttemptFinished", e.Type)
		}
		return nil
	}
	if err := m.judgeEvent(e, p, s); err != nil {
		return err
	}
	if err := ApplyAttempt(s.fold, e, p); err != nil {
		return err
	}
	if s.fold.State == evidence.StateFinished {
		// The fold has compared the record's digest with the one it derived itself.
		if m.Finished != nil {
			m.Finished(e, s.fold)
		}
		s.fold, s.void = nil, nil
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
		void, err := m.judgeClaim(e, p, s.fold.Registered.Binding)
		s.void = void
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
		if req, ok := s.fold.Request(); ok && req.Digest() != p.Request {
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
		g := m.grounds(s)
		if g == nil {
			return nil, bad(e, "basis", "a change or a policy that exists", basis.Stream)
		}
		if basis.Version >= uint64(len(g.leaves)) {
			return nil, bad(e, "basis", fmt.Sprintf("a version of %s below %d", s, len(g.leaves)), fmt.Sprint(basis.Version))
		}
		if leaf := evidence.LeafDigest(g.leaves[basis.Version]); leaf != basis.Leaf {
			return nil, bad(e, "basis", fmt.Sprintf("leaf %s at version %d of %s", leaf, basis.Version, s), basis.Leaf.String())
		}
		named[s] = basis.Version
		if x, ok := g.after(basis.Version); ok && (first == nil || x.index < firstAt) {
			first = &evidence.Basis{Stream: basis.Stream, Version: x.version, Leaf: evidence.LeafDigest(g.leaves[x.version])}
			firstAt = x.index
		}
	}
	if b == nil {
		return first, nil
	}
	return first, m.judgeCurrent(e, *b, named)
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
