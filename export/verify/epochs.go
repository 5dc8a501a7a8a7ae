package verify

import (
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
)

// epochs checks that every context was set under an epoch that its policy had reached there (req G2).
// Where the bundle holds no event of the policy behind a context, nothing is known of it, and no judgement
// rests on that context: one that does needs the policy behind itself.
func (v *verification) epochs() error {
	for _, s := range v.payload.Streams {
		for _, e := range v.streams[s.Name] {
			set, ok := e.Payload.(evidence.ContextSet)
			if !ok {
				continue
			}
			events := v.streams[evidence.PolicyPrefix+string(set.Context.Policy)]
			reached, known := epochBefore(events, e)
			if known && set.Context.Epoch > reached {
				return fmt.Errorf("stream %s, version %s: it is of epoch %d of policy %s, which was at epoch %d", e.Stream, e.Version, set.Context.Epoch, set.Context.Policy, reached)
			}
		}
	}
	return nil
}

// epochBefore returns the epoch that a policy's stream had reached before an event; known is false where the
// stream held ends before it.
func epochBefore(events []bundle.Placed, e bundle.Placed) (epoch uint64, known bool) {
	for _, p := range events {
		if p.Index > e.Index {
			return epoch, true
		}
		if a, ok := p.Payload.(evidence.EpochAdvanced); ok {
			epoch = a.Epoch
		}
	}
	return epoch, false
}
