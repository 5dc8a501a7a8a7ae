package schemas_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"
)

// golden is a vector of test/conformance, as far as it is read here.
type golden struct {
	Name, Class, Kind string
	Input             struct{ Of, Type, CBOR, Data, File string }
}

func vectors(t *testing.T, name string) []golden {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "test", "conformance", "vectors", name+".json"))
	require.NoError(t, err)
	var d struct{ Vectors []golden }
	require.NoError(t, json.Unmarshal(b, &d))
	require.NotEmpty(t, d.Vectors)
	return d.Vectors
}

// deterministic reports whether bytes are the one spelling of some value.
func deterministic(t *testing.T, b []byte) bool {
	t.Helper()
	var v any
	if decoder(t).Unmarshal(b, &v) != nil {
		return false
	}
	m, err := cbor.CoreDetEncOptions().EncMode()
	require.NoError(t, err)
	again, err := m.Marshal(v)
	return err == nil && bytes.Equal(again, b)
}

// req T8: every golden vector that is accepted is what the CDDL says, and every other spelling is not, or isn't
// deterministic. A value out of its range is seen here only where the CDDL says the range.
func TestGoldenVectors(t *testing.T) {
	g := parse(t)
	good, bad, unseen := 0, 0, 0
	for _, file := range []string{"leaves", "encodings", "events"} {
		for _, v := range vectors(t, file) {
			name, text := v.Input.Of, v.Input.CBOR
			switch file {
			case "leaves":
				name = "leaf"
			case "events":
				if v.Class == "newer" {
					continue
				}
				name, text = rule(v.Input.Type), v.Input.Data
				if bytes.HasPrefix([]byte(v.Name), []byte("meta: ")) {
					continue // encodings.json has these too
				}
			}
			b, err := hex.DecodeString(text)
			require.NoError(t, err)
			err = g.check(t, name, b)
			if v.Kind == "shape only" {
				err = g.shape(t, name, b)
			}
			switch {
			case v.Class == "accept":
				require.NoError(t, err, "%s: %s", file, v.Name)
				require.True(t, deterministic(t, b), "%s: %s", file, v.Name)
				good++
			case err != nil || !deterministic(t, b):
				bad++
			default:
				require.NotEqual(t, "spelling", v.Kind, "%s: %s", file, v.Name)
				unseen++
			}
		}
	}
	for _, v := range vectors(t, "bundles") {
		if v.Input.File == "" {
			continue
		}
		b, err := os.ReadFile(filepath.Join("..", "test", "conformance", "vectors", v.Input.File))
		require.NoError(t, err)
		require.NoError(t, g.check(t, "bundle", b), v.Name)
		good++
	}
	t.Logf("count: %d vectors are what the CDDL says, %d are refused, %d values are out of a range it doesn't say", good, bad, unseen)
	require.Greater(t, good, 80)
	require.Greater(t, bad, 900)
	require.Less(t, unseen, 100)
}
