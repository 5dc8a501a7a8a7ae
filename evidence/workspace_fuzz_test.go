package evidence

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// Any bytes are refused, or are the one spelling of a value that is valid, and a policy decides over any
// list without a panic.
func FuzzWorkspaceValues(f *testing.F) {
	var seeds [][]byte
	for _, golden := range []string{workspaceGolden, mutationsGolden, policyGolden} {
		b, err := hex.DecodeString(golden)
		require.NoError(f, err)
		seeds = append(seeds, b)
		f.Add(b)
	}
	all, err := ParseWorkspacePolicy(seeds[2])
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := ParseWorkspaceManifest(b); err == nil {
			again, err := m.Marshal()
			require.NoError(t, err)
			require.Equal(t, b, again)
			_ = m.CheckLinks() // an error or none, never a panic
			require.Empty(t, CompareWorkspaces(m, m))
			require.NoError(t, CompareWorkspaces(WorkspaceManifest{}, m).Validate())
		}
		if l, err := ParseMutations(b); err == nil {
			again, err := l.Marshal()
			require.NoError(t, err)
			require.Equal(t, b, again)
			require.Len(t, all.Check(l), 6)
		}
		if p, err := ParseWorkspacePolicy(b); err == nil {
			again, err := p.Marshal()
			require.NoError(t, err)
			require.Equal(t, b, again)
		}
	})
}
