package verify

import "github.com/baildock/baildock/evidence"

// showing is what the report is about, for the catalogue of statements.
func (r *Report) showing() evidence.Showing {
	s := evidence.Showing{
		Authentic: r.Verdict == Valid,
		Rederived: r.passed(CheckRecord),
		Complete:  r.passed(CheckCompleteness) && r.passed(CheckClaim),
		Witnessed: r.passed(CheckWitness),
		Placed:    r.At != nil,
		Endorsed:  r.Keys.Endorsed,
		Missing:   len(r.Missing) > 0,
	}
	for _, a := range r.Attempts {
		s.ShowAttempt(a.Record)
	}
	if r.qualified() != nil {
		s.Qualified, s.Unqualified = true, false
	}
	return s
}
