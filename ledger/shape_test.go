package ledger

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStreamID(t *testing.T) {
	for _, good := range []string{"a", "0", "ledger", "attempt-x.y_z-1", "runtime-" + strings.Repeat("f", 64), strings.Repeat("a", MaxStream), "a-", "a.."} {
		id, err := ParseStreamID(good)
		require.NoError(t, err, good)
		require.Equal(t, good, string(id))
	}
	for _, bad := range []string{"", "A", "-a", ".a", "_a", "a b", "a/b", "a\n", "a\x00", "ä", "a:b", "$all", strings.Repeat("a", MaxStream+1)} {
		_, err := ParseStreamID(bad)
		require.Error(t, err, "%q", bad)
		require.NotContains(t, err.Error(), "\n", "one line, and no raw control characters")
		require.NotContains(t, err.Error(), "\x00")
	}
}

func TestCheckPrepared(t *testing.T) {
	good := Prepared{Type: "T", Media: "a/b"}
	require.NoError(t, CheckPrepared(good))
	for _, media := range []string{"text/plain; charset=utf-8", "application/cbor", "a/" + strings.Repeat("x", MaxMedia-2)} {
		p := good
		p.Media = media
		require.NoError(t, CheckPrepared(p), media)
	}
	for _, typ := range []string{"A", "a.b_c-9", strings.Repeat("T", MaxType)} {
		p := good
		p.Type = typ
		require.NoError(t, CheckPrepared(p), typ)
	}
	for _, media := range []string{"", "a", "/", "a/", "/b", " a/b", "a/b ", "a/b\n", "a/ü", "a/\x7f", "a/" + strings.Repeat("x", MaxMedia-1)} {
		p := good
		p.Media = media
		require.Error(t, CheckPrepared(p), "%q", media)
	}
	for _, typ := range []string{"", "1a", "-a", "$stream", "a b", "a/b", "é", strings.Repeat("T", MaxType+1)} {
		p := good
		p.Type = typ
		require.Error(t, CheckPrepared(p), "%q", typ)
	}
	p := good
	p.Meta, p.Data = make([]byte, MaxMeta), make([]byte, MaxData)
	require.NoError(t, CheckPrepared(p))
	p.Meta = make([]byte, MaxMeta+1)
	require.Error(t, CheckPrepared(p))
	p.Meta, p.Data = nil, make([]byte, MaxData+1)
	require.ErrorContains(t, CheckPrepared(p), "blob")
}

func TestCheckBlob(t *testing.T) {
	require.NoError(t, CheckBlob(Blob{}))
	require.NoError(t, CheckBlob(Blob{Salt: make([]byte, SaltSize)}))
	require.Error(t, CheckBlob(Blob{Salt: make([]byte, SaltSize-1)}))
	require.Error(t, CheckBlob(Blob{Data: make([]byte, MaxBlob+1)}))
}
