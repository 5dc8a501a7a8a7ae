package verify_test

import (
	"encoding/json"
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

// req T2 and T10, admission and witnesses apart: whoever holds the bundle and ledger.pub reaches the owner's verdict, with each check
// listed; the JSON has its agreed names.
func TestValid(t *testing.T) {
	f, file := one(t)
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
	require.Equal(t, verify.Valid, r.Verdict)
	require.True(t, r.Reached)
	require.Equal(t, evidence.OutcomeSuccess, r.Outcome)
	require.Equal(t, evidence.ClaimReduced, r.Claim)
	require.Equal(t, "times: the writer's claim; existed by: no outside witness", r.Times)
	require.Len(t, r.Checks, len(verify.Checks()))
	for _, c := range r.Checks {
		want := verify.Pass
		if c.Name == verify.CheckAdmission || c.Name == verify.CheckWitness || c.Name == verify.CheckKept {
			want = verify.NotDone
		}
		require.Equal(t, want, c.Result, "%s: %s", c.Name, c.Detail)
	}
	require.Len(t, r.Attempts, 1)
	a := r.Attempts[0]
	require.Equal(t, a.Record.Digest(), a.RecordDigest)
	require.Equal(t, []string{"/bin/tool", "-l", "."}, a.Recipe.Argv())
	require.Equal(t, "a.txt\n", string(a.Output[0].Bytes))
	require.Len(t, a.Timeline, 18)

	b, err := json.Marshal(r)
	require.NoError(t, err)
	var view struct {
		Verdict, Outcome, Claim string
		Checks                  []struct{ Name, Result, Detail string }
	}
	require.NoError(t, json.Unmarshal(b, &view))
	require.Equal(t, "valid", view.Verdict)
	require.Equal(t, "success", view.Outcome)
	require.Equal(t, "reduced", view.Claim)
	require.Equal(t, "envelope", view.Checks[0].Name)
	require.Equal(t, "pass", view.Checks[0].Result)
}

// Law 6: a failed run is exported and verified like a successful one.
func TestFailureIsEvidenceToo(t *testing.T) {
	f := exporttest.New(t)
	h := evidencetest.Success()
	h.Exited.ExitCode = 3
	f.Run(t, h)
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
	require.Equal(t, verify.Valid, r.Verdict)
	require.Equal(t, evidence.OutcomeFailed, r.Outcome)
	require.True(t, r.Reached)
	r = verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity), Require: verify.Success})
	require.Equal(t, verify.Valid, r.Verdict)
	require.False(t, r.Reached)
	require.Equal(t, "the outcome is failed", r.Why)
}

// req T2, admission apart: what each level asks for.
func TestLevels(t *testing.T) {
	f, file := one(t)
	for _, c := range []struct {
		level   verify.Level
		trust   verify.Trust
		reached bool
		why     string
	}{
		{"", verify.TrustLedger(f.Identity), true, ""},
		{verify.Authentic, verify.TrustLedger(f.Identity), true, ""},
		{verify.Success, verify.TrustLedger(f.Identity), true, ""},
		{verify.Admitted, verify.TrustLedger(f.Identity), false, "admission: an attempt is bound to no change; it admits nothing"},
		{verify.Full, verify.TrustLedger(f.Identity), false, "admission: an attempt is bound to no change; it admits nothing"},
		{verify.Authentic, verify.Trust{}, false, "the verdict is not_checked"},
	} {
		r := verify.Verify(file, verify.Policy{Trust: c.trust, Require: c.level})
		require.Equal(t, c.reached, r.Reached, c.level)
		require.Equal(t, c.why, r.Why, c.level)
	}
	for _, l := range verify.Levels() {
		got, err := verify.ParseLevel(string(l))
		require.NoError(t, err)
		require.Equal(t, l, got)
	}
	_, err := verify.ParseLevel("good")
	require.Error(t, err)
}

