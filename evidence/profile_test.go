package evidence

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// req C0, req C6: the table of `command/v1` is in order, every control has a name of its own and
// kinds that carry a full claim, and every rule belongs to a control or to the daemon.
func TestCommandProfile(t *testing.T) {
	p, err := ProfileByName(ProfileCommand)
	require.NoError(t, err)
	require.Greater(t, len(p.Controls), 40)
	names := map[string]bool{}
	for i, c := range p.Controls {
		require.Equal(t, ControlID(i+1), c.ID)
		require.False(t, names[c.Name], c.Name)
		names[c.Name] = true
		require.NotEmpty(t, c.Full)
		require.NotContains(t, c.Full, Requested)
		require.NotContains(t, c.Full, Unavailable)
	}
	require.Equal(t, "seccomp", p.Controls[CtlSeccomp-1].Name)
	require.NotContains(t, p.Controls[CtlSeccomp-1].Full, Accepted, "the daemon's report alone is no observation")

	require.True(t, slices.IsSortedFunc(p.Fields, func(a, b FieldRule) int { return strings.Compare(a.Path, b.Path) }))
	seen := map[FieldRule]bool{}
	tests := map[string]FieldTest{}
	for _, f := range p.Fields {
		require.False(t, seen[f], f.Path)
		seen[f] = true
		require.LessOrEqual(t, f.Control, ControlID(len(p.Controls)))
		require.Contains(t, []FieldTest{FieldEqual, FieldOneOf, FieldKeys, FieldHolds, FieldAny}, f.Rule)
		require.Equal(t, f.Rule == FieldAny, f.Want == "", f.Path)
		require.True(t, f.Control != 0 || f.Rule == FieldAny, "%s is compared for no control", f.Path)
		if rule, again := tests[f.Path]; again {
			require.Equal(t, rule, f.Rule, f.Path)
		}
		tests[f.Path] = f.Rule
	}
}

// req C0: the digest names this very table. A change here is a change of the profile: it needs a
// new name once a version was released.
func TestCommandProfileDigest(t *testing.T) {
	require.Equal(t, "sha256:1981bf7fd10f2f749c72da306fcb2e449ee4d914e7181562d5332996cbeeb64f", commandProfile.Digest().String())
	var again Profile
	require.NoError(t, Unmarshal(Marshal(commandProfile), &again))
	require.Equal(t, commandProfile.Digest(), again.Digest())
	for name, change := range map[string]func(*Profile){
		"uid":     func(p *Profile) { p.UID++ },
		"network": func(p *Profile) { p.Network = "bridge" },
		"control": func(p *Profile) { p.Controls = p.Controls[:len(p.Controls)-1] },
		"field": func(p *Profile) {
			p.Fields = slices.Clone(p.Fields)
			p.Fields[0].Want = `[""]`
		},
	} {
		q := commandProfile
		change(&q)
		require.NotEqual(t, commandProfile.Digest(), q.Digest(), name)
	}
	_, err := ProfileByName("other/v1")
	require.Error(t, err)
}
