package evidence

import (
	"fmt"
	"sort"
)

// Media is the media type of every product event.
const Media = "application/cbor"

// Payload is the data of one event type: canonical CBOR, a map with integer keys that are never
// reused; new fields are optional.
type Payload interface {
	// EventType is the event's type, PascalCase.
	EventType() string
}

// Meta goes beside every product event. The nonce makes two racing writers' events differ even
// where all else is equal.
type Meta struct {
	Schema uint   `cbor:"1,keyasint" json:"schema"`                    // version of the payload's shape
	Actor  string `cbor:"2,keyasint" json:"actor"`                     // who wrote it: runner, operator, …
	Cause  []byte `cbor:"3,keyasint,omitempty" json:"cause,omitempty"` // ID of the event that led to it
	Nonce  Nonce  `cbor:"4,keyasint" json:"nonce"`
}

// SchemaVersion is the version of every payload shape known here.
const SchemaVersion = 1

// UnknownEventError says that an event's type or schema version is newer than this program.
type UnknownEventError struct {
	Type   string
	Schema uint
}

func (e *UnknownEventError) Error() string {
	return fmt.Sprintf("event type %s schema %d is not known to this version", e.Type, e.Schema)
}

// Encode returns the canonical meta and data of a payload.
func Encode(p Payload, m Meta) (meta, data []byte) { return Marshal(m), Marshal(p) }

// Decode reads an event's payload strictly. A type or schema it doesn't know is an
// *UnknownEventError (req R7).
func Decode(typ string, meta, data []byte) (Payload, Meta, error) {
	var m Meta
	if err := Unmarshal(meta, &m); err != nil {
		return nil, Meta{}, fmt.Errorf("%s meta: %w", typ, err)
	}
	shape, ok := payloads[typ]
	if !ok || m.Schema != SchemaVersion {
		return nil, m, &UnknownEventError{Type: typ, Schema: m.Schema}
	}
	p, err := shape.decode(data)
	if err != nil {
		return nil, m, fmt.Errorf("%s data: %w", typ, err)
	}
	return p, m, nil
}

// EventTypes lists every known type, sorted.
func EventTypes() []string {
	names := make([]string, 0, len(payloads))
	for n := range payloads {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// ZeroPayloads returns the zero value of every known type, sorted by type: for those who must handle
// each of them.
func ZeroPayloads() []Payload {
	out := make([]Payload, 0, len(payloads))
	for _, name := range EventTypes() {
		out = append(out, payloads[name].zero)
	}
	return out
}

func decodeAs[P Payload](data []byte) (Payload, error) {
	var p P
	if err := Unmarshal(data, &p); err != nil {
		return nil, err
	}
	return p, nil
}

// shape is one event type: its zero value and its decoder.
type shape struct {
	zero   Payload
	decode func([]byte) (Payload, error)
}

// payloads holds every event type of the product: one line each.
var payloads = func() map[string]shape {
	m := map[string]shape{}
	known[LedgerOpened](m)
	known[KeyAdded](m)
	known[KeyRetired](m)
	known[EpochAdvanced](m)
	known[ChangeOpened](m)
	known[VersionAdded](m)
	known[ContextSet](m)
	known[AttemptOpened](m)
	known[PathsChecked](m)
	known[ContextApproved](m)
	known[ChangeIntegrated](m)
	known[AttemptRegistered](m)
	known[AttemptClaimed](m)
	known[ClaimVoided](m)
	known[PreflightObserved](m)
	known[SourceMaterialized](m)
	known[SourceRefused](m)
	known[RuntimeObserved](m)
	known[CustodyTaken](m)
	known[CreateRuledOut](m)
	known[ContainerCreated](m)
	known[IsolationObserved](m)
	known[StartOrdered](m)
	known[ContainerStarted](m)
	known[StartFailed](m)
	known[KernelObserved](m)
	known[StopOrdered](m)
	known[ContainerExited](m)
	known[OutputCaptured](m)
	known[RemovalOrdered](m)
	known[RemovalObserved](m)
	known[CleanupUnconfirmed](m)
	known[WorkspaceMutated](m)
	known[PolicyChecked](m)
	known[SnapshotRemoved](m)
	known[SnapshotLeft](m)
	known[AttemptFenced](m)
	known[CustodyAbandoned](m)
	known[AttemptFinished](m)
	known[CandidateDerived](m)
	known[RuntimeProbed](m)
	known[CanaryObserved](m)
	known[StreamSealed](m)
	return m
}()

func known[P Payload](m map[string]shape) {
	var p P
	m[p.EventType()] = shape{zero: p, decode: decodeAs[P]}
}
