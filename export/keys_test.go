package export_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/exporttest"
)

func password(p string) export.PassFunc {
	return func(bool) ([]byte, error) { return []byte(p), nil }
}

// T6, files: every form of key file is read, and the key in it is the same.
func TestBundleKeyForms(t *testing.T) {
	key := exporttest.ECDSA(t, "forms")
	want, err := export.NewBundleKey(key)
	require.NoError(t, err)
	pkcs8, err := cryptoutils.MarshalPrivateKeyToPEM(key)
	require.NoError(t, err)
	sec1, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	sealed, err := cryptoutils.MarshalPrivateKeyToEncryptedDER(key, password("right"))
	require.NoError(t, err)
	//lint:ignore SA1019 what old tools write
	legacy, err := x509.EncryptPEMBlock(rand.Reader, "EC PRIVATE KEY", sec1, []byte("right"), x509.PEMCipherAES256)
	require.NoError(t, err)
	openssl, err := os.ReadFile(filepath.Join("testdata", "pkcs8-encrypted.pem"))
	require.NoError(t, err)
	opensslKey, err := export.ParseBundleKey(openssl, password("right"))
	require.NoError(t, err)
	require.Equal(t, "sha256:d9f3714260264b25e480e4b0333d366b74f2e9bd31ad29d628ffb0d9eb2ce23d", opensslKey.ID().String())

	for name, form := range map[string]struct {
		pem       []byte
		encrypted bool
	}{
		"PKCS#8":     {pkcs8, false},
		"SEC 1":      {pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}), false},
		"sigstore":   {pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: sealed}), true},
		"cosign":     {pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED COSIGN PRIVATE KEY", Bytes: sealed}), true},
		"legacy PEM": {pem.EncodeToMemory(legacy), true},
	} {
		path := filepath.Join(t.TempDir(), "key.pem")
		require.NoError(t, export.WriteKey(path, form.pem), name)
		got, err := export.LoadBundleKey(path, password("right"))
		require.NoError(t, err, name)
		require.Equal(t, want.SPKI(), got.SPKI(), name)
		_, err = export.LoadBundleKey(path, nil)
		if !form.encrypted {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, export.ErrPassword, name)
		_, err = export.LoadBundleKey(path, password("wrong"))
		require.Error(t, err, name)
	}
}

func TestKeysOfOtherKindsAreRefused(t *testing.T) {
	checkpoint, err := export.GenerateCheckpointKey(rand.Reader)
	require.NoError(t, err)
	_, err = export.ParseBundleKey(checkpoint, nil)
	require.ErrorContains(t, err, "ECDSA P-256")
	bundleKey, err := export.GenerateBundleKey(rand.Reader)
	require.NoError(t, err)
	_, err = export.ParseCheckpointKey(bundleKey, nil)
	require.ErrorContains(t, err, "Ed25519")
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	_, err = export.NewBundleKey(p384)
	require.ErrorContains(t, err, "ECDSA P-256")
	_, err = export.NewCheckpointKey(make([]byte, 3))
	require.Error(t, err)
	for _, junk := range []string{"", "hello", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		_, err = export.ParseBundleKey([]byte(junk), nil)
		require.Error(t, err)
	}
	_, err = export.LoadBundleKey(filepath.Join(t.TempDir(), "none.pem"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	big := filepath.Join(t.TempDir(), "big.pem")
	require.NoError(t, os.WriteFile(big, bytes.Repeat([]byte("x"), export.MaxKeyFile+1), 0o600))
	_, err = export.LoadBundleKey(big, nil)
	require.ErrorContains(t, err, "it is no key")
}

// Generated keys are plain PKCS#8, readable by their owner only, and never replaced.
func TestGenerateAndWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bundle.pem")
	made, err := export.GenerateBundleKey(rand.Reader)
	require.NoError(t, err)
	require.NoError(t, export.WriteKey(path, made))
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode())
	require.ErrorIs(t, export.WriteKey(path, made), os.ErrExist)
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, made, again)
	block, _ := pem.Decode(made)
	require.Equal(t, "PRIVATE KEY", block.Type)

	key, err := export.LoadBundleKey(path, nil)
	require.NoError(t, err)
	require.Equal(t, evidence.KeyID(sha256.Sum256(key.SPKI())), key.ID())
	_, err = evidence.ParseBundleKey(key.SPKI())
	require.NoError(t, err)
}

// picky fails when it is handed a random source or not told the hash.
type picky struct {
	*ecdsa.PrivateKey
	t *testing.T
}

func (p picky) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	require.Nil(p.t, random)
	require.Equal(p.t, crypto.SHA256, opts)
	return p.PrivateKey.Sign(random, digest, opts)
}

// req T1: the signature is deterministic (RFC 6979): no random source reaches the key.
func TestSigningIsDeterministic(t *testing.T) {
	f, payload := build(t)
	first, err := export.Sign(payload, f.Key)
	require.NoError(t, err)
	key, err := export.NewBundleKey(picky{f.Private, t})
	require.NoError(t, err)
	for range 5 {
		again, err := export.Sign(payload, key)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
}
