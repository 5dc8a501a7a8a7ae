package journaltest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/ledger/sqlite"
)

// Open makes an empty ledger of its own, which is closed when the test ends.
type Open func(t testing.TB) ledger.Ledger

// Backends are the ledgers that rules above a ledger must hold on alike (req H5).
func Backends() map[string]Open {
	return map[string]Open{"mem": OpenMem, "sqlite": OpenSQLite}
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

// Everywhere runs a test on every backend.
func Everywhere(t *testing.T, f func(t *testing.T, led ledger.Ledger)) {
	backends := Backends()
	require.GreaterOrEqual(t, len(backends), 2)
	for name, open := range backends {
		t.Run(name, func(t *testing.T) { f(t, open(t)) })
	}
}
