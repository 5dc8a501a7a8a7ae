package drivertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// secret is an environment value that no finding may show.
const secret = "drivertest-secret-value"

// contained: each variant of `contained/v1` is made as its table says, before the start, by the
// kernel's own view, and after the exit; no finding shows an environment value.
//
// req C0 req C5 req C6 req L5
func contained(t *testing.T, e Env) {
	for name, c := range map[string]struct {
		network  evidence.Network
		writable evidence.WritablePaths
	}{
		"none":   {evidence.NetworkNone, evidence.WritablePaths{evidence.WholeWorkspace}},
		"bridge": {evidence.NetworkBridge, evidence.WritablePaths{evidence.WholeWorkspace}},
		"parts":  {evidence.NetworkNone, evidence.WritablePaths{"a", "b/c"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := e.containedPlan(t, c.network, c.writable)
			img, err := e.Driver.ImageInspect(ctx(t), e.Image.String())
			require.NoError(t, err)
			rt, err := e.Driver.Probe(ctx(t))
			require.NoError(t, err)
			id := e.create(t, p)
			in, err := e.Driver.Inspect(ctx(t), id)
			require.NoError(t, err)
			before := e.Driver.Compare(p, img, rt, in)
			requireHeld(t, p, before)
			requireSecretFree(t, before.Findings)

			done, err := e.Driver.Wait(ctx(t), id)
			require.NoError(t, err)
			require.NoError(t, e.Driver.Start(ctx(t), id))
			in, err = e.Driver.Inspect(ctx(t), id)
			require.NoError(t, err)
			requireHeld(t, p, e.Driver.Compare(p, img, rt, in))
			sight := e.Driver.Kernel(p, id, in.PID)
			require.Equal(t, evidence.CtlWorkspace, sight.Findings[len(sight.Findings)-1].ID)
			for _, f := range sight.Findings {
				require.Equal(t, e.Kernel, f.Equal && f.Kind == evidence.Kernel, "%+v", f)
			}
			require.NoError(t, e.Driver.Kill(ctx(t), id))
			exit(t, done)
			in, err = e.Driver.Inspect(ctx(t), id)
			require.NoError(t, err)
			requireHeld(t, p, e.Driver.Compare(p, img, rt, in))

			other := p
			other.Values = []evidence.EnvOpening{{Name: "API_TOKEN", Value: "another-value"}}
			wrong := unequal(e.Driver.Compare(other, img, rt, in))
			require.Len(t, wrong, 1)
			require.Equal(t, evidence.CtlEnvironment, wrong[0].ID)
			requireSecretFree(t, wrong)
			other = p
			terms := *p.Recipe.Contained
			terms.UID++
			other.Recipe.Contained = &terms
			require.Len(t, unequal(e.Driver.Compare(other, img, rt, in)), 2, "user and scratch")
		})
	}
}

func requireSecretFree(t *testing.T, findings []executor.Finding) {
	t.Helper()
	for _, f := range findings {
		require.False(t, strings.Contains(f.Expected+f.Found, secret), "control %d shows an environment value", f.ID)
		require.NotContains(t, f.Expected+f.Found, "another-value")
	}
}

// containedPlan is a plan over a workspace of two directories.
func (e Env) containedPlan(t *testing.T, n evidence.Network, writable evidence.WritablePaths) executor.Plan {
	values := []evidence.EnvOpening{{Name: "API_TOKEN", Value: secret}}
	fill(t, values[0].Salt[:])
	environment, _, err := evidence.CommitEnv(nil, values)
	require.NoError(t, err)
	p := e.plan(t, "sleep", "5m")
	p.Recipe.Profile, p.Recipe.Environment = evidence.ProfileContained, environment.Digest()
	p.Recipe.Limits = evidence.Limits{Wall: time.Minute, Output: 1 << 16, Memory: 64 << 20, Scratch: 8 << 20, PIDs: 32, NanoCPUs: 500_000_000}
	p.Recipe.Contained = &evidence.ContainedTerms{UID: 1234, GID: 2345, Network: n, Platform: evidence.PlatformEngine, Writable: writable}
	require.NoError(t, p.Recipe.Check())
	p.Profile, err = p.Recipe.Table()
	require.NoError(t, err)
	p.Environment, p.Values = environment, values
	p.Source = filepath.Join(e.Source, "workspace")
	for _, dir := range []string{"a", "b/c"} {
		require.NoError(t, os.MkdirAll(filepath.Join(p.Source, dir), 0o755))
	}
	return p
}
