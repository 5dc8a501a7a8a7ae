package kurrentdb

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

func TestURL(t *testing.T) {
	for address, want := range map[string]struct {
		ledger, host string
		seeds        int
		discover     bool
	}{
		"esdb://localhost":                           {"main", "localhost:2113", 0, false},
		"esdb://localhost:1/?ledger=a.b_c-1":         {"a.b_c-1", "localhost:1", 0, false},
		"kurrentdb://localhost:7?tls=false":          {"main", "localhost:7", 0, false},
		"ESDB://localhost:7":                         {"main", "localhost:7", 0, false},
		"esdb://a:1,b:2,c:3?ledger=x":                {"x", "", 3, false},
		"esdb://u:p@a:1,b:2?nodePreference=follower": {"main", "", 2, false},
		"esdb+discover://cluster.example":            {"main", "cluster.example:2113", 0, true},
		"kurrentdb+discover://c?ledger=x&tls=true":   {"x", "c:2113", 0, true},
		"esdb://h?Ledger=x&connectionName=me":        {"x", "h:2113", 0, false},
	} {
		require.True(t, Is(address), address)
		got, err := parseURL(address)
		require.NoError(t, err, address)
		require.Equal(t, want.ledger, got.ledger, address)
		require.Equal(t, want.discover, got.config.DnsDiscover, address)
		require.Len(t, got.config.GossipSeeds, want.seeds, address)
		if want.seeds == 0 {
			require.Equal(t, want.host, got.config.Address, address)
		}
	}
	tls, err := parseURL("esdb://h?tls=false")
	require.NoError(t, err)
	require.True(t, tls.config.DisableTLS)
	user, err := parseURL("esdb://me:s%40cret@h?nodePreference=follower")
	require.NoError(t, err)
	require.Equal(t, [2]string{"me", "s@cret"}, [2]string{user.config.Username, user.config.Password})
	require.Equal(t, esdb.NodePreferenceFollower, user.config.NodePreference)

	for address, why := range map[string]string{
		"http://localhost":      "use esdb://",
		"esdb://":               "host",
		"esdb://h?ledger=":      "0 bytes",
		"esdb://h?ledger=UPPER": "'U' at byte 0",
		"esdb://h?ledger=a:b":   "':' at byte 1",
		"esdb://h?ledger=" + strings.Repeat("a", 64): "64 bytes",
		"esdb://h?ledger=a&ledger=b":                 "2 times",
		"esdb://h?tsl=true":                          `unknown setting "tsl"`,
		"esdb://h?tls=perhaps":                       "true or false",
		"esdb://h:port":                              "port",
		"esdb://h/path":                              "path",
		"esdb://u:secret@h?userCertFile=x":           "userKeyFile",
		"esdb://u:secret@h:0x?tls=1":                 "",
		"esdb://:secret@h":                           "empty username",
		"esdb://h?tls=%zz":                           "settings",
	} {
		err := Check(address)
		require.Error(t, err, address)
		require.ErrorContains(t, err, why, address)
		require.NotContains(t, err.Error(), "secret", address)
	}
	for _, no := range []string{"ledger.db", "/a/esdb", "esdb", "http://x", "mongodb://x"} {
		require.False(t, Is(no), no)
	}
	require.Equal(t, "esdb://me:xxxxx@a,b?tls=true", Redacted("esdb://me:p@ss@a,b?tls=true"))
	require.Equal(t, "esdb://a,b", Redacted("esdb://a,b"))
}

// Names of one ledger's streams are never a prefix of another's.
func TestNames(t *testing.T) {
	a, b := namesOf("a"), namesOf("a.b")
	for _, name := range []string{b.event("s"), b.checkpoints(), b.prefix} {
		require.False(t, strings.HasPrefix(name, a.prefix), name)
		require.False(t, strings.HasPrefix("$$"+name, a.metadata), name)
	}
	stream, ok := a.stream(a.event("notes"))
	require.True(t, ok)
	require.EqualValues(t, "notes", stream)
	_, ok = a.stream(a.checkpoints())
	require.False(t, ok)
}
