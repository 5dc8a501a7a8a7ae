package schemas_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/schemas"
)

var builtin = []string{"uint", "int", "bool", "true", "tstr", "bstr"}

// Every rule that is named exists, and every rule is named or stands for something written.
func TestRulesAreClosed(t *testing.T) {
	g := parse(t)
	require.Greater(t, len(g), 60)
	used := []string{"leaf", "meta", "recipe", "environment", "profile", "record", "bundle", "sig-structure", "descriptor", "control-values", "manifest", "path-list", "key-message",
		"workspace", "mutations", "workspace-policy", "env-salts", "custody-file"}
	for _, name := range evidence.EventTypes() {
		used = append(used, rule(name))
	}
	for name, n := range g {
		for _, named := range n.names() {
			require.True(t, g[named].kind != "" || slices.Contains(builtin, named), "%s names %s, which is no rule", name, named)
			used = append(used, named)
		}
	}
	for name := range g {
		require.Contains(t, used, name, "rule %s is never used", name)
	}
	s, err := schemas.Find("bundle")
	require.NoError(t, err)
	require.Contains(t, s.Text, "bundle = #6.18")
	_, err = schemas.Find("nothing")
	require.Error(t, err)
}

var hump = regexp.MustCompile(`[A-Z]`)

// rule is the name of an event type's rule.
func rule(eventType string) string {
	return "event" + strings.ToLower(hump.ReplaceAllString(eventType, "-$0"))
}

// T8, CDDL: a real bundle, and every value in it, is what the texts say.
func TestRealOutput(t *testing.T) {
	g := parse(t)
	f := exporttest.New(t)
	h := evidencetest.Success()
	f.Change(t, "fix", h)
	f.Run(t, h)
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}, Withhold: []bundle.Class{bundle.ClassSource}})
	require.NoError(t, g.check(t, "bundle", file))

	env, err := bundle.UnmarshalEnvelope(file)
	require.NoError(t, err)
	require.NoError(t, g.check(t, "sig-structure", env.ToBeSigned()))
	p, err := bundle.Unmarshal(env.Payload)
	require.NoError(t, err)
	types := map[string]bool{}
	for _, s := range p.Streams {
		events, err := s.Open()
		require.NoError(t, err)
		for _, e := range events {
			require.NoError(t, g.check(t, "meta", e.Meta))
			require.NoError(t, g.check(t, rule(e.Type), e.Data))
			types[e.Type] = true
		}
	}
	require.Greater(t, len(types), 20)

	require.NoError(t, g.check(t, "recipe", evidence.Marshal(h.Recipe)))
	require.NoError(t, g.check(t, "environment", evidence.Marshal(h.Environment)))
	profile, err := evidence.ProfileByName(evidence.ProfileCommand)
	require.NoError(t, err)
	require.NoError(t, g.check(t, "profile", evidence.Marshal(profile)))
	a, err := evidence.Fold(h.Finished()...)
	require.NoError(t, err)
	require.NoError(t, g.check(t, "record", evidence.Marshal(evidence.RecordOf(&a))))
	opened := 0
	for _, w := range h.Blobs {
		require.NoError(t, g.check(t, "descriptor", evidence.Marshal(w.Descriptor)))
		if w.Ref == h.Isolation.Values || w.Ref == h.Kernel.Values {
			require.NoError(t, g.check(t, "control-values", w.Bytes))
			opened++
		}
	}
	require.Equal(t, 2, opened)
	c := evidencetest.Contained()
	require.NoError(t, g.check(t, "recipe", evidence.Marshal(c.Recipe)))
	require.NoError(t, g.check(t, "environment", evidence.Marshal(c.Environment)))
	for _, table := range evidence.Profiles() {
		require.NoError(t, g.check(t, "profile", evidence.Marshal(table)))
	}
	for _, e := range c.Finished() {
		require.NoError(t, g.check(t, rule(e.EventType()), evidence.Marshal(e)))
	}
	a, err = evidence.Fold(c.Events()...)
	require.NoError(t, err)
	require.NoError(t, g.check(t, "record", evidence.Marshal(evidence.RecordOf(&a))))
	for _, w := range c.Blobs {
		if w.Ref == *c.Registered.Salts {
			require.NoError(t, g.check(t, "env-salts", w.Bytes))
		}
	}
	added := evidence.KeyAdded{Role: evidence.RoleBundle, Key: []byte{1}}
	require.NoError(t, g.check(t, "key-message", added.Message(evidence.LedgerID{1})))
}

