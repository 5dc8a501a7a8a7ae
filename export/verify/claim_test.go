package verify_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
)

// bound is an attempt of a change, claimed on the present basis, not yet stored.
func bound(t testing.TB) (*exporttest.Fixture, *evidencetest.History) {
	t.Helper()
	f := exporttest.New(t)
	h := evidencetest.Success()
	f.Change(t, "fix", h)
	return f, h
}

func verified(t testing.TB, f *exporttest.Fixture) verify.Report {
	t.Helper()
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
	return verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
}

// req H5: a claim that lost a race is void, and says so; the verifier judges it alike.
func TestVoidClaimIsJudgedAgain(t *testing.T) {
	f, h := bound(t)
	moved := f.Append(t, "policy-main", evidence.EpochAdvanced{Epoch: 2})[0]
	breaking := evidence.Basis{Stream: "policy-main", Version: uint64(moved.Version), Leaf: evidence.LeafDigest(moved.Leaf())}
	voided := evidence.ClaimVoided{Breaking: breaking}
	a, err := evidence.Fold(*h.Registered, *h.Claimed, voided)
	require.NoError(t, err)
	f.Keep(t, h)
	f.Append(t, "attempt-one", *h.Registered, *h.Claimed, voided, evidence.AttemptFinished{Record: evidence.RecordOf(&a).Digest()})
	r := verified(t, f)
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.Equal(t, "void_claim", r.Attempts[0].Record.Detail)
}

// req H5, req T3: an event that changes the basis after it was read and before the claim makes custody
// under that claim bad evidence; the same event after the claim doesn't.
func TestUnadmittedVoidClaim(t *testing.T) {
	f, h := bound(t)
	f.Append(t, "policy-main", evidence.EpochAdvanced{Epoch: 2})
	f.Run(t, h)
	r := verified(t, f)
	require.Equal(t, verify.Invalid, r.Verdict)
	require.Contains(t, r.Check(verify.CheckClaim).Detail, "its claim is void: EpochAdvanced")

	// A runner that died before it could say so took no custody; its attempt was recovered.
	f, h = bound(t)
	f.Append(t, "policy-main", evidence.EpochAdvanced{Epoch: 2})
	fenced := evidence.AttemptFenced{Generation: 2, By: evidence.FencedByRecover}
	a, err := evidence.Fold(*h.Registered, *h.Claimed, fenced)
	require.NoError(t, err)
	f.Keep(t, h)
	f.Append(t, "attempt-one", *h.Registered, *h.Claimed, fenced, evidence.AttemptFinished{Record: evidence.RecordOf(&a).Digest()})
	require.Equal(t, verify.Valid, verified(t, f).Verdict)

	f, h = bound(t)
	f.Run(t, h)
	f.Append(t, "policy-main", evidence.EpochAdvanced{Epoch: 2})
	require.Equal(t, verify.Valid, verified(t, f).Verdict)

	f, h = bound(t)
	f.Append(t, "policy-main", evidence.StreamSealed{})
	f.Run(t, h)
	require.Equal(t, verify.Valid, verified(t, f).Verdict, "a seal changes nothing")
}

// req G1, req G2, req H5: claims and listings that don't fit what they rest on.
func TestBadClaims(t *testing.T) {
	for name, c := range map[string]struct {
		check string
		bend  func(*exporttest.Fixture, *evidencetest.History)
	}{
		"voided by what broke nothing": {verify.CheckClaim, func(f *exporttest.Fixture, h *evidencetest.History) {
			v := evidence.ClaimVoided{Breaking: h.Claimed.Basis[1]}
			a, err := evidence.Fold(*h.Registered, *h.Claimed, v)
			require.NoError(t, err)
			f.Keep(t, h)
			f.Append(t, "attempt-one", *h.Registered, *h.Claimed, v, evidence.AttemptFinished{Record: evidence.RecordOf(&a).Digest()})
		}},
		"voided by what came second": {verify.CheckClaim, func(f *exporttest.Fixture, h *evidencetest.History) {
			f.Append(t, "change-fix", evidence.VersionAdded{Version: 2, Revision: h.Registered.Subject.Revision})
			second := f.Append(t, "policy-main", evidence.EpochAdvanced{Epoch: 2})[0]
			v := evidence.ClaimVoided{Breaking: evidence.Basis{Stream: "policy-main", Version: uint64(second.Version), Leaf: evidence.LeafDigest(second.Leaf())}}
			a, err := evidence.Fold(*h.Registered, *h.Claimed, v)
			require.NoError(t, err)
			f.Keep(t, h)
			f.Append(t, "attempt-one", *h.Registered, *h.Claimed, v, evidence.AttemptFinished{Record: evidence.RecordOf(&a).Digest()})
		}},
		"rests on another leaf": {verify.CheckClaim, func(f *exporttest.Fixture, h *evidencetest.History) {
			h.Claimed.Basis[0].Leaf[0] ^= 1
			f.Run(t, h)
		}},
		"rests on a version before the context": {verify.CheckClaim, func(f *exporttest.Fixture, h *evidencetest.History) {
			h.Claimed.Basis[0].Version = 1
			h.Claimed.Basis[0].Leaf = leafOf(t, f, "change-fix", 1)
			f.Run(t, h)
		}},
		"doesn't rest on the policy": {verify.CheckClaim, func(f *exporttest.Fixture, h *evidencetest.History) {
			h.Claimed.Basis = h.Claimed.Basis[:1]
			f.Run(t, h)
		}},
		"rests on what came later": {verify.CheckClaim, func(f *exporttest.Fixture, h *evidencetest.History) {
			// The claim names the leaf of a seal that is appended behind it: the leaf is known before.
			f.Keep(t, h)
			prepared, leaf := nextSeal(t, f, "policy-main")
			h.Claimed.Basis[1].Version++
			h.Claimed.Basis[1].Leaf = leaf
			f.Append(t, "attempt-one", h.Finished()...)
			_, err := f.Ledger.Append(context.Background(), "policy-main", 0, prepared)
			require.NoError(t, err)
			f.Append(t, "policy-main", evidence.StreamSealed{})
		}},
		"not listed by its change": {verify.CheckHistory, func(f *exporttest.Fixture, h *evidencetest.History) {
			h.Registered.Attempt = "two"
			h.Custody.Request = h.Request()
			f.Run(t, h)
		}},
		"listed with another registration": {verify.CheckHistory, func(f *exporttest.Fixture, h *evidencetest.History) {
			d := evidence.ToolchainDigest{1}
			h.Registered.Toolchain = &d
			h.Custody.Request = h.Request()
			f.Run(t, h)
		}},
		"request of another generation": {verify.CheckRequest, func(f *exporttest.Fixture, h *evidencetest.History) {
			h.Custody.Request[0] ^= 1
			f.Run(t, h)
		}},
	} {
		f, h := bound(t)
		c.bend(f, h)
		id := h.Registered.Attempt
		file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{id}})
		r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
		require.Equal(t, verify.Invalid, r.Verdict, name)
		require.Equal(t, verify.Fail, r.Check(c.check).Result, "%s: %v", name, r.Checks)
	}
}

