package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/verify"
)

// Format is how a report is written.
type Format string

const (
	FormatText     Format = "text"
	FormatMarkdown Format = "markdown"
	FormatHTML     Format = "html"
	FormatJSON     Format = "json"
)

// Formats lists every format.
func Formats() []Format { return []Format{FormatText, FormatMarkdown, FormatHTML, FormatJSON} }

// ParseFormat refuses anything else.
func ParseFormat(s string) (Format, error) {
	if f := Format(s); slices.Contains(Formats(), f) {
		return f, nil
	}
	return "", fmt.Errorf("format %q is none of %v", s, Formats())
}

// Write writes a view in a format. It fails only with the writer's error, or for a format that
// isn't one.
func Write(w io.Writer, f Format, v View) error {
	switch f {
	case FormatText:
		return writeText(w, v)
	case FormatMarkdown:
		return writeMarkdown(w, v)
	case FormatHTML:
		return writeHTML(w, v)
	case FormatJSON:
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	return fmt.Errorf("format %q is none of %v", f, Formats())
}

// View is a report as every format shows it: what is said, bounded, each text escaped, and nothing
// about how it looks.
type View struct {
	Version  int              `json:"version"` // 1
	Stamp    string           `json:"stamp"`   // VERIFIED, NOT VERIFIED, INVALID
	Verdict  verify.Verdict   `json:"verdict"`
	Outcome  evidence.Outcome `json:"outcome"` // empty: none could be judged
	Claim    evidence.Claim   `json:"claim"`
	Headline Shown            `json:"headline"`
	Tone     Tone             `json:"tone"`
	Notes    []Shown          `json:"notes"` // what has to be known before reading on
	Brief    []Fact           `json:"brief"` // an attempt a line: how it ended and what it claims
	Parts    []Part           `json:"parts"`
}

// Shown is text that Escape made: one line of printable characters.
type Shown string

// Tone says whether something is as it should be. It never replaces the words.
type Tone string

const (
	Neutral Tone = ""
	Good    Tone = "good"
	Bad     Tone = "bad"
	Unsure  Tone = "unsure" // not known, not checked
)

// Part is one attempt, one judgement, or the evidence of the whole bundle.
type Part struct {
	Kind     string    `json:"kind"` // attempt, admission, evidence
	Title    Shown     `json:"title"`
	Sections []Section `json:"sections"`
}

// Section is one subject of a part. What it doesn't have is absent.
type Section struct {
	Key     string   `json:"key"` // stable, the same in every part
	Title   Shown    `json:"title"`
	Facts   []Fact   `json:"facts,omitempty"`
	Table   *Table   `json:"table,omitempty"`
	Excerpt *Excerpt `json:"excerpt,omitempty"`
}

// Fact is a named value.
type Fact struct {
	Name  Shown `json:"name"`
	Value Shown `json:"value"`
	Tone  Tone  `json:"tone,omitempty"`
}

// Table is rows of as many cells as there are columns.
type Table struct {
	Columns []string `json:"columns"`
	Toned   int      `json:"toned"` // the column that a row's tone is about
	Rows    []Row    `json:"rows"`
}

// Row is one row.
type Row struct {
	Cells []Shown `json:"cells"`
	Tone  Tone    `json:"tone,omitempty"`
}

// Excerpt is the beginning of bytes that somebody else wrote, a line each.
type Excerpt struct {
	Lines   []Shown `json:"lines"`
	Unended bool    `json:"unended,omitempty"` // the last line has no line end
	More    int     `json:"more,omitempty"`    // bytes that the bundle holds and the excerpt doesn't
}

// Of makes the view of a verification.
func Of(r verify.Report) View {
	v := top(r)
	for _, a := range r.Attempts {
		v.Parts = append(v.Parts, attemptPart(a))
	}
	for _, a := range r.Admissions {
		v.Parts = append(v.Parts, admissionPart(a))
	}
	v.Parts = append(v.Parts, evidencePart(r))
	return v
}

// summary is a view without attempts and judgements.
func summary(r verify.Report) View {
	v := top(r)
	v.Parts = []Part{evidencePart(r)}
	return v
}

// Stamp is how a report opens.
func Stamp(v verify.Verdict) string {
	switch v {
	case verify.Valid:
		return "VERIFIED"
	case verify.Invalid:
		return "INVALID"
	}
	return "NOT VERIFIED"
}

func top(r verify.Report) View {
	v := View{
		Version: 1, Stamp: Stamp(r.Verdict), Verdict: r.Verdict, Outcome: r.Outcome, Claim: r.Claim,
		Headline: "no outcome", Tone: map[verify.Verdict]Tone{verify.Valid: Good, verify.Invalid: Bad}[r.Verdict],
		Notes: []Shown{}, Brief: []Fact{}, Parts: []Part{},
	}
	if v.Tone == Neutral {
		v.Tone = Unsure
	}
	if r.Outcome != "" {
		v.Headline = say("%s%s, claim %s", r.Outcome, heldAgainst(r), r.Claim)
	}
	if len(r.Attempts) == 0 && len(r.Changes) > 0 {
		v.Headline = say("change %s, no attempt", r.Changes[0])
	}
	switch {
	case r.Verdict == verify.Invalid:
		v.note("The bundle is bad evidence. Nothing below may be relied on.")
	case r.Keys.Trusted == nil:
		v.note("No key was given. Everything below is what the bundle says of itself.")
	case r.Verdict == verify.NotChecked:
		v.note("Not everything could be checked; the list says what.")
	}
	if r.Verdict == verify.Valid && !r.Reached {
		v.note("Level %s is not reached: %s", r.Required, r.Why)
	}
	for _, a := range r.Attempts {
		v.Brief = append(v.Brief, Fact{field(string(a.Attempt)), say("%s (%s), claim %s", a.Record.Outcome, a.Record.Detail, a.Record.Claim), recordTone(a.Record)})
	}
	for _, a := range r.Admissions {
		v.Brief = append(v.Brief, admissionBrief(a, r.Check(verify.CheckAdmission).Result))
	}
	return v
}

func (v *View) note(format string, args ...any) { v.Notes = append(v.Notes, say(format, args...)) }

// say formats and escapes: whatever came in as an argument can't leave its line.
func say(format string, args ...any) Shown {
	return cut(Escape(fmt.Sprintf(format, args...)), maxLine)
}

// heldAgainst names what is held against a success, in parentheses; nothing beside any other outcome.
func heldAgainst(r verify.Report) string {
	for _, a := range r.Attempts {
		if a.Record.Outcome == evidence.OutcomeSuccess && r.Outcome == evidence.OutcomeSuccess && !a.Record.Good() {
			return " (" + a.Record.Detail + ")"
		}
	}
	return ""
}

func recordTone(r evidence.Record) Tone {
	if r.Outcome == evidence.OutcomeSuccess && !r.Good() {
		return Bad
	}
	return outcomeTone(r.Outcome)
}

func outcomeTone(o evidence.Outcome) Tone {
	switch o {
	case evidence.OutcomeSuccess:
		return Good
	case evidence.OutcomeFailed:
		return Bad
	}
	return Unsure
}

// codes joins short codes.
func codes[S ~string](all []S) Shown {
	out := make([]string, len(all))
	for i, c := range all {
		out[i] = string(field(string(c)))
	}
	return Shown(strings.Join(out, ", "))
}

// quoted shows where a text begins and ends. A backslash is doubled already, so that one before a
// quote means the quote is the text's own.
func quoted(s string) Shown {
	return `"` + Shown(strings.ReplaceAll(string(field(s)), `"`, `\"`)) + `"`
}

// fact adds a fact to a section.
func (s *Section) fact(name string, value Shown) {
	s.Facts = append(s.Facts, Fact{Name: Shown(name), Value: value})
}

// toned adds a fact that is as it should be, or isn't.
func (s *Section) toned(name string, value Shown, tone Tone) {
	s.Facts = append(s.Facts, Fact{Shown(name), value, tone})
}
