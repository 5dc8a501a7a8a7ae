package evidence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// story is a change with one context and attempts, told event by event as one ledger would hold
// it; the next index is counted.
type story struct {
	t        *testing.T
	next     evidence.EventIndex
	change   evidence.ChangeTrail
	policy   evidence.PolicyTrail
	attempts []*evidence.AttemptTrail
	watch    *watch // of the runtime; nil: nothing was observed of it
}

func (s *story) at() evidence.EventIndex { s.next++; return s.next - 1 }

func contextFor(h *evidencetest.History) evidence.Context {
	return evidence.Context{
		Version: 1, Revision: h.Registered.Subject.Revision, Capabilities: []string{evidence.CapabilityCommand},
		Required:    []evidence.RequiredEvidence{{Kind: evidence.EvidenceCommand, Digest: evidence.PlainDigest(h.Recipe.Digest())}},
		Environment: h.Environment.Digest(), Policy: evidence.DefaultPolicy, Epoch: 1,
		Reductions: []evidence.Reduction{evidence.ReducedCgroupV1},
	}
}

func pathsContext(h *evidencetest.History, globs ...string) evidence.Context {
	c := contextFor(h)
	c.Capabilities, c.Environment, c.AllowPaths = nil, evidence.EnvironmentDigest{}, globs
	c.Required = []evidence.RequiredEvidence{{Kind: evidence.EvidencePaths, Digest: evidence.PathPolicyDigest(globs)}}
	return c
}

// tell opens policy and change; index 0 is the genesis.
func tell(t *testing.T, ctx evidence.Context) *story {
	s := &story{t: t, next: 1}
	require.NoError(t, s.policy.Apply(s.at(), evidence.EpochAdvanced{Epoch: 1}))
	for _, p := range []evidence.Payload{
		evidence.ChangeOpened{Change: "fix", Repository: evidence.RepositoryID{5}},
		evidence.VersionAdded{Version: 1, Revision: ctx.Revision},
		evidence.ContextSet{Version: 1, Context: ctx},
	} {
		require.NoError(t, s.change.Apply(s.at(), p))
	}
	return s
}

// run lists and runs an attempt of the bent history; with upTo it stops there.
func (s *story) run(id evidence.AttemptID, bend func(*evidencetest.History), upTo string) *evidence.AttemptTrail {
	h := evidencetest.Success()
	b, ok := s.change.Fold.Binding()
	require.True(s.t, ok)
	h.Registered.Attempt, h.Registered.Binding = id, &b
	if bend != nil {
		bend(h)
	}
	h.Custody.Request = h.Request()
	require.NoError(s.t, s.change.Apply(s.at(), evidence.AttemptOpened{Attempt: id, Registration: evidence.Marshal(*h.Registered)}))
	trail := &evidence.AttemptTrail{}
	s.attempts = append(s.attempts, trail)
	for _, p := range h.Finished() {
		if p.EventType() == upTo {
			break
		}
		require.NoError(s.t, trail.Apply(s.at(), p))
	}
	return trail
}

func (s *story) the() evidence.Case {
	c := evidence.Case{Change: s.change.Exhibit(), Policy: s.policy.Exhibit()}
	for n, i := range s.change.Present() {
		c.Attempts = append(c.Attempts, s.attempts[n].Exhibit(s.change.Fold.Openings[i], s.change.Listed[i]))
	}
	if s.watch != nil {
		c.Canaries = map[evidence.RuntimeDigest][]evidence.CanarySeen{s.watch.bound.Runtime: s.watch.trail.Canaries}
		c.Runs = s.watch.runs
	}
	return c
}

// qualify observes the corpus on the runtime.
func (s *story) qualify() {
	s.watch = observed(s.t, s.next)
	s.next = s.watch.next
}

func qualifiedContext(h *evidencetest.History) evidence.Context {
	c, corpus := contextFor(h), evidencetest.Corpus()
	c.RequireQualified, c.Corpus = true, &corpus
	return c
}

func broken(d evidence.Decision) []evidence.Rule {
	var out []evidence.Rule
	for _, r := range d.Broken() {
		out = append(out, r.Rule)
	}
	return out
}

