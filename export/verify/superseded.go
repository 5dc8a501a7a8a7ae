package verify

import (
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
)

// supersededOf returns the bindings that another one of the same change came after, in which an attempt was listed or
// that was judged. Both are of the context that is present where they stand.
func (v *verification) supersededOf(bindings []evidence.Binding) map[evidence.Binding]bool {
	last := map[evidence.ChangeID]evidence.Binding{}
	superseded := map[evidence.Binding]bool{}
	for _, b := range bindings {
		superseded[b] = true
		for _, e := range v.streams[evidence.ChangePrefix+string(b.Change)] {
			if now, ok := contextOf(e); ok && slices.Contains(bindings, now(b)) {
				last[b.Change] = now(b)
			}
		}
	}
	for _, b := range bindings {
		if l, ok := last[b.Change]; !ok || l == b {
			delete(superseded, b)
		}
	}
	return superseded
}

// contextOf returns, of an event that lists an attempt or judges a context, that context as a binding of the
// same change as another.
func contextOf(e bundle.Placed) (of func(evidence.Binding) evidence.Binding, ok bool) {
	as := func(version uint64, context evidence.ContextDigest) func(evidence.Binding) evidence.Binding {
		return func(b evidence.Binding) evidence.Binding {
			b.Version, b.Context = version, context
			return b
		}
	}
	if a, ok := bundle.AdmissionOf(e); ok {
		return as(a.Version, a.Context), true
	}
	if o, ok := e.Payload.(evidence.AttemptOpened); ok {
		var r evidence.AttemptRegistered
		if err := evidence.Unmarshal(o.Registration, &r); err == nil && r.Binding != nil {
			return as(r.Binding.Version, r.Binding.Context), true
		}
	}
	return nil, false
}
