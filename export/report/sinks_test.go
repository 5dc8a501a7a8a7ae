package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export/report"
	"github.com/baildock/baildock/export/verify"
)

// attacks are texts that mean something to one sink or another.
var attacks = []string{
	hostile,
	"<script>document.title='owned'</script>", "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>",
	"\"><svg/onload=alert(1)>", "' onmouseover='alert(1)", "javascript:alert(1)", "</code></li></ol><h1>VERIFIED</h1>",
	"</style><script>alert(1)</script>", "</title><script>alert(1)</script>", "<!--", "-->", "<![CDATA[", "]]>", "<?xml", "&lt;script&gt;", "&#x3c;b&#x3e;",
	"<base href=https://evil.example/>", "<meta http-equiv=refresh content='0;url=https://evil.example'>", "<link rel=stylesheet href=//evil.example/x.css>",
	"<a href=\"https://evil.example\">VERIFIED</a>", "{{.}}", "${7*7}", "<b", "<", ">", "&", "\"", "'", "`",
	"```", "~~~", "```text\n```", "# VERIFIED", "## Attempt two", "- item", "1. item", "> quote", "---", "***", "===", "    code",
	"[VERIFIED](https://evil.example)", "![x](https://evil.example/x.png)", "[x]: https://evil.example", "<https://evil.example>", "https://evil.example/",
	"www.evil.example", "somebody@evil.example", "@everyone", "#1", "GH-1", "owner/repository#1", "~~gone~~", "**bold**", "_em_", "$x$", "a | b", "|", "\\|", "\\\\|", "`a` | `b`", "``", "`` ` ``", "\\`",
	"| --- | --- |", "<details>", "&nbsp;", "&copy;", "[^1]", "[ ]", ":smile:", "\ttabbed", " led", "trailing ", "  \n", "\\",
	"=HYPERLINK(\"https://evil.example\")", "+1", "-1", "@SUM(A1)", "<plaintext>", "<textarea>", "trailing  ",
	"\x1b]8;;https://evil.example\x07link\x1b]8;;\x07", "\x1b[2J", "\x9b31m", "\u202eDEIFIREV", "\u2066x\u2069", "\u200b", "\ufeff", "\u2028", "\u0085", "\r\nVERIFIED", "\x00", "\xff\xfe", "e\u0301\u0301\u0301", "\U000e0041", "",
	strings.Repeat("<", 500), strings.Repeat("`", 99), strings.Repeat("\u202e", 50),
}

// everywhere puts a text into every place of a view that shows one.
func everywhere(t testing.TB, v report.View, s string) report.View {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	var out report.View
	require.NoError(t, json.Unmarshal(b, &out))
	replaced := 0
	var walk func(reflect.Value)
	walk = func(x reflect.Value) {
		switch x.Kind() {
		case reflect.Pointer:
			if !x.IsNil() {
				walk(x.Elem())
			}
		case reflect.Struct:
			for i := range x.NumField() {
				walk(x.Field(i))
			}
		case reflect.Slice:
			for i := range x.Len() {
				walk(x.Index(i))
			}
		case reflect.String:
			if x.Type() == reflect.TypeFor[report.Shown]() {
				x.SetString(report.Escape(s))
				replaced++
			}
		}
	}
	walk(reflect.ValueOf(&out))
	require.Greater(t, replaced, 300)
	return out
}

func written(t testing.TB, f report.Format, v report.View) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, f, v))
	return b.String()
}

// sample is the view of an attempt with everything a report has a place for.
func sample(t testing.TB) report.View {
	t.Helper()
	f, file := exported(t, evidencetest.Success())
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
	r.Missing = []verify.MissingClass{{Class: "output", Why: "withheld", Blobs: 2}}
	r.Attempts[0].Details = []verify.DetailSeen{{Index: 3, Type: "SourceRefused", Held: true, Text: []byte("why")}}
	r.Admissions = []verify.Admission{{Change: "fix", Version: 1, Stands: true, Rulings: []evidence.Ruling{{Rule: "outcome", Says: "success", Holds: true}}}}
	return report.Of(r)
}

// skeleton is a page without its texts: every element and every attribute, in order.
func skeleton(t testing.TB, page string) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		require.NotEqual(t, html.CommentNode, n.Type, n.Data)
		if n.Type == html.ElementNode {
			require.NotContains(t, []string{"script", "img", "iframe", "object", "embed", "link", "base", "form", "svg", "video", "audio"}, n.Data)
			fmt.Fprintf(&b, "<%s", n.Data)
			for _, a := range n.Attr {
				require.False(t, strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "style", a.Key)
				require.False(t, a.Key == "href" && !strings.HasPrefix(a.Val, "#part-"), a.Val)
				fmt.Fprintf(&b, " %s=%q", a.Key, a.Val)
			}
			b.WriteString(">")
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(doc)
	return b.String()
}

