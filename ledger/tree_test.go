package ledger

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"
)

// nodesOf returns a reader over the nodes that appending the leaves completes, kept with the leaf
// that completed them.
func nodesOf(leaves []Hash) NodeReader {
	var f Frontier
	kept := make([][]Hash, len(leaves))
	for i, leaf := range leaves {
		kept[i] = f.AppendNodes(nil, leaf)
	}
	return func(nodes []Node) ([]Hash, error) {
		out := make([]Hash, len(nodes))
		for i, n := range nodes {
			at := n.Completed()
			if uint64(at) >= uint64(len(kept)) || int(n.Level) >= len(kept[at]) {
				return nil, fmt.Errorf("no node %+v", n)
			}
			out[i] = kept[at][n.Level]
		}
		return out, nil
	}
}

func someLeaves(n int) []Hash {
	out := make([]Hash, n)
	for i := range out {
		out[i] = Hash(tlog.RecordHash(fmt.Appendf(nil, "leaf %d", i)))
	}
	return out
}

// req R4: frontier, node layout and roots agree with tlog at every size.
func TestFrontierAgreesWithTlog(t *testing.T) {
	leaves := someLeaves(300)
	read := nodesOf(leaves)
	var f Frontier
	require.Equal(t, EmptyRoot, f.Root())
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, x := range indexes {
			out[i] = stored[x]
		}
		return out, nil
	})
	for i, leaf := range leaves {
		more, err := tlog.StoredHashesForRecordHash(int64(i), tlog.Hash(leaf), reader)
		require.NoError(t, err)
		stored = append(stored, more...)
		nodes := f.AppendNodes(nil, leaf)
		require.Equal(t, fromTlog(more), nodes)
		require.Len(t, nodes, NodeCount(Index(i)))
		size := uint64(i + 1)
		want, err := tlog.TreeHash(int64(size), reader)
		require.NoError(t, err)
		require.Equal(t, Hash(want), f.Root())
		root, err := RootFrom(size, read)
		require.NoError(t, err)
		require.Equal(t, Hash(want), root)
		again, err := FrontierFrom(size, read)
		require.NoError(t, err)
		require.Equal(t, f.size, again.size)
		require.Equal(t, f.roots, again.roots)
	}
}

// Any change of any part of a proof is noticed.
func TestProofsMangled(t *testing.T) {
	leaves := someLeaves(37)
	read := nodesOf(leaves)
	root := func(size uint64) Hash {
		r, err := RootFrom(size, read)
		require.NoError(t, err)
		return r
	}
	for _, size := range []uint64{1, 2, 7, 8, 37} {
		for i := range size {
			index := Index(i)
			proof, err := InclusionFrom(index, size, read)
			require.NoError(t, err)
			verify := func(leaf Hash, index Index, size uint64, proof []Hash, root Hash) error {
				return VerifyInclusion(leaf, index, size, proof, root)
			}
			require.NoError(t, verify(leaves[i], index, size, proof, root(size)))
			require.ErrorIs(t, verify(leaves[i], index+1, size, proof, root(size)), ErrInclusionProof)
			require.ErrorIs(t, verify(flip(leaves[i]), index, size, proof, root(size)), ErrInclusionProof)
			require.ErrorIs(t, verify(leaves[i], index, size, proof, flip(root(size))), ErrInclusionProof)
			require.ErrorIs(t, verify(leaves[i], index, size, append(proof[:len(proof):len(proof)], Hash{}), root(size)), ErrInclusionProof)
			for k := range proof {
				bad := append([]Hash(nil), proof...)
				bad[k] = flip(bad[k])
				require.ErrorIs(t, verify(leaves[i], index, size, bad, root(size)), ErrInclusionProof)
				require.ErrorIs(t, verify(leaves[i], index, size, append(bad[:k:k], proof[k+1:]...), root(size)), ErrInclusionProof)
			}
		}
		for old := range size + 1 {
			proof, err := ConsistencyFrom(old, size, read)
			require.NoError(t, err)
			require.NoError(t, VerifyConsistency(old, root(old), size, root(size), proof))
			require.ErrorIs(t, VerifyConsistency(old, flip(root(old)), size, root(size), proof), ErrConsistencyProof)
			require.ErrorIs(t, VerifyConsistency(old, root(old), size, root(size), append(proof[:len(proof):len(proof)], Hash{})), ErrConsistencyProof)
			if old > 0 {
				require.ErrorIs(t, VerifyConsistency(old, root(old), size, flip(root(size)), proof), ErrConsistencyProof)
			}
			for k := range proof {
				bad := append([]Hash(nil), proof...)
				bad[k] = flip(bad[k])
				require.ErrorIs(t, VerifyConsistency(old, root(old), size, root(size), bad), ErrConsistencyProof)
			}
		}
	}
	require.Error(t, VerifyInclusion(leaves[0], 0, 0, nil, EmptyRoot))
	require.Error(t, VerifyInclusion(leaves[0], 1<<63, 1<<63+1, nil, EmptyRoot))
	require.Error(t, VerifyConsistency(1, EmptyRoot, 0, EmptyRoot, nil))
	require.Error(t, VerifyConsistency(0, EmptyRoot, 1<<63, EmptyRoot, nil))
	require.Error(t, VerifyConsistency(0, EmptyRoot, 0, flip(EmptyRoot), nil))
	require.NoError(t, VerifyConsistency(0, EmptyRoot, 0, EmptyRoot, nil))
}

func flip(h Hash) Hash {
	h[7] ^= 0x10
	return h
}

func TestTreeErrors(t *testing.T) {
	broken := errors.New("broken")
	fails := NodeReader(func([]Node) ([]Hash, error) { return nil, broken })
	_, err := RootFrom(5, fails)
	require.ErrorIs(t, err, broken)
	_, err = FrontierFrom(5, fails)
	require.ErrorIs(t, err, broken)
	_, err = InclusionFrom(2, 5, fails)
	require.ErrorIs(t, err, broken)
	_, err = ConsistencyFrom(2, 5, fails)
	require.ErrorIs(t, err, broken)
	_, err = InclusionFrom(5, 5, fails)
	require.ErrorContains(t, err, "outside")
	_, err = ConsistencyFrom(6, 5, fails)
	require.ErrorContains(t, err, "after")
	for _, size := range []uint64{1 << 63, 1<<64 - 1} {
		_, err = RootFrom(size, fails)
		require.ErrorContains(t, err, "range")
		_, err = FrontierFrom(size, fails)
		require.ErrorContains(t, err, "range")
	}
	f := Frontier{}
	f.Append(Hash{1})
	c := f.Clone()
	c.Append(Hash{2})
	require.Equal(t, uint64(1), f.Size())
	require.Equal(t, Hash{1}, f.Root())
}
