package evidence

import "fmt"

// Policy is one policy, folded from its stream: an epoch that only moves on. Advancing it makes
// every context set under an earlier epoch out of date.
type Policy struct {
	Epoch uint64 // 0: the policy does not exist
}

// Apply folds the next event of the stream. It fails with *IllegalEventError, leaving the policy
// unchanged, when the event can't legally follow.
func (p *Policy) Apply(e Payload) error {
	switch e := e.(type) {
	case StreamSealed:
		return nil
	case EpochAdvanced:
		if e.Epoch != p.Epoch+1 {
			return &IllegalEventError{Type: e.EventType(), Why: fmt.Sprintf("epoch %d does not follow epoch %d", e.Epoch, p.Epoch)}
		}
		p.Epoch = e.Epoch
		return nil
	}
	return &IllegalEventError{Type: e.EventType(), Why: "it does not belong in a policy's stream"}
}

// ChangesBasis reports whether an event of this type takes a judgement's ground away when it
// comes between what the judgement read and the judgement itself: it changes an epoch or a context,
// or ends the context by integration (req H5).
func ChangesBasis(typ string) bool {
	switch typ {
	case EpochAdvanced{}.EventType(), VersionAdded{}.EventType(), ContextSet{}.EventType(), ChangeIntegrated{}.EventType():
		return true
	}
	return false
}
