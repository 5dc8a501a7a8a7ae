package export

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// PassFunc returns the password of an encrypted key file.
type PassFunc = cryptoutils.PassFunc

// ErrPassword means that a key file is encrypted and nobody gave its password.
var ErrPassword = errors.New("the key is encrypted; give its password")

// NoPassword refuses encrypted keys.
func NoPassword(bool) ([]byte, error) { return nil, ErrPassword }

// BundleKey signs bundles: ECDSA P-256.
type BundleKey struct {
	signer crypto.Signer
	spki   []byte
}

// CheckpointKey signs checkpoints: Ed25519.
type CheckpointKey struct {
	key  ed25519.PrivateKey
	spki []byte
}

// SPKI is the public key's DER SubjectPublicKeyInfo.
func (k BundleKey) SPKI() []byte { return k.spki }

// ID is the SHA-256 of SPKI.
func (k BundleKey) ID() evidence.KeyID { return evidence.KeyIDOf(k.spki) }

// SPKI is the public key's DER SubjectPublicKeyInfo.
func (k CheckpointKey) SPKI() []byte { return k.spki }

// ID is the SHA-256 of SPKI.
func (k CheckpointKey) ID() evidence.KeyID { return evidence.KeyIDOf(k.spki) }

// Private is the key itself, for those who cosign with it.
func (k CheckpointKey) Private() ed25519.PrivateKey { return k.key }

// Endorse signs for a change of the ledger's bundle keys: ASN.1 ECDSA over the message's SHA-256.
func (k BundleKey) Endorse(message []byte) ([]byte, error) {
	digest := sha256.Sum256(message)
	return k.signer.Sign(nil, digest[:], crypto.SHA256)
}

// Endorse signs for a change of the ledger's checkpoint keys: Ed25519 over the message.
func (k CheckpointKey) Endorse(message []byte) ([]byte, error) {
	return ed25519.Sign(k.key, message), nil
}

// Signer signs the checkpoints of one origin.
func (k CheckpointKey) Signer(origin string) (ledger.CheckpointSigner, error) {
	s, err := ledger.NewEd25519Signer(origin, k.key)
	if err != nil {
		return ledger.CheckpointSigner{}, err
	}
	return ledger.CheckpointSigner{Origin: origin, Signer: s}, nil
}

// NewBundleKey takes a P-256 key. A *ecdsa.PrivateKey signs deterministically (RFC 6979); other
// signers decide for themselves.
func NewBundleKey(signer crypto.Signer) (BundleKey, error) {
	pub, ok := signer.Public().(*ecdsa.PublicKey)
	if !ok || pub.Curve != elliptic.P256() {
		return BundleKey{}, fmt.Errorf("a bundle key is an ECDSA P-256 key, not %T", signer.Public())
	}
	spki, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return BundleKey{}, fmt.Errorf("bundle key: %w", err)
	}
	return BundleKey{signer: deterministic{signer}, spki: spki}, nil
}

// NewCheckpointKey takes an Ed25519 key.
func NewCheckpointKey(key ed25519.PrivateKey) (CheckpointKey, error) {
	if len(key) != ed25519.PrivateKeySize {
		return CheckpointKey{}, fmt.Errorf("a checkpoint key has %d bytes, not %d", ed25519.PrivateKeySize, len(key))
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return CheckpointKey{}, fmt.Errorf("checkpoint key: %w", err)
	}
	return CheckpointKey{key: key, spki: spki}, nil
}

// deterministic passes no random source and names the hash. It also hides the key's type, since
// COSE libraries sign with their own randomness when they recognise one.
type deterministic struct{ signer crypto.Signer }

func (d deterministic) Public() crypto.PublicKey { return d.signer.Public() }

func (d deterministic) Sign(_ io.Reader, digest []byte, _ crypto.SignerOpts) ([]byte, error) {
	return d.signer.Sign(nil, digest, crypto.SHA256)
}

// GenerateBundleKey makes a new ECDSA P-256 key, as unencrypted PKCS#8 PEM.
func GenerateBundleKey(random io.Reader) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, fmt.Errorf("generate bundle key: %w", err)
	}
	return cryptoutils.MarshalPrivateKeyToPEM(key)
}

