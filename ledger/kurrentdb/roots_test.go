package kurrentdb

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/kurrentdb/peer"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/ledger/sqlite"
)

// req R3, req R4: the same appends in the same order give the same leaves, indexes and root on every
// backend, refused ones and retries included.
func TestEqualRoots(t *testing.T) {
	c := cluster(t, peer.Options{Nodes: 3})
	file, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "l.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	ledgers := []ledger.Ledger{ledgertest.NewMem(), file, open(t, c.URL(), quick)}
	random := rand.New(rand.NewPCG(1, 2))
	next := map[ledger.StreamID]ledger.Version{}
	for i := range 400 {
		stream := ledger.StreamID(fmt.Sprintf("s%d", random.IntN(9)))
		expected := next[stream] - 1
		if random.IntN(10) == 0 {
			expected += ledger.Version(random.IntN(3) - 1) // a conflict, or a retry that isn't one
		}
		batch := make([]ledger.Prepared, 1+random.IntN(4))
		for k := range batch {
			size := random.IntN(500)
			if random.IntN(60) == 0 {
				size = ledger.MaxData - random.IntN(2)
			}
			batch[k] = ledger.Prepared{Type: "T", Time: int64(i), Media: "a/b", Meta: fmt.Append(nil, i, k), Data: make([]byte, size)}
		}
		var want ledger.Appended
		for n, l := range ledgers {
			done, err := l.Append(t.Context(), stream, max(expected, ledger.NoStream), batch...)
			if n == 0 {
				if want = done; err == nil {
					next[stream] = done.Last().Version + 1
				}
			}
			require.Equal(t, len(want.Events), len(done.Events), "append %d on ledger %d: %v", i, n, err)
			for k := range want.Events {
				require.Equal(t, want.Events[k].Index, done.Events[k].Index)
				require.Equal(t, want.Events[k].Leaf(), done.Events[k].Leaf())
			}
		}
	}
	size, err := ledgers[0].Size(t.Context())
	require.NoError(t, err)
	require.Greater(t, size, uint64(500))
	for n := range size + 1 {
		want, err := ledgers[0].Root(t.Context(), n)
		require.NoError(t, err)
		for _, l := range ledgers[1:] {
			got, err := l.Root(t.Context(), n)
			require.NoError(t, err)
			require.Equal(t, want, got, "size %d", n)
		}
	}
}
