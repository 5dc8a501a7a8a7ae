package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
)

func open(t testing.TB, path string, opts Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// req R2
func TestConformance(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledgertest.Backend {
		path := filepath.Join(t.TempDir(), "a ledger, 100%.db")
		return ledgertest.Backend{Open: func(t *testing.T) ledger.Ledger { return open(t, path, Options{}) }}
	})
}
