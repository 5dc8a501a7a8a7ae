package schemas_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/schemas"
)

// grammar holds CDDL rules (RFC 8610), as far as this package's texts use the language: maps with
// optional members, arrays with occurrences, choices, literals, .size, .cbor and tags.
type grammar map[string]node

// node is one parsed type.
type node struct {
	kind    string // choice, map, array, name, text, number, tag
	text    string // of a name or a text literal
	number  int64  // of a number literal; of a tag
	members []member
	parts   []node // of a choice; the content of a tag
	low     int64  // .size
	high    int64
	sized   bool
	cbor    *node // .cbor
}

// member is an entry of a map or array.
type member struct {
	optional bool
	many     bool // * or +
	least    int  // 1 for +
	key      *node
	value    node
}

// parser reads one text.
type parser struct {
	t      *testing.T
	tokens []string
}

var token = regexp.MustCompile(`"[^"]*"|#6\.[0-9]+|=>|\.\.|\.size|\.cbor|-?[0-9]+|[A-Za-z_][A-Za-z0-9_-]*|[][{}()=,:?*+/]`)
var comment = regexp.MustCompile(`(?m);.*$`)

func parse(t *testing.T) grammar {
	t.Helper()
	g := grammar{}
	for _, s := range schemas.CDDL() {
		text := comment.ReplaceAllString(s.Text, "")
		p := &parser{t: t, tokens: token.FindAllString(text, -1)}
		require.Equal(t, len(strings.Join(strings.Fields(text), "")), len(strings.Join(p.tokens, "")), "%s: something is no token", s.Name)
		for len(p.tokens) > 0 {
			name := p.next()
			p.expect("=")
			require.NotContains(t, g, name, "%s: rule is there twice", s.Name)
			g[name] = p.choice()
		}
	}
	return g
}

func (p *parser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *parser) next() string {
	s := p.peek()
	require.NotEmpty(p.t, s, "the text ends too early")
	p.tokens = p.tokens[1:]
	return s
}

