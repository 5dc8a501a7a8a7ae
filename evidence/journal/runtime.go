package journal

import (
	"context"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// RuntimeStream is the stream of one engine, machine and build.
func RuntimeStream(id evidence.RuntimeIdentity) ledger.StreamID { return ledger.StreamID(id.Stream()) }

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
type runtime struct{}

func (runtime) Apply(p evidence.Payload) error {
	switch p.(type) {
	case evidence.RuntimeProbed, evidence.StreamSealed:
		return nil
	}
	return fmt.Errorf("%s does not belong in a runtime's stream", p.EventType())
}

// RecordProbe appends what a probe saw on a runtime to its stream.
func (j *Journal) RecordProbe(ctx context.Context, id evidence.RuntimeIdentity, e evidence.RuntimeProbed) error {
	_, err := update(ctx, j, RuntimeStream(id), func() runtime { return runtime{} }, func(runtime) ([]evidence.Payload, error) {
		return []evidence.Payload{e}, nil
	})
	return err
}
