package evidence

import (
	"fmt"
	"slices"
)

// Rule names one rule of admission. Names are never reused for another meaning.
type Rule string

// Rules over the change, its context and its policy.
const (
	RuleContext       Rule = "context"
	RuleContextLegal  Rule = "context_legal"
	RulePolicy        Rule = "policy"
	RuleEpoch         Rule = "epoch"
	RuleBasis         Rule = "basis"
	RuleEvidence      Rule = "evidence"
	RuleKinds         Rule = "kinds"
	RuleQualification Rule = "qualification"
	RuleApproval      Rule = "approval"
	RulePaths         Rule = "paths"
	RulePathsAllowed  Rule = "paths_allowed"
	RuleAttempt       Rule = "attempt"
)

// Rules over one attempt.
const (
	RuleOpened      Rule = "opened"
	RuleBound       Rule = "bound"
	RuleSubject     Rule = "subject"
	RuleRecipe      Rule = "recipe"
	RuleToolchain   Rule = "toolchain"
	RuleEnvironment Rule = "environment"
	RuleClaim       Rule = "claim"
	RuleFinished    Rule = "finished"
	RuleRecord      Rule = "record"
	RuleIdentity    Rule = "identity"
	RuleGeneration  Rule = "generation"
	RuleSuccess     Rule = "success"
	RuleIsolation   Rule = "isolation"
	RuleReductions  Rule = "reductions"
	RuleCleanup     Rule = "cleanup"
	RuleHandles     Rule = "handles"
	RuleQualified   Rule = "qualified"
)

// Ruling is one rule applied: the event that satisfied or broke it, and why in words.
type Ruling struct {
	Rule    Rule        `json:"rule"`
	Holds   bool        `json:"holds"`
	Attempt AttemptID   `json:"attempt,omitempty"`
	Index   *EventIndex `json:"index"` // null: it is the absence of an event
	Says    string      `json:"says"`
}

// Tally counts the attempts listed for the context up to the judgement (req T3).
type Tally struct {
	Listed    int `json:"listed"` // void listings apart
	Finished  int `json:"finished"`
	Succeeded int `json:"succeeded"`
	Void      int `json:"void,omitempty"` // listings whose attempt opened with another registration
}

func (t Tally) String() string {
	s := fmt.Sprintf("%d of %d attempts succeeded", t.Succeeded, t.Listed)
	if open := t.Listed - t.Finished; open > 0 {
		s += fmt.Sprintf(", %d not finished", open)
	}
	if t.Void > 0 {
		s += fmt.Sprintf(", %d listed in vain", t.Void)
	}
	return s
}

// Decision is the answer to a Case, with every rule applied (req H2).
type Decision struct {
	Admitted bool            `json:"admitted"`
	Rulings  []Ruling        `json:"rulings"` // over the context first, then attempt by attempt
	Relied   []AttemptRelied `json:"relied"`  // the attempts it rests on
	Tally    Tally           `json:"tally"`
}

// Broken lists the rulings that refuse, in order. Where another attempt admits, what an attempt
// breaks refuses nothing and isn't listed.
func (d Decision) Broken() []Ruling {
	var out []Ruling
	for _, r := range d.Rulings {
		if !r.Holds && (r.Attempt == "" || len(d.Relied) == 0) {
			out = append(out, r)
		}
	}
	return out
}

// Grounds are what an approval stores of an admitting decision.
func (d Decision) Grounds() Grounds {
	g := Grounds{Rules: 1}
	for _, r := range d.Rulings {
		if r.Rule == RuleQualified {
			g.Rules = 2
		}
		relied := r.Attempt == "" || slices.ContainsFunc(d.Relied, func(a AttemptRelied) bool { return a.Attempt == r.Attempt })
		if r.Holds && relied {
			g.Grounds = append(g.Grounds, Ground{Rule: r.Rule, Index: r.Index, Attempt: r.Attempt})
		}
	}
	return g
}

// RuleSet numbers the rules below. A version that changes what is admitted takes the next number. A
// decision stores the smallest number whose rules give it, so that earlier readers judge what they can:
// 2 adds RuleQualified.
const RuleSet = 2

// Grounds is every rule that admitted, in order, with the event that satisfied it.
type Grounds struct {
	Rules   uint64   `cbor:"1,keyasint" json:"rules"` // the smallest RuleSet that gives them
	Grounds []Ground `cbor:"2,keyasint" json:"grounds"`
}

// Ground is one rule that held.
type Ground struct {
	Rule    Rule        `cbor:"1,keyasint" json:"rule"`
	Index   *EventIndex `cbor:"2,keyasint,omitempty" json:"index,omitempty"`
	Attempt AttemptID   `cbor:"3,keyasint,omitempty" json:"attempt,omitempty"`
}

// Check refuses grounds of no legal shape.
func (g Grounds) Check() error {
	if g.Rules == 0 || len(g.Grounds) == 0 || len(g.Grounds) > MaxGrounds {
		return fmt.Errorf("its grounds name no rule set, no rule or more than %d", MaxGrounds)
	}
	for _, x := range g.Grounds {
		if x.Rule == "" || len(x.Rule) > MaxCode {
			return fmt.Errorf("its grounds hold a rule without a legal name")
		}
	}
	return nil
}

// Equal reports whether both say the same.
func (g Grounds) Equal(o Grounds) bool {
	return g.Rules == o.Rules && slices.EqualFunc(g.Grounds, o.Grounds, func(a, b Ground) bool {
		return a.Rule == b.Rule && a.Attempt == b.Attempt && (a.Index == nil) == (b.Index == nil) && (a.Index == nil || *a.Index == *b.Index)
	})
}
