package candidate

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

func doc(changes string) string { return `{"version":1,"changes":[` + changes + `]}` }

func at(path string) string { return doc(fmt.Sprintf(`{"path":%q,"hex":"00"}`, path)) }

// bad documents, each with the one reason it is refused for.
var bad = []struct {
	name string
	code Code
	text string
}{
	{"nothing", CodeSyntax, ""},
	{"white space alone", CodeSyntax, " \n"},
	{"text", CodeSyntax, "done"},
	{"null", CodeSyntax, "null"},
	{"a number", CodeSyntax, "1"},
	{"an array", CodeSyntax, `[{"version":1}]`},
	{"cut short", CodeSyntax, `{"version":1,"changes":[{"path":"a","hex":"00"}`},
	{"cut in a string", CodeSyntax, `{"version":1,"changes":[{"path":"a`},
	{"no comma", CodeSyntax, `{"version":1 "changes":[]}`},
	{"comma at the end", CodeSyntax, doc(`{"path":"a","hex":"00"},`)},
	{"comma in an object", CodeSyntax, doc(`{"path":"a","hex":"00",}`)},
	{"single quotes", CodeSyntax, `{'version':1,'changes':[]}`},
	{"a comment", CodeSyntax, `/* x */` + at("a")},
	{"a byte order mark", CodeSyntax, "\ufeff" + at("a")},
	{"bad UTF-8", CodeSyntax, `{"version":1,"changes":[{"path":"` + "\xff" + `","hex":"00"}]}`},
	{"a control character in a string", CodeSyntax, doc("{\"path\":\"a\tb\",\"hex\":\"00\"}")},
	{"output before", CodeSyntax, "working…\n" + at("a")},
	{"output behind", CodeTrailing, at("a") + "\ndone"},
	{"a second document", CodeTrailing, at("a") + at("b")},
	{"a brace behind", CodeTrailing, at("a") + "}"},
	{"a comma behind", CodeTrailing, at("a") + ","},
	{"NUL behind", CodeTrailing, at("a") + "\x00"},
	{"version 2", CodeUnknown, `{"version":2,"changes":[{"path":"a","hex":"00"}]}`},
	{"version 1.0", CodeUnknown, `{"version":1.0,"changes":[{"path":"a","hex":"00"}]}`},
	{"version 1e0", CodeUnknown, `{"version":1e0,"changes":[{"path":"a","hex":"00"}]}`},
	{"version as text", CodeUnknown, `{"version":"1","changes":[{"path":"a","hex":"00"}]}`},
	{"version null", CodeUnknown, `{"version":null,"changes":[{"path":"a","hex":"00"}]}`},
	{"version of another case", CodeUnknown, `{"Version":1,"changes":[{"path":"a","hex":"00"}]}`},
	{"unknown field", CodeUnknown, `{"version":1,"note":"hi","changes":[{"path":"a","hex":"00"}]}`},
	{"unknown field of a change", CodeUnknown, doc(`{"path":"a","hex":"00","mode":"100755"}`)},
	{"unknown field after all", CodeUnknown, `{"version":1,"changes":[{"path":"a","hex":"00"}],"x":1}`},
	{"no version", CodeMissing, `{"changes":[{"path":"a","hex":"00"}]}`},
	{"no changes", CodeMissing, `{"version":1}`},
	{"no path", CodeMissing, doc(`{"hex":"00"}`)},
	{"no hex", CodeMissing, doc(`{"path":"a"}`)},
	{"an empty change", CodeMissing, doc(`{}`)},
	{"version twice", CodeDuplicate, `{"version":1,"version":1,"changes":[{"path":"a","hex":"00"}]}`},
	{"changes twice", CodeDuplicate, `{"version":1,"changes":[{"path":"a","hex":"00"}],"changes":[{"path":"b","hex":"00"}]}`},
	{"path twice in a change", CodeDuplicate, doc(`{"path":"a","path":"b","hex":"00"}`)},
	{"hex twice in a change", CodeDuplicate, doc(`{"path":"a","hex":"00","hex":null}`)},
	{"one path in two changes", CodeDuplicate, doc(`{"path":"a","hex":"00"},{"path":"a","hex":null}`)},
	{"one path spelled twice", CodeDuplicate, doc(`{"path":"a","hex":"00"},{"path":"\u0061","hex":"01"}`)},
	{"no change", CodeEmpty, doc(``)},
	{"changes null", CodeSyntax, `{"version":1,"changes":null}`},
	{"changes an object", CodeSyntax, `{"version":1,"changes":{}}`},
	{"a change a string", CodeSyntax, doc(`"a"`)},
	{"a change an array", CodeSyntax, doc(`["a","00"]`)},
	{"path null", CodeSyntax, doc(`{"path":null,"hex":"00"}`)},
	{"path a number", CodeSyntax, doc(`{"path":1,"hex":"00"}`)},
	{"hex a number", CodeSyntax, doc(`{"path":"a","hex":0}`)},
	{"hex false", CodeSyntax, doc(`{"path":"a","hex":false}`)},
	{"hex an array", CodeSyntax, doc(`{"path":"a","hex":["00"]}`)},
	{"upper-case hex", CodeHex, doc(`{"path":"a","hex":"0A"}`)},
	{"odd hex", CodeHex, doc(`{"path":"a","hex":"000"}`)},
	{"hex with a space", CodeHex, doc(`{"path":"a","hex":"00 00"}`)},
	{"hex with a prefix", CodeHex, doc(`{"path":"a","hex":"0x00"}`)},
	{"no hex digit", CodeHex, doc(`{"path":"a","hex":"zz"}`)},
	{"hex with a line end", CodeHex, doc(`{"path":"a","hex":"00\n"}`)},
	{"empty path", CodePath, at("")},
	{"absolute path", CodePath, at("/a")},
	{"dot", CodePath, at(".")},
	{"dot inside", CodePath, at("a/./b")},
	{"dot dot", CodePath, at("../a")},
	{"dot dot inside", CodePath, at("a/../b")},
	{"slash at the end", CodePath, at("a/")},
	{"empty component", CodePath, at("a//b")},
	{"backslash", CodePath, at(`a\b`)},
	{"NUL", CodePath, doc(`{"path":"a\u0000b","hex":"00"}`)},
	{"half a surrogate", CodePath, doc(`{"path":"a\ud800","hex":"00"}`)},
	{"a component too long", CodePath, at(strings.Repeat("a", 256))},
	{"a path too long", CodePath, at(strings.Repeat("abcdefg/", 300) + "a")},
	{"a path too deep", CodePath, at(strings.Repeat("a/", 200) + "a")},
	{".git", CodeReserved, at(".git")},
	{".git inside", CodeReserved, at("sub/.git/config")},
	{".GIT", CodeReserved, at(".GIT/hooks/pre-commit")},
	{"git's short name", CodeReserved, at("git~1/config")},
	{"GIT~1", CodeReserved, at("GIT~1")},
	{".git with a dot behind", CodeReserved, at(".git./config")},
	{".git with a space behind", CodeReserved, at(".git /config")},
	{".git with a stream", CodeReserved, at(".git::$INDEX_ALLOCATION/config")},
	{".git with an ignorable code point", CodeReserved, at(".g\u200cit/config")},
	{".git with a mark inside", CodeReserved, at(".gi\ufefft")},
	{".gitmodules", CodeReserved, at(".gitmodules")},
	{".GitModules", CodeReserved, at(".GitModules")},
	{".gitmodules with a dot behind", CodeReserved, at(".gitmodules.")},
	{"the short name of .gitmodules", CodeReserved, at("GITMOD~1")},
	{"the hashed short name of .gitmodules", CodeReserved, at("gi7eba~1")},
	{".gitmodules with an ignorable code point", CodeReserved, at(".gitmod\u200dules")},
	{".baildock", CodeReserved, at(".baildock/ledger.db")},
	{".Baildock-home", CodeReserved, at("x/.Baildock-home")},
	{"the short name of .baildock", CodeReserved, at("BAILDO~1")},
	{"a file below a file", CodeConflict, doc(`{"path":"a","hex":"00"},{"path":"a/b","hex":"00"}`)},
	{"a deletion below a file", CodeConflict, doc(`{"path":"a/b/c","hex":null},{"path":"a/b","hex":"00"}`)},
	{"too much content", CodeTooLarge, doc(`{"path":"a","hex":"` + strings.Repeat("00", 300<<10) + `"},{"path":"b","hex":"` + strings.Repeat("00", 220<<10) + `"}`)},
	{"too large a document", CodeTooLarge, strings.Repeat(" ", maxDocument) + at("a")},
}

