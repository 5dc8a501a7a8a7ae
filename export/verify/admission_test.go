package verify_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/report"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
)

// court is a change with attempts that failed, one that succeeded, and a journal to judge them.
type court struct {
	*exporttest.Fixture
	j *journal.Journal
}

func hold(t testing.TB, failed ...evidence.AttemptID) court {
	t.Helper()
	f := exporttest.New(t)
	c := court{f, f.Journal()}
	var b *evidence.Binding
	for _, id := range append(failed, "good") {
		h := evidencetest.Success()
		h.Registered.Attempt = id
		if b == nil {
			made := f.Change(t, "fix", h)
			b = &made
		} else {
			f.Bind(t, *b, h)
		}
		if id != "good" {
			h.Exited.ExitCode = 1
		}
		f.Run(t, h)
	}
	return c
}

func (c court) approve(t testing.TB) ledger.Index {
	t.Helper()
	got, err := c.j.Approve(context.Background(), "fix", nil)
	require.NoError(t, err)
	return got.Event.Index
}

func (c court) verify(t testing.TB, file []byte, l verify.Level) verify.Report {
	t.Helper()
	return verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(c.Identity), Require: l})
}

var good = export.Request{Attempts: []evidence.AttemptID{"good"}}

// req T2: a bundle of an approved change decides admission again, and says on how many attempts.
//
// req T3
func TestAdmissionIsDecidedAgain(t *testing.T) {
	c := hold(t, "a", "b")
	r := c.verify(t, c.Export(t, good), verify.Admitted)
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.False(t, r.Reached)
	require.Contains(t, r.Why, "no approval")

	at := c.approve(t)
	r = c.verify(t, c.Export(t, good), verify.Full)
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.True(t, r.Reached, r.Why)
	require.Len(t, r.Admissions, 1)
	require.Equal(t, at, r.Admissions[0].Index)
	require.True(t, r.Admissions[0].Stands)
	require.Equal(t, "1 of 3 attempts succeeded", r.Admissions[0].Tally.String())
	require.Contains(t, r.Check(verify.CheckAdmission).Detail, "1 of 3 attempts succeeded")

	// What comes later changes nothing of what was decided then.
	_, err := c.j.AdvanceEpoch(context.Background(), "main")
	require.NoError(t, err)
	r = c.verify(t, c.Export(t, good), verify.Admitted)
	require.True(t, r.Reached, "%v", r.Checks)
	var text strings.Builder
	require.NoError(t, report.Text(&text, r))
	require.Contains(t, text.String(), "Approval of change fix, version 1")
	require.Contains(t, text.String(), "ok  qualification ")
	require.Contains(t, text.String(), "ok  success        good: its outcome is success (ok) (index ")

	// A failed attempt of the same context is no success, and the bundle still says what was approved.
	r = c.verify(t, c.Export(t, export.Request{Attempts: []evidence.AttemptID{"a"}}), verify.Admitted)
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.False(t, r.Reached)
	require.Len(t, r.Admissions, 1)
}

// req H2: an integration is decided again at its own index.
func TestIntegrationIsDecidedAgain(t *testing.T) {
	c := hold(t)
	approved := c.approve(t)
	done, err := c.j.Integrate(context.Background(), "fix")
	require.NoError(t, err)
	r := c.verify(t, c.Export(t, good), verify.Admitted)
	require.True(t, r.Reached, "%v", r.Checks)
	require.Len(t, r.Admissions, 2)
	require.Equal(t, approved, r.Admissions[0].Index)
	require.Equal(t, "integration", r.Admissions[1].Kind)
	require.Equal(t, done.Event.Index, r.Admissions[1].Index)

	// As of an index before the approval there is none; sealed streams are needed for it.
	_, _, err = export.Build(context.Background(), c.Ledger, export.Request{Attempts: good.Attempts, At: &approved, Checkpoint: c.Signer})
	var early *export.TooEarlyError
	require.ErrorAs(t, err, &early)
	r = c.verify(t, c.Export(t, export.Request{Attempts: good.Attempts, At: &early.Smallest}), verify.Admitted)
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
}

// req H5: an approval that lost a race is void: it admits nothing, and says which event broke it.
func TestVoidApprovalAdmitsNothing(t *testing.T) {
	c := hold(t)
	d, err := c.j.Decide(context.Background(), "fix", false)
	require.NoError(t, err)
	ch, err := c.j.Change(context.Background(), "fix")
	require.NoError(t, err)
	basis := []evidence.Basis{c.Basis(t, "attempt-good"), c.Basis(t, "change-fix"), c.Basis(t, "policy-main")}
	moved := c.Append(t, "policy-main", evidence.EpochAdvanced{Epoch: 2})[0]
	c.Append(t, "change-fix", evidence.ContextApproved{Version: 1, Context: ch.Fold.ContextDigest, Attempts: d.Relied, Basis: basis, Grounds: d.Grounds()})
	r := c.verify(t, c.Export(t, good), verify.Admitted)
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.False(t, r.Reached)
	require.Len(t, r.Admissions, 1)
	require.False(t, r.Admissions[0].Stands)
	require.Equal(t, moved.Index, *r.Admissions[0].Void)
	require.Contains(t, r.Why, "void")
}

