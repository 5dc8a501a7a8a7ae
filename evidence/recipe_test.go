package evidence_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// req A1 req A5 req A7
func TestRecipeBounds(t *testing.T) {
	cases := []struct {
		name string
		bend func(*evidence.Recipe)
		why  string // empty: allowed
	}{
		{"as it is", func(*evidence.Recipe) {}, ""},
		{"wall 1 ms", func(r *evidence.Recipe) { r.Limits.Wall = time.Millisecond }, ""},
		{"wall 5 min", func(r *evidence.Recipe) { r.Limits.Wall = 5 * time.Minute }, ""},
		{"wall below", func(r *evidence.Recipe) { r.Limits.Wall = time.Millisecond - 1 }, "1ms to 5m0s"},
		{"wall above", func(r *evidence.Recipe) { r.Limits.Wall = 5*time.Minute + 1 }, "1ms to 5m0s"},
		{"output 256", func(r *evidence.Recipe) { r.Limits.Output = 256 }, ""},
		{"output 1 MiB", func(r *evidence.Recipe) { r.Limits.Output = 1 << 20 }, ""},
		{"output below", func(r *evidence.Recipe) { r.Limits.Output = 255 }, "256 to 1048576 bytes"},
		{"output above", func(r *evidence.Recipe) { r.Limits.Output = 1<<20 + 1 }, "256 to 1048576 bytes"},
		{"memory 16 MiB", func(r *evidence.Recipe) { r.Limits.Memory = 16 << 20 }, ""},
		{"memory 4 GiB", func(r *evidence.Recipe) { r.Limits.Memory = 4 << 30 }, ""},
		{"memory below", func(r *evidence.Recipe) { r.Limits.Memory = 16<<20 - 1 }, "16777216 to 4294967296"},
		{"memory above", func(r *evidence.Recipe) { r.Limits.Memory = 4<<30 + 1 }, "16777216 to 4294967296"},
		{"scratch 1 MiB", func(r *evidence.Recipe) { r.Limits.Scratch = 1 << 20 }, ""},
		{"scratch 1 GiB", func(r *evidence.Recipe) { r.Limits.Scratch = 1 << 30 }, ""},
		{"scratch below", func(r *evidence.Recipe) { r.Limits.Scratch = 1<<20 - 1 }, "1048576 to 1073741824"},
		{"scratch above", func(r *evidence.Recipe) { r.Limits.Scratch = 1<<30 + 1 }, "1048576 to 1073741824"},
		{"1 process", func(r *evidence.Recipe) { r.Limits.PIDs = 1 }, ""},
		{"256 processes", func(r *evidence.Recipe) { r.Limits.PIDs = 256 }, ""},
		{"no process", func(r *evidence.Recipe) { r.Limits.PIDs = 0 }, "1 to 256 processes"},
		{"257 processes", func(r *evidence.Recipe) { r.Limits.PIDs = 257 }, "1 to 256 processes"},
		{"0.1 core", func(r *evidence.Recipe) { r.Limits.NanoCPUs = 100_000_000 }, ""},
		{"4 cores", func(r *evidence.Recipe) { r.Limits.NanoCPUs = 4_000_000_000 }, ""},
		{"CPU below", func(r *evidence.Recipe) { r.Limits.NanoCPUs = 99_999_999 }, "100000000 to 4000000000"},
		{"CPU above", func(r *evidence.Recipe) { r.Limits.NanoCPUs = 4_000_000_001 }, "100000000 to 4000000000"},
		{"64 arguments", func(r *evidence.Recipe) { r.Args = strings.Split(strings.Repeat("x ", 62)+"x", " ") }, ""},
		{"65 arguments", func(r *evidence.Recipe) { r.Args = strings.Split(strings.Repeat("x ", 63)+"x", " ") }, "at most 64"},
		{"16 KiB of text", func(r *evidence.Recipe) { r.Args = []string{strings.Repeat("x", 16<<10-len(r.Executable))} }, ""},
		{"more than 16 KiB of text", func(r *evidence.Recipe) { r.Args = []string{strings.Repeat("x", 16<<10-len(r.Executable)+1)} }, "at most 16384"},
		{"NUL in an argument", func(r *evidence.Recipe) { r.Args = []string{"a\x00b"} }, "NUL"},
		{"an empty argument is one", func(r *evidence.Recipe) { r.Args = []string{""} }, ""},
		{"relative executable", func(r *evidence.Recipe) { r.Executable = "bin/tool" }, "absolute"},
		{"unclean executable", func(r *evidence.Recipe) { r.Executable = "/bin/../tool" }, "absolute"},
		{"the root as executable", func(r *evidence.Recipe) { r.Executable = "/" }, "absolute"},
		{"unknown profile", func(r *evidence.Recipe) { r.Profile = "command/v2" }, "not known"},
		{"no image", func(r *evidence.Recipe) { r.Image = evidence.ImageID{} }, "no image"},
		{"other version", func(r *evidence.Recipe) { r.Version = 2 }, "version 2"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := evidencetest.Success().Recipe
			c.bend(&r)
			err := r.Check()
			if c.why == "" {
				require.NoError(t, err)
				back, err := evidence.ParseRecipe(evidence.Marshal(r))
				require.NoError(t, err)
				require.Equal(t, r.Digest(), back.Digest())
				return
			}
			require.ErrorContains(t, err, c.why)
			_, err = evidence.ParseRecipe(evidence.Marshal(r))
			require.Error(t, err)
		})
	}
}

