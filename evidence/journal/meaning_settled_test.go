package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
)

// An attempt that finishes, and is sealed, after its version of the change ended is sound; no judgement can
// rest on it.
func TestMeaningOfAnAttemptThatOutlivesItsVersion(t *testing.T) {
	led, j := begin(t)
	change(t, j, "c")
	_, err := j.Register(t.Context(), forChange("one", "c"))
	require.NoError(t, err)
	p, err := j.Claim(t.Context(), "one", 0, runner)
	require.NoError(t, err)
	events := afterClaim()
	_, err = p.Append(t.Context(), events[:2]...)
	require.NoError(t, err)
	a, err := j.Attempt(t.Context(), "one")
	require.NoError(t, err)
	request, ok := a.Fold.Request()
	require.True(t, ok)
	custody, ok := events[2].(evidence.CustodyTaken)
	require.True(t, ok)
	custody.Request = request.Digest()
	events[2] = custody
	_, err = p.Append(t.Context(), events[2:]...)
	require.NoError(t, err)
	moves["version"](t, j)
	_, _, err = p.Finish(t.Context())
	require.NoError(t, err)
	force(t, led, journal.AttemptStream("one"), raw(evidence.StreamSealed{}))
	requireSound(t, led)
}
