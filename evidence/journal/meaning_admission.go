package journal

import (
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// judgeJudgement decides an approval or an integration again, on what its basis names. It comes
// before the event is folded, so that the change is as the judgement read it.
func (m *Meaning) judgeJudgement(e ledger.Event, p evidence.Payload, c *changeSeen) error {
	var relied []evidence.AttemptRelied
	var g evidence.Grounds
	the := evidence.Case{Change: c.trail.Exhibit()}
	switch p := p.(type) {
	case evidence.ContextApproved:
		relied, g = p.Attempts, p.Grounds
	case evidence.ChangeIntegrated:
		relied, g = p.Attempts, p.Grounds
		the.Integration = true
		if a, ok := c.approvals[p.Approval.Version]; ok {
			the.Approval = &a
			if leaf := evidence.LeafDigest(c.leaves[p.Approval.Version]); leaf != p.Approval.Leaf {
				return bad(e, "approval", leaf.String(), p.Approval.Leaf.String())
			}
		}
	default:
		return nil
	}
	if the.Change.Context == nil {
		return nil // the fold refuses it
	}
	if g.Rules > evidence.RuleSet {
		m.carry(e, evidence.SchemaVersion)
		return nil
	}
	policy := PolicyStream(the.Change.Context.Policy)
	for _, b := range basisIn(p) {
		if _, skip := m.unread[ledger.StreamID(b.Stream)]; skip {
			m.carry(e, evidence.SchemaVersion) // what it rests on can't be judged, so nor can it
			return nil
		}
	}
	runtimes, err := m.qualifying(e, &the, relied, basisIn(p))
	if err != nil {
		return err
	}
	named, void, err := m.judgementBasis(e, basisIn(p), relied, runtimes)
	if err != nil {
		return err
	}
	if _, ok := named[policy]; !ok {
		return bad(e, "basis", "the policy's stream "+string(policy), "a basis without it")
	}
	if want := uint64(e.Version) - 1; named[e.Stream] != want {
		return bad(e, "basis", fmt.Sprintf("version %d of %s, directly before it", want, e.Stream), fmt.Sprint(named[e.Stream]))
	}
	the.Policy = m.policies[policy].exhibitAt(named[policy])
	for _, i := range c.trail.Present() {
		o := c.trail.Fold.Openings[i]
		x := evidence.AttemptExhibit{Attempt: o.Attempt, ListedAt: c.trail.Listed[i]}
		if s := m.attempts[AttemptStream(o.Attempt)]; s != nil && s.after != nil && s.after.exhibit != nil {
			x = *s.after.exhibit
		}
		the.Attempts = append(the.Attempts, x)
	}
	if err := evidence.Redecide(the, relied, g); err != nil {
		return bad(e, "decision", "one that the events give", err.Error())
	}
	if _, ok := p.(evidence.ContextApproved); ok {
		c.approvals[uint64(e.Version)] = evidence.ApprovalExhibit{At: evidence.EventIndex(e.Index), Void: void}
	}
	return nil
}

// judgementBasis checks every basis of a judgement: those of a change and its policy, those of
// finished attempts it relies on and, where they must be qualified, of their runtimes, and no others. It returns the versions named and the first
// event that makes the judgement void.
func (m *Meaning) judgementBasis(e ledger.Event, basis []evidence.Basis, relied []evidence.AttemptRelied, runtimes map[ledger.StreamID]bool) (named map[ledger.StreamID]uint64, void *evidence.EventIndex, err error) {
	named = map[ledger.StreamID]uint64{}
	for _, b := range basis {
		s := ledger.StreamID(b.Stream)
		named[s] = b.Version
		if runtimes[s] {
			continue // checked where it was read; a later canary voids nothing
		}
		if k, _ := KindOf(s); k == KindAttempt {
			if err := m.judgeRelied(e, b); err != nil {
				return nil, nil, err
			}
			continue
		}
		x, err := m.judgeBasis(e, b)
		if err != nil {
			return nil, nil, err
		}
		if x != nil && (void == nil || evidence.EventIndex(x.index) < *void) {
			at := evidence.EventIndex(x.index)
			void = &at
		}
	}
	for _, r := range relied {
		if _, ok := named[AttemptStream(r.Attempt)]; !ok {
			return nil, nil, bad(e, "basis", "the stream of attempt "+string(r.Attempt), "a basis without it")
		}
	}
	for s := range runtimes {
		if _, ok := named[s]; !ok {
			return nil, nil, bad(e, "basis", "the runtime's stream "+string(s), "a basis without it")
		}
	}
	if want := len(relied) + len(runtimes) + 2; len(named) != want {
		return nil, nil, bad(e, "basis", fmt.Sprintf("%d streams", want), fmt.Sprint(len(named)))
	}
	return named, void, nil
}

func (m *Meaning) judgeRelied(e ledger.Event, b evidence.Basis) error {
	s := m.attempts[ledger.StreamID(b.Stream)]
	if s == nil || s.after == nil || s.after.exhibit == nil {
		return bad(e, "basis", "an attempt that succeeded before", b.Stream)
	}
	from := s.after.version
	if b.Version < from || b.Version >= from+uint64(len(s.after.leaves)) {
		return bad(e, "basis", fmt.Sprintf("a version of %s from %d, below %d", b.Stream, from, from+uint64(len(s.after.leaves))), fmt.Sprint(b.Version))
	}
	if leaf := evidence.LeafDigest(s.after.leaves[b.Version-from]); leaf != b.Leaf {
		return bad(e, "basis", fmt.Sprintf("leaf %s at version %d of %s", leaf, b.Version, b.Stream), b.Leaf.String())
	}
	return nil
}

// exhibit is what admission reads of an attempt as its change lists it.
func (m *Meaning) exhibit(s *attemptSeen, b evidence.Binding, id evidence.AttemptID) evidence.AttemptExhibit {
	listing, at := evidence.Opening{Attempt: id}, evidence.EventIndex(0)
	if c := m.changes[ChangeStream(b.Change)]; c != nil {
		for i, o := range c.trail.Fold.Openings {
			if o.Attempt == id {
				listing, at = o, c.trail.Listed[i]
			}
		}
	}
	x := s.trail.Exhibit(listing, at)
	if s.void != nil {
		x.Void = &s.voidAt
	}
	return x
}

// settled reports whether the version of a change that an attempt is bound to has ended, so that no judgement
// to come can rest on the attempt.
func (m *Meaning) settled(b evidence.Binding) bool {
	c := m.changes[ChangeStream(b.Change)]
	return c != nil && c.trail.Fold.Version > b.Version
}

// settle drops what only judgements of an earlier version of a change would need.
func (m *Meaning) settle(c *changeSeen) {
	clear(c.approvals)
	for _, o := range c.trail.Fold.Openings {
		if s := m.attempts[AttemptStream(o.Attempt)]; s != nil && s.after != nil {
			s.after.exhibit, s.after.leaves = nil, nil
		}
	}
}
