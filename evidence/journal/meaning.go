package journal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Meaning checks what events mean: feed it every event of a ledger, or of the product streams a
// bundle holds whole, in index order. It decodes strictly, folds each stream, judges each claim
// against its basis again, holds each attempt of a change against its listing, derives each
// record again, and decides each approval and integration again. It relies on ledger.Checker for versions and chains. The zero value is ready; it
// isn't safe for concurrent use.
//
// What it keeps grows with the ledger, not only with what is open: one hash for each event of a change, a
// policy or a runtime, the fold of each change with its listings, and for each finished attempt where it
// ended, with the canary's run if no change lists it. Beside that it keeps the folds of open attempts, and
// of a change's present version what judgements may rest on.
type Meaning struct {
	// Finished, if set, is told of every attempt that finishes, before its fold is dropped.
	Finished func(e ledger.Event, a *evidence.Attempt)

	keys     evidence.Keyring
	attempts map[ledger.StreamID]*attemptSeen
	changes  map[ledger.StreamID]*changeSeen
	policies map[ledger.StreamID]*policySeen
	runtimes map[ledger.StreamID]*runtimeSeen
	unread   map[ledger.StreamID]Unread
}

// Unread is the first event of a stream that this version can't read, or a judgement that rests on
// such a stream or on rules this version doesn't know. Nothing is concluded from the stream from there on (req R7).
type Unread struct {
	Index   ledger.Index
	Stream  ledger.StreamID
	Version ledger.Version
	Type    string
	Schema  uint
}

