package verify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/schemas"
)

// policySchema validates a policy file as somebody else's tool would.
func policySchema(t testing.TB) func(string) error {
	t.Helper()
	s, err := schemas.Find("verification-policy")
	require.NoError(t, err)
	text, err := jsonschema.UnmarshalJSON(strings.NewReader(s.Text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", text))
	compiled, err := c.Compile("schema.json")
	require.NoError(t, err)
	return func(document string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
		if err != nil {
			return err
		}
		return compiled.Validate(v)
	}
}

func quoted(t testing.TB, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	require.NoError(t, err)
	return string(b)
}

func identityText(t testing.TB, i bundle.Identity) string {
	t.Helper()
	text, err := bundle.FormatIdentity(i)
	require.NoError(t, err)
	return text
}

// Each member of a policy file arrives in the policy, and the schema agrees with the parser.
func TestParsePolicy(t *testing.T) {
	f, _ := one(t)
	valid := policySchema(t)
	alice, err := onlooker("alice", 1).Key()
	require.NoError(t, err)
	note := string(checkpointOf(t, f).Note)
	text := fmt.Sprintf(`{"version": 1, "trust": [%s], "require": "admitted", "claim": "reduced", "reductions": ["cgroup-v1"],
		"required_checks": ["kept", "schemas"], "allow_withheld": ["output"], "checkpoint": %s,
		"witnesses": {"quorum": 1, "keys": [%s]}}`, quoted(t, identityText(t, f.Identity)), quoted(t, note), quoted(t, alice.String()))
	require.NoError(t, valid(text))
	p, err := verify.ParsePolicy([]byte(text))
	require.NoError(t, err)
	require.Equal(t, verify.TrustLedger(f.Identity), p.Trust)
	require.Equal(t, verify.Admitted, p.Require)
	require.Equal(t, evidence.ClaimReduced, p.Claim)
	require.Equal(t, []evidence.Reduction{evidence.ReducedCgroupV1}, p.Reductions)
	require.Equal(t, []string{"kept", "schemas"}, p.RequiredChecks)
	require.Equal(t, []bundle.Class{bundle.ClassOutput}, p.AllowWithheld)
	require.Equal(t, note, string(p.Kept))
	require.Equal(t, 1, p.Witnesses.Quorum)
	require.Equal(t, alice.String(), p.Witnesses.Witnesses[0].String())

	require.NoError(t, valid(`{"version": 1}`))
	p, err = verify.ParsePolicy([]byte(`{"version": 1}`))
	require.NoError(t, err)
	require.True(t, p.Trust.None())
	require.Equal(t, verify.Policy{}, p)
}

// What a policy file may not hold. The schema refuses the same, as far as a schema sees.
func TestPolicyRefused(t *testing.T) {
	valid := policySchema(t)
	alice, err := onlooker("alice", 1).Key()
	require.NoError(t, err)
	long := `{"version": 1, "require": "` + strings.Repeat("x", verify.MaxPolicy) + `"}`
	for _, c := range []struct {
		text, why string
		unseen    bool // by the schema
	}{
		{text: ``, why: "no JSON"},
		{text: `[]`, why: "no JSON object"},
		{text: `{"version": 1`, why: "no JSON"},
		{text: `{"version": 1} {}`, why: "something follows"},
		{text: "{\"version\": 1, \"require\": \"\xff\"}", why: "not UTF-8"},
		{text: long, why: "at most"},
		{text: `{}`, why: "version must be there"},
		{text: `{"version": 2}`, why: "version must be there, and 1"},
		{text: `{"version": "1"}`, why: "a number belongs there"},
		{text: `{"version": null}`, why: "null"},
		{text: `{"version": 1, "versions": 1}`, why: `member "versions" is not known`},
		{text: `{"version": 1, "Require": "full"}`, why: `member "Require" is not known`},
		{text: `{"version": 1, "require": "full", "require": "authentic"}`, why: `"require" is there twice`},
		{text: `{"version": 1, "require": "everything"}`, why: "level"},
		{text: `{"version": 1, "require": ""}`, why: "level"},
		{text: `{"version": 1, "require": null}`, why: "null"},
		{text: `{"version": 1, "require": ["full"]}`, why: "require"},
		{text: `{"version": 1, "claim": "none"}`, why: "claim"},
		{text: `{"version": 1, "claim": ""}`, why: "claim"},
		{text: `{"version": 1, "claim": "full", "reductions": ["cgroup-v1"]}`, why: `needs claim "reduced"`, unseen: true},
		{text: `{"version": 1, "reductions": ["cgroup-v1"]}`, why: `needs claim "reduced"`},
		{text: `{"version": 1, "claim": "reduced", "reductions": ["luck"]}`, why: "reduction"},
		{text: `{"version": 1, "claim": "reduced", "reductions": []}`, why: "reductions is empty"},
		{text: `{"version": 1, "required_checks": ["everything"]}`, why: "check"},
		{text: `{"version": 1, "required_checks": "kept"}`, why: "required_checks"},
		{text: `{"version": 1, "required_checks": ["kept", "kept"]}`, why: "twice"},
		{text: `{"version": 1, "required_checks": [null]}`, why: "null"},
		{text: `{"version": 1, "allow_withheld": ["profile"]}`, why: "allow_withheld"},
		{text: `{"version": 1, "allow_withheld": []}`, why: "allow_withheld is empty"},
		{text: `{"version": 1, "trust": []}`, why: "trust is empty"},
		{text: `{"version": 1, "trust": ["me"]}`, why: "trust, entry 1", unseen: true},
		{text: `{"version": 1, "trust": [` + strings.TrimSuffix(strings.Repeat(`"a",`, 17), ",") + `]}`, why: "twice"},
		{text: `{"version": 1, "checkpoint": ""}`, why: "checkpoint"},
		{text: `{"version": 1, "checkpoint": "a checkpoint"}`, why: "checkpoint", unseen: true},
		{text: `{"version": 1, "witnesses": null}`, why: "witnesses"},
		{text: `{"version": 1, "witnesses": {"quorum": 1}}`, why: "0 witnesses"},
		{text: `{"version": 1, "witnesses": {"keys": ["` + alice.String() + `"]}}`, why: "quorum"},
		{text: `{"version": 1, "witnesses": {"quorum": 2, "keys": ["` + alice.String() + `"]}}`, why: "2 of 1", unseen: true},
		{text: `{"version": 1, "witnesses": {"quorum": 0, "keys": ["` + alice.String() + `"]}}`, why: "0 of 1"},
		{text: `{"version": 1, "witnesses": {"quorum": 1.5, "keys": ["` + alice.String() + `"]}}`, why: "quorum"},
		{text: `{"version": 1, "witnesses": {"quorum": 1, "keys": ["alice"]}}`, why: "witnesses"},
		{text: `{"version": 1, "witnesses": {"quorum": 1, "keys": ["` + alice.String() + `"], "any": true}}`, why: `member "any" is not known`},
	} {
		p, err := verify.ParsePolicy([]byte(c.text))
		require.ErrorContains(t, err, c.why, c.text)
		require.Equal(t, verify.Policy{}, p)
		// A JSON reader keeps one of two equal names and mends bad UTF-8: a schema can't see those.
		if c.unseen || strings.Count(c.text, `"require"`) == 2 || strings.Contains(c.why, "UTF-8") {
			continue
		}
		require.Error(t, valid(c.text), c.text)
	}
}

// A minimum claim, accepted reductions and required checks each weaken what a good bundle comes to.
func TestPolicyDemands(t *testing.T) {
	f, file := one(t)
	trust := verify.TrustLedger(f.Identity)
	note := checkpointOf(t, f).Note
	for _, c := range []struct {
		name    string
		policy  verify.Policy
		verdict verify.Verdict
		why     string
	}{
		{"nothing", verify.Policy{}, verify.Valid, ""},
		{"reduced", verify.Policy{Claim: evidence.ClaimReduced}, verify.Valid, ""},
		{"full", verify.Policy{Claim: evidence.ClaimFull}, verify.Valid, "attempt one claims reduced; the policy asks for full"},
		{"its reduction", verify.Policy{Claim: evidence.ClaimReduced, Reductions: []evidence.Reduction{evidence.ReducedRootless, evidence.ReducedCgroupV1}}, verify.Valid, ""},
		{"another reduction", verify.Policy{Claim: evidence.ClaimReduced, Reductions: []evidence.Reduction{evidence.ReducedRootless}}, verify.Valid,
			"attempt one is reduced by cgroup-v1, which the policy doesn't accept"},
		{"checks that pass", verify.Policy{RequiredChecks: []string{verify.CheckSchemas, verify.CheckOutput}}, verify.Valid, ""},
		{"a check nobody did", verify.Policy{RequiredChecks: []string{verify.CheckKept}}, verify.NotChecked, "the verdict is not_checked"},
		{"that check, done", verify.Policy{RequiredChecks: []string{verify.CheckKept}, Kept: note}, verify.Valid, ""},
		{"admission", verify.Policy{RequiredChecks: []string{verify.CheckAdmission}}, verify.NotChecked, "the verdict is not_checked"},
	} {
		c.policy.Trust = trust
		r := verify.Verify(file, c.policy)
		require.Equal(t, c.verdict, r.Verdict, c.name)
		require.Equal(t, c.why, r.Why, c.name)
		require.Equal(t, c.why == "", r.Reached, c.name)
		for _, name := range c.policy.RequiredChecks {
			require.Equal(t, c.verdict == verify.NotChecked, strings.HasSuffix(r.Check(name).Detail, "; the policy requires this check"), c.name)
		}
	}
	// A demand never makes bad evidence better.
	bent := bytes.Clone(file)
	bent[len(bent)-1] ^= 1
	require.Equal(t, verify.Invalid, verify.Verify(bent, verify.Policy{Trust: trust, RequiredChecks: []string{verify.CheckKept}}).Verdict)
}

// Several trusted: a bundle holds under the one whose it is, and under nobody else.
func TestTrustAny(t *testing.T) {
	f, file := one(t)
	otherID, otherOrigin := f.Identity, f.Identity
	otherID.ID[3] ^= 1
	otherOrigin.Origin = "other.example/log"
	stranger, err := export.NewBundleKey(exporttest.ECDSA(t, "stranger"))
	require.NoError(t, err)
	spki := stranger.SPKI()
	for name, c := range map[string]struct {
		trust verify.Trust
		want  verify.Verdict
	}{
		"nobody":          {verify.TrustAny(), verify.NotChecked},
		"one":             {verify.TrustAny(verify.TrustLedger(f.Identity)), verify.Valid},
		"behind others":   {verify.TrustAny(verify.TrustKey(spki), verify.TrustLedger(otherID), verify.TrustLedger(f.Identity)), verify.Valid},
		"before others":   {verify.TrustAny(verify.TrustLedger(f.Identity), verify.TrustLedger(otherOrigin)), verify.Valid},
		"others only":     {verify.TrustAny(verify.TrustLedger(otherID), verify.TrustLedger(otherOrigin)), verify.Invalid},
		"strangers only":  {verify.TrustAny(verify.TrustKey(spki), verify.TrustLedger(otherOrigin)), verify.Invalid},
		"within a second": {verify.TrustAny(verify.TrustKey(spki), verify.TrustAny(verify.TrustLedger(otherID), verify.TrustLedger(f.Identity))), verify.Valid},
	} {
		r := verify.Verify(file, verify.Policy{Trust: c.trust})
		require.Equal(t, c.want, r.Verdict, "%s: %v", name, r.Checks)
	}
}