// req A6
func TestRefusedEnvironmentNames(t *testing.T) {
	names := evidence.RefusedEnvNames()
	require.Greater(t, len(names), 20)
	for _, n := range names {
		n = strings.Replace(n, "*", "X", 1)
		require.Error(t, evidence.CheckEnvName(n), n)
		require.Error(t, evidence.CheckEnvName(strings.ToLower(n)), n)
	}
	for _, n := range []string{"", "1A", "A-B", "A=B", "A B", "Ä", "A\x00", strings.Repeat("A", 129)} {
		require.Error(t, evidence.CheckEnvName(n), "%q", n)
	}
	for _, n := range []string{"PATH", "GREETING", "_x", "LDAP", "ENVIRONMENT", "a1"} {
		require.NoError(t, evidence.CheckEnvName(n), n)
	}
}

// req A4 req A5
func TestEnvironment(t *testing.T) {
	vars := func(n, size int) []evidence.EnvVar {
		var out []evidence.EnvVar
		for i := range n {
			out = append(out, evidence.EnvVar{Name: fmt.Sprintf("V%02d", i), Value: strings.Repeat("x", size)})
		}
		return out
	}
	require.NoError(t, evidence.Environment{Version: 1, Vars: vars(32, 100)}.Check())
	require.ErrorContains(t, evidence.Environment{Version: 1, Vars: vars(33, 1)}.Check(), "at most 32")
	require.NoError(t, evidence.Environment{Version: 1, Vars: vars(32, 509)}.Check())
	require.ErrorContains(t, evidence.Environment{Version: 1, Vars: vars(32, 510)}.Check(), "at most 16384")
	require.Error(t, evidence.Environment{Version: 1, Vars: []evidence.EnvVar{{Name: "B"}, {Name: "A"}}}.Check())
	require.Error(t, evidence.Environment{Version: 1, Vars: []evidence.EnvVar{{Name: "A"}, {Name: "A"}}}.Check())
	require.Error(t, evidence.Environment{Version: 1, Vars: []evidence.EnvVar{{Name: "A", Value: "\x00"}}}.Check())
	with := evidence.Environment{Version: 1, Nonce: &evidence.Nonce{1}}
	require.NotEqual(t, evidence.Environment{Version: 1}.Digest(), with.Digest(), "the nonce keeps an environment from being guessed")
}

