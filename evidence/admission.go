package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Admit decides a case. It is pure and total, and applies every rule it can, so that a refusal
// lists every reason. Of several attempts that admit, the one listed first is relied on.
func Admit(c Case) Decision {
	b := &bench{c: c}
	b.change()
	b.attempts()
	d := Decision{Admitted: true, Rulings: b.rulings, Relied: append([]AttemptRelied{}, b.relied...), Tally: b.tally}
	for _, r := range d.Rulings {
		if !r.Holds && r.Attempt == "" {
			d.Admitted = false
		}
	}
	return d
}

// Redecide holds a stored judgement's grounds and attempts against what the events decide.
func Redecide(c Case, relied []AttemptRelied, g Grounds) error {
	c.Rely = []AttemptID{}
	for _, r := range relied {
		c.Rely = append(c.Rely, r.Attempt)
	}
	d := Admit(c)
	if broken := d.Broken(); !d.Admitted {
		var says []string
		for _, r := range broken {
			says = append(says, fmt.Sprintf("rule %s: %s", r.Rule, r.Says))
		}
		return errors.New(strings.Join(says, "; "))
	}
	if !slices.Equal(d.Relied, relied) {
		return fmt.Errorf("it relies on %v; the events carry %v", relied, d.Relied)
	}
	if !d.Grounds().Equal(g) {
		return fmt.Errorf("its grounds are not those that the events give")
	}
	return nil
}

// bench collects rulings.
type bench struct {
	c       Case
	attempt AttemptID
	rulings []Ruling
	relied  []AttemptRelied
	tally   Tally
}

// rule applies one rule. at 0 stands for no event: index 0 is the genesis, which no rule cites.
func (b *bench) rule(r Rule, holds bool, at EventIndex, format string, args ...any) bool {
	ruling := Ruling{Rule: r, Holds: holds, Attempt: b.attempt, Says: fmt.Sprintf(format, args...)}
	if at != 0 {
		ruling.Index = &at
	}
	b.rulings = append(b.rulings, ruling)
	return holds
}

// either picks the sentence that fits.
func either(holds bool, yes, no string) string {
	if holds {
		return yes
	}
	return no
}

// change applies the rules over change, context and policy.
func (b *bench) change() {
	x, p := b.c.Change, b.c.Policy
	if b.c.Breaking != nil {
		b.rule(RuleBasis, false, *b.c.Breaking, "an event that changes an epoch or a context came before the judgement and after what it read")
	} else {
		b.rule(RuleBasis, true, 0, "nothing that changes an epoch or a context came between what was read and the judgement")
	}
	if x.Context == nil {
		b.rule(RuleContext, false, x.EndedAt, "the change's present version has no context")
		b.rule(RuleQualification, true, 0, "not required, not qualified: no context asks for a qualified runtime")
		return
	}
	ctx := *x.Context
	b.rule(RuleContext, true, x.ContextAt, "version %d has context %s", x.Version, x.Binding.Context)
	if err := ctx.Check(); err != nil {
		b.rule(RuleContextLegal, false, x.ContextAt, "the context has no legal form: %v", err)
	} else {
		b.rule(RuleContextLegal, true, x.ContextAt, "capabilities, evidence and paths fit one another")
	}
	b.rule(RulePolicy, p.Epoch > 0, p.EpochAt, "policy %s %s", ctx.Policy, either(p.Epoch > 0, "exists", "does not exist"))
	b.rule(RuleEpoch, p.Epoch == ctx.Epoch, cmp.Or(p.EpochAt, x.ContextAt), "the context is of epoch %d of policy %s; the present one is %d", ctx.Epoch, ctx.Policy, p.Epoch)
	_, command := ctx.Requires(EvidenceCommand)
	_, paths := ctx.Requires(EvidencePaths)
	b.rule(RuleEvidence, command || paths, x.ContextAt, "%s", either(command || paths, "the context requires evidence", "the context requires no evidence, so nothing can be admitted under it"))
	b.rule(RuleKinds, !(command && paths), x.ContextAt, "%s", either(!(command && paths), "the context requires one kind of evidence",
		"the context requires both "+EvidenceCommand+" and "+EvidencePaths+", which no one recipe satisfies"))
	b.qualification(ctx, command)
	if b.c.Integration {
		b.approval()
	}
	if paths {
		b.paths(ctx)
	}
}