// nextSeal prepares the event that will follow a stream's end and computes its leaf.
func nextSeal(t testing.TB, f *exporttest.Fixture, stream ledger.StreamID) (ledger.Prepared, evidence.LeafDigest) {
	t.Helper()
	meta, data := evidence.Encode(evidence.StreamSealed{}, evidence.Meta{Schema: 1, Actor: "test", Nonce: evidence.Nonce{9}})
	p := ledger.Prepared{Type: "StreamSealed", Media: evidence.Media, Meta: meta, Data: data}
	last, _, err := f.Ledger.Head(context.Background(), stream)
	require.NoError(t, err)
	_, leaves := ledger.Chain(stream, last.Head(), p)
	return p, evidence.LeafDigest(leaves[0])
}

// req R7: an event type that this program doesn't know is neither good nor bad.
func TestNewerEventIsNotChecked(t *testing.T) {
	f := exporttest.New(t)
	f.Run(t, evidencetest.Success())
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
	require.Equal(t, verify.Valid, verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)}).Verdict)

	g := exporttest.New(t)
	g.Run(t, evidencetest.Success())
	meta, data := evidence.Encode(evidence.StreamSealed{}, evidence.Meta{Schema: 1, Actor: "test"})
	_, err := g.Ledger.Append(context.Background(), evidence.LedgerStream, 0, ledger.Prepared{Type: "KeyRotated", Media: evidence.Media, Meta: meta, Data: data})
	require.NoError(t, err)
	newer := handmade(t, g, []string{"attempt-one", "ledger"})
	r := verify.Verify(newer, verify.Policy{Trust: verify.TrustLedger(g.Identity)})
	require.Equal(t, verify.NotChecked, r.Verdict, "%v", r.Checks)
	require.Equal(t, verify.NotDone, r.Check(verify.CheckIdentity).Result)
	require.Contains(t, r.Check(verify.CheckEvents).Detail, "KeyRotated")
}

// req T3, req H5: a change's stream that is judged itself shows what came before a claim as any other does,
// and it is sealed for that: an honest bundle of a change and its attempt is as good as the attempt's own.
func TestClaimOnAJudgedChange(t *testing.T) {
	f, h := bound(t)
	f.Run(t, h)
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}, Changes: []evidence.ChangeID{"fix"}})
	policy := verify.Policy{Trust: verify.TrustLedger(f.Identity), Require: verify.Success}
	r := verify.Verify(file, policy)
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.True(t, r.Reached, r.Why)
	cut := forge(t, f, file, func(p *bundle.Payload) { s := stream(p, "change-fix"); s.Events = s.Events[:len(s.Events)-1] })
	r = verify.Verify(cut, policy)
	require.Equal(t, verify.Invalid, r.Verdict)
	require.Equal(t, verify.Fail, r.Check(verify.CheckCompleteness).Result, "%v", r.Checks)
}

// req G2, req T2: a context under an epoch that its policy had not reached there is bad evidence, whatever the
// claim and the approval read later; the audit of the same ledger says so too.
func TestContextOfAnEpochToCome(t *testing.T) {
	for policy, why := range map[evidence.PolicyID]string{
		evidence.DefaultPolicy: "it is of epoch 2 of policy main, which was at epoch 1",
		"late":                 "it is of epoch 1 of policy late, which was at epoch 0",
	} {
		f, file := ahead(t, policy)
		r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity), Require: verify.Admitted})
		require.Equal(t, verify.Invalid, r.Verdict, "%v", r.Checks)
		require.Contains(t, r.Check(verify.CheckHistory).Detail, why)
		var m journal.Meaning
		var bad *journal.BadEventError
		for e, err := range f.Ledger.ReadAll(context.Background(), 0) {
			require.NoError(t, err)
			if err := m.Visit(e); err != nil {
				require.ErrorAs(t, err, &bad)
				break
			}
		}
		require.NotNil(t, bad)
	}
}
