package docker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// containedPlan is the plan behind testdata/create_contained_*.json.
func containedPlan(t testing.TB, n evidence.Network, writable ...string) executor.Plan {
	values := []evidence.EnvOpening{{Name: "MODE", Value: "batch"}, {Name: "API_TOKEN", Value: "a b=c"}}
	env, _, err := evidence.CommitEnv(nil, values)
	require.NoError(t, err)
	p := goldenPlan(evidence.SeccompReported)
	p.Recipe.Profile, p.Recipe.Environment = evidence.ProfileContained, env.Digest()
	p.Recipe.Contained = &evidence.ContainedTerms{UID: 1000, GID: 1001, Network: n, Platform: evidence.PlatformEngine, Writable: writable}
	require.NoError(t, p.Recipe.Check())
	p.Profile, err = p.Recipe.Table()
	require.NoError(t, err)
	p.Environment, p.Values, p.Source = env, values, "/srv/baildock/run/workspace"
	return p
}

// req N4, req L4: equal plans of `contained/v1` give equal bytes; nothing but the network differs
// between its variants.
func TestRenderContainedGolden(t *testing.T) {
	for name, p := range map[string]executor.Plan{
		"create_contained_none.json":   containedPlan(t, evidence.NetworkNone, "."),
		"create_contained_bridge.json": containedPlan(t, evidence.NetworkBridge, "."),
		"create_contained_parts.json":  containedPlan(t, evidence.NetworkNone, "out", "src/gen"),
	} {
		req, err := render(p)
		require.NoError(t, err)
		golden(t, name, indent(t, req))
	}
	none, err := render(containedPlan(t, evidence.NetworkNone, "."))
	require.NoError(t, err)
	bridge, err := render(containedPlan(t, evidence.NetworkBridge, "."))
	require.NoError(t, err)
	none.HostConfig.NetworkMode = "bridge"
	require.Equal(t, bridge, none)
}

// req N4, req L5: values other than those committed to, another user than the recipe's, or terms
// that don't fit the table render nothing.
func TestRenderContainedRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*executor.Plan){
		"no values":        func(p *executor.Plan) { p.Values = nil },
		"another value":    func(p *executor.Plan) { p.Values[0].Value += "x" },
		"another salt":     func(p *executor.Plan) { p.Values[0].Salt[0]++ },
		"a value too many": func(p *executor.Plan) { p.Values = append(p.Values, evidence.EnvOpening{Name: "X"}) },
		"root":             func(p *executor.Plan) { p.Recipe.Contained.UID = 0 },
		"root's group":     func(p *executor.Plan) { p.Recipe.Contained.GID = 0 },
		"no terms":         func(p *executor.Plan) { p.Recipe.Contained = nil },
		"another network":  func(p *executor.Plan) { p.Recipe.Contained.Network = evidence.NetworkBridge },
		"terms beside command/v1": func(p *executor.Plan) {
			terms := p.Recipe.Contained
			*p = goldenPlan(evidence.SeccompReported)
			p.Recipe.Contained = terms
		},
		"values beside command/v1": func(p *executor.Plan) {
			values := p.Values
			*p = goldenPlan(evidence.SeccompReported)
			p.Values = values
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := containedPlan(t, evidence.NetworkNone, ".")
			spoil(&p)
			_, err := render(p)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "batch")
		})
	}
}

// The daemon lists mounts in no order, and no order of ours changes what is compared.
func TestMountsInAnyOrder(t *testing.T) {
	p := containedPlan(t, evidence.NetworkNone, "out", "src/gen")
	made := mountsMade(p)
	require.Len(t, made, 3)
	tree := map[string]any{"Mounts": []any{made[2], made[0], made[1]}}
	sortMounts(tree)
	require.Equal(t, made, tree["Mounts"])
	sortMounts(map[string]any{"Mounts": []any{"odd", nil}})
	sortMounts(map[string]any{})
}

// Ports that an image exposes are null on a bridge; a published one is not.
func TestExposedPortsAreNotPublished(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "", `null`: "", `{"80/tcp":null}`: "", `{"80/tcp":[{"HostPort":"80"}]}`: reasonMismatched, `{"80/tcp":{}}`: reasonMismatched,
		`[]`: reasonMalformed, `"80"`: reasonMalformed,
	} {
		v, err := parseTree([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, unequal(evidence.FieldNulls, map[string]any{}, v, true), text)
	}
}
