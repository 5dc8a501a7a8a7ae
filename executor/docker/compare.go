package docker

import (
	"errors"
	"math/big"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// Reasons of an unequal or unavailable control (req C6).
const (
	reasonMissing    = "missing"    // not in the reply, or not readable
	reasonZero       = "zero"       // there, but unset
	reasonDowngraded = "downgraded" // a weaker limit than asked for
	reasonAmbiguous  = "ambiguous"  // two readers could see two values
	reasonMalformed  = "malformed"  // of another type, or no JSON
	reasonMismatched = "mismatched" // another value
	reasonGone       = "gone"       // the process ended before it could be read
)

// Compare holds an inspection against the profile's table. It takes an inspection after the exit
// as well as one before the start: what legally moves in between is in no control.
func (d *Driver) Compare(p executor.Plan, img executor.Image, rt executor.Runtime, in executor.Inspection) executor.Isolation {
	tree, err := parseTree(in.Raw)
	if _, isObject := tree.(map[string]any); err == nil && !isObject {
		err = errors.New("not a JSON object")
	}
	if err != nil {
		return unreadable(p.Profile, err)
	}
	c := &comparison{
		rules:  map[string][]evidence.FieldRule{},
		inner:  map[string]bool{},
		values: expect(p, img, in.ID),
		seen:   map[string]bool{},
		found:  map[evidence.ControlID]*verdict{},
	}
	if p.Profile.Name == evidence.ProfileContained {
		c.hides = evidence.CtlEnvironment
	}
	for _, r := range p.Profile.Fields {
		c.rules[r.Path] = append(c.rules[r.Path], r)
		for i, ch := range r.Path {
			if ch == '.' {
				c.inner[r.Path[:i]] = true
			}
		}
	}
	sortMounts(tree.(map[string]any))
	c.walk("", tree.(map[string]any))
	for _, r := range p.Profile.Fields {
		if !c.seen[r.Path] {
			c.judge(r, nil, false)
		}
	}
	slices.Sort(c.unknown)
	iso := executor.Isolation{Unknown: c.unknown}
	for _, spec := range p.Profile.Controls {
		iso.Findings = append(iso.Findings, c.finding(spec))
	}
	c.special(p, img, rt, iso.Findings)
	return iso
}

// unreadable makes every control unavailable.
func unreadable(p evidence.Profile, err error) executor.Isolation {
	reason := reasonMalformed
	if errors.Is(err, errRepeated) {
		reason = reasonAmbiguous
	}
	var iso executor.Isolation
	for _, spec := range p.Controls {
		iso.Findings = append(iso.Findings, executor.Finding{ID: spec.ID, Kind: evidence.Unavailable, Found: clip(err.Error(), maxMessage), Reason: reason})
	}
	return iso
}

type comparison struct {
	rules   map[string][]evidence.FieldRule
	inner   map[string]bool // paths with rules below them
	values  expectations
	seen    map[string]bool
	found   map[evidence.ControlID]*verdict
	unknown []string
	hides   evidence.ControlID // the control whose values are never shown; 0: none
}

// verdict collects the fields of one control.
type verdict struct {
	expected, found []string // path=value, in table order
	reason          string   // of the first unequal field
}

// walk visits every field of the reply once: each is ruled, holds ruled fields, or must be zero.
func (c *comparison) walk(at string, object map[string]any) {
	for key, child := range object {
		p := strings.ReplaceAll(key, ".", `\.`) // a dot in a key must not look like a level
		if at != "" {
			p = at + "." + p
		}
		for _, r := range c.rules[p] {
			c.seen[p] = true
			c.judge(r, child, true)
		}
		if m, ok := child.(map[string]any); ok && c.inner[p] {
			c.walk(p, m)
			continue
		}
		if len(c.rules[p]) == 0 && !isZero(child) {
			c.unknown = append(c.unknown, p)
		}
	}
}

// judge compares one field with one rule.
func (c *comparison) judge(r evidence.FieldRule, v any, present bool) {
	if r.Rule == evidence.FieldAny {
		return
	}
	want, err := c.values.want(r)
	reason := ""
	if err != nil {
		reason = reasonMalformed // a table that can't be filled in equals nothing
	} else {
		reason = unequal(r.Rule, want, v, present)
	}
	if r.Control == 0 {
		// A compared field without a control still refuses.
		if reason != "" {
			c.unknown = append(c.unknown, r.Path)
		}
		return
	}
	f := c.found[r.Control]
	if f == nil {
		f = &verdict{}
		c.found[r.Control] = f
	}
	show := compact
	if r.Control == c.hides {
		show = namesAlone // req L5: a value that was compared is not kept
	}
	text := show(v)
	if !present {
		text = "absent"
	}
	f.expected = append(f.expected, r.Path+"="+show(want))
	f.found = append(f.found, r.Path+"="+text)
	if f.reason == "" {
		f.reason = reason
	}
}

// namesAlone shows environment entries without their values, and nothing of any other shape.
func namesAlone(v any) string {
	list, ok := v.([]any)
	if !ok {
		return "not a list"
	}
	names := make([]any, len(list))
	for i, e := range list {
		text, _ := e.(string)
		name, _, _ := strings.Cut(text, "=")
		names[i] = clip(name, maxFact)
	}
	return compact(names)
}

// finding sums one control up. Without any field it rests on how every container is made, if the
// profile takes that.
func (c *comparison) finding(spec evidence.ControlSpec) executor.Finding {
	id := spec.ID
	f := c.found[id]
	switch {
	case f == nil && slices.Contains(spec.Full, evidence.Accepted):
		return executor.Finding{ID: id, Kind: evidence.Accepted, Equal: true, Expected: "always", Found: "always"}
	case f == nil:
		return executor.Finding{ID: id, Kind: evidence.Unavailable, Reason: reasonMissing}
	}
	slices.Sort(f.expected)
	slices.Sort(f.found)
	return executor.Finding{
		ID: id, Kind: evidence.Observed, Equal: f.reason == "", Reason: f.reason,
		Expected: strings.Join(f.expected, "\n"), Found: strings.Join(f.found, "\n"),
	}
}

// special corrects the two controls that a field alone can't decide.
func (c *comparison) special(p executor.Plan, img executor.Image, rt executor.Runtime, findings []executor.Finding) {
	for i := range findings {
		f := &findings[i]
		switch f.ID {
		case evidence.CtlSeccomp:
			if rt.Seccomp != p.Seccomp {
				f.Equal, f.Reason = false, reasonMismatched
			} else if f.Equal && p.Seccomp == evidence.SeccompReported {
				// Nothing in the reply shows the profile: only the daemon's word is known here (req C4).
				f.Kind = evidence.Accepted
			}
		case evidence.CtlOwnership:
			for label := range img.Labels {
				if strings.HasPrefix(label, executor.LabelPrefix) {
					// The image's own label could stand for ours (req E2).
					f.Equal, f.Reason = false, reasonAmbiguous
				}
			}
		}
	}
}

// unequal returns why a field doesn't pass its rule, or "".
func unequal(rule evidence.FieldTest, want, v any, present bool) string {
	switch rule {
	case evidence.FieldEqual:
		// null, [] and {} are spellings of nothing, and so is an absent field.
		if same(want, v) || isNothing(want) && isNothing(v) {
			return ""
		}
	case evidence.FieldOneOf:
		list, _ := want.([]any)
		for _, w := range list {
			if same(w, v) && (present || w == nil) {
				return ""
			}
		}
		if present && len(list) > 0 {
			return difference(list[0], v)
		}
	case evidence.FieldKeys:
		if m, ok := v.(map[string]any); ok {
			if list, ok := want.([]any); ok && len(m) == len(list) {
				for _, k := range list {
					name, _ := k.(string)
					if _, there := m[name].(map[string]any); !there {
						return reasonMismatched
					}
				}
				return ""
			}
			return reasonMismatched
		}
	case evidence.FieldHolds:
		return lacking(want, v, present)
	case evidence.FieldNulls:
		m, ok := v.(map[string]any)
		if v != nil && !ok {
			return reasonMalformed
		}
		for _, child := range m {
			if child != nil {
				return reasonMismatched
			}
		}
		return ""
	}
	if !present {
		return reasonMissing
	}
	return difference(want, v)
}

// lacking judges a list of masked paths.
func lacking(want, v any, present bool) string {
	list, ok := v.([]any)
	base, baseOK := want.([]any)
	switch {
	case !present:
		return reasonMissing
	case !ok && isZero(v), ok && len(list) == 0:
		return reasonZero
	case !ok || !baseOK:
		return reasonMalformed
	}
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return reasonMalformed
		}
		if !slices.Contains(base, e) && (path.Clean(s) != s || !strings.HasPrefix(s, "/proc/") && !strings.HasPrefix(s, "/sys/")) {
			return reasonMismatched
		}
	}
	for _, b := range base {
		if !slices.Contains(list, b) {
			return reasonDowngraded
		}
	}
	return ""
}