// req T2, admission apart: without a key nothing is better than not checked, and a bare key vouches for the rest.
func TestTrust(t *testing.T) {
	f, file := one(t)
	none := verify.Verify(file, verify.Policy{})
	require.Equal(t, verify.NotChecked, none.Verdict)
	require.Equal(t, verify.NotDone, none.Check(verify.CheckSignature).Result)
	require.Equal(t, verify.NotDone, none.Check(verify.CheckIdentity).Result)

	bare := verify.Verify(file, verify.Policy{Trust: verify.TrustKey(f.Identity.Bundle)})
	require.Equal(t, verify.Valid, bare.Verdict)
	require.True(t, bare.Keys.Endorsed)
	require.Contains(t, bare.Check(verify.CheckIdentity).Detail, "endorsed by the bundle key")

	text, err := bundle.FormatIdentity(f.Identity)
	require.NoError(t, err)
	for name, pub := range map[string][]byte{"ledger.pub": []byte(text), "PEM": bundle.FormatKey(f.Identity.Bundle)} {
		trust, err := verify.ParseTrust(pub)
		require.NoError(t, err, name)
		require.Equal(t, verify.Valid, verify.Verify(file, verify.Policy{Trust: trust}).Verdict, name)
	}
	for _, bad := range []string{"", "baildock-ledger/v1\n", "-----BEGIN PUBLIC KEY-----\n", text + "\n"} {
		_, err := verify.ParseTrust([]byte(bad))
		require.Error(t, err)
	}

	// A broken signature is bad evidence even when nobody is trusted.
	for _, p := range []verify.Policy{{}, {Trust: verify.TrustLedger(f.Identity)}, {Trust: verify.TrustKey(f.Identity.Bundle)}} {
		broken := append([]byte{}, file...)
		broken[len(broken)-1] ^= 1
		r := verify.Verify(broken, p)
		require.Equal(t, verify.Invalid, r.Verdict)
		require.Equal(t, verify.Fail, r.Check(verify.CheckSignature).Result)
	}
}

// T9, admission apart: what is missing weakens the verdict until it is allowed by name, and then only its own
// checks stay undone.
func TestWithheld(t *testing.T) {
	f := exporttest.New(t)
	f.Run(t, evidencetest.Success())
	undone := map[bundle.Class]string{
		bundle.ClassOutput: verify.CheckOutput, bundle.ClassRecipe: verify.CheckRecipe, bundle.ClassEnv: verify.CheckRecipe,
		bundle.ClassSource: verify.CheckSource, bundle.ClassControls: verify.CheckControls,
	}
	for _, c := range bundle.Withholdables() {
		file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}, Withhold: []bundle.Class{c}})
		strict := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
		if c == bundle.ClassDetail || c == bundle.ClassSalts || c == bundle.ClassChanges {
			require.Equal(t, verify.Valid, strict.Verdict, "this attempt names no %s", c)
			continue
		}
		require.Equal(t, verify.NotChecked, strict.Verdict, c)
		require.False(t, strict.Reached)
		allowed := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity), AllowWithheld: []bundle.Class{c}, Require: verify.Success})
		require.Equal(t, verify.Valid, allowed.Verdict, c)
		require.True(t, allowed.Reached, c)
		for _, check := range allowed.Checks {
			want := verify.Pass
			switch check.Name {
			case verify.CheckControls:
				if slices.Contains(bundle.WithThem([]bundle.Class{c}), bundle.ClassControls) {
					want = verify.NotDone
				}
			case undone[c], verify.CheckWithheld, verify.CheckAdmission, verify.CheckWitness, verify.CheckKept:
				want = verify.NotDone
			}
			require.Equal(t, want, check.Result, "%s withheld: %s: %s", c, check.Name, check.Detail)
		}
		other := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity), AllowWithheld: []bundle.Class{"other"}})
		require.Equal(t, verify.NotChecked, other.Verdict, c)
	}
}

// req T3: "1 of N" counts the attempts that the change listed up to the judgement, and the bundle
// shows the basis of the claim.
func TestBoundAttempt(t *testing.T) {
	f := exporttest.New(t)
	first, h, later := evidencetest.Success(), evidencetest.Success(), evidencetest.Success()
	first.Registered.Attempt, later.Registered.Attempt = "zero", "two"
	b := f.Change(t, "fix", first)
	f.Bind(t, b, h)
	f.Run(t, h)
	f.Bind(t, b, later)
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity), Require: verify.Success})
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.Equal(t, &verify.ChangeSeen{Change: "fix", Number: 2, Listed: 2, Others: 1}, r.Attempts[0].Change)
}

