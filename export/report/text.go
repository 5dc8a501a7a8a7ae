package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/baildock/baildock/export/verify"
)

// Text writes a report as plain text. It fails only with the writer's error.
func Text(w io.Writer, r verify.Report) error { return writeText(w, Of(r)) }

// Verification writes what `verify` prints: the outcome first, then each check.
func Verification(w io.Writer, r verify.Report) error { return writeText(w, summary(r)) }

// printer keeps the first error, so that callers check once.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func writeText(w io.Writer, v View) error {
	p := &printer{w: w}
	p.line("%s: %s", v.Stamp, v.Headline)
	for _, n := range v.Notes {
		p.line("  %s", n)
	}
	for _, part := range v.Parts {
		p.line("\n%s", part.Title)
		for _, s := range part.Sections {
			p.line("\n%s", s.Title)
			p.section(s)
		}
	}
	return p.err
}

func (p *printer) section(s Section) {
	width := 12
	for _, f := range s.Facts {
		width = max(width, min(utf8.RuneCountInString(string(f.Name)), widest))
	}
	for _, f := range s.Facts {
		p.line("  %s %s", padded(f.Name, width), f.Value)
	}
	if s.Table != nil {
		p.table(*s.Table)
	}
	if x := s.Excerpt; x != nil {
		for i, l := range x.Lines {
			end := ""
			if x.Unended && i == len(x.Lines)-1 {
				end = " (no line end)"
			}
			p.line("  | %s%s", l, end)
		}
		if x.More > 0 {
			p.line("  … %d more bytes are in the bundle", x.More)
		}
	}
}

// widest is the column that a longer cell overflows instead of pushing all others aside.
const widest = 30

// table writes rows in columns, under their names where there are more than three.
func (p *printer) table(t Table) {
	width := make([]int, len(t.Columns))
	rows := t.Rows
	if len(t.Columns) > 3 {
		var head Row
		for _, c := range t.Columns {
			head.Cells = append(head.Cells, Shown(c))
		}
		rows = append([]Row{head}, rows...)
	}
	for _, r := range rows {
		for i, c := range r.Cells {
			width[i] = max(width[i], min(utf8.RuneCountInString(string(c)), widest))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, c := range r.Cells {
			b.WriteString("  " + padded(c, width[i]))
		}
		p.line("%s", strings.TrimRight(b.String(), " "))
	}
}

func padded(s Shown, width int) string {
	return string(s) + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(string(s))))
}
