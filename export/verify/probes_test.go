package verify_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
)

// probed is a change that was approved on attempt `good`, whose run relied on a probe of the seccomp filter;
// attempt `a` failed before, and relied on none. The probe's stream is returned.
func probed(t testing.TB) (*exporttest.Fixture, string) {
	t.Helper()
	f := exporttest.New(t)
	bad, h := evidencetest.Success(), evidencetest.Success()
	bad.Registered.Attempt, h.Registered.Attempt = "a", "good"
	b := f.Change(t, "fix", bad)
	bad.Exited.ExitCode = 1
	f.Run(t, bad)
	f.Bind(t, b, h)
	stream := h.BeforeCreate.Identity.Stream()
	values := h.Keep("probe", evidence.Marshal([]evidence.ControlValue{{ID: evidence.CtlSeccomp, Salt: evidence.Salt{1}, Expected: "2", Found: "2"}}))
	controls := []evidence.Control{{ID: evidence.CtlSeccomp, Kind: evidence.Probed, Equal: true, Value: evidence.SaltedSum(evidence.Salt{1}, []byte("2"))}}
	f.Append(t, stream, evidence.RuntimeProbed{Attempt: "probe", Controls: controls, Values: values})
	probe := f.Basis(t, stream)
	for _, o := range []*evidence.RuntimeObserved{h.BeforeCreate, h.BeforeStart, h.AfterExit} {
		o.Probe = &probe
	}
	f.Run(t, h)
	_, err := f.Journal().Approve(context.Background(), "fix", nil)
	require.NoError(t, err)
	return f, stream
}

// req C4, req T2: whichever attempt of an approved context a bundle is about, it holds the probes of the one that was
// relied on, and these are checked.
func TestProbesOfTheReliedAttempt(t *testing.T) {
	f, stream := probed(t)
	for _, ids := range [][]evidence.AttemptID{{"good"}, {"a", "good"}, {"a"}} {
		file := f.Export(t, export.Request{Attempts: ids})
		policy := verify.Policy{Trust: verify.TrustLedger(f.Identity)}
		r := verify.Verify(file, policy)
		require.Equal(t, verify.Valid, r.Verdict, "%v: %v", ids, r.Checks)
		require.Equal(t, verify.Pass, r.Check(verify.CheckAdmission).Result)
		without := forge(t, f, file, func(p *bundle.Payload) {
			p.Streams = slices.DeleteFunc(p.Streams, func(s bundle.Stream) bool { return s.Name == stream })
		})
		require.Equal(t, verify.Fail, verify.Verify(without, policy).Check(verify.CheckStreams).Result)
	}
}

// probeAttacks leave out or bend the probe that a relied attempt cites, in a bundle about another attempt.
func probeAttacks(c *corpus) {
	f, name := probed(c.t)
	file := f.Export(c.t, export.Request{Attempts: []evidence.AttemptID{"a"}})
	o := newOwner(c.t, f)
	c.addUnder(f, "probe: of the relied attempt, left out", o.bundle(file, func(p *bundle.Payload) { drop(p, name) }), verify.CheckStreams)
	c.addUnder(f, "probe: of the relied attempt, called basis", o.bundle(file, func(p *bundle.Payload) { stream(p, name).Role = bundle.Basis }), verify.CheckStreams)
	for what, bend := range map[string]func(*evidence.RuntimeProbed){
		"that saw no filter": func(e *evidence.RuntimeProbed) { e.Controls[0].Equal = false },
		"of another attempt": func(e *evidence.RuntimeProbed) { e.Attempt = "other" },
	} {
		o := newOwner(c.t, f)
		o.rewrite(o.index(name, "RuntimeProbed", 0), data(c.t, bend))
		c.addUnder(f, "probe: of the relied attempt, "+what, o.bundle(file), verify.CheckAdmission)
	}
}
