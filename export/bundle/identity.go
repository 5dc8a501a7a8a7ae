package bundle

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Identity is what a reviewer trusts about a ledger: its genesis.
type Identity struct {
	ID         evidence.LedgerID `cbor:"1,keyasint" json:"id"`
	Origin     string            `cbor:"2,keyasint" json:"origin"`
	Bundle     []byte            `cbor:"3,keyasint" json:"bundle"`     // ECDSA P-256, DER SubjectPublicKeyInfo
	Checkpoint []byte            `cbor:"4,keyasint" json:"checkpoint"` // Ed25519, DER SubjectPublicKeyInfo
}

// identityHeader is the first line of ledger.pub.
const identityHeader = "baildock-ledger/v1"

// publicKeyPEM is the PEM type of a SubjectPublicKeyInfo (RFC 7468 §13).
const publicKeyPEM = "PUBLIC KEY"

// IdentityOf is the identity a genesis event fixes.
func IdentityOf(e evidence.LedgerOpened) Identity {
	return Identity{ID: e.Ledger, Origin: e.Origin, Bundle: e.Bundle, Checkpoint: e.Checkpoint}
}

// Check refuses an identity whose parts have no legal shape.
func (i Identity) Check() error {
	if err := ledger.CheckOrigin(i.Origin); err != nil {
		return fmt.Errorf("ledger identity: %w", err)
	}
	opened := evidence.LedgerOpened{Ledger: i.ID, Origin: i.Origin, Bundle: i.Bundle, Checkpoint: i.Checkpoint}
	if err := opened.Check(); err != nil {
		return fmt.Errorf("ledger identity: %w", err)
	}
	return nil
}

// Equal reports whether both are the same ledger under the same genesis keys.
func (i Identity) Equal(o Identity) bool {
	return i.ID == o.ID && i.Origin == o.Origin && bytes.Equal(i.Bundle, o.Bundle) && bytes.Equal(i.Checkpoint, o.Checkpoint)
}

// FormatIdentity returns the text of ledger.pub.
func FormatIdentity(i Identity) (string, error) {
	if err := i.Check(); err != nil {
		return "", err
	}
	return i.format(), nil
}

func (i Identity) format() string {
	var b strings.Builder
	b.WriteString(identityHeader + "\nid: " + i.ID.String() + "\norigin: " + i.Origin + "\n")
	b.Write(FormatKey(i.Bundle))
	b.Write(FormatKey(i.Checkpoint))
	return b.String()
}

// FormatKey returns a SubjectPublicKeyInfo as a PEM block.
func FormatKey(spki []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: publicKeyPEM, Bytes: spki})
}

// IsIdentity reports whether a text claims to be a ledger.pub, rather than a bare key.
func IsIdentity(text []byte) bool { return bytes.HasPrefix(text, []byte(identityHeader)) }

// ParseIdentity is the inverse of FormatIdentity. It accepts exactly the text FormatIdentity
// writes.
func ParseIdentity(text []byte) (Identity, error) {
	if len(text) > MaxIdentity {
		return Identity{}, fmt.Errorf("ledger identity has %d bytes; at most %d are allowed", len(text), MaxIdentity)
	}
	lines := strings.SplitN(string(text), "\n", 4)
	if len(lines) != 4 || lines[0] != identityHeader {
		return Identity{}, fmt.Errorf("ledger identity doesn't start with the line %q; write it with: baildock key public", identityHeader)
	}
	id, ok1 := strings.CutPrefix(lines[1], "id: ")
	origin, ok2 := strings.CutPrefix(lines[2], "origin: ")
	if !ok1 || !ok2 {
		return Identity{}, errors.New("ledger identity: its second and third lines must be `id: …` and `origin: …`")
	}
	i := Identity{Origin: origin}
	if err := i.ID.UnmarshalText([]byte(id)); err != nil {
		return Identity{}, fmt.Errorf("ledger identity: %w", err)
	}
	first, rest := pem.Decode([]byte(lines[3]))
	if first == nil {
		return Identity{}, errors.New("ledger identity: the bundle key's PEM block is missing")
	}
	second, _ := pem.Decode(rest)
	if second == nil {
		return Identity{}, errors.New("ledger identity: the checkpoint key's PEM block is missing")
	}
	i.Bundle, i.Checkpoint = first.Bytes, second.Bytes
	if err := i.Check(); err != nil {
		return Identity{}, err
	}
	if i.format() != string(text) {
		return Identity{}, errors.New("ledger identity is not in its exact form; write it with: baildock key public")
	}
	return i, nil
}

// ParseKey reads a bare PEM block of a bundle key and returns its SubjectPublicKeyInfo. It accepts
// exactly the text FormatKey writes.
func ParseKey(text []byte) (spki []byte, err error) {
	if len(text) > MaxIdentity {
		return nil, fmt.Errorf("key has %d bytes; at most %d are allowed", len(text), MaxIdentity)
	}
	block, rest := pem.Decode(text)
	if block == nil || len(rest) != 0 || !bytes.Equal(FormatKey(block.Bytes), text) {
		return nil, errors.New("key is neither a ledger.pub nor exactly one PEM block of a public key")
	}
	if _, err := evidence.ParseBundleKey(block.Bytes); err != nil {
		return nil, err
	}
	return block.Bytes, nil
}
