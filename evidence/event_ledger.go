package evidence

import "slices"

// LedgerOpened is the genesis event: version 0 of the stream `ledger`, index 0.
type LedgerOpened struct {
	Ledger     LedgerID `cbor:"1,keyasint" json:"ledger"`
	Origin     string   `cbor:"2,keyasint" json:"origin"`     // checkpoint origin line, 1..MaxOrigin bytes
	Bundle     []byte   `cbor:"3,keyasint" json:"bundle"`     // ECDSA P-256 public key, DER SubjectPublicKeyInfo
	Checkpoint []byte   `cbor:"4,keyasint" json:"checkpoint"` // Ed25519 public key, DER SubjectPublicKeyInfo
}

// KeyRole says what a key signs.
type KeyRole string

const (
	RoleBundle     KeyRole = "bundle"     // ECDSA P-256, signs bundles
	RoleCheckpoint KeyRole = "checkpoint" // Ed25519, signs checkpoints
)

// KeyAdded adds a key, endorsed by a live key of the same role: the signature is over the
// canonical array ["baildock.key-added.v1", ledger ID, role, new key].
type KeyAdded struct {
	Role      KeyRole `cbor:"1,keyasint" json:"role"`
	Key       []byte  `cbor:"2,keyasint" json:"key"`       // DER SubjectPublicKeyInfo
	Endorser  []byte  `cbor:"3,keyasint" json:"endorser"`  // SHA-256 of the endorsing key's SPKI
	Signature []byte  `cbor:"4,keyasint" json:"signature"` // ASN.1 ECDSA, or Ed25519
}

// KeyRetired ends a key's validity from this event on; signed as KeyAdded is, under
// "baildock.key-retired.v1".
type KeyRetired struct {
	Role      KeyRole `cbor:"1,keyasint" json:"role"`
	Key       []byte  `cbor:"2,keyasint" json:"key"`
	Endorser  []byte  `cbor:"3,keyasint" json:"endorser"`
	Signature []byte  `cbor:"4,keyasint" json:"signature"`
}

// EpochAdvanced opens a policy (epoch 1) or moves it on by exactly one.
type EpochAdvanced struct {
	Epoch uint64 `cbor:"1,keyasint" json:"epoch"` // from 1
}

// StreamSealed changes nothing. It follows a judgement in a stream, so that a bundle can prove
// that it left nothing out before it.
type StreamSealed struct{}

// RuntimeProbed is what a probe container saw on a runtime (req C4).
type RuntimeProbed struct {
	Attempt  AttemptID `cbor:"1,keyasint" json:"attempt"` // the ad hoc attempt that ran the probe
	Image    ImageID   `cbor:"2,keyasint" json:"image"`   // baildock's own binary
	Controls []Control `cbor:"3,keyasint" json:"controls"`
	Values   BlobRef   `cbor:"4,keyasint" json:"values"` // list of ControlValue
}

// ProvesSeccomp reports whether the probe saw the seccomp filter in place (req C4).
func (e RuntimeProbed) ProvesSeccomp() bool {
	return slices.ContainsFunc(e.Controls, func(c Control) bool {
		return c.ID == CtlSeccomp && c.Kind == Probed && c.Equal
	})
}

func (LedgerOpened) EventType() string  { return "LedgerOpened" }
func (KeyAdded) EventType() string      { return "KeyAdded" }
func (KeyRetired) EventType() string    { return "KeyRetired" }
func (EpochAdvanced) EventType() string { return "EpochAdvanced" }
func (StreamSealed) EventType() string  { return "StreamSealed" }
func (RuntimeProbed) EventType() string { return "RuntimeProbed" }