// Nobody who exports can make an approval look better than it is by leaving something out, nor can
// who appends one that the events don't carry.
//
// req T2 req T3 req H5
func TestAdmissionUnderAttack(t *testing.T) {
	c := hold(t, "a", "b")
	_, err := c.j.AdvanceEpoch(context.Background(), "other")
	require.NoError(t, err)
	d, err := c.j.Decide(context.Background(), "fix", false)
	require.NoError(t, err)
	ch, err := c.j.Change(context.Background(), "fix")
	require.NoError(t, err)
	basis := []evidence.Basis{c.Basis(t, "attempt-good"), c.Basis(t, "change-fix"), c.Basis(t, "policy-main")}
	c.Append(t, "policy-main", evidence.EpochAdvanced{Epoch: 2})
	c.Append(t, "change-fix", evidence.ContextApproved{Version: 1, Context: ch.Fold.ContextDigest, Attempts: d.Relied, Basis: basis, Grounds: d.Grounds()})
	file := c.Export(t, good)
	policy := verify.Policy{Trust: verify.TrustLedger(c.Identity), Require: verify.Admitted}
	honest := verify.Verify(forge(t, c.Fixture, file, func(*bundle.Payload) {}), policy)
	require.Equal(t, verify.Valid, honest.Verdict, "%v", honest.Checks)
	require.False(t, honest.Reached)
	stream := func(p *bundle.Payload, name string) *bundle.Stream {
		i := slices.IndexFunc(p.Streams, func(s bundle.Stream) bool { return s.Name == name })
		require.GreaterOrEqual(t, i, 0)
		return &p.Streams[i]
	}
	cut := func(name string, keep int) func(*bundle.Payload) {
		return func(p *bundle.Payload) { s := stream(p, name); s.Events = s.Events[:keep] }
	}
	drop := func(name string) func(*bundle.Payload) {
		return func(p *bundle.Payload) {
			p.Streams = slices.DeleteFunc(p.Streams, func(s bundle.Stream) bool { return s.Name == name })
		}
	}
	cases := []struct {
		name, check string
		bend        func(*bundle.Payload)
	}{
		{"the epoch's advance dropped", verify.CheckCompleteness, cut("policy-main", 1)},
		{"the policy's seal dropped", verify.CheckCompleteness, cut("policy-main", 2)},
		{"a failed attempt dropped", verify.CheckStreams, drop("attempt-a")},
		{"a failed attempt cut", verify.CheckCompleteness, cut("attempt-b", 5)},
		{"the change's end dropped", verify.CheckCompleteness, func(p *bundle.Payload) {
			s := stream(p, "change-fix")
			s.Events = s.Events[:len(s.Events)-1]
		}},
		{"a counted attempt called basis", verify.CheckStreams, func(p *bundle.Payload) { stream(p, "attempt-a").Role = bundle.Basis }},
		{"a counted attempt called cited", verify.CheckStreams, func(p *bundle.Payload) { stream(p, "attempt-a").Role = bundle.Cited }},
		{"the policy called counted", verify.CheckStreams, func(p *bundle.Payload) { stream(p, "policy-main").Role = bundle.Counted }},
	}
	require.Len(t, cases, 8)
	for _, x := range cases {
		r := verify.Verify(forge(t, c.Fixture, file, x.bend), policy)
		require.Equal(t, verify.Invalid, r.Verdict, x.name)
		require.Equal(t, verify.Fail, r.Check(x.check).Result, "%s: %v", x.name, r.Checks)
	}
	// Without approval and what follows, it is a bundle that holds no approval, or one cut short.
	r := verify.Verify(forge(t, c.Fixture, file, func(p *bundle.Payload) {
		s := stream(p, "change-fix")
		s.Events = s.Events[:len(s.Events)-2]
	}), policy)
	require.False(t, r.Reached)
	require.NotEqual(t, verify.Valid, r.Verdict)
}

