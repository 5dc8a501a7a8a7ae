package kurrentdb

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/kurrentdb/peer"
	"github.com/baildock/baildock/ledger/ledgertest"
)

// quick are limits for tests against a peer in the same process.
var quick = Options{CallTimeout: 2 * time.Second, Patience: 20 * time.Second}

func cluster(t testing.TB, o peer.Options) *peer.Cluster {
	t.Helper()
	c, err := peer.Start(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func open(t testing.TB, url string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// req R3, req R1, req R4, req R6: the suite of every backend, on a cluster whose servers say no more
// than the oldest do.
func TestConformance(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledgertest.Backend {
		c := cluster(t, peer.Options{Nodes: 3, OldPositions: true, NoCaughtUp: true, Version: "21.10.0"})
		opts := quick
		opts.Cache = filepath.Join(t.TempDir(), "a cache, 100%.db")
		return ledgertest.Backend{Open: func(t *testing.T) ledger.Ledger { return open(t, c.URL(), opts) }}
	})
}
