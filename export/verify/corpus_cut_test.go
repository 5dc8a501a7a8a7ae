package verify_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
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

// epochAttacks set a context under an epoch that is only to come, and have it there when the claim reads it.
func epochAttacks(c *corpus) {
	f, file := ahead(c.t, evidence.DefaultPolicy)
	c.addUnder(f, "epoch: a context of an epoch to come", file, verify.CheckHistory)
	f, file = ahead(c.t, "late")
	c.addUnder(f, "epoch: a context of a policy to come", file, verify.CheckHistory)
}

// ahead is the bundle of an approved attempt whose context is of an epoch that its policy reached after it.
func ahead(t testing.TB, policy evidence.PolicyID) (*exporttest.Fixture, []byte) {
	t.Helper()
	f := exporttest.New(t)
	h := evidencetest.Success()
	next := evidence.EpochAdvanced{Epoch: 1}
	if policy == evidence.DefaultPolicy {
		next.Epoch = 2
	}
	ctx := evidence.Context{
		Version: 1, Revision: h.Registered.Subject.Revision, Capabilities: []string{evidence.CapabilityCommand},
		Required:    []evidence.RequiredEvidence{{Kind: evidence.EvidenceCommand, Digest: evidence.PlainDigest(h.Recipe.Digest())}},
		Environment: h.Environment.Digest(), Policy: policy, Epoch: next.Epoch, Reductions: []evidence.Reduction{evidence.ReducedCgroupV1},
	}
	b := evidence.Binding{Repository: evidence.RepositoryID{0: 0x5e}, Change: "fix", Version: 1, Context: ctx.Digest()}
	f.Append(t, "change-fix", evidence.ChangeOpened{Change: b.Change, Repository: b.Repository},
		evidence.VersionAdded{Version: 1, Revision: ctx.Revision}, evidence.ContextSet{Version: 1, Context: ctx})
	f.Append(t, evidence.PolicyPrefix+string(policy), next)
	f.Bind(t, b, h)
	f.Run(t, h)
	_, err := f.Journal().Approve(context.Background(), b.Change, nil)
	require.NoError(t, err)
	return f, f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
}

// presentContext is the last context that a change's stream sets.
func presentContext(t testing.TB, f *exporttest.Fixture, stream string) (c evidence.Context) {
	t.Helper()
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