// base is a case that admits, for either evidence kind.
func base(t *testing.T) evidence.Case {
	s := tell(t, qualifiedContext(evidencetest.Success()))
	s.run("one", nil, "")
	s.qualify()
	return s.the()
}

func pathsBase(t *testing.T) evidence.Case {
	h := evidencetest.Success()
	s := tell(t, pathsContext(h, "a.txt", "dir/**"))
	e, list, err := evidence.CheckPaths(strings.Repeat("b", 40), h.Registered.Subject.Revision, []string{"a.txt", "dir/**"}, evidence.PathList{"a.txt", "dir/b.txt"})
	require.NoError(t, err)
	e.Paths = h.Keep("paths", list)
	require.NoError(t, s.change.Apply(s.at(), e))
	return s.the()
}

// req H1 req H2 req H7: every explanation has its line.
func TestAdmission(t *testing.T) {
	d := evidence.Admit(base(t))
	require.True(t, d.Admitted, "%v", d.Broken())
	require.Empty(t, d.Broken())
	require.Equal(t, evidence.Tally{Listed: 1, Finished: 1, Succeeded: 1}, d.Tally)
	require.Len(t, d.Relied, 1)
	require.NoError(t, d.Grounds().Check())
	require.Len(t, d.Grounds().Grounds, len(d.Rulings))
	qualification := 0
	for _, r := range d.Rulings {
		require.True(t, r.Holds, r.Says)
		require.NotEmpty(t, r.Says)
		if r.Rule == evidence.RuleQualification {
			qualification++
			require.Contains(t, r.Says, "must be qualified, for its profile")
		} else if r.Rule != evidence.RuleBasis {
			require.NotNil(t, r.Index, r.Rule)
		}
	}
	require.Equal(t, 1, qualification, "every explanation has a qualification line")
}

// breaks break exactly one rule each. An exhibit is bent directly where the folds would not let an
// event alone be missing: what the rule says must hold whatever made the exhibit.
var breaks = map[evidence.Rule]func(*evidence.Case){
	evidence.RuleBasis:         func(c *evidence.Case) { i := evidence.EventIndex(99); c.Breaking = &i },
	evidence.RulePolicy:        func(c *evidence.Case) { c.Policy = evidence.PolicyExhibit{} },
	evidence.RuleEpoch:         func(c *evidence.Case) { c.Policy.Epoch += min(c.Policy.Epoch, 1) },
	evidence.RuleContextLegal:  func(c *evidence.Case) { c.Change.Context.Capabilities = []string{"checks.magic/v1"} },
	evidence.RuleQualification: func(c *evidence.Case) { c.Change.Context.RequireQualified, c.Change.Context.Corpus = true, nil },
	evidence.RuleApproval:      func(c *evidence.Case) { c.Integration = true },
	evidence.RuleOpened:        func(c *evidence.Case) { c.Attempts[0].AsListed = false },
	evidence.RuleBound:         func(c *evidence.Case) { rebind(c, func(b *evidence.Binding) { b.Repository[0]++ }) },
	evidence.RuleSubject: func(c *evidence.Case) {
		c.Attempts[0].Registered.Subject.Revision = strings.Repeat("e", 40)
		rewrite(c, func(r *evidence.Record) { r.Subject = c.Attempts[0].Registered.Subject })
	},
	evidence.RuleRecipe: func(c *evidence.Case) {
		c.Attempts[0].Registered.Recipe[0]++
		rewrite(c, func(r *evidence.Record) { r.Recipe = c.Attempts[0].Registered.Recipe })
	},
	evidence.RuleToolchain:   func(c *evidence.Case) { c.Attempts[0].Registered.Toolchain = &evidence.ToolchainDigest{1} },
	evidence.RuleEnvironment: func(c *evidence.Case) { c.Attempts[0].Registered.Environment[0]++ },
	evidence.RuleClaim:       func(c *evidence.Case) { i := evidence.EventIndex(4); c.Attempts[0].Void = &i },
	evidence.RuleFinished:    func(c *evidence.Case) { c.Attempts[0].Record, c.Attempts[0].State = nil, evidence.StateRunning },
	evidence.RuleRecord:      func(c *evidence.Case) { c.Attempts[0].Stored[0]++ },
	evidence.RuleIdentity:    func(c *evidence.Case) { rewrite(c, func(r *evidence.Record) { r.Attempt = "other" }) },
	evidence.RuleGeneration:  func(c *evidence.Case) { rewrite(c, func(r *evidence.Record) { r.Generation = 2 }) },
	evidence.RuleSuccess:     func(c *evidence.Case) { rewrite(c, func(r *evidence.Record) { r.Outcome = evidence.OutcomeFailed }) },
	evidence.RuleIsolation:   func(c *evidence.Case) { c.Attempts[0].Isolated = false },
	evidence.RuleReductions:  func(c *evidence.Case) { c.Change.Context.Reductions = nil },
	evidence.RuleCleanup: func(c *evidence.Case) {
		rewrite(c, func(r *evidence.Record) { r.Cleanup[0].State = evidence.CleanupNotCreated })
	},
	evidence.RuleHandles:   func(c *evidence.Case) { c.Attempts[0].Open = 1 },
	evidence.RuleQualified: func(c *evidence.Case) { c.Canaries = nil },
}

