package ledger

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"golang.org/x/mod/sumdb/note"
)

// algEd25519 is the signature type of C2SP signed-note for Ed25519.
const algEd25519 = 1

// NewEd25519Signer makes a note signer named `origin` of a private key. The note package itself
// only makes signers from its own text form of a key.
func NewEd25519Signer(origin string, key ed25519.PrivateKey) (note.Signer, error) {
	if err := CheckOrigin(origin); err != nil {
		return nil, err
	}
	if len(key) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("ed25519 private key has %d bytes, expected %d", len(key), ed25519.PrivateKeySize)
	}
	return &ed25519Signer{name: origin, hash: noteKeyHash(origin, key.Public().(ed25519.PublicKey)), key: key}, nil
}

// NewEd25519Verifier makes the verifier of what NewEd25519Signer's signer signs.
func NewEd25519Verifier(origin string, key ed25519.PublicKey) (note.Verifier, error) {
	if err := CheckOrigin(origin); err != nil {
		return nil, err
	}
	if len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("ed25519 public key has %d bytes, expected %d", len(key), ed25519.PublicKeySize)
	}
	return &ed25519Verifier{name: origin, hash: noteKeyHash(origin, key), key: key}, nil
}

// Ed25519Verifiers makes the verifiers of one origin's keys, as OpenCheckpoint wants them.
func Ed25519Verifiers(origin string, keys ...ed25519.PublicKey) (note.Verifiers, error) {
	list := make([]note.Verifier, len(keys))
	for i, k := range keys {
		v, err := NewEd25519Verifier(origin, k)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return note.VerifierList(list...), nil
}

// noteKeyHash is the key ID of C2SP signed-note: the first four bytes, big-endian, of
// SHA-256(name ‖ 0x0A ‖ signature type ‖ public key).
func noteKeyHash(name string, key ed25519.PublicKey) uint32 {
	h := sha256.New()
	h.Write([]byte(name))
	h.Write([]byte{'\n', algEd25519})
	h.Write(key)
	return binary.BigEndian.Uint32(h.Sum(nil))
}

type ed25519Signer struct {
	name string
	hash uint32
	key  ed25519.PrivateKey
}

func (s *ed25519Signer) Name() string                    { return s.name }
func (s *ed25519Signer) KeyHash() uint32                 { return s.hash }
func (s *ed25519Signer) Sign(msg []byte) ([]byte, error) { return ed25519.Sign(s.key, msg), nil }

type ed25519Verifier struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

func (v *ed25519Verifier) Name() string                { return v.name }
func (v *ed25519Verifier) KeyHash() uint32             { return v.hash }
func (v *ed25519Verifier) Verify(msg, sig []byte) bool { return ed25519.Verify(v.key, msg, sig) }
