package faults

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/fakedaemon"
)

// ways is in how many ways something breaks that calls the daemon so often: each call in each kind that it
// can have, once and from there on; a flip of one field has no "from there on".
func ways(made map[fakedaemon.Call]int) int {
	n := 0
	for call, times := range made {
		for _, f := range fakedaemon.Cells(call) {
			if f.Effect.Kind() == fakedaemon.KindFlip {
				n += times
			} else {
				n += 2 * times
			}
		}
	}
	return n
}

// ailing is in how many ways something breaks that appends so often: each append, and one more that the
// fault may lead to, once and from there on; what somebody else does comes once.
func ailing(appends int) int {
	const others, blobs = 2, 1 // conflict and fenced; noBlob
	return (appends + 1) * (2*(len(ails)-others-blobs) + others)
}

// counted holds a table against the number of its cells as counted from what was broken, no two of them the
// same, and against a floor that undisturbed runs can't sink below unseen.
func counted[C fmt.Stringer](t *testing.T, all []C, want, floor int) {
	t.Helper()
	names := map[string]bool{}
	for _, c := range all {
		require.False(t, names[c.String()], "twice: %s", c)
		names[c.String()] = true
	}
	require.Len(t, all, want)
	require.GreaterOrEqual(t, want, floor)
	t.Logf("count: %d cells in all", len(all))
}
