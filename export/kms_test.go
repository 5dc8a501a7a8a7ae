package export_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"os"
	"path/filepath"
	"testing"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature/kms/fake"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
)

// req T6: a key reference is followed only under an allowed scheme, nothing on PATH is executed
// unasked, and what a key management service signs verifies. It is sigstore's fake one.
func TestKMS(t *testing.T) {
	ctx := context.WithValue(t.Context(), fake.KmsCtxKey{}, crypto.PrivateKey(exporttest.ECDSA(t, "bundle")))
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	for _, name := range []string{"sigstore-kms-evil", "sigstore-kms-fakekms"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n: >"+ran+"\nexit 1\n"), 0o755))
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	var refused *export.KMSError
	for _, c := range []struct {
		ref     string
		allowed []string
	}{
		{"fakekms://key", nil},
		{"fakekms://key", []string{"awskms", "plugin:fakekms"}},
		{"evil://key", nil},
		{"evil://key", []string{"evil"}},
		{"evil://key", []string{"fakekms", "plugin:other"}},
		{"evil", []string{"plugin:evil"}},
		{"../evil://key", []string{"plugin:evil"}},
		{"EVIL://key", []string{"plugin:evil"}},
		{"://key", []string{"fakekms"}},
	} {
		allowed, err := export.ParseAllowedKMS(c.allowed)
		require.NoError(t, err)
		_, err = export.LoadKMSKey(ctx, c.ref, allowed)
		require.ErrorAs(t, err, &refused, "%s under %v", c.ref, c.allowed)
		require.NoFileExists(t, ran)
	}
	for _, bad := range []string{"", "plugin:", "plugin:../x", "a/b", "A", "plugin:plugin:x"} {
		_, err := export.ParseAllowedKMS([]string{bad})
		require.ErrorAs(t, err, &refused, bad)
	}

	allowed, err := export.ParseAllowedKMS([]string{"fakekms", "plugin:evil"})
	require.NoError(t, err)
	_, err = export.LoadKMSKey(ctx, "evil://key", allowed)
	require.Error(t, err)
	require.FileExists(t, ran, "named, it is executed")

	key, err := export.LoadKMSKey(ctx, "fakekms://key", allowed)
	require.NoError(t, err)
	f, payload := build(t)
	require.Equal(t, f.Key.ID(), key.ID())
	file, err := export.Sign(payload, key)
	require.NoError(t, err)
	require.Equal(t, verify.Valid, verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)}).Verdict)

	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, err = export.LoadKMSKey(context.WithValue(t.Context(), fake.KmsCtxKey{}, crypto.PrivateKey(other)), "fakekms://key", allowed)
	require.ErrorContains(t, err, "ECDSA P-256")
}

// req T6: what EncryptKey writes is what sigstore and cosign write, and opens with its password only.
func TestEncryptKey(t *testing.T) {
	for _, generate := range []func() ([]byte, error){
		func() ([]byte, error) { return export.GenerateBundleKey(rand.Reader) },
		func() ([]byte, error) { return export.GenerateCheckpointKey(rand.Reader) },
	} {
		plain, err := generate()
		require.NoError(t, err)
		sealed, err := export.EncryptKey(plain, nil, password("right"))
		require.NoError(t, err)
		require.Contains(t, string(sealed), "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----")
		_, err = cryptoutils.UnmarshalPEMToPrivateKey(sealed, password("right"))
		require.NoError(t, err)
		back, err := export.PlainKey(sealed, password("right"))
		require.NoError(t, err)
		require.Equal(t, plain, back)
		_, err = export.PlainKey(sealed, password("wrong"))
		require.Error(t, err)
		_, err = export.PlainKey(sealed, nil)
		require.ErrorIs(t, err, export.ErrPassword)
		again, err := export.EncryptKey(sealed, password("right"), password("new"))
		require.NoError(t, err)
		back, err = export.PlainKey(again, password("new"))
		require.NoError(t, err)
		require.Equal(t, plain, back)
	}
	_, err := export.EncryptKey([]byte("hello"), nil, password("x"))
	require.Error(t, err)
}

// req T6: a key file that cosign v3.1.3 wrote.
func TestCosignKeyFile(t *testing.T) {
	key, err := export.LoadBundleKey(filepath.Join("testdata", "cosign.key"), password("secret"))
	require.NoError(t, err)
	require.Equal(t, "sha256:ba6f8f31aeb5696bb1eaa86fe1a63386a5577b66c53635fdc1d164ec95039c46", key.ID().String())
	_, err = export.LoadBundleKey(filepath.Join("testdata", "cosign.key"), password("wrong"))
	require.Error(t, err)
	_, err = export.LoadBundleKey(filepath.Join("testdata", "cosign.key"), nil)
	require.ErrorIs(t, err, export.ErrPassword)
}