// Approvals that the events don't carry, appended by whoever holds the ledger.
//
// req H2 req H6
func TestForgedApprovals(t *testing.T) {
	for name, bend := range map[string]func(*testing.T, court, *evidence.ContextApproved){
		"a failed attempt relied on": func(t *testing.T, c court, a *evidence.ContextApproved) {
			a.Attempts[0].Attempt = "a"
			a.Basis[0] = c.Basis(t, "attempt-a")
			for i := range a.Grounds.Grounds {
				if a.Grounds.Grounds[i].Attempt != "" {
					a.Grounds.Grounds[i].Attempt = "a"
				}
			}
		},
		"a record of its own": func(_ *testing.T, _ court, a *evidence.ContextApproved) { a.Attempts[0].Record[0]++ },
		"nothing relied on":   func(_ *testing.T, _ court, a *evidence.ContextApproved) { a.Attempts, a.Basis = nil, a.Basis[1:] },
		"a rule left out":     func(_ *testing.T, _ court, a *evidence.ContextApproved) { a.Grounds.Grounds = a.Grounds.Grounds[1:] },
		"another index": func(_ *testing.T, _ court, a *evidence.ContextApproved) {
			i := evidence.EventIndex(1)
			a.Grounds.Grounds[1].Index = &i
		},
		"no policy":    func(_ *testing.T, _ court, a *evidence.ContextApproved) { a.Basis = a.Basis[:2] },
		"another leaf": func(_ *testing.T, _ court, a *evidence.ContextApproved) { a.Basis[2].Leaf[0]++ },
		"an end that was older": func(t *testing.T, c court, a *evidence.ContextApproved) {
			c.Append(t, "change-fix", evidence.StreamSealed{})
		},
		"an epoch that passed": func(t *testing.T, c court, a *evidence.ContextApproved) {
			c.Append(t, "policy-main", evidence.EpochAdvanced{Epoch: 2})
			a.Basis[2] = c.Basis(t, "policy-main")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := hold(t, "a")
			d, err := c.j.Decide(context.Background(), "fix", false)
			require.NoError(t, err)
			ch, err := c.j.Change(context.Background(), "fix")
			require.NoError(t, err)
			a := evidence.ContextApproved{Version: 1, Context: ch.Fold.ContextDigest, Attempts: d.Relied, Grounds: d.Grounds(),
				Basis: []evidence.Basis{c.Basis(t, "attempt-good"), c.Basis(t, "change-fix"), c.Basis(t, "policy-main")}}
			bend(t, c, &a)
			c.Append(t, "change-fix", a)
			r := c.verify(t, c.Export(t, good), verify.Admitted)
			require.Equal(t, verify.Invalid, r.Verdict, "%v", r.Checks)
			require.Equal(t, verify.Fail, r.Check(verify.CheckAdmission).Result, "%v", r.Checks)
			require.False(t, r.Reached)
		})
	}
}

// req G1 req T3: an attempt that was listed and never opened counts, and its stream is sealed to show it.
func TestAListedAttemptThatNeverOpenedCounts(t *testing.T) {
	c := hold(t)
	h := evidencetest.Success()
	h.Registered.Attempt = "ghost"
	ch, err := c.j.Change(context.Background(), "fix")
	require.NoError(t, err)
	b, _ := ch.Fold.Binding()
	c.Bind(t, b, h)
	c.approve(t)
	file := c.Export(t, good)
	r := c.verify(t, file, verify.Admitted)
	require.True(t, r.Reached, "%v", r.Checks)
	require.Equal(t, "1 of 2 attempts succeeded, 1 not finished", r.Admissions[0].Tally.String())
}

// req H4: a check of paths is decided again from the list it names, in whatever context it was.
func TestPathsAreDecidedAgain(t *testing.T) {
	for outside, want := range map[uint64]verify.Result{1: verify.Pass, 0: verify.Fail} {
		f := exporttest.New(t)
		h := evidencetest.Success()
		revision := h.Registered.Subject.Revision
		globs := []string{"docs/**"}
		e, list, err := evidence.CheckPaths("", revision, globs, evidence.PathList{"docs/a", "src/b"})
		require.NoError(t, err)
		require.EqualValues(t, 1, e.Outside)
		e.Outside, e.Paths = outside, h.Keep("paths", list)
		stream := "change-fix"
		f.Append(t, stream, evidence.ChangeOpened{Change: "fix", Repository: evidence.RepositoryID{1}}, evidence.VersionAdded{Version: 1, Revision: revision},
			evidence.ContextSet{Version: 1, Context: evidence.Context{Version: 1, Revision: revision, Policy: "main", Epoch: 1, AllowPaths: globs,
				Required: []evidence.RequiredEvidence{{Kind: evidence.EvidencePaths, Digest: evidence.PathPolicyDigest(globs)}}}}, e)
		j := f.Journal()
		_, err = j.SetContext(context.Background(), "fix", journal.Requirement{Recipe: &h.Recipe, Environment: &h.Environment, Reductions: []evidence.Reduction{evidence.ReducedCgroupV1}})
		require.NoError(t, err)
		ch, err := j.Change(context.Background(), "fix")
		require.NoError(t, err)
		b, _ := ch.Fold.Binding()
		h.Registered.Attempt = "good"
		f.Bind(t, b, h)
		f.Run(t, h)
		_, err = j.Approve(context.Background(), "fix", nil)
		require.NoError(t, err)
		r := court{f, j}.verify(t, f.Export(t, good), verify.Admitted)
		require.Equal(t, want, r.Check(verify.CheckAdmission).Result, "%v", r.Checks)

		withheld := f.Export(t, export.Request{Attempts: good.Attempts, Withhold: []bundle.Class{bundle.ClassSource}})
		r = verify.Verify(withheld, verify.Policy{Trust: verify.TrustLedger(f.Identity), AllowWithheld: []bundle.Class{bundle.ClassSource}})
		require.NotEqual(t, verify.Fail, r.Check(verify.CheckAdmission).Result, "what is missing is said elsewhere")
	}
}
