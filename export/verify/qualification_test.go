package verify_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/report"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
)

// holdQualified is a change whose context asks for a qualified runtime, and one attempt that succeeded.
func holdQualified(t testing.TB) court {
	t.Helper()
	f := exporttest.New(t)
	h := evidencetest.Success()
	h.Registered.Attempt = "good"
	f.ChangeWith(t, "fix", h, exporttest.RequireQualified)
	f.Run(t, h)
	return court{f, f.Journal()}
}

func runtimeOf() string { return evidencetest.Success().BeforeCreate.Identity.Stream() }

// A bundle carries the runtime's stream and the canaries' attempts, so that a qualification is decided again
// with nothing but the file.
//
// req H7
func TestQualificationIsDecidedAgain(t *testing.T) {
	c := holdQualified(t)
	seen := c.Canaries(t)
	c.approve(t)
	failed := seen[0]
	failed.Verdict, failed.Code = evidence.CanaryFailed, "allowed"
	c.Append(t, runtimeOf(), failed) // later: it voids nothing
	file := c.Export(t, good)
	r := c.verify(t, file, verify.Admitted)
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.True(t, r.Reached, r.Why)

	env, err := bundle.UnmarshalEnvelope(file)
	require.NoError(t, err)
	p, err := bundle.Unmarshal(env.Payload)
	require.NoError(t, err)
	held, ok := p.Stream(runtimeOf())
	require.True(t, ok)
	require.Equal(t, bundle.Basis, held.Role)
	require.Len(t, held.Events, len(seen)+1, "up to the first event behind the judgement")
	for _, canary := range evidencetest.Corpus().Canaries {
		s, ok := p.Stream(evidence.AttemptPrefix + string(evidencetest.CanaryAttempt(canary)))
		require.True(t, ok)
		require.Equal(t, bundle.Counted, s.Role)
	}
	for _, format := range report.Formats() {
		var b strings.Builder
		require.NoError(t, report.Write(&b, format, report.Of(r)))
		require.Contains(t, b.String(), "for this profile only")
		require.Contains(t, b.String(), "BD-N24")
		require.NotContains(t, b.String(), "BD-N16")
	}
}

// An approval that a runtime doesn't bear out is bad evidence, whatever its grounds say.
//
// req H7
func TestAnApprovalWithoutQualificationIsBad(t *testing.T) {
	first := evidencetest.Corpus().Canaries[0]
	cases := map[string]struct {
		says string
		bend func(*testing.T, court, *evidence.ContextApproved)
	}{
		"a canary failed": {"it failed", func(t *testing.T, c court, a *evidence.ContextApproved) {
			_, e := evidencetest.Canary(evidencetest.Corpus(), first)
			e.Verdict, e.Code = evidence.CanaryFailed, "allowed"
			c.Append(t, runtimeOf(), e)
			a.Basis[3] = c.Basis(t, runtimeOf())
		}},
		"its attempt failed": {"came to failed", func(t *testing.T, c court, a *evidence.ContextApproved) {
			h, _ := evidencetest.Canary(evidencetest.Corpus(), first)
			h.Registered.Attempt, h.Exited.ExitCode = "again", 1
			h.Custody.Request = h.Request()
			e := evidencetest.Observe(h, evidencetest.Corpus(), first.Name)
			c.Run(t, h)
			c.Append(t, runtimeOf(), e)
			a.Basis[3] = c.Basis(t, runtimeOf())
		}},
		"another record than the attempt's": {"has record", func(t *testing.T, c court, a *evidence.ContextApproved) {
			_, e := evidencetest.Canary(evidencetest.Corpus(), first)
			e.Record[0]++
			c.Append(t, runtimeOf(), e)
			a.Basis[3] = c.Basis(t, runtimeOf())
		}},
		"another image": {"stale", func(t *testing.T, c court, a *evidence.ContextApproved) {
			_, e := evidencetest.Canary(evidencetest.Corpus(), first)
			e.Image[0]++
			c.Append(t, runtimeOf(), e)
			a.Basis[3] = c.Basis(t, runtimeOf())
		}},
		"before the corpus was through": {"never observed", func(_ *testing.T, _ court, a *evidence.ContextApproved) {}},
		"without the runtime's stream": {"doesn't rest on stream " + runtimeOf(), func(_ *testing.T, _ court, a *evidence.ContextApproved) {
			a.Basis = a.Basis[:3]
		}},
	}
	require.Len(t, cases, 6)
	for name, x := range cases {
		t.Run(name, func(t *testing.T) {
			c := holdQualified(t)
			c.Canaries(t)
			d, err := c.j.Decide(context.Background(), "fix", false)
			require.NoError(t, err)
			require.True(t, d.Admitted)
			ch, err := c.j.Change(context.Background(), "fix")
			require.NoError(t, err)
			a := evidence.ContextApproved{Version: 1, Context: ch.Fold.ContextDigest, Attempts: d.Relied, Grounds: d.Grounds(), Basis: []evidence.Basis{
				c.Basis(t, "attempt-good"), c.Basis(t, "change-fix"), c.Basis(t, "policy-main"), c.Basis(t, runtimeOf())}}
			if name == "before the corpus was through" {
				a.Basis[3] = earlier(t, c)
			}
			x.bend(t, c, &a)
			c.Append(t, "change-fix", a)
			r := c.verify(t, c.Export(t, good), verify.Authentic)
			require.Equal(t, verify.Invalid, r.Verdict, "%v", r.Checks)
			check := r.Check(verify.CheckAdmission)
			require.Equal(t, verify.Fail, check.Result, "%v", r.Checks)
			require.Contains(t, check.Detail, x.says)
		})
	}
}

// earlier is the runtime's stream when only one canary had been observed.
func earlier(t *testing.T, c court) evidence.Basis {
	t.Helper()
	for e, err := range c.Ledger.ReadStream(context.Background(), ledger.StreamID(runtimeOf()), 0) {
		require.NoError(t, err)
		return evidence.Basis{Stream: runtimeOf(), Version: 0, Leaf: evidence.LeafDigest(e.Leaf())}
	}
	t.Fatal("the runtime's stream is empty")
	return evidence.Basis{}
}

// What is said of qualification when nothing asks for it.
//
// req H7
func TestNothingAsksForQualification(t *testing.T) {
	c := hold(t)
	c.approve(t)
	r := c.verify(t, c.Export(t, good), verify.Admitted)
	require.True(t, r.Reached, "%v", r.Checks)
	require.True(t, slices.ContainsFunc(r.Claims, func(s evidence.Statement) bool { return s.ID == "BD-N16" }))
	require.False(t, slices.ContainsFunc(r.Claims, func(s evidence.Statement) bool { return s.ID == "BD-N24" }))
	var b strings.Builder
	require.NoError(t, report.Text(&b, r))
	require.Contains(t, b.String(), "not required, not qualified")
}
