package report

import (
	"fmt"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/verify"
)

// admissionPart is an approval or an integration with every rule that was applied again.
func admissionPart(a verify.Admission) Part {
	kind := "Approval"
	if a.Kind == "integration" {
		kind = "Integration"
	}
	s := Section{Key: "judgement", Title: "Judgement"}
	if a.Stands && len(a.NotRedecided) > 0 {
		s.toned("judgement", say("index %d: not re-decided, for what it rests on is missing: %s", a.Index, strings.Join(a.NotRedecided, ", ")), Unsure)
	} else if a.Stands {
		s.toned("judgement", say("index %d: it stands", a.Index), Good)
	} else {
		s.toned("judgement", say("index %d: VOID, the event at index %d came before it; it admits nothing", a.Index, *a.Void), Bad)
	}
	s.fact("context", say("%s", a.Context))
	s.fact("attempts", say("%s, up to the judgement", a.Tally))
	p := Part{Kind: "admission", Title: say("%s of change %s, version %d", kind, a.Change, a.Version)}
	p.add(s, rules(a.Rulings))
	return p
}

// admissionBrief is an admission in a line, for the top of a page.
func admissionBrief(a verify.Admission, check verify.Result) Fact {
	f := Fact{Name: say("change %s, version %d", a.Change, a.Version)}
	switch {
	case check == verify.Fail:
		f.Value, f.Tone = say("%s at index %d does not hold", a.Kind, a.Index), Bad
	case !a.Stands:
		f.Value, f.Tone = say("%s at index %d is void", a.Kind, a.Index), Bad
	case len(a.NotRedecided) > 0:
		f.Value, f.Tone = say("%s at index %d, not re-decided: %s is missing", a.Kind, a.Index, strings.Join(a.NotRedecided, ", ")), Unsure
	default:
		f.Value, f.Tone = say("%s at index %d, decided again; %s", a.Kind, a.Index, a.Tally), Good
	}
	return f
}

func rules(rulings []evidence.Ruling) Section {
	t := &Table{Columns: []string{"holds", "rule", "why"}, Toned: 0}
	for _, r := range rulings {
		holds, tone := Shown("ok"), Good
		if !r.Holds {
			holds, tone = "NO", Bad
		}
		t.Rows = append(t.Rows, Row{Cells: []Shown{holds, say("%s", r.Rule), why(r)}, Tone: tone})
	}
	return Section{Key: "rules", Title: "Rules", Table: t}
}

// why is a ruling's reason, with the attempt it is about and the event that satisfied or broke it.
func why(r evidence.Ruling) Shown {
	says := r.Says
	if r.Attempt != "" {
		says = string(r.Attempt) + ": " + says
	}
	if r.Index != nil {
		says += fmt.Sprintf(" (index %d)", *r.Index)
	}
	return say("%s", says)
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
		out = append(out, fmt.Sprintf("%s%-14s %s", mark, r.Rule, why(r)))
	}
	return out
}
