//go:build kurrentdb

package kurrentdb

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
)

// clusterURL is the connection string of a real cluster, without ledger=. Each case makes a ledger of
// its own there, under a random name, and leaves it.
const clusterURL = "BAILDOCK_TEST_KURRENTDB"

func realCluster(t *testing.T) string {
	t.Helper()
	url := os.Getenv(clusterURL)
	require.NotEmpty(t, url, "%s names no cluster, like esdb://admin:changeit@localhost:2113?tls=true; this test needs a real one", clusterURL)
	name := make([]byte, 8)
	_, err := rand.Read(name)
	require.NoError(t, err)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + "ledger=test-" + hex.EncodeToString(name)
}

// req R3: the suite of every backend, against a real cluster.
func TestRealCluster(t *testing.T) {
	realCluster(t)
	ledgertest.Run(t, func(t *testing.T) ledgertest.Backend {
		url, opts := realCluster(t), Options{Cache: filepath.Join(t.TempDir(), "cache.db")}
		return ledgertest.Backend{Open: func(t *testing.T) ledger.Ledger { return open(t, url, opts) }}
	})
}

// What an audit says of a real cluster: nothing bad of a good ledger, once it is protected, and each
// name of what hides its events.
func TestRealClusterAudit(t *testing.T) {
	url := realCluster(t)
	s := open(t, url, Options{})
	require.NoError(t, s.Protect(t.Context()))
	mustAppend(t, s, "a", ledger.NoStream, "one", "two", "three")
	require.NoError(t, audited(t, s))
	admin := officialClient(t, url)
	hide(t, admin, s.names.event("a"))
	require.Eventually(t, func() bool { return s.follow.damage() != nil }, 30*time.Second, 10*time.Millisecond)
	require.ErrorContains(t, audited(t, s), "its metadata hides events")
}
func officialClient(t *testing.T, url string) *esdb.Client {
	t.Helper()
	target, err := parseURL(url)
	require.NoError(t, err)
	db, err := esdb.NewClient(target.config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func hide(t *testing.T, db *esdb.Client, stream string) {
	t.Helper()
	var m esdb.StreamMetadata
	m.SetTruncateBefore(1)
	_, err := db.SetStreamMetadata(t.Context(), stream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, m)
	require.NoError(t, err)
}
