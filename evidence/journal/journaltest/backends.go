package journaltest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/kurrentdb"
	"github.com/baildock/baildock/ledger/kurrentdb/peer"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/ledger/sqlite"
)

// Open makes an empty ledger of its own, which is closed when the test ends.
type Open func(t testing.TB) ledger.Ledger

// Backends are the ledgers that rules above a ledger must hold on alike (req H5).
func Backends() map[string]Open {
	return map[string]Open{"mem": OpenMem, "sqlite": OpenSQLite, "kurrentdb": OpenCluster}
}

// OpenMem makes a ledger in memory.
func OpenMem(testing.TB) ledger.Ledger { return ledgertest.NewMem() }

// OpenSQLite makes a ledger in a file.
func OpenSQLite(t testing.TB) ledger.Ledger {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// OpenCluster makes a ledger on a cluster that only speaks the protocol, in this process.
func OpenCluster(t testing.TB) ledger.Ledger {
	t.Helper()
	c, err := peer.Start(peer.Options{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	s, err := kurrentdb.Open(t.Context(), c.URL(), kurrentdb.Options{Cache: filepath.Join(t.TempDir(), "cache.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// Everywhere runs a test on every backend.
func Everywhere(t *testing.T, f func(t *testing.T, led ledger.Ledger)) {
	backends := Backends()
	require.GreaterOrEqual(t, len(backends), 3)
	for name, open := range backends {
		t.Run(name, func(t *testing.T) { f(t, open(t)) })
	}
}