func (p *parser) accept(s string) bool {
	if p.peek() != s {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(s string) { require.Equal(p.t, s, p.next()) }

func (p *parser) choice() node {
	parts := []node{p.controlled()}
	for p.accept("/") {
		parts = append(parts, p.controlled())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return node{kind: "choice", parts: parts}
}

func (p *parser) controlled() node {
	n := p.primary()
	switch {
	case p.accept(".size"):
		n.sized = true
		if p.accept("(") {
			n.low = p.integer()
			p.expect("..")
			n.high = p.integer()
			p.expect(")")
		} else {
			n.low = p.integer()
			n.high = n.low
		}
	case p.accept(".cbor"):
		inner := p.primary()
		n.cbor = &inner
	}
	return n
}

func (p *parser) integer() int64 {
	n, err := strconv.ParseInt(p.next(), 10, 64)
	require.NoError(p.t, err)
	return n
}

func (p *parser) primary() node {
	s := p.next()
	switch {
	case s == "{":
		return node{kind: "map", members: p.members("}")}
	case s == "[":
		return node{kind: "array", members: p.members("]")}
	case s[0] == '"':
		return node{kind: "text", text: strings.Trim(s, `"`)}
	case strings.HasPrefix(s, "#6."):
		n, err := strconv.ParseInt(s[3:], 10, 64)
		require.NoError(p.t, err)
		p.expect("(")
		inner := p.choice()
		p.expect(")")
		return node{kind: "tag", number: n, parts: []node{inner}}
	case s[0] == '-' || s[0] >= '0' && s[0] <= '9':
		n, err := strconv.ParseInt(s, 10, 64)
		require.NoError(p.t, err)
		return node{kind: "number", number: n}
	}
	return node{kind: "name", text: s}
}

func (p *parser) members(end string) []member {
	var out []member
	for !p.accept(end) {
		var m member
		switch {
		case p.accept("?"):
			m.optional = true
		case p.accept("*"):
			m.many = true
		case p.accept("+"):
			m.many, m.least = true, 1
		}
		m.value = p.choice()
		switch {
		case p.accept("=>"):
			key := m.value
			m.key, m.value = &key, p.choice()
		case p.accept(":"): // the name of an array's place
			m.value = p.choice()
		}
		p.accept(",")
		out = append(out, m)
	}
	return out
}

// decoder keeps CBOR's own types: what came as an integer stays one.
func decoder(t *testing.T) cbor.DecMode {
	m, err := cbor.DecOptions{DefaultMapType: nil, MaxArrayElements: 1 << 20, MaxMapPairs: 1 << 20}.DecMode()
	require.NoError(t, err)
	return m
}

// check holds CBOR bytes to a rule.
func (g grammar) check(t *testing.T, rule string, b []byte) error {
	var v any
	if err := decoder(t).Unmarshal(b, &v); err != nil {
		return err
	}
	return g.match(t, node{kind: "name", text: rule}, v, rule)
}

func (g grammar) match(t *testing.T, n node, v any, at string) error {
	bad := func() error { return fmt.Errorf("%s: %T %v is not %s %s%d", at, v, v, n.kind, n.text, n.number) }
	switch n.kind {
	case "choice":
		if slices.ContainsFunc(n.parts, func(p node) bool { return g.match(t, p, v, at) == nil }) {
			return nil
		}
		return fmt.Errorf("%s: %v is none of the choices", at, v)
	case "text":
		if v != n.text {
			return bad()
		}
		return nil
	case "number":
		if i, ok := integer(v); !ok || i != n.number {
			return bad()
		}
		return nil
	case "tag":
		tag, ok := v.(cbor.Tag)
		if !ok || int64(tag.Number) != n.number {
			return bad()
		}
		return g.match(t, n.parts[0], tag.Content, at)
	case "map":
		return g.matchMap(t, n, v, at)
	case "array":
		return g.matchArray(t, n, v, at)
	}
	return g.matchName(t, n, v, at)
}

func integer(v any) (int64, bool) {
	switch i := v.(type) {
	case uint64:
		return int64(i), i <= 1<<63-1
	case int64:
		return i, true
	}
	return 0, false
}

func (g grammar) matchName(t *testing.T, n node, v any, at string) error {
	ok, size := false, -1
	switch n.text {
	case "uint":
		_, ok = v.(uint64)
	case "int":
		_, ok = integer(v)
		if _, big := v.(uint64); big {
			ok = true
		}
	case "bool":
		_, ok = v.(bool)
	case "true":
		ok = v == true
	case "tstr":
		var s string
		if s, ok = v.(string); ok {
			size = len(s)
		}
	case "bstr":
		var b []byte
		if b, ok = v.([]byte); ok {
			size = len(b)
		}
		if ok && n.cbor != nil {
			var inner any
			if err := decoder(t).Unmarshal(b, &inner); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			return g.match(t, *n.cbor, inner, at)
		}
	default:
		rule, known := g[n.text]
		if !known {
			return fmt.Errorf("%s: there is no rule %q", at, n.text)
		}
		return g.match(t, rule, v, at)
	}
	if !ok {
		return fmt.Errorf("%s: %T is not %s", at, v, n.text)
	}
	if n.sized && (int64(size) < n.low || int64(size) > n.high) {
		return fmt.Errorf("%s: a length of %d is not in %d..%d", at, size, n.low, n.high)
	}
	return nil
}

func (g grammar) matchMap(t *testing.T, n node, v any, at string) error {
	m, ok := v.(map[any]any)
	if !ok {
		return fmt.Errorf("%s: %T is not a map", at, v)
	}
	seen := 0
	for _, mem := range n.members {
		value, has := m[uint64(mem.key.number)]
		if !has {
			if mem.optional {
				continue
			}
			return fmt.Errorf("%s: member %d is missing", at, mem.key.number)
		}
		seen++
		if err := g.match(t, mem.value, value, fmt.Sprintf("%s/%d", at, mem.key.number)); err != nil {
			return err
		}
	}
	if seen != len(m) {
		return fmt.Errorf("%s: %d members are not in the rule", at, len(m)-seen)
	}
	return nil
}

func (g grammar) matchArray(t *testing.T, n node, v any, at string) error {
	items, ok := v.([]any)
	if !ok {
		return fmt.Errorf("%s: %T is not an array", at, v)
	}
	i := 0
	for _, mem := range n.members {
		if !mem.many {
			if i >= len(items) {
				return fmt.Errorf("%s: it has only %d items", at, len(items))
			}
			if err := g.match(t, mem.value, items[i], fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
			i++
			continue
		}
		start := i
		for i < len(items) && g.match(t, mem.value, items[i], at) == nil {
			i++
		}
		if i-start < mem.least {
			return fmt.Errorf("%s: too few items", at)
		}
	}
	if i < len(items) {
		return g.match(t, n.members[len(n.members)-1].value, items[i], fmt.Sprintf("%s[%d]", at, i))
	}
	return nil
}

// names lists every rule that a node names.
func (n node) names() []string {
	var out []string
	if n.kind == "name" {
		out = append(out, n.text)
	}
	if n.cbor != nil {
		out = append(out, n.cbor.names()...)
	}
	for _, p := range n.parts {
		out = append(out, p.names()...)
	}
	for _, m := range n.members {
		out = append(out, m.value.names()...)
	}
	return out
}
