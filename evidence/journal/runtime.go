package journal

import (
	"context"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// RuntimeStream is the stream of one engine, machine and build.
func RuntimeStream(id evidence.RuntimeIdentity) ledger.StreamID { return ledger.StreamID(id.Stream()) }

func runtimeStream(d evidence.RuntimeDigest) ledger.StreamID {
	return ledger.StreamID(evidence.RuntimePrefix + d.Hex())
}

// Proof finds the last RuntimeProbed of a runtime that saw the seccomp filter in place (req C4).
// It is nil when the runtime was never probed, or only in vain.
func (j *Journal) Proof(ctx context.Context, id evidence.RuntimeIdentity) (*evidence.Basis, error) {
	stream := RuntimeStream(id)
	var proof *evidence.Basis
	for e, err := range j.ledger.ReadStream(ctx, stream, 0) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		p, _, err := Decode(e)
		if IsUnknown(err) {
			continue // an observation of a newer version proves nothing here
		}
		if err != nil {
			return nil, err
		}
		if probed, ok := p.(evidence.RuntimeProbed); ok && probed.ProvesSeccomp() {
			b := basisOf(stream, e.Head())
			proof = &b
		}
	}
	return proof, nil
}

// runtime is the state of a runtime's stream: observations, which never exclude each other.
type runtime struct{ trail evidence.RuntimeTrail }

func (r *runtime) Apply(p evidence.Payload) error { return r.trail.Follow(0, 0, p) }

// RecordProbe appends what a probe saw on a runtime to its stream.
func (j *Journal) RecordProbe(ctx context.Context, id evidence.RuntimeIdentity, e evidence.RuntimeProbed) error {
	return j.observe(ctx, id.Digest(), e)
}

// RecordCanary appends what a canary came to on a runtime to its stream. It fails with *NotFoundError
// when the canary's attempt has no stream, and refuses one that isn't finished with exactly the record
// named: nobody could bear the observation out.
func (j *Journal) RecordCanary(ctx context.Context, e evidence.CanaryObserved) error {
	a, err := j.Attempt(ctx, e.Attempt)
	if err != nil {
		return err
	}
	if f := a.Fold.Finished; f == nil || f.Record != e.Record {
		return fmt.Errorf("canary %s rests on attempt %s with record %s, which is not how it finished (run: baildock check show %s)",
			e.Canary, e.Attempt, e.Record, e.Attempt)
	}
	return j.observe(ctx, e.Runtime, e)
}

func (j *Journal) observe(ctx context.Context, id evidence.RuntimeDigest, e evidence.Payload) error {
	fresh := func() *runtime { return &runtime{evidence.RuntimeTrail{Runtime: id}} }
	_, err := update(ctx, j, runtimeStream(id), fresh, func(r *runtime) ([]evidence.Payload, error) {
		if err := r.Apply(e); err != nil {
			return nil, err
		}
		return []evidence.Payload{e}, nil
	})
	return err
}

// readRuntimes reads what the runtimes of a case's attempts were seen to hold, where its context asks.
func (j *Journal) readRuntimes(ctx context.Context, r *caseRead) error {
	c := r.the.Change.Context
	if c == nil || !c.RequireQualified || c.Corpus == nil {
		return nil
	}
	r.the.Canaries, r.the.Runs = map[evidence.RuntimeDigest][]evidence.CanarySeen{}, map[evidence.AttemptID]*evidence.CanaryRun{}
	r.runtimes = map[evidence.RuntimeDigest]ledger.Head{}
	for _, x := range r.the.Attempts {
		if x.Runtime == nil || x.Registered == nil {
			continue
		}
		if _, done := r.runtimes[*x.Runtime]; !done {
			t := &evidence.RuntimeTrail{Runtime: *x.Runtime}
			head, err := j.followRuntime(ctx, t)
			if err != nil {
				return err
			}
			r.runtimes[*x.Runtime], r.the.Canaries[*x.Runtime] = head, t.Canaries
		}
		b := evidence.Bound{Runtime: *x.Runtime, Table: x.Registered.Table, Corpus: *c.Corpus}
		for _, s := range b.Cite(r.the.Canaries[*x.Runtime]) {
			id := s.Observed.Attempt
			if _, done := r.the.Runs[id]; done {
				continue
			}
			var t evidence.AttemptTrail
			if _, err := j.follow(ctx, AttemptStream(id), &t, nil); err != nil {
				return err
			}
			r.the.Runs[id] = t.CanaryRun()
		}
	}
	return nil
}

func (j *Journal) followRuntime(ctx context.Context, t *evidence.RuntimeTrail) (ledger.Head, error) {
	stream, head := runtimeStream(t.Runtime), ledger.EmptyHead
	for e, err := range j.ledger.ReadStream(ctx, stream, 0) {
		if err != nil {
			return head, fmt.Errorf("read %s: %w", stream, err)
		}
		p, _, err := Decode(e)
		if err != nil {
			return head, err
		}
		if err := t.Follow(evidence.EventIndex(e.Index), uint64(e.Version), p); err != nil {
			return head, badHistory(e, err)
		}
		head = e.Head()
	}
	return head, nil
}
