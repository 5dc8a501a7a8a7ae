package evidence_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// fuzzed runs a decoder over arbitrary bytes: it must not panic, and what it accepts it must write again as it
// was, since the bytes received are the bytes hashed.
func fuzzed[T any](f *testing.F, parse func([]byte) (T, error), marshal func(T) ([]byte, error), seeds ...[]byte) {
	f.Helper()
	for _, s := range seeds {
		_, err := parse(s)
		require.NoError(f, err, "a seed is a good value")
		f.Add(s)
	}
	for _, s := range [][]byte{{}, {0xa0}, {0x80}, {0xbf, 0xff}, {0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := parse(b)
		if err != nil {
			return
		}
		again, err := marshal(v)
		require.NoError(t, err)
		require.Equal(t, b, again)
	})
}

// plainly is the decoder and encoder of a value without a form of its own.
func plainly[T any](b []byte) (v T, err error) { return v, evidence.Unmarshal(b, &v) }

func canonical[T any](v T) ([]byte, error) { return evidence.Marshal(v), nil }

func FuzzParseRecipe(f *testing.F) {
	fuzzed(f, evidence.ParseRecipe, canonical, evidence.Marshal(evidencetest.Success().Recipe))
}

func FuzzEnvironment(f *testing.F) {
	fuzzed(f, plainly[evidence.Environment], canonical, evidence.Marshal(evidencetest.Success().Environment))
}

func FuzzContext(f *testing.F) {
	fuzzed(f, plainly[evidence.Context], canonical, evidence.Marshal(evidence.Context{
		Version: 1, Revision: strings.Repeat("a", 40), Policy: evidence.DefaultPolicy, Epoch: 1, AllowPaths: []string{"src/**"},
	}))
}

func FuzzProfile(f *testing.F) {
	p, err := evidence.ProfileByName(evidence.ProfileCommand)
	require.NoError(f, err)
	fuzzed(f, plainly[evidence.Profile], canonical, evidence.Marshal(p))
}

func FuzzRecord(f *testing.F) {
	a, err := evidence.Fold(evidencetest.Success().Events()...)
	require.NoError(f, err)
	fuzzed(f, plainly[evidence.Record], canonical, evidence.Marshal(evidence.RecordOf(&a)))
}

func FuzzMeta(f *testing.F) {
	fuzzed(f, plainly[evidence.Meta], canonical, evidence.Marshal(evidence.Meta{Schema: 1, Actor: "runner", Cause: []byte{9}, Nonce: evidence.Nonce{1}}))
}

// Descriptors, and the values of controls that they describe.
func FuzzDescriptor(f *testing.F) {
	fuzzed(f, plainly[evidence.Descriptor], canonical, evidence.Marshal(evidencetest.Success().Blobs[0].Descriptor))
}

func FuzzControlValues(f *testing.F) {
	h := evidencetest.Success()
	for _, w := range h.Blobs {
		if w.Ref == h.Isolation.Values {
			fuzzed(f, plainly[[]evidence.ControlValue], canonical, w.Bytes)
		}
	}
}

func FuzzParsePathList(f *testing.F) {
	b, err := evidence.PathList{"a.txt", "src/b.txt"}.Marshal()
	require.NoError(f, err)
	fuzzed(f, evidence.ParsePathList, evidence.PathList.Marshal, b)
}

func FuzzParseWorkspaceManifest(f *testing.F) {
	m, err := evidence.NewWorkspaceManifest(nil)
	require.NoError(f, err)
	b, err := m.Marshal()
	require.NoError(f, err)
	fuzzed(f, evidence.ParseWorkspaceManifest, evidence.WorkspaceManifest.Marshal, b)
}

func FuzzParseMutations(f *testing.F) {
	b, err := evidence.Mutations{}.Marshal()
	require.NoError(f, err)
	fuzzed(f, evidence.ParseMutations, evidence.Mutations.Marshal, b)
}

func FuzzParseWorkspacePolicy(f *testing.F) {
	b, err := evidence.WorkspacePolicy{Allowed: []string{"src/**"}}.Normal().Marshal()
	require.NoError(f, err)
	fuzzed(f, evidence.ParseWorkspacePolicy, evidence.WorkspacePolicy.Marshal, b)
}
