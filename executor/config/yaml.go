package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parse reads exactly one YAML document of the plain kind: no anchors, aliases, merge keys or tags,
// so that what stands in the file is all there is. Duplicate keys are refused by mapping.
func parse(b []byte) (*yaml.Node, []*Error) {
	refused := func(format string, args ...any) (*yaml.Node, []*Error) {
		return nil, []*Error{{Reason: fmt.Sprintf(format, args...)}}
	}
	if len(b) > MaxFile {
		return refused("the file has %d bytes; at most %d are read", len(b), MaxFile)
	}
	if !utf8.Valid(b) {
		return refused("the file is not UTF-8; save it in that encoding")
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	var document yaml.Node
	if err := d.Decode(&document); errors.Is(err, io.EOF) {
		return refused("the file is empty; it needs the blocks sandbox and contained_execution")
	} else if err != nil {
		return refused("not YAML: %v", err)
	}
	var second yaml.Node
	if err := d.Decode(&second); err == nil {
		return nil, []*Error{{Reason: "the file holds a second document; write one", Line: second.Line}}
	} else if !errors.Is(err, io.EOF) {
		return refused("not YAML: %v", err)
	}
	root := document.Content[0]
	c := plainCheck{}
	c.check(root, "", 1)
	if c.err != nil {
		return nil, []*Error{c.err}
	}
	return root, nil
}

// plainCheck looks at every node once, before anything reads one.
type plainCheck struct {
	nodes int
	err   *Error
}

func (c *plainCheck) check(n *yaml.Node, path string, depth int) {
	if c.err != nil {
		return
	}
	c.nodes++
	reason := ""
	switch {
	case n.Kind == yaml.AliasNode:
		reason = "aliases are not allowed; write the value out"
	case n.Anchor != "":
		reason = "anchors are not allowed; write the value out where it is needed"
	case n.ShortTag() == "!!merge":
		reason = "merge keys are not allowed; write the fields out"
	case n.Style&yaml.TaggedStyle != 0:
		reason = "tags are not allowed; quote a text, leave a number bare"
	case depth > MaxDepth:
		reason = fmt.Sprintf("nested deeper than %d levels", MaxDepth)
	case c.nodes > MaxNodes:
		reason = fmt.Sprintf("the file holds more than %d keys and values", MaxNodes)
	}
	if reason != "" {
		c.err = &Error{Path: path, Reason: reason, Line: n.Line}
		return
	}
	for i, child := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			c.check(child, item(path, i), depth+1)
		case i%2 == 0:
			c.check(child, member(path, child.Value), depth+1)
		default:
			c.check(child, member(path, n.Content[i-1].Value), depth+1)
		}
	}
}

// member and item write paths. A key is shown as it stands, within bounds.
func member(path, key string) string {
	if !plainKey(key) {
		key = strconv.Quote(shorten(key))
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func item(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func plainKey(key string) bool {
	for _, c := range []byte(key) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return key != "" && len(key) <= maxShown
}

// shorten cuts a text to what an error may repeat.
func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
