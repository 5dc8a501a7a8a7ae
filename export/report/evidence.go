package report

import (
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/verify"
)

// evidencePart says what was checked, what is missing, whose keys, and what it all means.
func evidencePart(r verify.Report) Part {
	p := Part{Kind: "evidence", Title: "Evidence"}
	p.add(checks(r))
	if len(r.Missing) > 0 {
		p.add(missing(r))
	}
	if len(r.Attempts)+len(r.Admissions) > 0 {
		s := Section{Key: "qualification", Title: "Qualification"}
		s.fact("runtime", say("%s", r.Qualification()))
		p.add(s)
	}
	p.add(ledgerOf(r))
	for _, of := range []struct {
		claims bool
		key    string
		title  Shown
	}{{true, "shows", "What this shows"}, {false, "shows_not", "What this does not show"}} {
		s := Section{Key: of.key, Title: of.title}
		for _, c := range r.Claims {
			if c.Claim == of.claims {
				s.fact(string(c.ID), say("%s", c.Text))
			}
		}
		if len(s.Facts) > 0 {
			p.add(s)
		}
	}
	return p
}

func checks(r verify.Report) Section {
	t := &Table{Columns: []string{"check", "result", "detail"}, Toned: 1}
	for _, c := range r.Checks {
		tone := map[verify.Result]Tone{verify.Pass: Good, verify.Fail: Bad, verify.NotDone: Unsure}[c.Result]
		t.Rows = append(t.Rows, Row{Cells: []Shown{field(c.Name), field(strings.ReplaceAll(string(c.Result), "_", " ")), say("%s", c.Detail)}, Tone: tone})
	}
	return Section{Key: "checks", Title: "Checks", Table: t}
}

func missing(r verify.Report) Section {
	s := Section{Key: "missing", Title: "Missing from the bundle"}
	for _, m := range r.Missing {
		allowed, tone := "not allowed", Unsure
		if m.Allowed {
			allowed, tone = "allowed by name", Neutral
		}
		s.toned(string(field(string(m.Class))), say("%s, %d blobs, %s", m.Why, m.Blobs, allowed), tone)
	}
	return s
}

func ledgerOf(r verify.Report) Section {
	s := Section{Key: "ledger", Title: "Ledger"}
	if r.At != nil {
		s.fact("id", field(r.Ledger))
		s.fact("origin", field(r.Origin))
		s.fact("as of", say("index %d", *r.At))
	}
	if r.Root != "" {
		s.fact("root", field(r.Root))
	}
	s.fact("signed by", key(r.Keys.Signed))
	s.fact("trusted", key(r.Keys.Trusted))
	s.fact("checkpoint", key(r.Keys.Checkpoint))
	s.fact("times", say("%s", strings.TrimPrefix(r.Times, "times: ")))
	return s
}

func key(id *evidence.KeyID) Shown {
	if id == nil {
		return "no key"
	}
	return say("%s", id)
}