func (b *bench) approval() {
	switch a := b.c.Approval; {
	case a == nil:
		b.rule(RuleApproval, false, 0, "no approval of this context was recorded")
	case a.Void != nil:
		b.rule(RuleApproval, false, *a.Void, "the approval at index %d is void: the event at index %d came before it", a.At, *a.Void)
	default:
		b.rule(RuleApproval, true, a.At, "approved at index %d", a.At)
	}
}

func (b *bench) paths(ctx Context) {
	e := b.c.Change.Paths
	if e == nil || e.Revision != ctx.Revision || !slices.Equal(e.Globs, ctx.AllowPaths) {
		b.rule(RulePaths, false, b.c.Change.ContextAt, "the paths of revision %s were not checked against the context's allowed set", ctx.Revision)
		return
	}
	b.rule(RulePaths, true, b.c.Change.PathsAt, "the %d paths that revision %s touches were checked", e.Touched, e.Revision)
	b.rule(RulePathsAllowed, e.Outside == 0, b.c.Change.PathsAt, "%d of %d paths lie outside the allowed set", e.Outside, e.Touched)
}

// attempts applies the rules over each attempt, and rests the decision on the first that holds
// all of them.
func (b *bench) attempts() {
	ctx := b.c.Change.Context
	if ctx == nil {
		return
	}
	want, command := ctx.Requires(EvidenceCommand)
	var at EventIndex
	for _, x := range b.c.Attempts {
		b.count(x)
		if !command {
			continue
		}
		b.attempt = x.Attempt
		if named := b.c.Rely == nil || slices.Contains(b.c.Rely, x.Attempt); named && b.one(x, *ctx, want) && len(b.relied) == 0 {
			b.relied, at = []AttemptRelied{{Attempt: x.Attempt, Record: x.Stored}}, x.FinishedAt
		}
		b.attempt = ""
	}
	if !command {
		return
	}
	says := "no attempt is listed for this context"
	switch {
	case len(b.relied) > 0:
		says = fmt.Sprintf("attempt %s carries the evidence; %s", b.relied[0].Attempt, b.tally)
	case len(b.c.Attempts) > 0:
		says = fmt.Sprintf("none of the %d attempts listed for this context carries the evidence; %s", len(b.c.Attempts), b.tally)
	}
	if len(b.relied) == 0 {
		at = b.c.Change.ContextAt
	}
	b.rule(RuleAttempt, len(b.relied) > 0, at, "%s", says)
	// Rulings over the context come first.
	slices.SortStableFunc(b.rulings, func(p, q Ruling) int { return cmp.Compare(min(len(p.Attempt), 1), min(len(q.Attempt), 1)) })
}

func (b *bench) count(x AttemptExhibit) {
	if x.Registered != nil && !x.AsListed {
		b.tally.Void++
		return
	}
	b.tally.Listed++
	if x.Record != nil {
		b.tally.Finished++
		if x.Record.Outcome == OutcomeSuccess {
			b.tally.Succeeded++
		}
	}
}