// Several attempts make one bundle; the outcome shown is the first that is no success.
func TestSeveralAttempts(t *testing.T) {
	f := exporttest.New(t)
	f.Run(t, evidencetest.Success())
	two := evidencetest.Success()
	two.Registered.Attempt = "two"
	two.Custody.Request = two.Request()
	two.Exited.ExitCode = 1
	f.Run(t, two)
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"two", "one", "two"}})
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
	require.Equal(t, verify.Valid, r.Verdict)
	require.Len(t, r.Attempts, 2)
	require.Equal(t, evidence.OutcomeFailed, r.Outcome)
}

// A pending attempt that was cancelled has neither claim nor container, and still verifies.
func TestCancelledPending(t *testing.T) {
	f := exporttest.New(t)
	h := evidencetest.Success()
	fenced := evidence.AttemptFenced{Generation: 1, By: evidence.FencedByCancel}
	a, err := evidence.Fold(*h.Registered, fenced)
	require.NoError(t, err)
	f.Keep(t, h)
	f.Append(t, "attempt-one", *h.Registered, fenced, evidence.AttemptFinished{Record: evidence.RecordOf(&a).Digest()})
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.Equal(t, evidence.OutcomeCancelled, r.Outcome)
	require.Equal(t, evidence.ClaimNone, r.Claim)
}

// req C4: the probe a run relied on is in the bundle, named as what it is.
func TestProbeIsCited(t *testing.T) {
	r := citing(t, true)
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.Equal(t, []verify.ControlSeen{{ID: evidence.CtlSeccomp, Name: "seccomp", Kind: evidence.Probed, Equal: true, Opened: true, Expected: "2", Found: "2"}}, r.Attempts[0].Probed)

	r = citing(t, false)
	require.Equal(t, verify.Invalid, r.Verdict, "a probe that didn't see the filter proves nothing")
	require.Contains(t, r.Check(verify.CheckClaim).Detail, "didn't see the seccomp filter")
}

// citing verifies a run that relied on a probe.
func citing(t *testing.T, saw bool) verify.Report {
	f := exporttest.New(t)
	h := evidencetest.Success()
	stream := h.BeforeCreate.Identity.Stream()
	w := h.Keep("probe", evidence.Marshal([]evidence.ControlValue{{ID: evidence.CtlSeccomp, Salt: evidence.Salt{1}, Expected: "2", Found: "2"}}))
	probed := []evidence.Control{{ID: evidence.CtlSeccomp, Kind: evidence.Probed, Equal: saw, Value: evidence.SaltedSum(evidence.Salt{1}, []byte("2"))}}
	f.Append(t, stream, evidence.RuntimeProbed{Attempt: "probe", Controls: probed, Values: w}, evidence.StreamSealed{})
	b := f.Basis(t, stream)
	b.Version, b.Leaf = 0, leafOf(t, f, stream, 0)
	for _, o := range []*evidence.RuntimeObserved{h.BeforeCreate, h.BeforeStart, h.AfterExit} {
		o.Probe = &b
	}
	f.Run(t, h)
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
	return verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
}

// P4, in bundles: what is printed fits the report.
func TestStatements(t *testing.T) {
	f, file := one(t)
	ids := func(p verify.Policy) (out []evidence.StatementID) {
		for _, s := range verify.Verify(file, p).Claims {
			out = append(out, s.ID)
		}
		return out
	}
	require.Contains(t, ids(verify.Policy{Trust: verify.TrustLedger(f.Identity)}), evidence.StatementID("BD-C1"))
	require.NotContains(t, ids(verify.Policy{}), evidence.StatementID("BD-C1"))
	require.Contains(t, ids(verify.Policy{Trust: verify.TrustKey(f.Identity.Bundle)}), evidence.StatementID("BD-N14"))
	require.NotContains(t, ids(verify.Policy{Trust: verify.TrustLedger(f.Identity)}), evidence.StatementID("BD-N14"))
}
