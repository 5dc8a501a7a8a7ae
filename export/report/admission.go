package report

import (
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/verify"
)

// admission writes an approval or an integration with every rule that was applied again.
func (p *printer) admission(a verify.Admission) {
	p.heading(fmt.Sprintf("%s of change %s, version %d", map[bool]string{true: "Integration", false: "Approval"}[a.Kind == "integration"], field(string(a.Change)), a.Version))
	if a.Stands {
		p.line("  judgement    index %d: it stands", a.Index)
	} else {
		p.line("  judgement    index %d: VOID, the event at index %d came before it; it admits nothing", a.Index, *a.Void)
	}
	p.line("  context      %s", a.Context)
	p.line("  attempts     %s, up to the judgement", a.Tally)
	for _, line := range Rulings(a.Rulings) {
		p.line("  %s", line)
	}
}

// Rulings writes rules as they were applied, a line each: whether it holds, its name, why, and the
// event that satisfied or broke it.
func Rulings(rulings []evidence.Ruling) []string {
	var out []string
	for _, r := range rulings {
		mark := "ok  "
		if !r.Holds {
			mark = "NO  "
		}
		says := Escape(r.Says)
		if r.Attempt != "" {
			says = Escape(string(r.Attempt)) + ": " + says
		}
		if r.Index != nil {
			says += fmt.Sprintf(" (index %d)", *r.Index)
		}
		out = append(out, fmt.Sprintf("%s%-14s %s", mark, r.Rule, says))
	}
	return out
}
