package ledgertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

// testFaults checks what a writer may rely on after each kind of failure: re-reading tells what
// happened, and retrying the same bytes ends with each event stored once.
//
// req R1, req R2
func testFaults(t *testing.T, l ledger.Ledger, _ Backend) {
	for i, c := range []struct {
		name    string
		fault   Fault
		unknown bool
		stored  bool
	}{
		{"failed, not stored", NotStored, false, false},
		{"stored, reply lost", ReplyLost, true, true},
		{"commit lost, not stored", CommitLost, true, false},
	} {
		stream := ledger.StreamID([]string{"a", "b", "c"}[i])
		f := NewFaulty(l, FaultAt(0, c.fault))
		events := batch(c.name, 3)
		_, err := f.Append(t.Context(), stream, ledger.NoStream, events...)
		require.ErrorIs(t, err, ErrInjected, c.name)
		if c.unknown {
			require.ErrorIs(t, err, ledger.ErrUnknownOutcome, c.name)
		} else {
			require.NotErrorIs(t, err, ledger.ErrUnknownOutcome, c.name)
		}
		_, ok, err := f.Head(t.Context(), stream)
		require.NoError(t, err)
		require.Equal(t, c.stored, ok, c.name)

		done, err := f.Append(t.Context(), stream, ledger.NoStream, events...)
		require.NoError(t, err, c.name)
		requireSame(t, collect(t, l.ReadStream(t.Context(), stream, 0)), done.Events)
		require.Len(t, done.Events, 3, c.name)
		require.Equal(t, 2, f.Appends())
	}
	require.Equal(t, uint64(9), requireSound(t, l).Size())
}
