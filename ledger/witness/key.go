package witness

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"github.com/baildock/baildock/ledger"
)

// algCosignatureV1 is the signature type of a timestamped Ed25519 cosignature (C2SP signed-note).
const algCosignatureV1 = 4

// Key is a cosigner's public key under its name.
type Key struct {
	name   string
	public ed25519.PublicKey
}

// NewKey names a public key. A name follows the rules of an origin.
func NewKey(name string, public ed25519.PublicKey) (Key, error) {
	if err := ledger.CheckOrigin(name); err != nil {
		return Key{}, fmt.Errorf("cosigner's name: %w", err)
	}
	if len(public) != ed25519.PublicKeySize {
		return Key{}, fmt.Errorf("cosigner's key has %d bytes; an Ed25519 key has %d", len(public), ed25519.PublicKeySize)
	}
	return Key{name: name, public: bytes.Clone(public)}, nil
}

// ParseKey reads a vkey of type 0x04 (C2SP signed-note). It accepts exactly the text String writes.
func ParseKey(vkey string) (Key, error) {
	parts := strings.SplitN(vkey, "+", 3)
	if len(parts) != 3 {
		return Key{}, errors.New("a cosigner's key is written <name>+<key ID>+<base64>")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(parts[2])
	if err != nil || len(raw) != 1+ed25519.PublicKeySize || raw[0] != algCosignatureV1 {
		return Key{}, fmt.Errorf("key of %q is not an Ed25519 cosigner's (type 0x04)", parts[0])
	}
	k, err := NewKey(parts[0], raw[1:])
	if err != nil {
		return Key{}, err
	}
	if k.String() != vkey {
		return Key{}, fmt.Errorf("key of %q is not in its exact form, or its key ID is another's", parts[0])
	}
	return k, nil
}

// Name is the cosigner's.
func (k Key) Name() string { return k.name }

// String returns the vkey.
func (k Key) String() string {
	return fmt.Sprintf("%s+%08x+%s", k.name, k.hash(), base64.StdEncoding.EncodeToString(k.typed()))
}

func (k Key) typed() []byte { return append([]byte{algCosignatureV1}, k.public...) }

// hash is the key ID: the first four bytes of SHA-256(name ‖ 0x0A ‖ type ‖ key) (C2SP signed-note).
func (k Key) hash() uint32 {
	sum := sha256.Sum256(append([]byte(k.name+"\n"), k.typed()...))
	return binary.BigEndian.Uint32(sum[:4])
}

// verifier checks cosignatures of the key.
func (k Key) verifier() (note.Verifier, error) {
	v, err := formats.NewVerifierForCosignatureV1(k.String())
	if err != nil {
		return nil, fmt.Errorf("cosigner %q: %w", k.name, err)
	}
	return v, nil
}

// signer makes cosignatures, with a time of its own choosing; the formats library's signer asks the
// clock itself.
type signer struct {
	key     Key
	private ed25519.PrivateKey
	time    uint64 // Unix seconds
}

func (s signer) Name() string    { return s.key.name }
func (s signer) KeyHash() uint32 { return s.key.hash() }

// Sign implements note.Signer: 8-byte time ‖ signature over "cosignature/v1\ntime <t>\n" ‖ the
// checkpoint's text (C2SP tlog-cosignature).
func (s signer) Sign(text []byte) ([]byte, error) {
	message := fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", s.time, text)
	return append(binary.BigEndian.AppendUint64(nil, s.time), ed25519.Sign(s.private, message)...), nil
}
