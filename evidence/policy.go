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
// comes between what the judgement read and the judgement itself: it changes an epoch, a context
// or the change it is about (req H5). The type that records an integration is among them before
// this version can read it, so that no version ever judges it away.
func ChangesBasis(typ string) bool {
	switch typ {
	case "EpochAdvanced", "VersionAdded", "ContextSet", "ChangeIntegrated":
		return true
	}
	return false
}
