package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Claim is what a runner says of itself.
type Claim struct {
	Home     evidence.HomeIdentity
	Deadline uint64               // CLOCK_BOOTTIME ns after which the runner may be fenced
	Accepted []evidence.Reduction // in any order
}

// Claim makes a pending attempt generation 1 and returns the appender that owns it. Of N racing
// claims exactly one is stored; the others fail with *NotPendingError, which names the winner. It
// fails with *NotCurrentError, appending nothing, when the attempt's context or policy epoch has
// moved on already (req G2).
//
// A stored claim that turns out to have lost a race against such a move is void: Claim then
// returns the appender together with *VoidClaimError (req H5).
func (j *Journal) Claim(ctx context.Context, id evidence.AttemptID, generation uint64, c Claim) (*Appender, error) {
	accepted, err := sortedReductions(c.Accepted)
	if err != nil {
		return nil, err
	}
	a, err := j.Attempt(ctx, id)
	if err != nil {
		return nil, err
	}
	if a.Fold.State != evidence.StatePending || a.Fold.Generation != generation {
		return nil, notPending(a, generation)
	}
	basis, err := j.currentBasis(ctx, a.Fold.Registered.Binding)
	if err != nil {
		return nil, err
	}
	p := j.Appender(a)
	events, err := p.Append(ctx, evidence.AttemptClaimed{
		Generation: generation + 1, Basis: basis, Home: c.Home, Deadline: c.Deadline, Accepted: accepted,
	})
	if errors.Is(err, ErrFenced) {
		now, err := j.Attempt(ctx, id)
		if err != nil {
			return nil, err
		}
		return nil, notPending(now, generation)
	}
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", id, err)
	}
	return p, j.judge(ctx, id, events[0].Index, basis)
}

func sortedReductions(rs []evidence.Reduction) ([]evidence.Reduction, error) {
	for _, r := range rs {
		if _, err := evidence.ParseReduction(string(r)); err != nil {
			return nil, err
		}
	}
	out := slices.Clone(rs)
	slices.Sort(out)
	return slices.Compact(out), nil
}

// notPending tells who has an attempt.
func notPending(a Attempt, asked uint64) error {
	e := &NotPendingError{
		Attempt: a.Fold.Registered.Attempt, Asked: asked, Generation: a.Fold.Generation, State: a.Fold.State, Claimed: a.Fold.Claimed,
	}
	for _, ev := range a.Events {
		if ev.Type == (evidence.AttemptClaimed{}).EventType() {
			_, m, err := Decode(ev)
			if err != nil {
				return err
			}
			e.Actor, e.Index = m.Actor, ev.Index
		}
	}
	return e
}

// currentBasis reads the streams a claim rests on and refuses a binding that isn't current. An
// ad hoc attempt rests on its own stream alone.
func (j *Journal) currentBasis(ctx context.Context, b *evidence.Binding) ([]evidence.Basis, error) {
	if b == nil {
		return nil, nil
	}
	c, err := j.Change(ctx, b.Change)
	if err != nil {
		return nil, err
	}
	now, ok := c.Fold.Binding()
	if !ok || now != *b {
		what, found := "the context", now.Context.String()
		if c.Fold.Version != b.Version {
			what, found = "the version", fmt.Sprint(c.Fold.Version)
		} else if !ok {
			found = "not set"
		}
		return nil, &NotCurrentError{Stream: ChangeStream(b.Change), What: what, Found: found,
			Expected: fmt.Sprintf("the registered one (version %d, context %s)", b.Version, b.Context)}
	}
	policy := c.Fold.Context.Policy
	p, err := j.Policy(ctx, policy)
	if err != nil {
		return nil, err
	}
	if p.Fold.Epoch != c.Fold.Context.Epoch {
		return nil, &NotCurrentError{Stream: PolicyStream(policy), What: "the epoch",
			Expected: fmt.Sprintf("the context's %d", c.Fold.Context.Epoch), Found: fmt.Sprint(p.Fold.Epoch)}
	}
	return sortedBasis(basisOf(ChangeStream(b.Change), c.Head), basisOf(PolicyStream(policy), p.Head)), nil
}

func basisOf(s ledger.StreamID, h ledger.Head) evidence.Basis {
	return evidence.Basis{Stream: string(s), Version: uint64(h.Version), Leaf: evidence.LeafDigest(h.Leaf)}
}

func sortedBasis(bs ...evidence.Basis) []evidence.Basis {
	slices.SortFunc(bs, func(a, b evidence.Basis) int { return strings.Compare(a.Stream, b.Stream) })
	return bs
}

// Basis reads the present ends of streams, sorted by name. It fails with *NotFoundError for a
// stream without events.
func (j *Journal) Basis(ctx context.Context, streams ...ledger.StreamID) ([]evidence.Basis, error) {
	out := make([]evidence.Basis, 0, len(streams))
	for _, s := range streams {
		last, ok, err := j.ledger.Head(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("read the end of %s: %w", s, err)
		}
		if !ok {
			k, id := KindOf(s)
			return nil, &NotFoundError{Kind: k, ID: id}
		}
		out = append(out, basisOf(s, last.Head()))
	}
	return sortedBasis(out...), nil
}

// judge holds a stored claim at an index against its basis.
func (j *Journal) judge(ctx context.Context, id evidence.AttemptID, claim ledger.Index, basis []evidence.Basis) error {
	breaking, err := j.firstBreaking(ctx, basis, claim)
	if err != nil {
		return fmt.Errorf("judge the claim of %s: %w", id, err)
	}
	if breaking == nil {
		return nil
	}
	return &VoidClaimError{Attempt: id, Breaking: basisOf(breaking.Stream, breaking.Head()), Index: breaking.Index, Type: breaking.Type}
}

// firstBreaking returns the first event, by index, that changes an epoch or a context and lies
// between a basis and the judgement that rests on it. It makes the judgement void (req H5).
func (j *Journal) firstBreaking(ctx context.Context, basis []evidence.Basis, judgement ledger.Index) (*ledger.Event, error) {
	var first *ledger.Event
	for _, b := range basis {
		e, err := j.breaking(ctx, b, judgement)
		if err != nil {
			return nil, err
		}
		if e != nil && (first == nil || e.Index < first.Index) {
			first = e
		}
	}
	return first, nil
}

func (j *Journal) breaking(ctx context.Context, b evidence.Basis, before ledger.Index) (*ledger.Event, error) {
	for e, err := range j.ledger.ReadStream(ctx, ledger.StreamID(b.Stream), ledger.Version(b.Version)+1) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", b.Stream, err)
		}
		if e.Index >= before {
			return nil, nil
		}
		if evidence.ChangesBasis(e.Type) {
			return &e, nil
		}
		// A type that this version can't read may change anything.
		if _, _, err := Decode(e); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
