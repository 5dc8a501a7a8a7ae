package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// reader takes typed values out of nodes and collects what is wrong. Each method answers with the
// default it was given when it refused.
type reader struct {
	errs []*Error
}

func (r *reader) refuse(n *yaml.Node, path, format string, args ...any) {
	if len(r.errs) < MaxErrors {
		r.errs = append(r.errs, &Error{Path: path, Reason: fmt.Sprintf(format, args...), Line: n.Line})
	}
}

// field is one member of a mapping.
type field struct {
	name     string
	required bool
	read     func(n *yaml.Node, path string)
}

// mapping reads the members that are there and refuses unknown, repeated and missing ones.
func (r *reader) mapping(n *yaml.Node, path string, fields []field) {
	if !r.kind(n, path, yaml.MappingNode, "a mapping of fields") {
		return
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := member(path, key.Value)
		known := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			r.refuse(key, path, "a field's name must be a text")
		case seen[key.Value]:
			r.refuse(key, at, "the field is given twice")
		case known < 0:
			r.refuse(key, at, "unknown field; known here: %s", names(fields))
		default:
			fields[known].read(value, at)
		}
		seen[key.Value] = true
	}
	for _, f := range fields {
		if f.required && !seen[f.name] {
			r.refuse(n, member(path, f.name), "the field is required")
		}
	}
}

func names(fields []field) string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.name
	}
	return strings.Join(all, ", ")
}

func (r *reader) kind(n *yaml.Node, path string, kind yaml.Kind, want string) bool {
	if n.Kind == kind {
		return true
	}
	r.refuse(n, path, "must be %s, not %s", want, nodeKind(n))
	return false
}

func nodeKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	}
	return "a text"
}

// list calls read for each item and reports whether n is a list within the bounds.
func (r *reader) list(n *yaml.Node, path string, least, most int, read func(n *yaml.Node, path string)) bool {
	if !r.kind(n, path, yaml.SequenceNode, "a list") {
		return false
	}
	if len(n.Content) < least || len(n.Content) > most {
		r.refuse(n, path, "%d entries; %d to %d are allowed", len(n.Content), least, most)
		return false
	}
	for i, child := range n.Content {
		read(child, item(path, i))
	}
	return true
}

// text is a string. A date is one too: YAML 1.2 knows no other reading of it.
func (r *reader) text(n *yaml.Node, path string) (string, bool) {
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!str" || n.ShortTag() == "!!timestamp") {
		return n.Value, true
	}
	hint := ""
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" {
		hint = "; put it in quotes"
	}
	r.refuse(n, path, "must be a text, not %s%s", nodeKind(n), hint)
	return "", false
}

func (r *reader) boolean(n *yaml.Node, path string) (bool, bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" {
		return strings.EqualFold(n.Value, "true"), true
	}
	r.refuse(n, path, "must be true or false, not %s", nodeKind(n))
	return false, false
}

// only reads a boolean that has one allowed value.
func (r *reader) only(want bool, why string) func(n *yaml.Node, path string) {
	return func(n *yaml.Node, path string) {
		if v, ok := r.boolean(n, path); ok && v != want {
			r.refuse(n, path, "must be %t: %s", want, why)
		}
	}
}

// oneOf reads a text out of a closed list.
func (r *reader) oneOf(n *yaml.Node, path string, allowed ...string) (string, bool) {
	s, ok := r.text(n, path)
	if ok && !slices.Contains(allowed, s) {
		r.refuse(n, path, "%q is not known; allowed: %s", shorten(s), strings.Join(allowed, ", "))
		return "", false
	}
	return s, ok
}

// One spelling of a number each: octal, hexadecimal, exponents, signs and underscores mean different
// numbers to different readers.
var (
	integerForm  = regexp.MustCompile(`^(0|[1-9][0-9]{0,18})$`)
	coresForm    = regexp.MustCompile(`^(0|[1-9][0-9]{0,3})(\.[0-9]{1,3})?$`)
	sizeForm     = regexp.MustCompile(`^[1-9][0-9]{0,11}[kmg]?$`)
	durationForm = regexp.MustCompile(`^[1-9][0-9]{0,5}[smh]$`)
)

func (r *reader) integer(n *yaml.Node, path string, least, most uint64) (uint64, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" {
		r.refuse(n, path, "must be a whole number, not %s", nodeKind(n))
		return 0, false
	}
	v, err := strconv.ParseUint(n.Value, 10, 64)
	if err != nil || !integerForm.MatchString(n.Value) {
		r.refuse(n, path, "must be a whole number in plain decimal digits, from %d to %d", least, most)
		return 0, false
	}
	return v, r.within(n, path, v, least, most, fmt.Sprintf("%d to %d", least, most))
}

func (r *reader) within(n *yaml.Node, path string, v, least, most uint64, shown string) bool {
	if v < least || v > most {
		r.refuse(n, path, "%s is outside %s", shorten(n.Value), shown)
		return false
	}
	return true
}

// cores is a number of cores, in billionths.
func (r *reader) cores(n *yaml.Node, path string, least, most uint64) (uint64, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" {
		r.refuse(n, path, "must be a number of cores, not %s", nodeKind(n))
		return 0, false
	}
	if !coresForm.MatchString(n.Value) {
		r.refuse(n, path, "must be a number of cores with at most three decimals: 1 or 0.5")
		return 0, false
	}
	whole, part, _ := strings.Cut(n.Value, ".")
	w, errWhole := strconv.ParseUint(whole, 10, 32)
	p, errPart := strconv.ParseUint((part + "000000000")[:9], 10, 32)
	if errWhole != nil || errPart != nil {
		r.refuse(n, path, "must be a number of cores: 1 or 0.5")
		return 0, false
	}
	v := w*1_000_000_000 + p
	return v, r.within(n, path, v, least, most, fmt.Sprintf("%s to %s cores", formatCores(least), formatCores(most)))
}

// size is a number of bytes: digits and k, m or g for 2¹⁰, 2²⁰, 2³⁰.
func (r *reader) size(n *yaml.Node, path string, least, most uint64) (uint64, bool) {
	s, ok := r.text(n, path)
	if !ok {
		return 0, false
	}
	if !sizeForm.MatchString(s) {
		r.refuse(n, path, "%q is no size; write a number with k, m or g, as in %s", shorten(s), formatSize(least))
		return 0, false
	}
	digits, shift := s, 0
	if at := strings.IndexByte("kmg", s[len(s)-1]); at >= 0 {
		digits, shift = s[:len(s)-1], 10*(at+1)
	}
	v, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || v<<shift>>shift != v {
		v, shift = most+1, 0 // twelve digits always fit; too large either way
	}
	return v << shift, r.within(n, path, v<<shift, least, most, formatSize(least)+" to "+formatSize(most))
}

func (r *reader) duration(n *yaml.Node, path string, least, most time.Duration) (time.Duration, bool) {
	s, ok := r.text(n, path)
	if !ok {
		return 0, false
	}
	if !durationForm.MatchString(s) {
		r.refuse(n, path, "%q is no duration; write a number with s, m or h, as in 10m", shorten(s))
		return 0, false
	}
	v, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	if err != nil {
		r.refuse(n, path, "%q is no duration", shorten(s))
		return 0, false
	}
	d := time.Duration(v) * map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour}[s[len(s)-1]]
	return d, r.within(n, path, uint64(d), uint64(least), uint64(most), formatDuration(least)+" to "+formatDuration(most))
}