func rewrite(c *evidence.Case, bend func(*evidence.Record)) {
	x := &c.Attempts[0]
	if x.Record == nil {
		return // the pair with RuleFinished
	}
	r := *x.Record
	r.Cleanup = slices.Clone(r.Cleanup)
	same := r.Digest() == x.Stored
	bend(&r)
	x.Record = &r
	if same {
		x.Stored = r.Digest()
	}
}

func rebind(c *evidence.Case, bend func(*evidence.Binding)) {
	b := *c.Attempts[0].Registered.Binding
	bend(&b)
	c.Attempts[0].Registered.Binding = &b
	rewrite(c, func(r *evidence.Record) { r.Binding = &b })
}

// overRecord are the rules that have nothing to say before an attempt is finished.
var overRecord = []evidence.Rule{evidence.RuleRecord, evidence.RuleIdentity, evidence.RuleGeneration, evidence.RuleSuccess,
	evidence.RuleIsolation, evidence.RuleReductions, evidence.RuleCleanup}

// ofAttempt tells rules over an attempt, whose break also breaks RuleAttempt.
func ofAttempt(r evidence.Rule) bool {
	return !slices.Contains([]evidence.Rule{evidence.RuleBasis, evidence.RulePolicy, evidence.RuleEpoch, evidence.RuleContextLegal,
		evidence.RuleQualification, evidence.RuleApproval, evidence.RuleKinds, evidence.RuleEvidence}, r)
}

