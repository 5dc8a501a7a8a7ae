package report

import (
	"io"
	"regexp"
	"strings"
)

func writeMarkdown(w io.Writer, v View) error {
	p := &printer{w: w}
	p.line("# %s: %s", v.Stamp, inline(v.Headline))
	for _, n := range v.Notes {
		p.line("\n> **%s:** %s", v.Stamp, inline(n))
	}
	for _, part := range v.Parts {
		p.line("\n## %s", inline(part.Title))
		for _, s := range part.Sections {
			p.line("\n### %s", inline(s.Title))
			p.markdown(s)
		}
	}
	return p.err
}

func (p *printer) markdown(s Section) {
	if len(s.Facts) > 0 {
		p.line("")
		for _, f := range s.Facts {
			p.line("- %s: %s", inline(f.Name), inline(f.Value))
		}
	}
	if t := s.Table; t != nil {
		p.line("\n| %s |", strings.Join(t.Columns, " | "))
		p.line("|%s", strings.Repeat(" --- |", len(t.Columns)))
		for _, r := range t.Rows {
			cells := make([]string, len(r.Cells))
			for i, c := range r.Cells {
				cells[i] = inline(c)
			}
			p.line("| %s |", strings.Join(cells, " | "))
		}
	}
	if x := s.Excerpt; x != nil {
		p.line("\n```text")
		for _, l := range x.Lines {
			p.line("| %s", l) // behind its bar no line can end the block
		}
		p.line("```")
		if x.Unended && len(x.Lines) > 0 {
			p.line("\nThe last line has no line end.")
		}
		if x.More > 0 {
			p.line("\n%d more bytes are in the bundle.", x.More)
		}
	}
}

// prose is text without a character that Markdown, or a site that renders it, gives a meaning: no
// markup, no address, no mention, no reference.
var prose = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9 ,;()]|[:.]( |$)|'[a-z])*$`)

// inline shows text inside a line: plain where it can only be prose, else as a code span, in which
// nothing is markup. The two characters that could end the span or a table's cell are written as
// escapes, which Escape's doubled backslash keeps unambiguous.
func inline(s Shown) string {
	switch {
	case s == "":
		return "–"
	case prose.MatchString(string(s)):
		return string(s)
	}
	return "`" + strings.NewReplacer("`", `\x60`, "|", `\x7c`).Replace(string(s)) + "`"
}