// req I2
func TestBadDocuments(t *testing.T) {
	require.GreaterOrEqual(t, len(bad), 60)
	names := map[string]bool{}
	for _, c := range bad {
		require.False(t, names[c.name], c.name)
		names[c.name] = true
		got, err := Parse([]byte(c.text))
		var refused *RefusedError
		require.ErrorAs(t, err, &refused, "%s: %v", c.name, got)
		require.Equal(t, c.code, refused.Code, "%s: %v", c.name, err)
		require.NotEmpty(t, refused.Detail)
	}
}

// req I1
func TestGoodDocuments(t *testing.T) {
	good := map[string]Candidate{
		`{"version":1,"changes":[{"path":"dir/a.txt","hex":"68690a"},{"path":"old.txt","hex":null}]}`: {
			Changes: []Change{{Path: "dir/a.txt", Content: []byte("hi\n")}, {Path: "old.txt", Delete: true}}},
		" {\n\"changes\" : [ {\"hex\":\"\",\"path\":\"b\"} , {\"path\":\"a\",\"hex\":\"ff\"} ] ,\t\"version\":1}\r\n": {
			Changes: []Change{{Path: "a", Content: []byte{0xff}}, {Path: "b", Content: []byte{}}}},
		doc(`{"path":"\u00e9/.github/x","hex":"00"}`):                                                      {Changes: []Change{{Path: "é/.github/x", Content: []byte{0}}}},
		doc(`{"path":"a","hex":null},{"path":"a/b","hex":"01"}`):                                           {Changes: []Change{{Path: "a", Delete: true}, {Path: "a/b", Content: []byte{1}}}},
		doc(`{"path":"gitmodules","hex":"00"},{"path":"git~x","hex":"00"}`):                                {Changes: []Change{{Path: "gitmodules", Content: []byte{0}}, {Path: "git~x", Content: []byte{0}}}},
		doc(`{"path":"` + strings.Repeat("a", 255) + `","hex":"` + hex.EncodeToString([]byte("x")) + `"}`): {Changes: []Change{{Path: strings.Repeat("a", 255), Content: []byte("x")}}},
	}
	require.Len(t, good, 6)
	for text, want := range good {
		got, err := Parse([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
}

func entry(path string, mode evidence.Mode) evidence.ManifestEntry {
	e := evidence.ManifestEntry{Path: path, Mode: mode, Size: 1}
	if mode == evidence.ModeLink {
		e.Target = "d"
	}
	return e
}

// req I2: what doesn't fit the subject.
func TestApply(t *testing.T) {
	subject := []evidence.ManifestEntry{entry("bin/run", evidence.ModeExecutable), entry("d/e/f", evidence.ModeFile), entry("link", evidence.ModeLink), entry("old", evidence.ModeFile)}
	for _, c := range []struct {
		name, changes string
		code          Code
	}{
		{"deletes what isn't there", `{"path":"none","hex":null}`, CodeAbsent},
		{"deletes below what isn't there", `{"path":"x/y","hex":null}`, CodeAbsent},
		{"deletes a directory", `{"path":"d","hex":null}`, CodeConflict},
		{"writes over a directory", `{"path":"d/e","hex":"00"}`, CodeConflict},
		{"writes below a file", `{"path":"old/x","hex":"00"}`, CodeConflict},
		{"writes over a link", `{"path":"link","hex":"00"}`, CodeLink},
		{"deletes a link", `{"path":"link","hex":null}`, CodeLink},
		{"writes through a link", `{"path":"link/x","hex":"00"}`, CodeLink},
	} {
		parsed, err := Parse([]byte(doc(c.changes)))
		require.NoError(t, err, c.name)
		_, err = parsed.Apply(subject)
		var refused *RefusedError
		require.ErrorAs(t, err, &refused, c.name)
		require.Equal(t, c.code, refused.Code, c.name)
	}
	parsed, err := Parse([]byte(doc(`{"path":"old","hex":null},{"path":"old/new","hex":"0000"},{"path":"bin/run","hex":"00"}`)))
	require.NoError(t, err)
	got, err := parsed.Apply(subject)
	require.NoError(t, err)
	m, err := evidence.NewManifest(got)
	require.NoError(t, err)
	var says []string
	for _, e := range m.Entries {
		says = append(says, fmt.Sprintf("%s %s %d", e.Path, e.Mode, e.Size))
	}
	require.Equal(t, []string{"bin/run 100755 1", "d/e/f 100644 1", "link 120000 1", "old/new 100644 2"}, says, "changed files keep their mode, new ones are plain")
}

// FuzzParse: any bytes are refused with a reason, or are a candidate that reads the same again.
func FuzzParse(f *testing.F) {
	seeds := 0
	for _, c := range bad {
		if len(c.text) < 4096 {
			f.Add([]byte(c.text))
			seeds++
		}
	}
	f.Add([]byte(doc(`{"path":"a/b","hex":"00ff"},{"path":"c","hex":null}`)))
	if seeds < 60 {
		f.Fatalf("%d seeds", seeds)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse(b)
		if err != nil {
			var refused *RefusedError
			require.True(t, errors.As(err, &refused))
			require.NotEmpty(t, refused.Code)
			return
		}
		var parts []string
		for _, x := range c.Changes {
			require.NoError(t, evidence.CheckPath(x.Path))
			content := "null"
			if !x.Delete {
				content = `"` + hex.EncodeToString(x.Content) + `"`
			}
			parts = append(parts, fmt.Sprintf(`{"path":"%s","hex":%s}`, jsonText(x.Path), content))
		}
		again, err := Parse([]byte(doc(strings.Join(parts, ","))))
		require.NoError(t, err)
		require.Equal(t, len(c.Changes), len(again.Changes))
	})
}

func jsonText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < ' ' || r == '"' || r == 0x7f {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
