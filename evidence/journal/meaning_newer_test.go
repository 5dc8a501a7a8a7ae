package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

// A context of an epoch that begins behind an event this version can't read is not called bad; one of an
// epoch from before it is still judged.
//
// req R7
func TestContextsUnderAPolicyOfANewerVersionAreCarried(t *testing.T) {
	led, j := begin(t)
	before := change(t, j, "before")
	later := raw(evidence.StreamSealed{})
	later.Type = "PolicyAnnotated"
	policy := force(t, led, journal.PolicyStream("main"), later)
	force(t, led, journal.PolicyStream("main"), raw(evidence.EpochAdvanced{Epoch: 2}))
	opens := func(id evidence.ChangeID, bend func(*evidence.Context)) ledger.Event {
		c := before
		bend(&c)
		force(t, led, journal.ChangeStream(id), raw(evidence.ChangeOpened{Change: id, Repository: evidence.RepositoryID{1}}))
		force(t, led, journal.ChangeStream(id), raw(evidence.VersionAdded{Version: 1, Revision: c.Revision}))
		return force(t, led, journal.ChangeStream(id), raw(evidence.ContextSet{Version: 1, Context: c}))
	}
	opens("present", func(*evidence.Context) {})
	ahead := opens("ahead", func(c *evidence.Context) { c.Epoch = 2 })
	m, err := visit(t, led)
	require.NoError(t, err)
	require.Equal(t, []journal.Unread{
		{Index: policy.Index, Stream: policy.Stream, Version: policy.Version, Type: "PolicyAnnotated", Schema: 1},
		{Index: ahead.Index, Stream: ahead.Stream, Version: ahead.Version, Type: "ContextSet", Schema: 1},
	}, m.Unread())
}