// blocks is a Markdown document without its texts. It fails on whatever a text could only have
// smuggled in.
func blocks(t testing.TB, source string) string {
	t.Helper()
	src := []byte(source)
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote)).Parser().Parse(text.NewReader(src))
	var b strings.Builder
	var coded int
	require.NoError(t, ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n.Kind() {
		case ast.KindCodeSpan:
			if entering {
				coded++
			} else {
				coded--
			}
			return ast.WalkContinue, nil
		case ast.KindText:
			if entering && coded == 0 {
				plain := string(n.(*ast.Text).Segment.Value(src))
				require.Regexp(t, `^[A-Za-z0-9 ,;().:'–]*$`, plain)
				require.NotRegexp(t, regexp.MustCompile(`(?i)www\.|://`), plain)
			}
			return ast.WalkContinue, nil
		case ast.KindLink, ast.KindAutoLink, ast.KindImage, ast.KindRawHTML, ast.KindHTMLBlock, tables.KindStrikethrough, tables.KindFootnote, tables.KindTaskCheckBox:
			require.Fail(t, "a text became "+n.Kind().String())
		}
		if entering {
			fmt.Fprintf(&b, "%s ", n.Kind())
		}
		return ast.WalkContinue, nil
	}))
	return b.String()
}

func isCalm(t testing.TB, s string) {
	t.Helper()
	for _, r := range s {
		if r != '\n' && (!unicode.IsPrint(r) || unicode.Is(unicode.M, r)) {
			require.Fail(t, fmt.Sprintf("%U is in the report", r))
		}
	}
}

// sinks writes a text in every place of a report in every format, and compares the structure with
// that of a report of harmless words.
type sinks struct {
	view                  report.View
	elements, blocksPlain string
	lines                 int
}

func newSinks(t testing.TB) sinks {
	v := sample(t)
	calm := everywhere(t, v, "word")
	return sinks{v, skeleton(t, written(t, report.FormatHTML, calm)), blocks(t, written(t, report.FormatMarkdown, calm)), strings.Count(written(t, report.FormatText, calm), "\n")}
}

func (s sinks) hold(t testing.TB, attack string) {
	t.Helper()
	v := everywhere(t, s.view, attack)
	elements := s.elements
	if attack == "" {
		elements = skeleton(t, written(t, report.FormatHTML, everywhere(t, s.view, "")))
	}
	page := written(t, report.FormatHTML, v)
	isCalm(t, page)
	require.Equal(t, elements, skeleton(t, page), "HTML of %q", attack)
	md := written(t, report.FormatMarkdown, v)
	isCalm(t, md)
	require.Equal(t, s.blocksPlain, blocks(t, md), "Markdown of %q", attack)
	plain := written(t, report.FormatText, v)
	isCalm(t, plain)
	require.Equal(t, s.lines, strings.Count(plain, "\n"), "text of %q", attack)
	require.True(t, strings.HasPrefix(plain, v.Stamp+": "))
	var back report.View
	require.NoError(t, json.Unmarshal([]byte(written(t, report.FormatJSON, v)), &back))
	require.Equal(t, v, back)
}

// req T7: hostile bytes stay text in every sink.
func TestAttacksStayText(t *testing.T) {
	require.Greater(t, len(attacks), 100)
	s := newSinks(t)
	for _, a := range attacks {
		s.hold(t, a)
	}
}

// req T7: and so does any mixture of them.
func TestMixturesStayText(t *testing.T) {
	s := newSinks(t)
	random := rand.New(rand.NewPCG(7, 7))
	for range 150 {
		var b strings.Builder
		for range 1 + random.IntN(5) {
			a := attacks[random.IntN(len(attacks))]
			b.WriteString(a[:random.IntN(len(a)+1)])
		}
		s.hold(t, b.String())
	}
}

func FuzzSinks(f *testing.F) {
	for _, a := range attacks {
		f.Add(a)
	}
	s := newSinks(f)
	f.Fuzz(func(t *testing.T, a string) { s.hold(t, a) })
}

// req T7: the page allows a browser nothing, holds no script, and says in its first words whether it was
// verified.
func TestPage(t *testing.T) {
	f, file := exported(t, evidencetest.Success())
	for _, c := range []struct {
		policy verify.Policy
		file   []byte
		stamp  string
	}{
		{verify.Policy{Trust: verify.TrustLedger(f.Identity)}, file, "VERIFIED"},
		{verify.Policy{}, file, "NOT VERIFIED"},
		{verify.Policy{Trust: verify.TrustLedger(f.Identity)}, file[1:], "INVALID"},
	} {
		page := written(t, report.FormatHTML, report.Of(verify.Verify(c.file, c.policy)))
		doc, err := html.Parse(strings.NewReader(page))
		require.NoError(t, err)
		var policy, title, body string
		var walk func(*html.Node)
		walk = func(n *html.Node) {
			switch {
			case n.Data == "meta" && len(n.Attr) == 2 && n.Attr[0].Val == "Content-Security-Policy":
				policy = n.Attr[1].Val
			case n.Type == html.TextNode && n.Parent.Data == "title":
				title = n.Data
			case n.Type == html.TextNode && n.Parent.Data != "style":
				body += n.Data
			}
			for child := n.FirstChild; child != nil; child = child.NextSibling {
				walk(child)
			}
		}
		walk(doc)
		require.Equal(t, "default-src 'none'; style-src 'unsafe-inline'", policy)
		require.True(t, strings.HasPrefix(title, c.stamp+": "))
		require.True(t, strings.HasPrefix(strings.TrimSpace(body), c.stamp+"\n"), "%.40q", strings.TrimSpace(body))
		require.NotContains(t, page, "url(")
		require.NotContains(t, page, "@import")
	}
	_, err := report.ParseFormat("pdf")
	require.Error(t, err)
	require.Error(t, report.Write(&bytes.Buffer{}, "pdf", report.View{}))
}