// Unread lists the streams that were not judged to their end, by index.
func (m *Meaning) Unread() []Unread {
	out := make([]Unread, 0, len(m.unread))
	for _, u := range m.unread {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Unread) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// Genesis is the ledger's genesis event, nil until it was visited.
func (m *Meaning) Genesis() *evidence.LedgerOpened { return m.keys.Opened }

// Keys is the fold of the stream `ledger`.
func (m *Meaning) Keys() *evidence.Keyring { return &m.keys }

// Decoded is an event read ahead of its visit. Reading needs no order, so that several goroutines
// may share it; visiting does.
type Decoded struct {
	Payload evidence.Payload // nil for a user's event, and with err
	meta    evidence.Meta
	err     error
}

// DecodeAhead reads an event as Visit would.
func DecodeAhead(e ledger.Event) (d Decoded) {
	if kind, _ := KindOf(e.Stream); kind != KindUser {
		d.Payload, d.meta, d.err = Decode(e)
	}
	return d
}

// Visit takes the next event. It fails with *BadEventError on the first event that doesn't mean
// what it should; the Meaning is then of no more use. Users' streams say nothing to it.
func (m *Meaning) Visit(e ledger.Event) error { return m.VisitDecoded(e, DecodeAhead(e)) }

// VisitDecoded is Visit of an event that was read ahead.
func (m *Meaning) VisitDecoded(e ledger.Event, d Decoded) error {
	kind, id := KindOf(e.Stream)
	if e.Index == 0 && kind != KindLedger {
		return bad(e, "stream", string(GenesisStream), string(e.Stream))
	}
	if kind == KindUser {
		return nil
	}
	if _, skip := m.unread[e.Stream]; skip {
		return nil
	}
	if err := checkName(kind, id); err != nil {
		return bad(e, "stream", "a name that holds a legal ID", err.Error())
	}
	if IsUnknown(d.err) {
		m.carry(e, d.meta.Schema)
		return nil
	}
	if d.err != nil {
		return d.err
	}
	p := d.Payload
	switch kind {
	case KindLedger:
		return m.visitLedger(e, p)
	case KindAttempt:
		return m.visitAttempt(e, p)
	case KindChange:
		return m.visitChange(e, p)
	case KindPolicy:
		return m.visitPolicy(e, p)
	case KindRuntime:
		return m.visitRuntime(e, p)
	default:
		if _, seal := p.(evidence.StreamSealed); !seal {
			return bad(e, "type", "nothing but seals in a reserved stream", e.Type)
		}
		return nil
	}
}

// carry gives up judging a stream this version can't read to its end.
func (m *Meaning) carry(e ledger.Event, schema uint) {
	if m.unread == nil {
		m.unread = map[ledger.StreamID]Unread{}
	}
	m.unread[e.Stream] = Unread{Index: e.Index, Stream: e.Stream, Version: e.Version, Type: e.Type, Schema: schema}
}

func (m *Meaning) visitLedger(e ledger.Event, p evidence.Payload) error {
	if _, opens := p.(evidence.LedgerOpened); opens && e.Index != 0 {
		return bad(e, "index", "0", fmt.Sprint(uint64(e.Index)))
	}
	if err := m.keys.Apply(p); err != nil {
		return badHistory(e, err)
	}
	return nil
}

// grounds is what is kept of a stream that claims may rest on.
type grounds struct {
	leaves   []ledger.Hash // by version
	breaking []breaking    // events that change an epoch or a context
}

type breaking struct {
	version uint64
	index   ledger.Index
}

func (g *grounds) add(e ledger.Event) {
	if evidence.ChangesBasis(e.Type) {
		g.breaking = append(g.breaking, breaking{version: uint64(e.Version), index: e.Index})
	}
	g.leaves = append(g.leaves, e.Leaf())
}

// after returns the first event behind a version that changes an epoch or a context.
func (g *grounds) after(version uint64) (breaking, bool) {
	for _, b := range g.breaking {
		if b.version > version {
			return b, true
		}
	}
	return breaking{}, false
}

// changeSeen is a change, what was true at each of its versions, and its open listings.
type changeSeen struct {
	grounds
	trail     evidence.ChangeTrail
	since     []contextSince
	open      map[evidence.AttemptID]evidence.PlainDigest // listed, own stream not open yet
	approvals map[uint64]evidence.ApprovalExhibit         // by version of the stream, of the present version of the change
}

// contextSince is the context in force from one version of the stream on.
type contextSince struct {
	stream  uint64
	binding evidence.Binding
	policy  evidence.PolicyID
	epoch   uint64
	set     bool
}

func (m *Meaning) visitChange(e ledger.Event, p evidence.Payload) error {
	c := m.changes[e.Stream]
	if c == nil {
		c = &changeSeen{open: map[evidence.AttemptID]evidence.PlainDigest{}, approvals: map[uint64]evidence.ApprovalExhibit{}}
		put(&m.changes, e.Stream, c)
	}
	if o, ok := p.(evidence.ChangeOpened); ok && ChangeStream(o.Change) != e.Stream {
		return bad(e, "change", string(e.Stream), string(ChangeStream(o.Change)))
	}
	if err := m.judgeJudgement(e, p, c); err != nil {
		return err
	}
	if _, skip := m.unread[e.Stream]; skip {
		return nil
	}
	if err := c.trail.Apply(evidence.EventIndex(e.Index), p); err != nil {
		return badHistory(e, err)
	}
	c.add(e)
	switch p := p.(type) {
	case evidence.VersionAdded:
		m.settle(c)
		c.since = append(c.since, contextSince{stream: uint64(e.Version)})
	case evidence.ChangeIntegrated:
		c.since = append(c.since, contextSince{stream: uint64(e.Version)})
	case evidence.ContextSet:
		policy := m.policies[PolicyStream(p.Context.Policy)]
		// A policy this version reads only in part may have come further than it can tell.
		if _, newer := m.unread[PolicyStream(p.Context.Policy)]; newer && (policy == nil || p.Context.Epoch > policy.fold.Epoch) {
			m.carry(e, evidence.SchemaVersion)
			return nil
		}
		if policy == nil || policy.fold.Epoch == 0 {
			return bad(e, "policy", "one that exists", string(p.Context.Policy))
		}
		if p.Context.Epoch > policy.fold.Epoch {
			return bad(e, "epoch", fmt.Sprintf("at most %d", policy.fold.Epoch), fmt.Sprint(p.Context.Epoch))
		}
		b, _ := c.trail.Fold.Binding()
		c.since = append(c.since, contextSince{stream: uint64(e.Version), binding: b, policy: p.Context.Policy, epoch: p.Context.Epoch, set: true})
	case evidence.AttemptOpened:
		o, _ := c.trail.Fold.Opening(p.Attempt)
		if a := m.attempts[AttemptStream(p.Attempt)]; a == nil || !a.registered {
			c.open[p.Attempt] = o.Registration
		}
	}
	return nil
}

// at returns the context in force at a version of the change's stream.
func (c *changeSeen) at(version uint64) contextSince {
	now := contextSince{}
	for _, s := range c.since {
		if s.stream <= version {
			now = s
		}
	}
	return now
}

// policySeen is a policy and where each epoch began.
type policySeen struct {
	grounds
	fold evidence.Policy
}

func (m *Meaning) visitPolicy(e ledger.Event, p evidence.Payload) error {
	s := m.policies[e.Stream]
	if s == nil {
		s = &policySeen{}
		put(&m.policies, e.Stream, s)
	}
	if err := s.fold.Apply(p); err != nil {
		return badHistory(e, err)
	}
	s.add(e)
	return nil
}

// epochAt returns the epoch at a version of the policy's stream: every breaking event is one.
func (s *policySeen) epochAt(version uint64) uint64 { return s.exhibitAt(version).Epoch }

// exhibitAt is the policy as it was at a version of its stream.
func (s *policySeen) exhibitAt(version uint64) evidence.PolicyExhibit {
	var x evidence.PolicyExhibit
	for _, b := range s.breaking {
		if b.version <= version {
			x.Epoch, x.EpochAt = x.Epoch+1, evidence.EventIndex(b.index)
		}
	}
	return x
}

func put[V any](m *map[ledger.StreamID]*V, s ledger.StreamID, v *V) {
	if *m == nil {
		*m = map[ledger.StreamID]*V{}
	}
	(*m)[s] = v
}
