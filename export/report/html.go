package report

import (
	_ "embed"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

// digestOnly is a fact that is nothing but a digest or an object's name: for eyes that compare.
var digestOnly = regexp.MustCompile(`^(sha256:)?[0-9a-f]{32,64}$`)

// page is parsed by html/template, which escapes every value for the place it stands in. Only the
// style sheet, which is this package's own, is trusted as it is.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"style":   func() template.CSS { return template.CSS(pageStyle) },
	"upper":   strings.ToUpper,
	"wide":    func(t *Table) bool { return len(t.Columns) > 3 },
	"last":    func(x *Excerpt, i int) bool { return x.Unended && i == len(x.Lines)-1 },
	"digest":  func(s Shown) bool { return digestOnly.MatchString(string(s)) },
	"pick":    pick,
	"without": without,
}).Parse(pageText))

// writeHTML writes one page that needs nothing else: no script, and a policy under which a browser
// loads nothing.
func writeHTML(w io.Writer, v View) error { return page.Execute(w, v) }

// pick returns the sections of a kind of part with any of the keys.
func pick(v View, kind string, keys ...string) []Section {
	return sections(v, kind, func(s Section) bool { return slices.Contains(keys, s.Key) })
}

// without returns the other ones.
func without(v View, kind string, keys ...string) []Section {
	return sections(v, kind, func(s Section) bool { return !slices.Contains(keys, s.Key) })
}

func sections(v View, kind string, want func(Section) bool) []Section {
	var out []Section
	for _, p := range v.Parts {
		for _, s := range p.Sections {
			if p.Kind == kind && want(s) {
				out = append(out, s)
			}
		}
	}
	return out
}
