package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/baildock/baildock/schemas"
)

// unsaid are the rules of a file that JSON Schema can't state; docs/contained-config.md explains each.
var unsaid = []string{
	"bytes-of-a-text", "duration-range", "number-spelling", "overlapping-paths", "repeated-names",
	"reserved-spellings", "sensitive-values", "size-range", "total-bytes", "yaml",
}

func containedSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	s, err := schemas.Find("contained-config")
	require.NoError(t, err)
	text, err := jsonschema.UnmarshalJSON(strings.NewReader(s.Text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", text))
	compiled, err := c.Compile("schema.json")
	require.NoError(t, err)
	return compiled
}

// asJSON reads a file as a tool would that knows YAML and JSON Schema and nothing of this program.
func asJSON(b []byte) (any, error) {
	d := yaml.NewDecoder(bytes.NewReader(b))
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("a second document: %w", err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(bytes.ReplaceAll(text, []byte("T00:00:00Z"), nil)))
}

// file is one of the corpus.
type file struct {
	name, path, why, beyond string
	bytes                   []byte
}

var header = regexp.MustCompile(`^# (refused|because|beyond the schema): (.*)$`)

func badFiles(t *testing.T) []file {
	t.Helper()
	names, err := filepath.Glob("testdata/bad/*.yaml")
	require.NoError(t, err)
	var all []file
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		f := file{name: filepath.Base(name)}
		rest := b
		for {
			line, after, _ := bytes.Cut(rest, []byte("\n"))
			m := header.FindSubmatch(line)
			if m == nil {
				break
			}
			value := string(m[2])
			switch string(m[1]) {
			case "refused":
				f.path = strings.TrimPrefix(value, "-")
			case "because":
				f.why = value
			default:
				f.beyond = value
			}
			rest = after
		}
		f.bytes = rest
		require.NotEmpty(t, f.why, name)
		all = append(all, f)
	}
	return append(all,
		file{name: "oversized", why: "at most 131072 are read", beyond: "yaml", bytes: append([]byte(least), bytes.Repeat([]byte("#"), MaxFile)...)},
		file{name: "many nodes", path: "[4095]", why: "more than 4096 keys", bytes: []byte("[" + strings.Repeat("1,", MaxNodes) + "]")},
		file{name: "empty", why: "the file is empty", beyond: "yaml"},
		file{name: "only a comment", why: "the file is empty", beyond: "yaml", bytes: []byte("# nothing\n")},
		file{name: "very deep", why: "not YAML", beyond: "yaml", bytes: bytes.Repeat([]byte("["), MaxFile)},
	)
}

const least = "sandbox:\n  type: docker\n  image: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\ncontained_execution:\n  version: 1\n"

// req L2, req L6: every bad file is refused for its reason at its field, and the schema refuses it as well
// unless the rule is one that a schema can't state.
func TestBadFiles(t *testing.T) {
	schema := containedSchema(t)
	files := badFiles(t)
	beyond := map[string]int{}
	for _, f := range files {
		t.Run(f.name, func(t *testing.T) {
			_, err := Load("baildock.yaml", f.bytes)
			var first *Error
			require.ErrorAs(t, err, &first)
			require.Equal(t, f.path, first.Path, "%v", err)
			require.Contains(t, first.Reason, f.why)
			require.True(t, strings.HasPrefix(err.Error(), "baildock.yaml: "+f.path), err.Error())
			require.NotContains(t, err.Error(), "Xq3#!7z", "an error repeats a value")

			v, err := asJSON(f.bytes)
			if err != nil { // it can't be JSON, so no schema sees it
				require.Equal(t, "yaml", f.beyond, "%v", err)
				beyond[f.beyond]++
				return
			}
			err = schema.Validate(v)
			if f.beyond == "" {
				require.Error(t, err, "the schema accepts it")
				return
			}
			require.NoError(t, err, "the schema states %s after all", f.beyond)
			beyond[f.beyond]++
		})
	}
	require.Greater(t, len(files), 200)
	require.Equal(t, unsaid, slices.Sorted(maps.Keys(beyond)))
	t.Logf("count: %d bad files; beyond the schema: %v", len(files), beyond)
}

// req L1, req L6: every good file is accepted by both, and what is printed of it is read as the same.
func TestGoodFiles(t *testing.T) {
	schema := containedSchema(t)
	names, err := filepath.Glob("testdata/good/*.yaml")
	require.NoError(t, err)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		c, err := Load(name, b)
		require.NoError(t, err)
		v, err := asJSON(b)
		require.NoError(t, err, name)
		require.NoError(t, schema.Validate(v), name)

		again, err := Load(name, c.Print())
		for i, e := range c.Environment {
			if e.Sensitive && e.Source == SourceLiteral {
				require.ErrorContains(t, err, "stands for values that were taken out")
				err = nil
				again = c
			}
			c.Environment[i].Value = Value{}
		}
		require.NoError(t, err, "%s", c.Print())
		for i := range again.Environment {
			again.Environment[i].Value = Value{}
		}
		require.Equal(t, c, again, name)
		v, err = asJSON(c.Print())
		require.NoError(t, err, name)
		require.NoError(t, schema.Validate(v), "%s", c.Print())
		require.True(t, Detect(b), name)
	}
	require.GreaterOrEqual(t, len(names), 10)
	t.Logf("count: %d good files", len(names))
}

// The page lists exactly the rules that the schema can't state.
func TestPageListsWhatSchemaCannot(t *testing.T) {
	page, err := os.ReadFile("../../docs/contained-config.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(page), "## What the schema can't say\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^- `([a-z-]+)`: ").FindAllStringSubmatch(section, -1) {
		listed = append(listed, m[1])
	}
	require.Equal(t, unsaid, slices.Sorted(slices.Values(listed)))
}

// The schema's patterns are the loader's.
func TestSchemaPatterns(t *testing.T) {
	s, err := schemas.Find("contained-config")
	require.NoError(t, err)
	for _, pattern := range []string{variableName, secretLike, reservedName, localImage, pinnedImage,
		sizeForm.String(), durationForm.String()} {
		quoted, err := json.Marshal(pattern)
		require.NoError(t, err)
		require.Contains(t, s.Text, string(quoted))
	}
}

// Whatever the file, the loader ends with a configuration or reasons, and both readers agree: what the
// loader accepts the schema accepts too.
func FuzzLoad(f *testing.F) {
	for _, dir := range []string{"bad", "good"} {
		names, err := filepath.Glob("testdata/" + dir + "/*.yaml")
		require.NoError(f, err)
		for _, name := range names {
			b, err := os.ReadFile(name)
			require.NoError(f, err)
			if len(b) < 2000 {
				f.Add(b)
			}
		}
	}
	schema := containedSchema(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Load("f", b)
		if err != nil {
			var refused *Errors
			require.ErrorAs(t, err, &refused)
			require.NotEmpty(t, refused.All)
			require.LessOrEqual(t, len(refused.All), MaxErrors)
			return
		}
		require.True(t, Detect(b))
		require.NotContains(t, string(c.Print()), "Xq3#!7z")
		v, err := asJSON(b)
		require.NoError(t, err)
		require.NoError(t, schema.Validate(v))
	})
}
