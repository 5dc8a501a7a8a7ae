package ledgertest

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

func requireAbsent(t *testing.T, l ledger.Ledger, key ledger.BlobKey, forgotten bool) {
	t.Helper()
	_, err := l.Get(t.Context(), key)
	var absent *ledger.BlobAbsentError
	require.ErrorAs(t, err, &absent)
	require.Equal(t, ledger.BlobAbsentError{Key: key, Forgotten: forgotten}, *absent)
}

// req R6
func testBlobs(t *testing.T, l ledger.Ledger, _ Backend) {
	ctx := t.Context()
	salt := bytes.Repeat([]byte{7}, ledger.SaltSize)
	blobs := []ledger.Blob{
		{Data: []byte("plain")},
		{Salt: salt, Data: []byte("plain")},
		{Salt: salt},
		{},
	}
	require.Equal(t, ledger.BlobKey(sha256.Sum256([]byte("plain"))), blobs[0].Key())
	require.Equal(t, ledger.BlobKey(sha256.Sum256(append(bytes.Clone(salt), "plain"...))), blobs[1].Key())
	for _, b := range blobs {
		requireAbsent(t, l, b.Key(), false)
	}
	require.NoError(t, l.Put(ctx, blobs...))
	require.NoError(t, l.Put(ctx, blobs...), "storing again is no error")
	require.NoError(t, l.Put(ctx), "storing nothing is no error")
	for _, b := range blobs {
		got, err := l.Get(ctx, b.Key())
		require.NoError(t, err)
		require.True(t, bytes.Equal(b.Salt, got.Salt))
		require.True(t, bytes.Equal(b.Data, got.Data))
	}

	fine, bad := ledger.Blob{Data: []byte("fine")}, ledger.Blob{Salt: []byte("short"), Data: []byte("bad")}
	require.Error(t, l.Put(ctx, fine, bad))
	requireAbsent(t, l, fine.Key(), false) // all or none
	size, err := l.Size(ctx)
	require.NoError(t, err)
	require.Zero(t, size, "blobs are outside the tree")
}

// req R6
func testLargeBlob(t *testing.T, l ledger.Ledger, _ Backend) {
	const mib = 1 << 20
	for _, n := range []int{mib - 1, mib, mib + 1, 5*mib + 12345} {
		b := ledger.Blob{Salt: make([]byte, ledger.SaltSize), Data: bytes.Repeat([]byte("0123456789abcde"), n/15+1)[:n]}
		require.NoError(t, l.Put(t.Context(), b))
		got, err := l.Get(t.Context(), b.Key())
		require.NoError(t, err)
		require.True(t, bytes.Equal(b.Data, got.Data))
	}
}

// req R6
func testForget(t *testing.T, l ledger.Ledger, _ Backend) {
	ctx := t.Context()
	b := ledger.Blob{Salt: make([]byte, ledger.SaltSize), Data: bytes.Repeat([]byte("secret"), 1<<18)}
	other := ledger.Blob{Data: []byte("other")}
	key := b.Key()

	var absent *ledger.BlobAbsentError
	require.ErrorAs(t, l.Forget(ctx, key), &absent)
	require.False(t, absent.Forgotten)
	require.NoError(t, l.Put(ctx, b, other))
	done := mustAppend(t, l, "a", ledger.NoStream, ledger.Prepared{Type: "Named", Media: "a/b", Data: key[:]})

	require.NoError(t, l.Forget(ctx, key))
	requireAbsent(t, l, key, true)
	require.ErrorAs(t, l.Forget(ctx, key), &absent)
	require.True(t, absent.Forgotten)
	_, err := l.Get(ctx, other.Key())
	require.NoError(t, err)

	proof, err := l.ProveInclusion(ctx, done.Last().Index, 1)
	require.NoError(t, err)
	require.NoError(t, ledger.VerifyInclusion(done.Last().Leaf(), 0, 1, proof, mustRoot(t, l, 1)))

	require.NoError(t, l.Put(ctx, b), "storing a forgotten blob restores it")
	got, err := l.Get(ctx, key)
	require.NoError(t, err)
	require.True(t, bytes.Equal(b.Data, got.Data))
	require.True(t, bytes.Equal(b.Salt, got.Salt))
}