// difference names the way in which two unequal values differ.
func difference(want, v any) string {
	if isZero(v) && !isZero(want) {
		return reasonZero
	}
	if v != nil && want != nil && reflect.TypeOf(want) != reflect.TypeOf(v) {
		return reasonMalformed
	}
	w, wOK := rational(want)
	f, fOK := rational(v)
	if wOK && fOK && (f.Sign() < 0 || f.Cmp(w) > 0) {
		return reasonDowngraded
	}
	return reasonMismatched
}

// same is equality of JSON values: numbers by value, objects by keys, lists in order.
func same(a, b any) bool {
	if x, ok := rational(a); ok {
		y, ok := rational(b)
		return ok && x.Cmp(y) == 0
	}
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, same)
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			w, there := y[k]
			if !there || !same(v, w) {
				return false
			}
		}
		return true
	}
	if isContainer(b) {
		return false
	}
	return a == b
}

// isNothing reports whether a value is null or an empty list or object.
func isNothing(v any) bool { return v == nil || isContainer(v) && isZero(v) }

// rational reads a JSON number exactly; exponents are refused, whose value could be huge.
func rational(v any) (*big.Rat, bool) {
	n, ok := v.(number)
	if !ok || len(n) > 40 || strings.ContainsAny(string(n), "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}

func isContainer(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// isZero reports whether a value asks for nothing.
func isZero(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case bool:
		return !x
	case string:
		return x == ""
	case number:
		r, ok := rational(x)
		return ok && r.Sign() == 0
	case []any:
		return len(x) == 0
	case map[string]any:
		return len(x) == 0
	}
	return false
}
