package verify_test

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
)

// addUnder adds an attack on a ledger of its own.
func (c *corpus) addUnder(f *exporttest.Fixture, name string, file []byte, checks ...string) {
	c.attacks = append(c.attacks, attack{name: name, file: file, trust: &f.Identity, checks: checks})
}

// cutAttacks judge a change so that its stream counts as judged, and end it before the event that voids
// a claim.
func cutAttacks(c *corpus) {
	for name, breaking := range map[string]func(evidence.Context) evidence.Payload{
		"context set": func(now evidence.Context) evidence.Payload {
			now.Reductions = nil
			return evidence.ContextSet{Version: 1, Context: now}
		},
		"version added": func(now evidence.Context) evidence.Payload {
			return evidence.VersionAdded{Version: 2, Revision: now.Revision}
		},
	} {
		f, h := bound(c.t)
		f.Append(c.t, "change-fix", breaking(presentContext(c.t, f, "change-fix")))
		f.Run(c.t, h) // under a claim that this event made void
		file := f.Export(c.t, export.Request{Attempts: []evidence.AttemptID{"one"}})
		c.addUnder(f, "cut: "+name+" before the claim", file, verify.CheckClaim)
		judge := func(events int) []byte {
			return newOwner(c.t, f).bundle(file, func(p *bundle.Payload) {
				s := stream(p, "change-fix")
				s.Role, s.Events = bundle.Judged, s.Events[:len(s.Events)-events]
			})
		}
		c.addUnder(f, "cut: "+name+", its change judged", judge(0), verify.CheckClaim)
		c.addUnder(f, "cut: "+name+", its change judged and cut before the seal", judge(1), verify.CheckCompleteness)
		c.addUnder(f, "cut: "+name+", its change judged and cut before it", judge(2), verify.CheckCompleteness)
	}
}

// presentContext is the last context that a change's stream sets.
func presentContext(t require.TestingT, f *exporttest.Fixture, stream string) (c evidence.Context) {
	for e, err := range f.Ledger.ReadStream(context.Background(), ledger.StreamID(stream), 0) {
		require.NoError(t, err)
		if e.Type == (evidence.ContextSet{}).EventType() {
			var set evidence.ContextSet
			require.NoError(t, evidence.Unmarshal(e.Data, &set))
			c = set.Context
		}
	}
	return c
}
