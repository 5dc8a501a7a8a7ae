package candidate

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/baildock/baildock/evidence"
)

// Candidate is a proposal, sorted by path.
type Candidate struct {
	Changes []Change
}

// Change writes or deletes one file.
type Change struct {
	Path    string
	Delete  bool
	Content []byte // empty when it deletes
}

// Parse reads a document. It fails with *RefusedError.
func Parse(b []byte) (Candidate, error) {
	p := &parser{d: json.NewDecoder(bytes.NewReader(b))}
	p.d.UseNumber()
	switch {
	case len(b) > maxDocument:
		return Candidate{}, p.refuse(CodeTooLarge, "", "a document of %d bytes, at most %d", len(b), maxDocument)
	case !utf8.Valid(b):
		return Candidate{}, p.refuse(CodeSyntax, "", "the document is not UTF-8")
	}
	c, err := p.document()
	if err != nil {
		return Candidate{}, err
	}
	if _, err := p.d.Token(); !errors.Is(err, io.EOF) {
		return Candidate{}, p.refuse(CodeTrailing, "", "something follows the document")
	}
	slices.SortFunc(c.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return c, c.conflicts()
}

// parser reads tokens, so that no field is matched loosely, repeated or passed over.
type parser struct {
	d *json.Decoder
}

func (p *parser) refuse(code Code, path, format string, args ...any) error {
	return &RefusedError{Code: code, At: p.d.InputOffset(), Path: path, Detail: fmt.Sprintf(format, args...)}
}

func (p *parser) token() (json.Token, error) {
	t, err := p.d.Token()
	if err != nil {
		return nil, p.refuse(CodeSyntax, "", "no JSON document: %v", err)
	}
	return t, nil
}

func (p *parser) delim(want json.Delim) error {
	t, err := p.token()
	if err == nil && t != want {
		err = p.refuse(CodeSyntax, "", "%s where %s belongs", show(t), want)
	}
	return err
}

func show(t json.Token) string {
	switch t := t.(type) {
	case json.Delim:
		return t.String()
	case string:
		return "a string"
	case nil:
		return "null"
	case bool:
		return "true or false"
	}
	return "a number"
}

// fields reads an object, calling field for each name once.
func (p *parser) fields(field func(name string) error, names ...string) error {
	if err := p.delim('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.d.More() {
		t, err := p.token()
		if err != nil {
			return err
		}
		name, ok := t.(string)
		switch {
		case !ok:
			return p.refuse(CodeSyntax, "", "%s where a field's name belongs", show(t))
		case !slices.Contains(names, name):
			return p.refuse(CodeUnknown, "", "field %q is not known", name)
		case seen[name]:
			return p.refuse(CodeDuplicate, "", "field %q is given twice", name)
		}
		seen[name] = true
		if err := field(name); err != nil {
			return err
		}
	}
	if err := p.delim('}'); err != nil {
		return err
	}
	for _, name := range names {
		if !seen[name] {
			return p.refuse(CodeMissing, "", "field %q is missing", name)
		}
	}
	return nil
}

func (p *parser) document() (Candidate, error) {
	var c Candidate
	err := p.fields(func(name string) error {
		if name == "version" {
			return p.version()
		}
		var err error
		c.Changes, err = p.changes()
		return err
	}, "version", "changes")
	return c, err
}

func (p *parser) version() error {
	t, err := p.token()
	if err != nil {
		return err
	}
	if n, ok := t.(json.Number); !ok || n.String() != "1" {
		return p.refuse(CodeUnknown, "", "version %v is not 1", t)
	}
	return nil
}

func (p *parser) changes() ([]Change, error) {
	if err := p.delim('['); err != nil {
		return nil, err
	}
	var out []Change
	seen := map[string]bool{}
	total := 0
	for p.d.More() {
		c, err := p.change()
		if err != nil {
			return nil, err
		}
		if seen[c.Path] {
			return nil, p.refuse(CodeDuplicate, c.Path, "the path is given twice")
		}
		seen[c.Path] = true
		total += len(c.Content)
		if out = append(out, c); len(out) > maxChanges || total > maxContent {
			return nil, p.refuse(CodeTooLarge, "", "more than %d changes or %d bytes", maxChanges, maxContent)
		}
	}
	if err := p.delim(']'); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, p.refuse(CodeEmpty, "", "the list of changes is empty")
	}
	return out, nil
}

func (p *parser) change() (Change, error) {
	var c Change
	err := p.fields(func(name string) error {
		t, err := p.token()
		if err != nil {
			return err
		}
		s, text := t.(string)
		switch {
		case name == "hex" && t == nil:
			c.Delete = true
			return nil
		case !text:
			return p.refuse(CodeSyntax, c.Path, "field %q is %s", name, show(t))
		case name == "path":
			c.Path = s
			return p.path(s)
		}
		if strings.ToLower(s) != s {
			return p.refuse(CodeHex, c.Path, "the digits are not lower-case")
		}
		if c.Content, err = hex.DecodeString(s); err != nil {
			return p.refuse(CodeHex, c.Path, "no hexadecimal of whole bytes: %v", err)
		}
		return nil
	}, "path", "hex")
	return c, err
}

// path refuses what is no clean relative path, and every spelling of a reserved name.
func (p *parser) path(s string) error {
	if strings.ContainsRune(s, utf8.RuneError) {
		return p.refuse(CodePath, s, "the path holds U+FFFD, which stands for what is no text")
	}
	if strings.Contains(s, `\`) {
		return p.refuse(CodePath, s, "the path holds a backslash, which some systems take for a separator")
	}
	if err := evidence.CheckPath(s); err != nil {
		return p.refuse(CodePath, s, "%v", err)
	}
	for component := range strings.SplitSeq(s, "/") {
		if evidence.ReservedName(component) || evidence.SubmoduleName(component) {
			return p.refuse(CodeReserved, s, "component %q is one that some filesystem takes for .git, .gitmodules or .baildock*", component)
		}
	}
	return nil
}

// conflicts refuses a file below another file of the same document.
func (c Candidate) conflicts() error {
	writes := map[string]bool{}
	for _, x := range c.Changes {
		if !x.Delete {
			writes[x.Path] = true
		}
	}
	for _, x := range c.Changes {
		for _, above := range parents(x.Path) {
			if writes[above] {
				return Refuse(CodeConflict, x.Path, "%q is written as a file", above)
			}
		}
	}
	return nil
}

// parents lists the directories a path lies in.
func parents(path string) []string {
	var out []string
	for i := range len(path) {
		if path[i] == '/' {
			out = append(out, path[:i])
		}
	}
	return out
}
