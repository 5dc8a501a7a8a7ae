package containment_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence/containment"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// FuzzParse: what is accepted is written again as it was, and is what the schema says.
func FuzzParse(f *testing.F) {
	stored, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	require.NoError(f, err)
	for _, path := range stored {
		b, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(b)
	}
	for _, h := range []*evidencetest.History{evidencetest.Contained(), evidencetest.Success()} {
		f.Add(containment.Of(fold(f, h, true), whole(f, h)).JSON())
	}
	h, blobs := largest(f)
	f.Add(containment.Of(fold(f, h, false), blobs).JSON())
	stated := schema(f)
	for _, s := range []string{"", "{}", "{}{}", `{"schema":null}`, "["} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := containment.Parse(b)
		if err != nil {
			return
		}
		again, err := e.Marshal()
		require.NoError(t, err)
		require.Equal(t, string(b), string(again))
		require.NoError(t, valid(t, stated, b))
	})
}
