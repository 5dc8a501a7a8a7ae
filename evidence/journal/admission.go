package journal

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// PathDiff is what a revision touches against its parent, as whoever can read the repository
// found it.
type PathDiff struct {
	Parent   string // none: the revision has no parent
	Revision string
	Touched  evidence.PathList // sorted, each once
}

// Judgement is an approval or an integration.
type Judgement struct {
	Decision evidence.Decision
	Event    ledger.Event
	Already  bool // it was stored before
}

// Decide says whether a change's present context would be admitted now, and why. It appends
// nothing. For an integration, an approval must come first.
func (j *Journal) Decide(ctx context.Context, id evidence.ChangeID, integration bool) (evidence.Decision, error) {
	r, err := j.readCase(ctx, id)
	if err != nil {
		return evidence.Decision{}, err
	}
	r.the.Integration = integration
	return evidence.Admit(r.the), nil
}

// Approve decides whether the change's present context is admitted and, if it is, stores the
// approval with the basis it rests on (req H2). A difference is recorded as evidence of
// source-paths/v1 first, where the context asks for it; nil leaves that out (req H4). It fails
// with *NotAdmittedError, which lists every reason; with *NotCurrentError when the difference is
// of another revision than the present one. A stored approval that turns out to have lost a race
// is void: the judgement is then returned together with *VoidJudgementError (req H5).
func (j *Journal) Approve(ctx context.Context, id evidence.ChangeID, diff *PathDiff) (Judgement, error) {
	return j.decide(ctx, id, func(r *caseRead) ([]evidence.Payload, *Judgement, error) {
		if diff != nil {
			e, err := j.checkPaths(ctx, r, *diff)
			if err != nil || e != nil {
				return e, nil, err
			}
		}
		d := evidence.Admit(r.the)
		if !d.Admitted {
			return nil, nil, &NotAdmittedError{Change: id, What: "approved", Decision: d}
		}
		if a := r.approval; a != nil && a.exhibit.Void == nil && slices.Equal(a.payload.Attempts, d.Relied) {
			return nil, &Judgement{Decision: d, Event: a.event, Already: true}, nil
		}
		f := &r.change.Fold
		return []evidence.Payload{evidence.ContextApproved{
			Version: f.Version, Context: f.ContextDigest, Attempts: d.Relied, Basis: r.basis(d.Relied), Grounds: d.Grounds(),
		}}, &Judgement{Decision: d}, nil
	})
}

// Integrate decides again and, if the present context is approved and still admitted, records its
// integration. It moves no ref, and ends the context. Its errors are those of Approve.
func (j *Journal) Integrate(ctx context.Context, id evidence.ChangeID) (Judgement, error) {
	return j.decide(ctx, id, func(r *caseRead) ([]evidence.Payload, *Judgement, error) {
		r.the.Integration = true
		d := evidence.Admit(r.the)
		if !d.Admitted {
			return nil, nil, &NotAdmittedError{Change: id, What: "integrated", Decision: d}
		}
		f := &r.change.Fold
		return []evidence.Payload{evidence.ChangeIntegrated{
			Version: f.Version, Context: f.ContextDigest, Revision: f.Revision, Approval: basisOf(r.approval.event.Stream, r.approval.event.Head()),
			Attempts: d.Relied, Basis: r.basis(d.Relied), Grounds: d.Grounds(),
		}}, &Judgement{Decision: d}, nil
	})
}

// decide reads, lets `of` decide, appends and judges what was appended. Payloads without a
// judgement are evidence: they are appended, and everything is read again. A conflict means that
// somebody else wrote to the change: everything is read again too.
func (j *Journal) decide(ctx context.Context, id evidence.ChangeID, of func(*caseRead) ([]evidence.Payload, *Judgement, error)) (Judgement, error) {
	if err := j.requireGenesis(ctx); err != nil {
		return Judgement{}, err
	}
	for range maxRaces {
		r, err := j.readCase(ctx, id)
		if err != nil {
			return Judgement{}, err
		}
		payloads, judgement, err := of(r)
		if err != nil {
			return Judgement{}, err
		}
		if len(payloads) == 0 {
			return *judgement, nil
		}
		var cause []byte
		if r.the.Integration {
			cause = causeOf(&r.approval.event)
		}
		prepared, err := j.prepare(cause, payloads...)
		if err != nil {
			return Judgement{}, err
		}
		done, err := j.append(ctx, ChangeStream(id), r.head.Version, prepared)
		if isConflict(err) || err == nil && judgement == nil {
			continue
		}
		if err != nil {
			return Judgement{}, err
		}
		judgement.Event = done[len(done)-1]
		return *judgement, j.judgeStored(ctx, id, judgement.Event, payloads[0])
	}
	return Judgement{}, tooManyRaces(ChangeStream(id))
}

