package conformance

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Classes of a vector: what a correct implementation comes to.
const (
	accept     = "accept"
	refuse     = "refuse"
	newer      = "newer" // made by a later version: neither accepted nor bad
	valid      = "valid"
	invalid    = "invalid"
	notChecked = "not_checked"
)

// values are what a vector gives, or what must come of it. Byte strings are lower-case hex.
type values map[string]any

// vector is one case.
type vector struct {
	Name   string `json:"name"`
	Class  string `json:"class"`
	Kind   string `json:"kind,omitempty"` // of what is wrong, where something is
	Input  values `json:"input"`
	Output values `json:"output,omitempty"` // of an accepted one: everything here must come out
}

// family is one file of vectors: how they are made, and what this implementation makes of one. run returns
// its class; for accepted vectors what came out, at least every member of Output.
type family struct {
	name, about string
	least       int
	make        func(t *testing.T) []vector
	run         func(t *testing.T, in values) (class string, out values, why error)
}

type document struct {
	About   string   `json:"about"`
	Vectors []vector `json:"vectors"`
}

// req T8: every golden vector has its class and its values here.
func TestVectors(t *testing.T) {
	total := 0
	only := os.Getenv("BAILDOCK_VECTORS") // one file, for whoever changes one format
	for _, f := range []family{leaves(), chains(), trees(), checkpoints(), witnesses(), identities(), encodings(), digests(), events(), bundles()} {
		t.Run(f.name, func(t *testing.T) {
			path := filepath.Join("vectors", f.name+".json")
			if os.Getenv("BAILDOCK_UPDATE") == "1" && (only == "" || only == f.name) {
				write(t, path, document{About: f.about, Vectors: f.make(t)})
			}
			d := read(t, path)
			require.GreaterOrEqual(t, len(d.Vectors), f.least, "some vectors are gone")
			names, classes := map[string]bool{}, map[string]int{}
			for _, v := range d.Vectors {
				require.False(t, names[v.Name], "%s is there twice", v.Name)
				names[v.Name] = true
				classes[v.Class]++
				class, out, why := f.run(t, v.Input)
				require.Equal(t, v.Class, class, "%s: %v", v.Name, why)
				for name, want := range v.Output {
					require.Equal(t, plain(t, want), plain(t, out[name]), "%s: %s", v.Name, name)
				}
			}
			total += len(d.Vectors)
			t.Logf("count: %d vectors: %v", len(d.Vectors), classes)
		})
	}
	t.Logf("count: %d vectors in all", total)
	require.Greater(t, total, 1000)
	files, err := filepath.Glob(filepath.Join("vectors", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 10, "every file of vectors is run")
}

func write(t *testing.T, path string, d document) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("{\n \"about\": " + text(t, d.About) + ",\n \"vectors\": [")
	for i, v := range d.Vectors {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n  " + text(t, v))
	}
	b.WriteString("\n ]\n}\n")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
}

func text(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return string(bytes.TrimSpace(b.Bytes()))
}

func read(t *testing.T, path string) document {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var d document
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&d))
	return d
}

// plain is a value as JSON has it, numbers as they are written.
func plain(t *testing.T, v any) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(text(t, v))))
	d.UseNumber()
	var out any
	require.NoError(t, d.Decode(&out))
	return out
}

func (v values) text(t *testing.T, name string) string {
	t.Helper()
	s, ok := v[name].(string)
	require.True(t, ok, "%s is no text", name)
	return s
}

func (v values) bytes(t *testing.T, name string) []byte {
	t.Helper()
	b, err := hex.DecodeString(v.text(t, name))
	require.NoError(t, err, name)
	return b
}

func (v values) number(t *testing.T, name string) uint64 {
	t.Helper()
	var n uint64
	require.NoError(t, json.Unmarshal([]byte(text(t, v[name])), &n), name)
	return n
}

func (v values) list(t *testing.T, name string) []string {
	t.Helper()
	var l []string
	require.NoError(t, json.Unmarshal([]byte(text(t, v[name])), &l), name)
	return l
}

func (v values) byteList(t *testing.T, name string) [][]byte {
	t.Helper()
	var out [][]byte
	for _, s := range v.list(t, name) {
		b, err := hex.DecodeString(s)
		require.NoError(t, err, name)
		out = append(out, b)
	}
	return out
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }

func hexList[T ~[32]byte](l []T) []string {
	out := []string{}
	for _, h := range l {
		out = append(out, hex.EncodeToString(h[:]))
	}
	return out
}

// settled is the class of an error: refused, or accepted.
func settled(out values, err error) (string, values, error) {
	if err != nil {
		return refuse, nil, err
	}
	return accept, out, nil
}

// with is a copy of some values with one changed.
func (v values) with(name string, value any) values {
	out := values{}
	for k, x := range v {
		out[k] = x
	}
	out[name] = value
	return out
}

func reversed[T any](l []T) []T {
	l = slices.Clone(l)
	slices.Reverse(l)
	return l
}