// one applies the rules over one attempt and reports whether all hold.
func (b *bench) one(x AttemptExhibit, ctx Context, recipe PlainDigest) bool {
	from := len(b.rulings)
	if x.Registered == nil {
		return b.rule(RuleOpened, false, x.ListedAt, "it is listed and its own stream never opened")
	}
	g := *x.Registered
	b.rule(RuleOpened, x.AsListed, x.RegisteredAt, "its stream opens with %s registration listed at index %d", either(x.AsListed, "the", "another than the"), x.ListedAt)
	bound := g.Binding != nil && *g.Binding == b.c.Change.Binding
	b.rule(RuleBound, bound, x.RegisteredAt, "it is registered for %s repository, change, version and context", either(bound, "this", "another"))
	subject := g.Subject == Subject{Kind: SubjectCommit, Revision: ctx.Revision}
	b.rule(RuleSubject, subject, x.RegisteredAt, "its subject %s revision %s", either(subject, "is", "is not"), ctx.Revision)
	// Evidence command/v1 is of that profile alone: what ran in a writable workspace shows something else.
	same := PlainDigest(g.Recipe) == recipe && g.Profile == ProfileCommand
	b.rule(RuleRecipe, same, x.RegisteredAt, "its recipe %s the context's %s", either(same, "is", "is not"), recipe)
	same = (g.Toolchain == nil) == (ctx.Toolchain == nil) && (g.Toolchain == nil || *g.Toolchain == *ctx.Toolchain)
	b.rule(RuleToolchain, same, x.RegisteredAt, "its toolchain %s the context's", either(same, "is", "is not"))
	same = g.Environment == ctx.Environment
	b.rule(RuleEnvironment, same, x.RegisteredAt, "its environment %s the context's", either(same, "is", "is not"))
	switch {
	case x.Void != nil:
		b.rule(RuleClaim, false, *x.Void, "its claim at index %d is void: it lost a race", x.ClaimedAt)
	case x.Claimed == 0:
		b.rule(RuleClaim, false, x.RegisteredAt, "nobody claimed it")
	default:
		b.rule(RuleClaim, true, x.ClaimedAt, "its claim stands")
	}
	if x.Record == nil {
		b.rule(RuleFinished, false, x.RegisteredAt, "it is %s, not finished", x.State)
	} else {
		b.rule(RuleFinished, true, x.FinishedAt, "it is finished")
		b.record(x, *x.Record, g, ctx)
	}
	b.qualified(x, g, ctx)
	b.rule(RuleHandles, x.Open == 0, cmp.Or(x.CleanupAt, x.RegisteredAt), "%d daemon objects may still exist", x.Open)
	return !slices.ContainsFunc(b.rulings[from:], func(r Ruling) bool { return !r.Holds })
}

// record applies the rules over a finished attempt's derived record.
func (b *bench) record(x AttemptExhibit, r Record, g AttemptRegistered, ctx Context) {
	same := r.Digest() == x.Stored
	b.rule(RuleRecord, same, x.FinishedAt, "the record its events give %s the stored %s", either(same, "has", "does not have"), x.Stored)
	same = r.Attempt == x.Attempt && r.Subject == g.Subject && r.Recipe == g.Recipe && sameBinding(r.Binding, g.Binding)
	b.rule(RuleIdentity, same, x.FinishedAt, "the record is of %s attempt, subject, recipe and binding", either(same, "the same", "another"))
	same = x.Claimed > 0 && r.Generation == x.Claimed && x.Generation == x.Claimed
	b.rule(RuleGeneration, same, x.FinishedAt, "it was claimed at generation %d and ended at %d", x.Claimed, r.Generation)
	b.rule(RuleSuccess, r.Good(), x.FinishedAt, "its outcome is %s (%s)", r.Outcome, r.Detail)
	b.rule(RuleIsolation, x.Isolated, cmp.Or(x.IsolationAt, x.FinishedAt), "%s", either(x.Isolated, "every control was observed equal before the start", "isolation was not observed before a start"))
	b.reductions(x, r, ctx)
	clean := len(r.Cleanup) > 0
	for _, c := range r.Cleanup {
		clean = clean && c.State.confirmed() && !c.Abandoned
	}
	b.rule(RuleCleanup, clean, cmp.Or(x.CleanupAt, x.FinishedAt), "%s", either(clean, "its container's removal is confirmed", "the removal of its container is not confirmed"))
}

func (b *bench) reductions(x AttemptExhibit, r Record, ctx Context) {
	at := cmp.Or(x.IsolationAt, x.FinishedAt)
	var refused []Reduction
	for _, reason := range r.Reductions {
		if !slices.Contains(ctx.Reductions, reason) {
			refused = append(refused, reason)
		}
	}
	switch {
	case r.Claim == ClaimNone:
		b.rule(RuleReductions, false, at, "it makes no claim: nothing was started")
	case len(refused) > 0:
		b.rule(RuleReductions, false, at, "its claim is reduced for %v, which the context does not accept", refused)
	case len(r.Reductions) > 0:
		b.rule(RuleReductions, true, at, "its claim is reduced for %v, which the context accepts", r.Reductions)
	default:
		b.rule(RuleReductions, true, at, "its claim is full")
	}
}

func sameBinding(a, b *Binding) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