func (j *Journal) judgeStored(ctx context.Context, id evidence.ChangeID, stored ledger.Event, p evidence.Payload) error {
	breaking, err := j.firstBreaking(ctx, basisIn(p), stored.Index)
	if err != nil {
		return fmt.Errorf("judge %s of change %s: %w", stored.Type, id, err)
	}
	if breaking == nil {
		return nil
	}
	return &VoidJudgementError{Change: id, Stored: stored, Breaking: basisOf(breaking.Stream, breaking.Head()), Index: breaking.Index, Type: breaking.Type}
}

func basisIn(p evidence.Payload) []evidence.Basis {
	switch p := p.(type) {
	case evidence.ContextApproved:
		return p.Basis
	case evidence.ChangeIntegrated:
		return p.Basis
	}
	return nil
}

// checkPaths makes evidence of source-paths/v1, unless the context doesn't ask for it or the same
// was recorded already.
func (j *Journal) checkPaths(ctx context.Context, r *caseRead, diff PathDiff) ([]evidence.Payload, error) {
	f := &r.change.Fold
	if f.Context == nil || len(f.Context.AllowPaths) == 0 {
		return nil, nil
	}
	if diff.Revision != f.Revision {
		return nil, &NotCurrentError{Stream: ChangeStream(f.Opened.Change), What: "the revision", Expected: diff.Revision, Found: f.Revision}
	}
	if f.Paths != nil && f.Paths.Parent == diff.Parent {
		return nil, nil // commits don't change: the difference is the same
	}
	e, list, err := evidence.CheckPaths(diff.Parent, diff.Revision, f.Context.AllowPaths, diff.Touched)
	if err != nil {
		return nil, err
	}
	var salt evidence.Salt
	if _, err := io.ReadFull(j.random, salt[:]); err != nil {
		return nil, fmt.Errorf("read a random salt: %w", err)
	}
	w := evidence.Withhold(salt, list)
	if err := j.Keep(ctx, w); err != nil {
		return nil, err
	}
	e.Paths = w.Ref
	return []evidence.Payload{e}, nil
}

// caseRead is a case with where it was read.
type caseRead struct {
	the      evidence.Case
	change   evidence.ChangeTrail
	head     ledger.Head // of the change
	policy   evidence.PolicyID
	pHead    ledger.Head
	heads    map[evidence.AttemptID]ledger.Head
	runtimes map[evidence.RuntimeDigest]ledger.Head // of the attempts, where they must be qualified
	approval *approvalRead                          // the last of the present context that stands or, without one, the last
}

type approvalRead struct {
	event   ledger.Event
	payload evidence.ContextApproved
	exhibit evidence.ApprovalExhibit
}

// basis is what a decision that relies on these attempts rests on.
func (r *caseRead) basis(relied []evidence.AttemptRelied) []evidence.Basis {
	bs := []evidence.Basis{basisOf(ChangeStream(r.change.Fold.Opened.Change), r.head), basisOf(PolicyStream(r.policy), r.pHead)}
	for _, a := range relied {
		bs = append(bs, basisOf(AttemptStream(a.Attempt), r.heads[a.Attempt]))
		for _, x := range r.the.Attempts {
			if x.Attempt != a.Attempt || x.Runtime == nil {
				continue
			}
			if head, read := r.runtimes[*x.Runtime]; read {
				bs = append(bs, basisOf(runtimeStream(*x.Runtime), head))
			}
		}
	}
	return slices.Compact(sortedBasis(bs...))
}

