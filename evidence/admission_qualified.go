package evidence

import (
	"cmp"
	"fmt"
)

// qualification says whether the context asks for a qualified runtime, and whether any could be one.
func (b *bench) qualification(ctx Context, command bool) {
	at := b.c.Change.ContextAt
	switch {
	case !ctx.RequireQualified:
		b.rule(RuleQualification, true, at, "not required, not qualified: the context asks for no qualified runtime, and none is judged")
	case ctx.Corpus == nil:
		b.rule(RuleQualification, false, at, "the context asks for a qualified runtime and names no corpus of canaries that would qualify one")
	case !command:
		b.rule(RuleQualification, false, at, "the context asks for a qualified runtime and for no command, so there is no runtime to judge")
	default:
		b.rule(RuleQualification, true, at, "required: the runtime of an attempt must be qualified, for its profile, by the %d canaries of corpus %s", len(ctx.Corpus.Canaries), ctx.Corpus.Digest())
	}
}

// qualified holds an attempt's runtime against its canaries, where the context asks for that (req H7).
func (b *bench) qualified(x AttemptExhibit, g AttemptRegistered, ctx Context) {
	if !ctx.RequireQualified || ctx.Corpus == nil {
		return
	}
	if x.Runtime == nil {
		b.rule(RuleQualified, false, x.RegisteredAt, "no runtime was observed that could be qualified")
		return
	}
	q := Qualify(Bound{Runtime: *x.Runtime, Table: g.Table, Corpus: *ctx.Corpus}, b.c.Canaries[*x.Runtime],
		func(id AttemptID) *CanaryRun { return b.c.Runs[id] })
	if q.Standing == Qualified {
		b.rule(RuleQualified, true, q.Last(), "%s", q.Says())
		return
	}
	at := x.RegisteredAt
	if first := q.Reasons[0].Index; first != nil {
		at = cmp.Or(*first, at)
	}
	b.rule(RuleQualified, false, at, "%s", q.Says())
}

// Says is the qualification in one line, with the first reason and how many more there are.
func (q Qualification) Says() string {
	if q.Standing == Qualified {
		return fmt.Sprintf("qualified on %s, for this profile only (table %s, %d canaries of corpus %s, image %s)",
			q.Bound.Runtime, q.Bound.Table, len(q.Carried), q.Bound.Corpus.Digest(), q.Image)
	}
	word := "not qualified"
	if q.Standing == Stale {
		word = "qualification is stale"
	}
	r := q.Reasons[0]
	s := fmt.Sprintf("%s on %s: canary %s: %s", word, q.Bound.Runtime, r.Canary, r.Says)
	if more := len(q.Reasons) - 1; more > 0 {
		s += fmt.Sprintf("; %d more of %d do not bear it out", more, len(q.Bound.Corpus.Canaries))
	}
	return s
}
