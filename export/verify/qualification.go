package verify

import (
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

// qualifying returns the streams of the runtimes that must be qualified for an admission, each with what
// it must be qualified for. Attempts of one context that ran in one runtime have one profile's table.
func qualifying(a bundle.Admission, the evidence.Case) map[string]evidence.Bound {
	c, out := the.Change.Context, map[string]evidence.Bound{}
	if !c.RequireQualified || c.Corpus == nil {
		return out
	}
	for _, x := range the.Attempts {
		named := slices.ContainsFunc(a.Relied, func(r evidence.AttemptRelied) bool { return r.Attempt == x.Attempt })
		if named && x.Runtime != nil && x.Registered != nil {
			out[evidence.RuntimePrefix+x.Runtime.Hex()] = evidence.Bound{Runtime: *x.Runtime, Table: x.Registered.Table, Corpus: *c.Corpus}
		}
	}
	return out
}

// canaries adds what these runtimes were seen to hold at the versions that an admission's basis names, with
// the attempts of the canaries as they were before it.
func (v *verification) canaries(a bundle.Admission, the *evidence.Case, runtimes map[string]evidence.Bound) error {
	the.Canaries, the.Runs = map[evidence.RuntimeDigest][]evidence.CanarySeen{}, map[evidence.AttemptID]*evidence.CanaryRun{}
	for _, b := range a.Runtimes() {
		bound, ok := runtimes[b.Stream]
		if !ok {
			continue
		}
		t, err := bundle.RuntimeTrail(b.Stream, v.streams[b.Stream])
		if err != nil {
			return err
		}
		the.Canaries[bound.Runtime] = t.UpTo(b.Version)
		for _, c := range bound.Cite(the.Canaries[bound.Runtime]) {
			id := c.Observed.Attempt
			if the.Runs[id], err = v.canaryRun(id, a.Index); err != nil {
				return err
			}
		}
	}
	return nil
}

// canaryRun derives a canary's attempt again from its events before a judgement; nil where it isn't finished.
func (v *verification) canaryRun(id evidence.AttemptID, judgement ledger.Index) (*evidence.CanaryRun, error) {
	var t evidence.AttemptTrail
	for _, e := range v.streams[evidence.AttemptPrefix+string(id)] {
		if e.Index >= judgement {
			break
		}
		if err := t.Apply(evidence.EventIndex(e.Index), e.Payload); err != nil {
			return nil, fmt.Errorf("stream %s, version %s: %w", e.Stream, e.Version, err)
		}
	}
	return t.CanaryRun(), nil
}

// qualified returns the ruling that a standing judgement's runtime was qualified; nil without one.
func (r *Report) qualified() *evidence.Ruling {
	if !r.passed(CheckAdmission) {
		return nil
	}
	for _, a := range r.Admissions {
		for _, x := range a.Rulings {
			if a.Stands && x.Rule == evidence.RuleQualified && x.Holds && slices.Contains(a.Relied, x.Attempt) {
				return &x
			}
		}
	}
	return nil
}

// Qualification says in one line whether a judgement rests on a qualified runtime (req H7).
func (r *Report) Qualification() string {
	if x := r.qualified(); x != nil {
		return fmt.Sprintf("%s (index %d)", x.Says, *x.Index)
	}
	for _, a := range r.Admissions {
		for _, x := range a.Rulings {
			if x.Rule == evidence.RuleQualification {
				return x.Says
			}
		}
	}
	return "not required, not qualified: no judgement in this bundle asks for a qualified runtime"
}
