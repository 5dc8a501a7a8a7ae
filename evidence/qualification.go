package evidence

import (
	"fmt"
	"slices"
)

// Standing is what a runtime's canaries came to.
type Standing string

const (
	Qualified    Standing = "qualified"
	NotQualified Standing = "not_qualified" // a canary did not bear it out, or none was observed
	Stale        Standing = "stale"         // they bore out something else: another build, image, profile or corpus
)

// Bound is what a qualification is of (req H7): whatever changes here makes earlier passes stale. The
// image is the one of the last canary observed.
type Bound struct {
	Runtime RuntimeDigest `json:"runtime"` // engine, machine and build
	Table   ProfileDigest `json:"table"`   // of the profile that an attempt runs under
	Corpus  Corpus        `json:"corpus"`
}

// CanaryRun is the finished attempt of a canary, as its own events give it.
type CanaryRun struct {
	Attempt    AttemptID
	Record     RecordDigest // derived
	Outcome    Outcome
	Runtime    *RuntimeDigest
	Table      ProfileDigest
	AdHoc      bool // bound to no change
	Isolated   bool // every control was found equal before the start
	Clean      bool // the removal of all it made is confirmed
	FinishedAt EventIndex
}

// CanaryRun is what a qualification reads of an attempt; nil until it is finished.
func (t *AttemptTrail) CanaryRun() *CanaryRun {
	a := &t.Fold
	if a.Finished == nil {
		return nil
	}
	r := RecordOf(a)
	c := &CanaryRun{
		Attempt: r.Attempt, Record: r.Digest(), Outcome: r.Outcome, Runtime: r.Runtime, Table: r.Table, AdHoc: r.Binding == nil,
		Isolated: a.Run.Ordered && a.Isolation != nil && a.Isolation.holds(a.Registered.Table),
		Clean:    len(r.Cleanup) > 0 && len(a.Custodies.Open()) == 0, FinishedAt: t.at.finished,
	}
	for _, h := range r.Cleanup {
		c.Clean = c.Clean && h.State.confirmed() && !h.Abandoned
	}
	return c
}

// CanaryExhibit is one observation together with the attempt that it rests on.
type CanaryExhibit struct {
	CanarySeen
	Run *CanaryRun // nil: no such attempt finished
}

// CanaryReason says why one canary does not bear a runtime out.
type CanaryReason struct {
	Canary CanaryName  `json:"canary"`
	Index  *EventIndex `json:"index"` // of its observation; null: there is none
	Stale  bool        `json:"stale,omitempty"`
	Says   string      `json:"says"`
}

// Qualification is what the canaries observed on a runtime say of it, for one profile and corpus only.
type Qualification struct {
	Standing Standing       `json:"standing"`
	Bound    Bound          `json:"bound"`
	Image    ImageID        `json:"image,omitzero"` // of the last canary observed; zero: none was
	Carried  []EventIndex   `json:"carried"`        // the observations that bear it out, in the corpus's order
	Reasons  []CanaryReason `json:"reasons,omitempty"`
}

// Last is the last observation that bears it out.
func (q Qualification) Last() EventIndex { return slices.Max(append([]EventIndex{0}, q.Carried...)) }

// Cite picks the observations that a qualification of a bound reads, in the corpus's order: the last of
// each canary that is of this runtime, profile and corpus.
func (b Bound) Cite(seen []CanarySeen) []CanarySeen {
	last := map[CanaryName]CanarySeen{}
	corpus := b.Corpus.Digest()
	for _, s := range seen {
		if b.fits(s.Observed, corpus) {
			last[s.Observed.Canary] = s
		}
	}
	var out []CanarySeen
	for _, c := range b.Corpus.Canaries {
		if s, ok := last[c.Name]; ok {
			out = append(out, s)
		}
	}
	return out
}

func (b Bound) fits(e CanaryObserved, corpus CorpusDigest) bool {
	return e.Runtime == b.Runtime && e.Table == b.Table && e.Corpus == corpus
}