// Flipping any one binding changes the digest; nothing else enters it.
//
// req A3
func TestRequestBindsEverything(t *testing.T) {
	base := func() evidence.Request {
		return evidence.Request{
			Attempt: "one", Generation: 1,
			Binding:   &evidence.Binding{Repository: evidence.RepositoryID{1}, Change: "c", Version: 1, Context: evidence.ContextDigest{1}},
			Revision:  evidence.Revision{Commit: strings.Repeat("a", 40)},
			Recipe:    evidence.RecipeDigest{1},
			Toolchain: &evidence.ToolchainDigest{1}, Environment: evidence.EnvironmentDigest{1}, Profile: evidence.ProfileDigest{1},
		}
	}
	flips := map[string]func(*evidence.Request){
		"attempt":         func(r *evidence.Request) { r.Attempt = "two" },
		"generation":      func(r *evidence.Request) { r.Generation = 2 },
		"repository":      func(r *evidence.Request) { r.Binding.Repository[0]++ },
		"change":          func(r *evidence.Request) { r.Binding.Change = "d" },
		"version":         func(r *evidence.Request) { r.Binding.Version = 2 },
		"context":         func(r *evidence.Request) { r.Binding.Context[0]++ },
		"no binding":      func(r *evidence.Request) { r.Binding = nil },
		"revision":        func(r *evidence.Request) { r.Revision.Commit = strings.Repeat("b", 40) },
		"directory":       func(r *evidence.Request) { r.Revision = evidence.Revision{Manifest: &evidence.ManifestDigest{1}} },
		"other directory": func(r *evidence.Request) { r.Revision = evidence.Revision{Manifest: &evidence.ManifestDigest{2}} },
		"recipe":          func(r *evidence.Request) { r.Recipe[0]++ },
		"toolchain":       func(r *evidence.Request) { r.Toolchain[0]++ },
		"no toolchain":    func(r *evidence.Request) { r.Toolchain = nil },
		"environment":     func(r *evidence.Request) { r.Environment[0]++ },
		"profile":         func(r *evidence.Request) { r.Profile[0]++ },
	}
	seen := map[evidence.RequestDigest]string{base().Digest(): "base"}
	require.Equal(t, base().Digest(), base().Digest())
	for name, flip := range flips {
		r := base()
		flip(&r)
		d := r.Digest()
		require.Empty(t, seen[d], "%s collides", name)
		seen[d] = name
	}
	require.Len(t, seen, 16)
}

// req C8
func TestClosedLists(t *testing.T) {
	for _, r := range evidence.Reductions() {
		got, err := evidence.ParseReduction(string(r))
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
	_, err := evidence.ParseReduction("full")
	require.ErrorContains(t, err, "cgroup-v1")
}

func TestIdentifiers(t *testing.T) {
	for _, good := range []string{"a", "0", "a.b-c_d", strings.Repeat("a", 63)} {
		_, err := evidence.ParseAttemptID(good)
		require.NoError(t, err, good)
	}
	for _, bad := range []string{"", "A", "-a", ".a", "_a", "a/b", "a b", "a\n", "ä", strings.Repeat("a", 64)} {
		_, err := evidence.ParseAttemptID(bad)
		require.Error(t, err, "%q", bad)
		_, err = evidence.ParseChangeID(bad)
		require.Error(t, err, "%q", bad)
		_, err = evidence.ParsePolicyID(bad)
		require.Error(t, err, "%q", bad)
	}
	d := evidence.RecipeDigest{1, 2}
	back, err := evidence.ParseDigest[struct{}](d.String())
	require.NoError(t, err)
	require.Equal(t, d.Hex(), back.Hex())
	for _, bad := range []string{"", "sha256:", "sha256:00", strings.ToUpper(d.String()), d.String() + "00", "sha512:" + d.Hex(), strings.Replace(d.Hex(), "0", "g", 1)} {
		_, err := evidence.ParseDigest[struct{}](bad)
		require.Error(t, err, bad)
	}
}
