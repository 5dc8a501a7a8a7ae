package warden

import (
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
)

// custodyDocument is what one custody file holds: canonical CBOR (schemas/custody-file.cddl).
type custodyDocument struct {
	Version uint           `cbor:"1,keyasint"` // 1
	Events  []custodyEvent `cbor:"2,keyasint"` // of one handle, in order
}

// custodyEvent is one custody event as an attempt's stream would hold it, without the words for people:
// those are blobs, and a file has none.
type custodyEvent struct {
	Type string `cbor:"1,keyasint"`
	Data []byte `cbor:"2,keyasint"`
}

// keptCustody is the custody of one object: its events and what they fold to.
type keptCustody struct {
	events []custodyEvent
	fold   evidence.Custodies
}

// custodyHandle is the handle that a custody event is about; false for any other payload.
func custodyHandle(p evidence.Payload) (evidence.HandleKey, bool) {
	switch e := p.(type) {
	case evidence.CustodyTaken:
		return e.Handle, true
	case evidence.CreateRuledOut:
		return e.Handle, true
	case evidence.ContainerCreated:
		return e.Handle, true
	case evidence.RemovalOrdered:
		return e.Handle, true
	case evidence.RemovalObserved:
		return e.Handle, true
	case evidence.CleanupUnconfirmed:
		return e.Handle, true
	case evidence.CustodyAbandoned:
		return e.Handle, true
	}
	return evidence.HandleKey{}, false
}

// wordless leaves out the reference to words for people.
func wordless(p evidence.Payload) evidence.Payload {
	switch e := p.(type) {
	case evidence.CreateRuledOut:
		e.Detail = nil
		return e
	case evidence.ContainerCreated:
		e.Detail = nil
		return e
	case evidence.CleanupUnconfirmed:
		e.Detail = nil
		return e
	}
	return p
}

// with is the custody after one more event. An order given again and an older failure say nothing more,
// and are left out, so that a file that is tried for ever doesn't grow.
func (k keptCustody) with(p evidence.Payload) (keptCustody, error) {
	next := keptCustody{events: slices.Clone(k.events), fold: slices.Clone(k.fold)}
	p = wordless(p)
	typ := p.EventType()
	if err := next.fold.Apply(p); err != nil {
		return k, err
	}
	switch p.(type) {
	case evidence.RemovalOrdered:
		if slices.ContainsFunc(next.events, func(e custodyEvent) bool { return e.Type == typ }) {
			return next, nil
		}
	case evidence.CleanupUnconfirmed:
		next.events = slices.DeleteFunc(next.events, func(e custodyEvent) bool { return e.Type == typ })
	}
	next.events = append(next.events, custodyEvent{Type: typ, Data: evidence.Marshal(p)})
	return next, nil
}

// custody is the one custody of a file.
func (k keptCustody) custody() evidence.Custody { return k.fold[0] }

func (k keptCustody) encode() []byte {
	return evidence.Marshal(custodyDocument{Version: 1, Events: k.events})
}

// decodeCustody reads a file that is named after its handle. Events are folded as a supervisor folds an
// attempt's: later fields and types of newer versions hide nothing (req E10).
func decodeCustody(handle evidence.HandleKey, b []byte) (keptCustody, error) {
	var d custodyDocument
	if err := evidence.Unmarshal(b, &d); err != nil {
		return keptCustody{}, err
	}
	if d.Version != 1 {
		return keptCustody{}, fmt.Errorf("version %d is not 1; a newer baildock wrote it", d.Version)
	}
	k := keptCustody{events: d.Events}
	for i, e := range d.Events {
		if err := k.fold.ApplyEncoded(e.Type, e.Data); err != nil {
			return keptCustody{}, fmt.Errorf("event %d: %w", i, err)
		}
	}
	if len(k.fold) != 1 || k.fold[0].Handle != handle {
		return keptCustody{}, fmt.Errorf("it holds %d custodies, and not one of the handle it is named after", len(k.fold))
	}
	return k, nil
}
