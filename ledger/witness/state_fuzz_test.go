package witness

import (
	"crypto/ed25519"
	"crypto/sha256"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

// FuzzParseKey: a vkey has one text.
func FuzzParseKey(f *testing.F) {
	seed := sha256.Sum256([]byte("fuzz"))
	k, err := NewKey("alice.example", ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey))
	require.NoError(f, err)
	for _, s := range []string{k.String(), k.String()[1:], "a+00000000+", "++", "", "alice.example+8d0f3b11+BA=="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, vkey string) {
		k, err := ParseKey(vkey)
		if err == nil {
			require.Equal(t, vkey, k.String())
		}
	})
}

// FuzzMemory: a cosigner's memory is read as it was written or is damaged; it is never taken for empty.
func FuzzMemory(f *testing.F) {
	const origin = "ledger.example"
	good := ledger.FormatCheckpoint(origin, 7, ledger.Hash{1})
	for _, s := range []string{good, good + "x", good[1:], ledger.FormatCheckpoint("other.example", 7, ledger.Hash{1}), "", "\n"} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	m, err := openMemory(dir, origin)
	require.NoError(f, err)
	path := m.path
	m.close()
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		seen, any, err := Cosigner{Dir: dir}.Seen(origin)
		if err != nil {
			return
		}
		require.True(t, any)
		require.Equal(t, string(text), ledger.FormatCheckpoint(origin, seen.Size, seen.Root))
	})
}
