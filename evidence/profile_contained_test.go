package evidence

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// req C0: each variant of `contained/v1` is a table of its own that a fold finds by its digest, and
// the network is all that tells them apart.
func TestContainedTables(t *testing.T) {
	none, bridge := containedProfile(NetworkNone), containedProfile(NetworkBridge)
	require.Equal(t, "sha256:63a1adb64d0d81f589999ba5283dcda0b9eccb99705086e8eb8f9455e3443e01", none.Digest().String())
	require.Equal(t, "sha256:f64593a929f3e6aeb0eaebc7ea12511ab1fa7732aa80fb448c8820f31a270f7c", bridge.Digest().String())
	for _, p := range []Profile{none, bridge} {
		found, ok := ProfileByDigest(p.Digest())
		require.True(t, ok)
		require.Equal(t, p.Network, found.Network)
		table, err := Recipe{Profile: ProfileContained, Contained: &ContainedTerms{Network: p.Network}}.Table()
		require.NoError(t, err)
		require.Equal(t, p.Digest(), table.Digest())
		require.True(t, slices.IsSortedFunc(p.Controls, func(a, b ControlSpec) int { return int(a.ID) - int(b.ID) }))
		require.True(t, slices.IsSortedFunc(p.Fields, func(a, b FieldRule) int { return strings.Compare(a.Path, b.Path) }))
		ids := map[ControlID]bool{}
		for _, c := range p.Controls {
			ids[c.ID] = true
		}
		require.False(t, ids[CtlSource])
		require.True(t, ids[CtlWorkspace])
		for _, f := range p.Fields {
			require.True(t, f.Control == 0 || ids[f.Control], "%s is compared for a control the table doesn't have", f.Path)
		}
		// Same number, same meaning.
		for _, c := range commandControls {
			i := slices.IndexFunc(p.Controls, func(o ControlSpec) bool { return o.ID == c.ID })
			require.True(t, i >= 0 && p.Controls[i].Name == c.Name || c.ID == CtlSource)
		}
	}
	apart := func(p Profile) Profile {
		p.Network = ""
		p.Fields = slices.DeleteFunc(slices.Clone(p.Fields), func(f FieldRule) bool { return strings.HasPrefix(f.Path, "NetworkSettings.") })
		return p
	}
	require.Equal(t, apart(none), apart(bridge))
	for _, f := range bridge.Fields {
		if strings.HasPrefix(f.Path, "HostConfig.") {
			require.Contains(t, none.Fields, f)
		}
	}
	_, err := Recipe{Profile: ProfileContained, Contained: &ContainedTerms{Network: "host"}}.Table()
	require.Error(t, err)
}