// GenerateCheckpointKey makes a new Ed25519 key, as unencrypted PKCS#8 PEM.
func GenerateCheckpointKey(random io.Reader) ([]byte, error) {
	_, key, err := ed25519.GenerateKey(random)
	if err != nil {
		return nil, fmt.Errorf("generate checkpoint key: %w", err)
	}
	return cryptoutils.MarshalPrivateKeyToPEM(key)
}

// ParseBundleKey reads a private P-256 key from PEM: PKCS#8, SEC 1, encrypted PKCS#8, or the
// encrypted form of sigstore and cosign.
func ParseBundleKey(text []byte, pass PassFunc) (BundleKey, error) {
	key, err := parsePrivate(text, pass)
	if err != nil {
		return BundleKey{}, fmt.Errorf("bundle key: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return BundleKey{}, fmt.Errorf("bundle key: %T can't sign", key)
	}
	return NewBundleKey(signer)
}

// ParseCheckpointKey reads a private Ed25519 key from PEM: PKCS#8, plain or encrypted.
func ParseCheckpointKey(text []byte, pass PassFunc) (CheckpointKey, error) {
	key, err := parsePrivate(text, pass)
	if err != nil {
		return CheckpointKey{}, fmt.Errorf("checkpoint key: %w", err)
	}
	ed, ok := key.(ed25519.PrivateKey)
	if !ok {
		return CheckpointKey{}, fmt.Errorf("a checkpoint key is an Ed25519 key, not %T", key)
	}
	return NewCheckpointKey(ed)
}

// parsePrivate always hands on a password function: without one, an encrypted key would be read
// as if it were plain.
func parsePrivate(text []byte, pass PassFunc) (crypto.PrivateKey, error) {
	if pass == nil {
		pass = NoPassword
	}
	return cryptoutils.UnmarshalPEMToPrivateKey(text, pass)
}

// EncryptKey returns a private key's PEM encrypted with a password, in the form that sigstore and
// cosign write and read. The key may be in any form that ParseBundleKey reads.
func EncryptKey(text []byte, old, new PassFunc) ([]byte, error) {
	key, err := parsePrivate(text, old)
	if err != nil {
		return nil, fmt.Errorf("encrypt key: %w", err)
	}
	sealed, err := cryptoutils.MarshalPrivateKeyToEncryptedDER(key, new)
	if err != nil {
		return nil, fmt.Errorf("encrypt key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: string(cryptoutils.EncryptedSigstorePrivateKeyPEMType), Bytes: sealed}), nil
}

// PlainKey returns a private key as unencrypted PKCS#8 PEM. The key may be in any form that
// ParseBundleKey reads.
func PlainKey(text []byte, pass PassFunc) ([]byte, error) {
	key, err := parsePrivate(text, pass)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return cryptoutils.MarshalPrivateKeyToPEM(key)
}

// LoadBundleKey reads a private P-256 key from a file.
func LoadBundleKey(path string, pass PassFunc) (BundleKey, error) {
	b, err := ReadKeyFile(path)
	if err != nil {
		return BundleKey{}, err
	}
	return ParseBundleKey(b, pass)
}

// LoadCheckpointKey reads a private Ed25519 key from a file.
func LoadCheckpointKey(path string, pass PassFunc) (CheckpointKey, error) {
	b, err := ReadKeyFile(path)
	if err != nil {
		return CheckpointKey{}, err
	}
	return ParseCheckpointKey(b, pass)
}

// ReadKeyFile reads a private key's file, of at most MaxKeyFile bytes.
func ReadKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxKeyFile+1))
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if len(b) > MaxKeyFile {
		return nil, fmt.Errorf("read key: %s has more than %d bytes; it is no key", path, MaxKeyFile)
	}
	return b, nil
}

// WriteKey stores a key's PEM in a new file that only its owner can read, durably. It never
// replaces a file.
func WriteKey(path string, text []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = fmt.Errorf("write key: %w", errors.Join(err, os.Remove(path)))
		}
	}()
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