// trail is a fold that remembers indexes.
type trail interface {
	Apply(evidence.EventIndex, evidence.Payload) error
}

// follow applies a stream from its first event and returns its end. each, if set, sees every event.
func (j *Journal) follow(ctx context.Context, stream ledger.StreamID, t trail, each func(ledger.Event, evidence.Payload)) (ledger.Head, error) {
	head := ledger.EmptyHead
	for e, err := range j.ledger.ReadStream(ctx, stream, 0) {
		if err != nil {
			return head, fmt.Errorf("read %s: %w", stream, err)
		}
		p, _, err := Decode(e)
		if err != nil {
			return head, err
		}
		if err := t.Apply(evidence.EventIndex(e.Index), p); err != nil {
			return head, badHistory(e, err)
		}
		head = e.Head()
		if each != nil {
			each(e, p)
		}
	}
	return head, nil
}

// readCase reads all that a judgement of the present context rests on.
func (j *Journal) readCase(ctx context.Context, id evidence.ChangeID) (*caseRead, error) {
	if _, err := evidence.ParseChangeID(string(id)); err != nil {
		return nil, err
	}
	r := &caseRead{heads: map[evidence.AttemptID]ledger.Head{}}
	approvals := map[uint64]approvalRead{}
	var err error
	r.head, err = j.follow(ctx, ChangeStream(id), &r.change, func(e ledger.Event, p evidence.Payload) {
		if a, ok := p.(evidence.ContextApproved); ok {
			approvals[uint64(e.Version)] = approvalRead{event: e, payload: a}
		}
	})
	if err != nil {
		return nil, err
	}
	if !r.change.Fold.Exists() {
		return nil, &NotFoundError{Kind: KindChange, ID: string(id)}
	}
	r.the.Change = r.change.Exhibit()
	if c := r.change.Fold.Context; c != nil {
		var p evidence.PolicyTrail
		r.policy = c.Policy
		if r.pHead, err = j.follow(ctx, PolicyStream(c.Policy), &p, nil); err != nil {
			return nil, err
		}
		r.the.Policy = p.Exhibit()
	}
	for _, i := range r.change.Present() {
		if err := j.readExhibit(ctx, r, i); err != nil {
			return nil, err
		}
	}
	if err := j.readRuntimes(ctx, r); err != nil {
		return nil, err
	}
	for _, v := range r.change.Fold.Approvals {
		if err := j.readApproval(ctx, r, approvals[v]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (j *Journal) readExhibit(ctx context.Context, r *caseRead, i int) error {
	var t evidence.AttemptTrail
	o := r.change.Fold.Openings[i]
	head, err := j.follow(ctx, AttemptStream(o.Attempt), &t, nil)
	if err != nil {
		return err
	}
	x := t.Exhibit(o, r.change.Listed[i])
	if c := t.Fold.Claimed; c != nil {
		breaking, err := j.firstBreaking(ctx, c.Basis, ledger.Index(x.ClaimedAt))
		if err != nil {
			return fmt.Errorf("judge the claim of %s: %w", o.Attempt, err)
		}
		if breaking != nil {
			at := evidence.EventIndex(breaking.Index)
			x.Void = &at
		}
	}
	r.heads[o.Attempt] = head
	r.the.Attempts = append(r.the.Attempts, x)
	return nil
}

// readApproval judges an approval by its basis. A later one that stands replaces it.
func (j *Journal) readApproval(ctx context.Context, r *caseRead, a approvalRead) error {
	breaking, err := j.firstBreaking(ctx, a.payload.Basis, a.event.Index)
	if err != nil {
		return fmt.Errorf("judge the approval at index %d: %w", a.event.Index, err)
	}
	a.exhibit.At = evidence.EventIndex(a.event.Index)
	if breaking != nil {
		at := evidence.EventIndex(breaking.Index)
		a.exhibit.Void = &at
	}
	if a.exhibit.Void == nil || r.approval == nil || r.approval.exhibit.Void != nil {
		r.approval, r.the.Approval = &a, &a.exhibit
	}
	return nil
}
