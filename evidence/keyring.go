package evidence

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

type keyMeaning struct{}

// KeyID names a public key: the SHA-256 of its DER SubjectPublicKeyInfo.
type KeyID = Digest[keyMeaning]

// KeyIDOf names the key with this SubjectPublicKeyInfo.
func KeyIDOf(spki []byte) KeyID { return Sum[keyMeaning](spki) }

// Domains of what the endorser of a key signs.
const (
	keyAddedDomain   = "baildock.key-added.v1"
	keyRetiredDomain = "baildock.key-retired.v1"
)

// ParseBundleKey reads the SubjectPublicKeyInfo of an ECDSA P-256 key. It accepts the canonical
// DER only.
func ParseBundleKey(spki []byte) (*ecdsa.PublicKey, error) {
	key, err := parseSPKI(spki)
	if err != nil {
		return nil, fmt.Errorf("bundle key: %w", err)
	}
	k, ok := key.(*ecdsa.PublicKey)
	if !ok || k.Curve != elliptic.P256() {
		return nil, errors.New("bundle key is not an ECDSA P-256 key")
	}
	return k, nil
}

// ParseCheckpointKey reads the SubjectPublicKeyInfo of an Ed25519 key. It accepts the canonical
// DER only.
func ParseCheckpointKey(spki []byte) (ed25519.PublicKey, error) {
	key, err := parseSPKI(spki)
	if err != nil {
		return nil, fmt.Errorf("checkpoint key: %w", err)
	}
	k, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("checkpoint key is not an Ed25519 key")
	}
	return k, nil
}

func parseSPKI(spki []byte) (any, error) {
	if len(spki) > MaxKey {
		return nil, fmt.Errorf("public key of %d bytes exceeds %d", len(spki), MaxKey)
	}
	key, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		return nil, fmt.Errorf("not a DER public key: %w", err)
	}
	again, err := x509.MarshalPKIXPublicKey(key)
	if err != nil || !bytes.Equal(again, spki) {
		return nil, errors.New("not the canonical DER of a public key")
	}
	return key, nil
}

func parseRoleKey(role KeyRole, spki []byte) (err error) {
	switch role {
	case RoleBundle:
		_, err = ParseBundleKey(spki)
	case RoleCheckpoint:
		_, err = ParseCheckpointKey(spki)
	default:
		err = fmt.Errorf("key role %q is neither bundle nor checkpoint", role)
	}
	return err
}

// Message is what the endorser signs: with ECDSA its SHA-256, ASN.1; with Ed25519 itself.
func (e KeyAdded) Message(id LedgerID) []byte {
	return Marshal([]any{keyAddedDomain, id, string(e.Role), e.Key})
}

// Message is what the endorser signs, as for KeyAdded.
func (e KeyRetired) Message(id LedgerID) []byte {
	return Marshal([]any{keyRetiredDomain, id, string(e.Role), e.Key})
}

// Keyring is the fold of the stream `ledger`: which keys are live. The zero value is the ledger
// before its first event.
type Keyring struct {
	Opened *LedgerOpened

	live    map[KeyRole][][]byte
	retired map[KeyID]bool
}

// Apply folds the next event of the stream `ledger`. It fails with *IllegalEventError, leaving the
// keyring unchanged, when the event can't legally follow.
func (k *Keyring) Apply(p Payload) error {
	if err := k.apply(p); err != nil {
		return &IllegalEventError{Type: p.EventType(), Why: err.Error()}
	}
	return nil
}

func (k *Keyring) apply(p Payload) error {
	if _, seal := p.(StreamSealed); seal {
		return nil
	}
	if e, ok := p.(LedgerOpened); ok {
		return k.open(e)
	}
	if k.Opened == nil {
		return errors.New("a ledger opens with LedgerOpened")
	}
	switch e := p.(type) {
	case KeyAdded:
		id := KeyIDOf(e.Key)
		switch {
		case k.retired[id]:
			return fmt.Errorf("key %s was retired", id)
		case k.isLive(e.Role, e.Key):
			return fmt.Errorf("key %s is live already", id)
		}
		if err := parseRoleKey(e.Role, e.Key); err != nil {
			return err
		}
		if err := k.endorsed(e.Role, e.Endorser, e.Message(k.Opened.Ledger), e.Signature); err != nil {
			return err
		}
		k.live[e.Role] = append(k.live[e.Role], e.Key)
		return nil
	case KeyRetired:
		id := KeyIDOf(e.Key)
		switch {
		case !k.isLive(e.Role, e.Key):
			return fmt.Errorf("key %s is not live", id)
		case len(k.live[e.Role]) == 1:
			return fmt.Errorf("key %s is the last %s key", id, e.Role)
		}
		if err := k.endorsed(e.Role, e.Endorser, e.Message(k.Opened.Ledger), e.Signature); err != nil {
			return err
		}
		k.live[e.Role] = slices.DeleteFunc(k.live[e.Role], func(b []byte) bool { return bytes.Equal(b, e.Key) })
		k.retired[id] = true
		return nil
	}
	return errors.New("it does not belong in the stream ledger")
}

func (k *Keyring) open(e LedgerOpened) error {
	if k.Opened != nil {
		return errors.New("the ledger is open already")
	}
	if err := e.Check(); err != nil {
		return err
	}
	k.Opened = &e
	k.live = map[KeyRole][][]byte{RoleBundle: {e.Bundle}, RoleCheckpoint: {e.Checkpoint}}
	k.retired = map[KeyID]bool{}
	return nil
}

// Check refuses a genesis whose parts have no legal shape. The origin's grammar is the ledger's.
func (e LedgerOpened) Check() error {
	if e.Ledger == (LedgerID{}) {
		return errors.New("the ledger has no ID")
	}
	if e.Origin == "" || len(e.Origin) > MaxOrigin {
		return fmt.Errorf("origin has %d bytes; 1 to %d are allowed", len(e.Origin), MaxOrigin)
	}
	if err := parseRoleKey(RoleBundle, e.Bundle); err != nil {
		return err
	}
	return parseRoleKey(RoleCheckpoint, e.Checkpoint)
}

func (k *Keyring) isLive(role KeyRole, spki []byte) bool {
	return slices.ContainsFunc(k.live[role], func(b []byte) bool { return bytes.Equal(b, spki) })
}

// endorsed checks that a live key of the role signed msg.
func (k *Keyring) endorsed(role KeyRole, endorser, msg, sig []byte) error {
	spki, ok := k.Find(role, endorser)
	if !ok {
		return fmt.Errorf("its endorser is not a live %s key", role)
	}
	if role == RoleBundle {
		key, err := ParseBundleKey(spki)
		if err != nil {
			return err
		}
		if digest := sha256.Sum256(msg); !ecdsa.VerifyASN1(key, digest[:], sig) {
			return errors.New("its endorser's signature doesn't hold")
		}
		return nil
	}
	key, err := ParseCheckpointKey(spki)
	if err != nil {
		return err
	}
	if !ed25519.Verify(key, msg, sig) {
		return errors.New("its endorser's signature doesn't hold")
	}
	return nil
}

// Find returns the live key of the role that has this key ID.
func (k *Keyring) Find(role KeyRole, id []byte) (spki []byte, ok bool) {
	for _, b := range k.live[role] {
		if kid := KeyIDOf(b); bytes.Equal(kid[:], id) {
			return b, true
		}
	}
	return nil, false
}

// Live returns the live keys of a role, oldest first.
func (k *Keyring) Live(role KeyRole) [][]byte { return slices.Clone(k.live[role]) }
