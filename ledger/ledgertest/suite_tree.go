package ledgertest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/baildock/baildock/ledger"
)

func mustRoot(t *testing.T, l ledger.Ledger, size uint64) ledger.Hash {
	t.Helper()
	root, err := l.Root(t.Context(), size)
	require.NoError(t, err)
	return root
}

// roots recomputes the root of every prefix with tlog, from the leaves as they are read.
func roots(t *testing.T, l ledger.Ledger) []ledger.Hash {
	t.Helper()
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, x := range indexes {
			out[i] = stored[x]
		}
		return out, nil
	})
	out := []ledger.Hash{ledger.EmptyRoot}
	n := int64(0)
	for e, err := range l.ReadAll(t.Context(), 0) {
		require.NoError(t, err)
		more, err := tlog.StoredHashes(n, ledger.MarshalLeaf(e), reader)
		require.NoError(t, err)
		stored = append(stored, more...)
		n++
		root, err := tlog.TreeHash(n, reader)
		require.NoError(t, err)
		out = append(out, ledger.Hash(root))
	}
	return out
}

// req R4
func testRoots(t *testing.T, l ledger.Ledger, _ Backend) {
	require.Equal(t, ledger.EmptyRoot, mustRoot(t, l, 0))
	fill(t, l, 130)
	for size, want := range roots(t, l) {
		require.Equal(t, want, mustRoot(t, l, uint64(size)), "size %d", size)
	}
	_, err := l.Root(t.Context(), 131)
	require.Error(t, err)
	_, err = l.Root(t.Context(), 1<<64-1)
	require.Error(t, err)
	size, err := l.Size(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(130), size)
}

// req R4
func testProofs(t *testing.T, l ledger.Ledger, _ Backend) {
	ctx := t.Context()
	fill(t, l, 70)
	root := roots(t, l)
	events := collect(t, l.ReadAll(ctx, 0))
	for _, size := range []uint64{1, 2, 3, 31, 32, 33, 64, 70} {
		for i := range size {
			index := ledger.Index(i)
			proof, err := l.ProveInclusion(ctx, index, size)
			require.NoError(t, err)
			leaf := events[i].Leaf()
			require.NoError(t, ledger.VerifyInclusion(leaf, index, size, proof, root[size]))
			leaf[0] ^= 1
			require.ErrorIs(t, ledger.VerifyInclusion(leaf, index, size, proof, root[size]), ledger.ErrInclusionProof)
		}
		for old := range size + 1 {
			proof, err := l.ProveConsistency(ctx, old, size)
			require.NoError(t, err)
			require.NoError(t, ledger.VerifyConsistency(old, root[old], size, root[size], proof))
			if wrong := root[old]; old > 0 {
				wrong[0] ^= 1
				require.ErrorIs(t, ledger.VerifyConsistency(old, wrong, size, root[size], proof), ledger.ErrConsistencyProof)
			}
		}
	}
	_, err := l.ProveInclusion(ctx, 70, 70)
	require.Error(t, err)
	_, err = l.ProveInclusion(ctx, 0, 71)
	require.Error(t, err)
	_, err = l.ProveConsistency(ctx, 3, 2)
	require.Error(t, err)
	_, err = l.ProveConsistency(ctx, 3, 71)
	require.Error(t, err)
}

// req R4
func testCheckpoints(t *testing.T, l ledger.Ledger, _ Backend) {
	ctx := t.Context()
	s, public := signer(t, "test/origin")
	verifier, err := ledger.NewEd25519Verifier("test/origin", public)
	require.NoError(t, err)
	known := note.VerifierList(verifier)

	_, ok, err := l.LastCheckpoint(ctx)
	require.NoError(t, err)
	require.False(t, ok)

	var kept []ledger.Checkpoint
	for _, n := range []int{0, 1, 6, 13} { // sizes 0, 1, 7, 20
		for i := range n {
			stream := ledger.StreamID([]string{"a", "b", "c", "d"}[len(kept)])
			mustAppend(t, l, stream, ledger.Version(i)-1, prepare("X", "x"))
		}
		c, err := l.SignCheckpoint(ctx, s)
		require.NoError(t, err)
		opened, err := ledger.OpenCheckpoint(c.Note, "test/origin", known)
		require.NoError(t, err)
		require.Equal(t, c, opened)
		require.Equal(t, mustRoot(t, l, c.Size), c.Root)

		again, err := l.SignCheckpoint(ctx, s)
		require.NoError(t, err)
		require.Equal(t, c, again, "the same size gives the kept checkpoint")
		last, ok, err := l.LastCheckpoint(ctx)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, c, last)
		kept = append(kept, c)
	}
	require.Equal(t, uint64(20), kept[3].Size)
	for i := 1; i < len(kept); i++ {
		proof, err := l.ProveConsistency(ctx, kept[i-1].Size, kept[i].Size)
		require.NoError(t, err)
		require.NoError(t, ledger.VerifyConsistency(kept[i-1].Size, kept[i-1].Root, kept[i].Size, kept[i].Root, proof))
	}

	other, _ := signer(t, "test/other")
	_, err = l.SignCheckpoint(ctx, other)
	var origin *ledger.OriginError
	require.ErrorAs(t, err, &origin)
	mustAppend(t, l, "e", ledger.NoStream, prepare("X", "x"))
	_, err = l.SignCheckpoint(ctx, ledger.CheckpointSigner{Origin: "test/origin", Signer: other.Signer})
	require.Error(t, err, "the key's name is another")
	last, _, err := l.LastCheckpoint(ctx)
	require.NoError(t, err)
	require.Equal(t, kept[3], last)
}