func expected(rules ...evidence.Rule) []evidence.Rule {
	var out []evidence.Rule
	attempt := false
	if slices.Contains(rules, evidence.RuleQualification) { // without a corpus, no runtime is judged
		rules = slices.DeleteFunc(rules, func(r evidence.Rule) bool { return r == evidence.RuleQualified })
	}
	for _, r := range rules {
		if slices.Contains(rules, evidence.RuleFinished) && slices.Contains(overRecord, r) {
			continue
		}
		out = append(out, r)
		attempt = attempt || ofAttempt(r)
		if r == evidence.RulePolicy { // a policy that isn't there has no present epoch
			out = append(out, evidence.RuleEpoch)
		}
	}
	if attempt || slices.ContainsFunc(rules, ofAttempt) {
		out = append(out, evidence.RuleAttempt)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Every rule, broken alone and with every other, is named; and nothing else is.
//
// req H2 req H5 req H7
func TestEachRuleBrokenAloneAndInPairs(t *testing.T) {
	rules := make([]evidence.Rule, 0, len(breaks))
	for r := range breaks {
		rules = append(rules, r)
	}
	slices.Sort(rules)
	require.GreaterOrEqual(t, len(rules), 23)
	check := func(apply ...evidence.Rule) {
		name := fmt.Sprint(apply)
		c := base(t)
		for _, r := range apply {
			breaks[r](&c)
		}
		d := evidence.Admit(c)
		require.False(t, d.Admitted, name)
		got := broken(d)
		slices.Sort(got)
		require.Equal(t, expected(slices.Clone(apply)...), got, name)
		for _, r := range d.Broken() {
			require.NotEmpty(t, r.Says)
		}
	}
	pairs := 0
	for i, r := range rules {
		check(r)
		for _, o := range rules[i+1:] {
			check(r, o)
			pairs++
		}
	}
	require.Greater(t, pairs, 200)
}

// req H3
func TestBothKindsAreNeverAdmitted(t *testing.T) {
	h := evidencetest.Success()
	ctx := contextFor(h)
	ctx.AllowPaths = []string{"**"}
	ctx.Required = append(ctx.Required, evidence.RequiredEvidence{Kind: evidence.EvidencePaths, Digest: evidence.PathPolicyDigest(ctx.AllowPaths)})
	s := tell(t, ctx)
	s.run("one", nil, "")
	e, list, err := evidence.CheckPaths("", ctx.Revision, ctx.AllowPaths, evidence.PathList{"a.txt"})
	require.NoError(t, err)
	e.Paths = h.Keep("paths", list)
	require.NoError(t, s.change.Apply(s.at(), e))
	d := evidence.Admit(s.the())
	require.False(t, d.Admitted)
	require.Equal(t, []evidence.Rule{evidence.RuleKinds}, broken(d))
}

// req H1
func TestAContextThatRequiresNothingAdmitsNothing(t *testing.T) {
	ctx := contextFor(evidencetest.Success())
	ctx.Capabilities, ctx.Required = nil, nil
	d := evidence.Admit(tell(t, ctx).the())
	require.Equal(t, []evidence.Rule{evidence.RuleEvidence}, broken(d))
	s := tell(t, contextFor(evidencetest.Success()))
	require.NoError(t, s.change.Apply(s.at(), evidence.VersionAdded{Version: 2, Revision: strings.Repeat("c", 40)}))
	d = evidence.Admit(s.the())
	require.False(t, d.Admitted)
	require.Equal(t, []evidence.Rule{evidence.RuleContext}, broken(d))
	require.Equal(t, s.next-1, *d.Broken()[0].Index)
}

// req H4
func TestPathsAreEvidence(t *testing.T) {
	require.True(t, evidence.Admit(pathsBase(t)).Admitted)
	c := pathsBase(t)
	c.Change.Paths = nil
	require.Equal(t, []evidence.Rule{evidence.RulePaths}, broken(evidence.Admit(c)))
	c = pathsBase(t)
	bent := *c.Change.Paths
	bent.Outside = 1
	c.Change.Paths = &bent
	require.Equal(t, []evidence.Rule{evidence.RulePathsAllowed}, broken(evidence.Admit(c)))
	c = pathsBase(t)
	bent = *c.Change.Paths
	bent.Revision = strings.Repeat("9", 40)
	c.Change.Paths = &bent
	require.Equal(t, []evidence.Rule{evidence.RulePaths}, broken(evidence.Admit(c)))
}

// req H2: of several attempts, one that carries the evidence is enough, and the count says how it
// came about.
func TestOneOfManyAttempts(t *testing.T) {
	s := tell(t, contextFor(evidencetest.Success()))
	s.run("a", func(h *evidencetest.History) { h.Exited.ExitCode = 1 }, "")
	s.run("b", nil, "ContainerExited")
	s.run("c", nil, "")
	s.run("d", nil, "")
	d := evidence.Admit(s.the())
	require.True(t, d.Admitted)
	require.Equal(t, evidence.Tally{Listed: 4, Finished: 3, Succeeded: 2}, d.Tally)
	require.Equal(t, "2 of 4 attempts succeeded, 1 not finished", d.Tally.String())
	require.EqualValues(t, "c", d.Relied[0].Attempt)
	require.Empty(t, d.Broken())
	for _, g := range d.Grounds().Grounds {
		require.Contains(t, []evidence.AttemptID{"", "c"}, g.Attempt)
	}

	s = tell(t, contextFor(evidencetest.Success()))
	s.run("a", func(h *evidencetest.History) { h.Exited.ExitCode = 1 }, "")
	s.run("b", nil, "ContainerExited")
	d = evidence.Admit(s.the())
	require.Equal(t, []evidence.Rule{evidence.RuleAttempt, evidence.RuleSuccess, evidence.RuleFinished, evidence.RuleHandles}, broken(d))
}

// Attempts of an earlier context count for nothing.
func TestAnEarlierContextsAttemptsDoNotCount(t *testing.T) {
	ctx := contextFor(evidencetest.Success())
	s := tell(t, ctx)
	s.run("one", nil, "")
	ctx.Reductions = append(ctx.Reductions, evidence.ReducedSeccomp)
	require.NoError(t, s.change.Apply(s.at(), evidence.ContextSet{Version: 1, Context: ctx}))
	s.attempts = nil
	d := evidence.Admit(s.the())
	require.Equal(t, []evidence.Rule{evidence.RuleAttempt}, broken(d))
	require.Zero(t, d.Tally.Listed)
}

// What an approval and an integration may follow, and what they end.
func TestJudgementsInAChange(t *testing.T) {
	s := tell(t, contextFor(evidencetest.Success()))
	s.run("one", nil, "")
	d := evidence.Admit(s.the())
	approved := evidence.ContextApproved{Version: 1, Context: s.change.Fold.ContextDigest, Attempts: d.Relied, Grounds: d.Grounds()}
	refuse := func(why string, p evidence.Payload) {
		t.Helper()
		require.ErrorContains(t, s.change.Fold.Apply(p), why)
	}
	bent := approved
	bent.Context[0]++
	refuse("present version", bent)
	bent = approved
	bent.Version = 2
	refuse("present version", bent)
	bent = approved
	bent.Grounds = evidence.Grounds{}
	refuse("no rule", bent)
	bent = approved
	bent.Attempts = []evidence.AttemptRelied{{Attempt: "two"}}
	refuse("not listed", bent)
	bent = approved
	bent.Basis = []evidence.Basis{{Stream: "b"}, {Stream: "a"}}
	refuse("not sorted", bent)
	integrated := evidence.ChangeIntegrated{Version: 1, Context: approved.Context, Revision: s.change.Fold.Revision, Attempts: d.Relied,
		Grounds: d.Grounds(), Approval: evidence.Basis{Stream: "change-fix", Version: 4}}
	refuse("no approval", integrated)
	require.NoError(t, s.change.Apply(s.at(), approved))
	require.Equal(t, []uint64{4}, s.change.Fold.Approvals)
	other := integrated
	other.Revision = strings.Repeat("9", 40)
	refuse("integrates revision", other)
	other = integrated
	other.Approval.Version = 3
	refuse("no approval", other)
	require.NoError(t, s.change.Apply(s.at(), integrated))
	_, ok := s.change.Fold.Binding()
	require.False(t, ok, "an integration ends the context")
	refuse("present version", approved)
	require.NoError(t, s.change.Apply(s.at(), evidence.VersionAdded{Version: 2, Revision: strings.Repeat("c", 40)}))
}

// req I3: a candidate comes from a whole success alone, once, of the subject's own kind.
func TestDerivationFollowsSuccess(t *testing.T) {
	good := evidence.CandidateDerived{Revision: strings.Repeat("d", 40)}
	finished := func(bend func(*evidencetest.History)) *evidence.Attempt {
		h := evidencetest.Success()
		if bend != nil {
			bend(h)
		}
		a, err := evidence.Fold(h.Finished()...)
		require.NoError(t, err)
		return &a
	}
	a := finished(nil)
	record := evidence.RecordOf(a).Digest()
	require.Error(t, a.Apply(evidence.CandidateDerived{Revision: "main"}))
	require.Error(t, a.Apply(evidence.CandidateDerived{Manifest: &evidence.ManifestDigest{1}}))
	require.NoError(t, a.Apply(good))
	require.Equal(t, record, evidence.RecordOf(a).Digest(), "it changes no record")
	require.ErrorContains(t, a.Apply(good), "already")
	require.NoError(t, a.Apply(evidence.StreamSealed{}))

	require.ErrorContains(t, finished(func(h *evidencetest.History) { h.Exited.ExitCode = 1 }).Apply(good), "failed")
	require.ErrorContains(t, finished(func(h *evidencetest.History) { h.Output.Stdout.Truncated = true }).Apply(good), "incomplete")
	require.ErrorContains(t, finished(func(h *evidencetest.History) { h.Output.Stdout.Redacted = true }).Apply(good), "redacted")
	open, err := evidence.Fold(evidencetest.Success().Events()...)
	require.NoError(t, err)
	require.Error(t, open.Apply(good))
}