// Qualify says what a runtime's canaries came to. It is pure and total: nothing asserts it, and the last
// observation of each canary is what counts, so that a later failure ends it and a later pass restores it.
// runs gives the attempt of a canary, as it was before the judgement; nil where it isn't finished.
func Qualify(b Bound, seen []CanarySeen, runs func(AttemptID) *CanaryRun) Qualification {
	q := Qualification{Standing: Qualified, Bound: b, Carried: []EventIndex{}}
	if err := b.Corpus.Check(); err != nil {
		q.Standing, q.Reasons = NotQualified, []CanaryReason{{Says: err.Error()}}
		return q
	}
	cited := map[CanaryName]CanarySeen{}
	var latest EventIndex
	for _, s := range b.Cite(seen) {
		cited[s.Observed.Canary] = s
		if s.At >= latest {
			latest, q.Image = s.At, s.Observed.Image
		}
	}
	for _, c := range b.Corpus.Canaries {
		s, ok := cited[c.Name]
		if !ok {
			q.Reasons = append(q.Reasons, b.unseen(c.Name, seen))
			continue
		}
		at := s.At
		reason := CanaryReason{Canary: c.Name, Index: &at}
		if reason.Says = b.refuse(c, CanaryExhibit{s, runs(s.Observed.Attempt)}); reason.Says == "" && s.Observed.Image != q.Image {
			reason.Stale, reason.Says = true, fmt.Sprintf("it was observed with image %s; the last was with %s", s.Observed.Image, q.Image)
		}
		if reason.Says == "" {
			q.Carried = append(q.Carried, at)
		} else {
			q.Reasons = append(q.Reasons, reason)
		}
	}
	q.Standing = standing(q.Reasons)
	return q
}

// standing weighs reasons: what broke outweighs what is stale, which outweighs what was never observed.
func standing(reasons []CanaryReason) Standing {
	switch {
	case len(reasons) == 0:
		return Qualified
	case slices.ContainsFunc(reasons, func(r CanaryReason) bool { return !r.Stale && r.Index != nil }):
		return NotQualified
	case slices.ContainsFunc(reasons, func(r CanaryReason) bool { return r.Stale }):
		return Stale
	}
	return NotQualified
}

// unseen says of a canary without an observation that fits what the last one that doesn't was of.
func (b Bound) unseen(name CanaryName, seen []CanarySeen) CanaryReason {
	corpus := b.Corpus.Digest()
	for _, s := range slices.Backward(seen) {
		e, at := s.Observed, s.At
		if e.Canary != name {
			continue
		}
		r := CanaryReason{Canary: name, Index: &at, Stale: true}
		switch {
		case e.Runtime != b.Runtime:
			r.Says = fmt.Sprintf("it was observed on runtime %s, not on %s", e.Runtime, b.Runtime)
		case e.Table != b.Table:
			r.Says = fmt.Sprintf("it was observed under profile %s, not under %s", e.Table, b.Table)
		default:
			r.Says = fmt.Sprintf("it was observed as one of corpus %s, not of %s", e.Corpus, corpus)
		}
		return r
	}
	return CanaryReason{Canary: name, Says: "it was never observed on this runtime"}
}

// refuse says why an observation does not bear the runtime out, or "". Its attempt is derived again, so
// that a pass which only the event asserts is none.
func (b Bound) refuse(c Canary, x CanaryExhibit) string {
	e, r := x.Observed, x.Run
	switch {
	case e.Verdict == CanaryNotApplicable && !c.Lacking:
		return fmt.Sprintf("it is not applicable (%s), which the corpus does not allow", e.Code)
	case e.Verdict != CanaryPassed && e.Verdict != CanaryNotApplicable:
		return fmt.Sprintf("it failed (%s)", e.Code)
	case r == nil || r.FinishedAt >= x.At:
		return fmt.Sprintf("its attempt %s was not finished before it was observed", e.Attempt)
	case r.Attempt != e.Attempt || r.Record != e.Record:
		return fmt.Sprintf("its attempt %s has record %s, not %s", e.Attempt, r.Record, e.Record)
	case !r.AdHoc:
		return fmt.Sprintf("its attempt %s is bound to a change", e.Attempt)
	case r.Runtime == nil || *r.Runtime != e.Runtime:
		return fmt.Sprintf("its attempt %s ran on another runtime", e.Attempt)
	case r.Table != e.Table:
		return fmt.Sprintf("its attempt %s ran under profile %s, not under %s", e.Attempt, r.Table, e.Table)
	case r.Outcome != c.Outcome:
		return fmt.Sprintf("its attempt %s came to %s, not to %s", e.Attempt, r.Outcome, c.Outcome)
	case !r.Isolated || !r.Clean:
		return fmt.Sprintf("isolation or removal of its attempt %s is not confirmed", e.Attempt)
	}
	return ""
}
