package sqlite

import (
	"crypto/ed25519"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

func testSigner(t *testing.T) ledger.CheckpointSigner {
	t.Helper()
	s, err := ledger.NewEd25519Signer("test/sqlite", ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	require.NoError(t, err)
	return ledger.CheckpointSigner{Origin: "test/sqlite", Signer: s}
}

func TestHeadCacheIsBounded(t *testing.T) {
	var c headCache
	name := func(i int) ledger.StreamID { return ledger.StreamID(fmt.Sprint(i)) }
	for i := range 10 * cachedHeads {
		c.put(name(i), ledger.Head{Version: ledger.Version(i)})
		h, ok := c.get(name(0)) // used all the time, so it stays
		require.True(t, ok)
		require.Equal(t, ledger.Version(0), h.Version)
		require.LessOrEqual(t, len(c.fresh)+len(c.old), 2*cachedHeads)
	}
	_, ok := c.get(name(1))
	require.False(t, ok)
	h, ok := c.get(name(10*cachedHeads - 1))
	require.True(t, ok)
	require.Equal(t, ledger.Version(10*cachedHeads-1), h.Version)
}

// More streams than the cache holds, so heads are read again.
func TestMoreStreamsThanCached(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "l.db"), Options{})
	const streams = 3 * cachedHeads
	const workers = 64
	for version := range 2 {
		errs := make(chan error, workers)
		for w := range workers {
			go func() {
				var err error
				for i := w; i < streams && err == nil; i += workers {
					_, err = s.Append(testContext, ledger.StreamID(fmt.Sprint(i)), ledger.Version(version)-1, event("x"))
				}
				errs <- err
			}()
		}
		for range workers {
			require.NoError(t, <-errs)
		}
	}
	require.Equal(t, uint64(2*streams), sound(t, s).Size())
}
