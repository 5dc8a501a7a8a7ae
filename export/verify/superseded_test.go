package verify_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/verify"
)

// req T2, req I4: a whole change is admitted by the approval of its last context: attempts that failed, and those
// of contexts before, are counted and need be no success. A newer context without an approval is not passed over.
func TestWholeChangeIsAdmitted(t *testing.T) {
	c := hold(t, "a")
	reached := func(l verify.Level, r export.Request) bool {
		got := c.verify(t, c.Export(t, r), l)
		require.Equal(t, verify.Valid, got.Verdict, "%v", got.Checks)
		return got.Reached
	}
	both := export.Request{Attempts: []evidence.AttemptID{"a", "good"}}
	require.False(t, reached(verify.Admitted, both), "nothing was approved")
	c.approve(t)
	require.True(t, reached(verify.Admitted, both))
	require.True(t, reached(verify.Full, both))
	require.False(t, reached(verify.Success, both))
	require.True(t, reached(verify.Admitted, good))
	require.False(t, reached(verify.Admitted, export.Request{Attempts: []evidence.AttemptID{"a"}}), "it is about a failure only")

	// A second version, with a context of its own, in which one attempt fails and another one is relied on.
	next := presentContext(t, c.Fixture, "change-fix")
	next.Revision = strings.Repeat("e", 40)
	c.Append(t, "change-fix", evidence.VersionAdded{Version: 2, Revision: next.Revision}, evidence.ContextSet{Version: 2, Context: next})
	ch, err := c.j.Change(context.Background(), "fix")
	require.NoError(t, err)
	b, _ := ch.Fold.Binding()
	for _, id := range []evidence.AttemptID{"b", "better"} {
		h := evidencetest.Success()
		h.Registered.Attempt, h.Registered.Subject.Revision = id, next.Revision
		c.Bind(t, b, h)
		if id == "b" {
			h.Exited.ExitCode = 1
		}
		c.Run(t, h)
	}
	all := export.Request{Attempts: []evidence.AttemptID{"a", "b", "better", "good"}}
	require.False(t, reached(verify.Admitted, all), "the last context has no approval")
	require.False(t, reached(verify.Admitted, export.Request{Attempts: []evidence.AttemptID{"b", "good"}}))
	c.approve(t)
	require.True(t, reached(verify.Admitted, all))
	require.False(t, reached(verify.Admitted, export.Request{Attempts: []evidence.AttemptID{"b", "good"}}), "what succeeded was superseded")
	all.Changes = []evidence.ChangeID{"fix"}
	require.True(t, reached(verify.Admitted, all))
}
