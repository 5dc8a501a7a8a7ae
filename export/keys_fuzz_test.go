package export_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/export"
)

// FuzzKeys: private keys of every form are read or refused, encrypted ones included, and never as the key of the
// other role.
func FuzzKeys(f *testing.F) {
	bundleKey, err := export.GenerateBundleKey(fixedRandom{})
	require.NoError(f, err)
	seeds := [][]byte{bundleKey, bundleKey[1:], {}, []byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n")}
	for _, name := range []string{"cosign.key", "pkcs8-encrypted.pem"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		seeds = append(seeds, b)
	}
	for _, s := range seeds {
		f.Add(s)
	}
	pass := func(bool) ([]byte, error) { return []byte("wrong"), nil }
	f.Fuzz(func(t *testing.T, text []byte) {
		_, asBundle := export.ParseBundleKey(text, pass)
		_, asCheckpoint := export.ParseCheckpointKey(text, pass)
		require.False(t, asBundle == nil && asCheckpoint == nil)
	})
}

type fixedRandom struct{}

func (fixedRandom) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i + 1)
	}
	return len(b), nil
}
