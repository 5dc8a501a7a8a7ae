package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/containment"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
)

func contained(t *testing.T, bend func(*evidencetest.History), r export.Request) (verify.Report, bundle.Payload) {
	t.Helper()
	f := exporttest.New(t)
	h := evidencetest.Contained()
	if bend != nil {
		bend(h)
	}
	f.Run(t, h)
	r.Attempts = []evidence.AttemptID{"one"}
	payload, _ := f.Payload(t, r)
	p, err := bundle.Unmarshal(payload)
	require.NoError(t, err)
	file, err := export.Sign(payload, f.Key)
	require.NoError(t, err)
	return verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity), Require: verify.Success}), p
}

// The salts of a committed environment leave the ledger only where they are named; no check needs
// them, and the value itself is nowhere.
//
// req L5
func TestSaltsAreShownOnlyWhenNamed(t *testing.T) {
	salts := bundle.BlobDigest(evidencetest.Contained().Registered.Salts.Salted)
	r, p := contained(t, nil, export.Request{})
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.True(t, r.Reached, r.Why)
	_, held := p.Blob(salts)
	require.False(t, held)

	r, p = contained(t, nil, export.Request{Disclose: []bundle.Class{bundle.ClassSalts}})
	require.True(t, r.Reached, r.Why)
	shown, held := p.Blob(salts)
	require.True(t, held)
	var list []evidence.EnvSalt
	require.NoError(t, evidence.Unmarshal(shown, &list))
	env, _ := p.Blob(bundle.BlobDigest(evidencetest.Contained().Environment.Digest()))
	var e evidence.Environment
	require.NoError(t, evidence.Unmarshal(env, &e))
	require.NoError(t, e.Opens([]evidence.EnvOpening{{Name: list[0].Name, Value: evidencetest.Secret, Salt: list[0].Salt}}), "an auditor who knows the value")
	for _, b := range p.Blobs {
		require.NotContains(t, string(b.Data), evidencetest.Secret)
	}
}

// req N7: a run that broke its policy is authentic, and no success to whoever asks for one.
func TestABrokenPolicyIsNoSuccess(t *testing.T) {
	r, _ := contained(t, func(h *evidencetest.History) { *h = *evidencetest.Violated() }, export.Request{})
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.Equal(t, evidence.OutcomeSuccess, r.Outcome)
	require.False(t, r.Reached)
	require.Contains(t, r.Why, "policy_violated")
}

// req P1: the object a reader derives from a bundle is the one the writer derived from the events.
func TestContainmentIsDerivedAgain(t *testing.T) {
	h := evidencetest.Contained()
	r, _ := contained(t, nil, export.Request{})
	a, err := evidence.Fold(h.Finished()...)
	require.NoError(t, err)
	var values []evidence.ControlValue
	for _, w := range h.Blobs {
		if w.Ref == h.Isolation.Values {
			require.NoError(t, evidence.Unmarshal(w.Bytes, &values))
		}
	}
	require.Equal(t, containment.Of(&a, containment.Blobs{Recipe: &h.Recipe, Environment: &h.Environment, Values: values}), r.Attempts[0].Containment)

	r, _ = contained(t, nil, export.Request{Withhold: []bundle.Class{bundle.ClassRecipe, bundle.ClassEnv}})
	require.Equal(t, containment.Of(&a, containment.Blobs{}), r.Attempts[0].Containment)
}

func TestWithheldChanges(t *testing.T) {
	r, _ := contained(t, nil, export.Request{Withhold: []bundle.Class{bundle.ClassChanges}})
	require.Equal(t, verify.NotChecked, r.Verdict)
}

// req N7: whoever holds the mutations and the policy decides each check again, and counts again.
func TestWorkspaceIsJudgedAgain(t *testing.T) {
	for name, bend := range map[string]func(*evidencetest.History){
		"a check that broke is called held":  func(h *evidencetest.History) { *h = *evidencetest.Violated(); h.Policy.Checks[1].Held = true },
		"a check that held is called broken": func(h *evidencetest.History) { h.Policy.Checks[1].Held = false },
		"a check left out":                   func(h *evidencetest.History) { h.Policy.Checks = h.Policy.Checks[:1] },
		"another count":                      func(h *evidencetest.History) { h.Mutated.Added, h.Mutated.Modified = 0, 1 },
		"another list":                       func(h *evidencetest.History) { ref := h.Keep("odd", []byte("odd")); h.Mutated.Mutations = &ref },
		"another baseline":                   func(h *evidencetest.History) { h.Materialized.Manifest[0]++; h.Custody.Request = h.Request() },
		"another size":                       func(h *evidencetest.History) { h.Materialized.Bytes++ },
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := contained(t, bend, export.Request{})
			require.Equal(t, verify.Invalid, r.Verdict)
			require.Equal(t, verify.Fail, r.Check(verify.CheckSource).Result, "%v", r.Checks)
		})
	}
}