// T8, CDDL: every event type, with every optional field set and with none, has the members its rule
// names and no others.
func TestEveryEventType(t *testing.T) {
	g := parse(t)
	types := evidence.ZeroPayloads()
	require.Greater(t, len(types), 30)
	for _, zero := range types {
		for _, full := range []bool{true, false} {
			v := reflect.New(reflect.TypeOf(zero)).Elem()
			fill(v, full)
			name := zero.EventType()
			if o, ok := v.Interface().(evidence.AttemptOpened); ok {
				o.Registration = evidence.Marshal(*evidencetest.Success().Registered)
				v.Set(reflect.ValueOf(o))
			}
			require.NoError(t, g.shape(t, rule(name), evidence.Marshal(v.Interface())), "%s, full = %t", name, full)
		}
	}
	record := reflect.New(reflect.TypeFor[evidence.Record]()).Elem()
	fill(record, true)
	require.NoError(t, g.shape(t, "record", evidence.Marshal(record.Interface())))
}

// shape is check without literals and sizes: the samples below don't know them.
func (g grammar) shape(t *testing.T, rule string, b []byte) error {
	loose := grammar{}
	for name, n := range g {
		loose[name] = n.loose()
	}
	return loose.check(t, rule, b)
}

func (n node) loose() node {
	switch n.kind {
	case "text":
		return node{kind: "name", text: "tstr"}
	case "number":
		return node{kind: "name", text: "int"}
	}
	out := n
	out.sized = false
	out.parts, out.members = nil, nil
	for _, p := range n.parts {
		out.parts = append(out.parts, p.loose())
	}
	for _, m := range n.members {
		m.value = m.value.loose()
		out.members = append(out.members, m)
	}
	return out
}

// fill sets every field, or only those that are always written.
func fill(v reflect.Value, full bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if full {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), full)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), full)
		}
	case reflect.Slice:
		if full {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), full)
		}
	case reflect.String:
		if full {
			v.SetString("x")
		}
	case reflect.Bool:
		v.SetBool(full)
	case reflect.Int, reflect.Int64:
		if full {
			v.SetInt(1)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		if full {
			v.SetUint(1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), full)
		}
	}
}

// A text that says something else is noticed: the checker isn't blind.
func TestCheckerRefuses(t *testing.T) {
	g := parse(t)
	h := evidencetest.Success()
	encode := func(v any) []byte {
		b, err := cbor.Marshal(v)
		require.NoError(t, err)
		return b
	}
	for name, c := range map[string]struct {
		rule string
		b    []byte
	}{
		"missing member":   {"event-removal-observed", encode(map[int]any{1: make([]byte, 16)})},
		"unknown member":   {"event-stream-sealed", encode(map[int]any{1: 1})},
		"unknown choice":   {"event-removal-observed", encode(map[int]any{1: make([]byte, 16), 2: "vanished"})},
		"wrong size":       {"event-start-ordered", encode(map[int]any{1: make([]byte, 15)})},
		"wrong kind":       {"event-start-ordered", encode(map[int]any{1: "text"})},
		"false for absent": {"event-output-captured", encode(map[int]any{1: make([]byte, 16), 4: false})},
		"not a map":        {"recipe", encode([]int{1})},
		"other version":    {"recipe", bytesReplaced(evidence.Marshal(h.Recipe))},
		"untagged bundle":  {"bundle", encode([]any{[]byte{}, map[int]int{}, []byte{}, make([]byte, 64)})},
		"empty list":       {"held-stream", encode(map[int]any{1: "ledger", 2: "basis", 3: []int{}})},
		"no such rule":     {"nothing", encode(1)},
	} {
		require.Error(t, g.check(t, c.rule, c.b), name)
	}
}

// bytesReplaced makes version 2 of a recipe's version 1.
func bytesReplaced(b []byte) []byte {
	out := slices.Clone(b)
	out[2] = 2
	return out
}
