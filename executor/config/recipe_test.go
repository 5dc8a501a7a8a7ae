package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// The file's ranges are the profile's.
func TestRangesAreTheProfiles(t *testing.T) {
	p, err := evidence.ProfileByName(evidence.ProfileContained)
	require.NoError(t, err)
	require.Equal(t, evidence.LimitRanges{
		Wall: evidence.Range{Min: uint64(MinTimeout), Max: uint64(MaxTimeout)}, Output: evidence.Range{Min: MinOutput, Max: MaxOutput},
		Memory: evidence.Range{Min: MinMemory, Max: MaxMemory}, Scratch: evidence.Range{Min: MinTmpfs, Max: MaxTmpfs},
		PIDs: evidence.Range{Min: MinPIDs, Max: MaxPIDs}, NanoCPUs: evidence.Range{Min: MinNanoCPUs, Max: MaxNanoCPUs},
	}, p.Ranges())
	require.Equal(t, evidence.MaxHostID, MaxUserID)
	require.Equal(t, evidence.MaxReference, MaxImage)
	require.Equal(t, evidence.MaxEnv, MaxVariables)
	require.Equal(t, evidence.MaxEnvName, MaxVariableName)
	require.Equal(t, evidence.MaxEnvBytes, MaxEnvironment)
	require.Equal(t, evidence.MaxCommitted, MaxValue)
}

// Whatever a good file asks for is a recipe with an environment to commit to.
func TestGoodFilesMakeRecipes(t *testing.T) {
	names, err := filepath.Glob("testdata/good/*.yaml")
	require.NoError(t, err)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		c, err := Load(name, b)
		require.NoError(t, err)
		resolved, err := c.ResolveEnvironment(func(string) (string, bool) { return strings.Repeat("v", 8), true })
		require.NoError(t, err, name)
		var openings []evidence.EnvOpening
		for _, v := range resolved.Variables {
			if v.Origin != OriginFixed {
				openings = append(openings, evidence.EnvOpening{Name: v.Name, Value: v.Value.Reveal()})
			}
		}
		env, _, err := evidence.CommitEnv(nil, openings)
		require.NoError(t, err, name)
		r := evidence.Recipe{
			Version: 1, Profile: evidence.ProfileContained, Image: evidence.ImageID{1}, Executable: "/bin/true",
			Environment: env.Digest(), Limits: c.Limits,
			Contained: &evidence.ContainedTerms{UID: c.UID, GID: c.GID, Network: c.Network, Platform: c.Platform, Writable: c.Writable, Reference: c.Image.Reference},
		}
		if c.Policy != nil {
			d, err := c.Policy.Digest()
			require.NoError(t, err, name)
			r.Contained.Policy = &d
		}
		require.NoError(t, r.Check(), name)
		require.NoError(t, env.Fits(r), name)
	}
	require.GreaterOrEqual(t, len(names), 10)
}
