package docker

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

var update = flag.Bool("update", false, "write golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return b
}

// goldenPlan is the plan behind testdata/create_*.json and the inspect replies.
func goldenPlan(naming evidence.SeccompNaming) executor.Plan {
	prof, err := evidence.ProfileByName(evidence.ProfileCommand)
	if err != nil {
		panic(err)
	}
	env := evidence.Environment{Version: 1, Vars: []evidence.EnvVar{{Name: "LANG", Value: "C.UTF-8"}, {Name: "MODE", Value: "a=b c"}}}
	p := executor.Plan{
		Profile:     prof,
		Environment: env,
		Recipe: evidence.Recipe{
			Version:     1,
			Profile:     prof.Name,
			Executable:  "/subject",
			Args:        []string{"sleep", "3s", "--", "", "$HOME; `x` <&>"},
			Environment: env.Digest(),
			Limits: evidence.Limits{Wall: time.Minute, Output: 1 << 18, Memory: 256 << 20, Scratch: 64 << 20,
				PIDs: 64, NanoCPUs: 1_500_000_000},
		},
		Seccomp: naming,
		Name:    "baildock-golden",
		Source:  "/srv/baildock/snapshot",
	}
	for i := range p.Recipe.Image {
		p.Recipe.Image[i], p.Request[i] = 0xa0|byte(i&15), byte(i)
	}
	for i := range p.Handle {
		p.Handle[i] = 0xf0 | byte(i)
	}
	return p
}

func indent(t *testing.T, v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	require.NoError(t, err)
	return append(b, '\n')
}
