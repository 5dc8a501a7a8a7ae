package containment_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/containment"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/schemas"
)

var update = flag.Bool("update", false, "rewrite golden files")

func fold(t testing.TB, h *evidencetest.History, finished bool) *evidence.Attempt {
	t.Helper()
	events := h.Events()
	if finished {
		events = h.Finished()
	}
	a, err := evidence.Fold(events...)
	require.NoError(t, err)
	return &a
}

// values opens the isolation's blob as a verifier does.
func values(t testing.TB, h *evidencetest.History) (vs []evidence.ControlValue) {
	t.Helper()
	if h.Isolation == nil {
		return nil
	}
	for _, w := range h.Blobs {
		if w.Ref == h.Isolation.Values {
			require.NoError(t, evidence.Unmarshal(w.Bytes, &vs))
		}
	}
	return vs
}

func whole(t testing.TB, h *evidencetest.History) containment.Blobs {
	return containment.Blobs{Recipe: &h.Recipe, Environment: &h.Environment, Values: values(t, h)}
}

func schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	s, err := schemas.Find("containment-evidence")
	require.NoError(t, err)
	text, err := jsonschema.UnmarshalJSON(strings.NewReader(s.Text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", text))
	compiled, err := c.Compile("schema.json")
	require.NoError(t, err)
	return compiled
}

func valid(t testing.TB, s *jsonschema.Schema, b []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	require.NoError(t, err)
	return s.Validate(v)
}

// imageOf gives the isolation the values that an inspection leaves for the image.
func imageOf(t testing.TB, h *evidencetest.History, id evidence.ImageID) {
	vs := values(t, h)
	vs[0].Found = `Config.Image="` + id.String() + `"` + "\n" + `Image="` + id.String() + `"`
	h.Isolation.Controls[0].Value = evidence.SaltedSum(vs[0].Salt, []byte(vs[0].Found))
	h.Isolation.Values = h.Keep("isolation again", evidence.Marshal(vs))
}

// Digests follow from values that other packages' vectors hold.
var digests = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// req P1: each kind of run, whole, as it is shown.
func TestGolden(t *testing.T) {
	s := schema(t)
	for name, of := range map[string]func() containment.Evidence{
		"contained": func() containment.Evidence {
			h := evidencetest.Contained()
			h.Recipe.Contained.Reference = "registry.example/agent:3@sha256:" + strings.Repeat("ab", 32)
			h.Recipe.Contained.Writable = []string{"docs", "src"}
			imageOf(t, h, h.Recipe.Image)
			return containment.Of(fold(t, h, true), whole(t, h))
		},
		"command": func() containment.Evidence {
			h := evidencetest.Success()
			return containment.Of(fold(t, h, true), whole(t, h))
		},
		"withheld": func() containment.Evidence {
			return containment.Of(fold(t, evidencetest.Contained(), true), containment.Blobs{})
		},
		"refused": func() containment.Evidence {
			h := evidencetest.Contained()
			registered, claimed, preflight := h.Registered, h.Claimed, h.Preflight
			preflight.Checks[0].Result, preflight.Checks[0].Code = evidence.PreflightUnsafe, "host_network"
			preflight.Result = evidence.SumChecks(preflight.Checks)
			recipe, env := h.Recipe, h.Environment
			h = &evidencetest.History{Recipe: recipe, Environment: env, Registered: registered, Claimed: claimed, Preflight: preflight}
			return containment.Of(fold(t, h, true), whole(t, h))
		},
		"broken-policy": func() containment.Evidence {
			h := evidencetest.Contained()
			h.Policy.Checks[1].Held = false
			h.Isolation.Controls[4].Kind = evidence.Accepted
			return containment.Of(fold(t, h, false), whole(t, h))
		},
	} {
		b, err := of().Marshal()
		require.NoError(t, err, name)
		require.NoError(t, valid(t, s, b), name)
		back, err := containment.Parse(b)
		require.NoError(t, err)
		require.Equal(t, of(), back, name)

		var shown bytes.Buffer
		require.NoError(t, json.Indent(&shown, digests.ReplaceAll(b, []byte("sha256:…")), "", "  "))
		shown.WriteByte('\n')
		path := filepath.Join("testdata", name+".json")
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(path, shown.Bytes(), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), shown.String(), name)
	}
}

// req P2: a control is held only when it was seen on the container that ran, and every control is
// counted once.
func TestHeld(t *testing.T) {
	counted := func(bend func(*evidencetest.History)) containment.Controls {
		h := evidencetest.Contained()
		bend(h)
		c := containment.Of(fold(t, h, false), whole(t, h)).Controls
		require.Equal(t, c.Total, c.Held+c.Accepted+c.Probed+c.NotRun+c.Unequal+c.Unavailable)
		return c
	}
	all := counted(func(*evidencetest.History) {})
	require.Equal(t, containment.StateHeld, all.State)
	require.Equal(t, all.Total, all.Held)
	require.Greater(t, all.Total, 40)

	kinds := counted(func(h *evidencetest.History) {
		h.Kernel = nil
		h.Isolation.Controls[0].Kind = evidence.Accepted
	})
	require.Equal(t, all.Total-1, kinds.Held)
	require.Equal(t, 1, kinds.Accepted)

	unstarted := func(h *evidencetest.History) {
		h.Ordered, h.Started, h.Kernel, h.Exited, h.Output, h.Mutated, h.Policy, h.AfterExit = nil, nil, nil, nil, nil, nil, nil, nil
	}
	notRun := counted(func(h *evidencetest.History) {
		unstarted(h)
		h.Isolation.Controls[0].Kind = evidence.Probed
	})
	require.Equal(t, containment.StateNotReached, notRun.State)
	require.Zero(t, notRun.Held)
	require.Equal(t, 1, notRun.Probed)
	require.Equal(t, notRun.Total-1, notRun.NotRun)

	refused := counted(func(h *evidencetest.History) {
		unstarted(h)
		h.Isolation.Controls[0].Equal = false
		h.Isolation.Controls[1].Kind, h.Isolation.Controls[1].Equal = evidence.Unavailable, false
		h.Isolation.Unknown = 2
		h.Isolation.Refusals = []string{"controls_unequal"}
	})
	require.Equal(t, containment.StateNotHeld, refused.State)
	require.Equal(t, [3]int{1, 1, 0}, [3]int{refused.Unequal, refused.Unavailable, refused.Held})
	require.Equal(t, uint64(2), refused.Unknown)

	kernel := counted(func(h *evidencetest.History) { h.Kernel.Controls[0].Equal = false })
	require.Equal(t, containment.StateNotHeld, kernel.State)
	require.Equal(t, 1, kernel.Unequal)
	require.Equal(t, evidence.Kernel, kernel.List[0].Evidence)

	gone := counted(func(h *evidencetest.History) {
		h.Kernel.Controls[0].Kind, h.Kernel.Controls[0].Equal = evidence.Unavailable, false
	})
	require.Equal(t, all.Total, gone.Held, "a process that was gone takes nothing away from the inspection")

	moved := counted(func(h *evidencetest.History) { h.Exited.Interference = []string{"update"} })
	require.Equal(t, containment.StateNotHeld, moved.State)
	require.True(t, moved.Interfered)
}

// req P1: the image's four names, each known, withheld, or not what it should be.
func TestImage(t *testing.T) {
	h := evidencetest.Contained()
	imageOf(t, h, h.Recipe.Image)
	a := fold(t, h, false)
	i := containment.Of(a, whole(t, h)).Image
	require.Equal(t, containment.Image{State: "bound", Configured: h.Recipe.Image.String(), RepositoryDigest: "none",
		LocalID: h.Recipe.Image.String(), ContainerBound: h.Recipe.Image.String()}, i)
	i = containment.Of(a, containment.Blobs{Recipe: &h.Recipe}).Image
	require.Equal(t, containment.Withheld, i.ContainerBound)
	require.Equal(t, containment.StateBound, i.State)

	h = evidencetest.Contained()
	i = containment.Of(fold(t, h, false), whole(t, h)).Image
	require.Equal(t, containment.Unreadable, i.ContainerBound, "what the inspection found has no image in it")
	h.Isolation.Controls[0].Kind = evidence.Accepted
	i = containment.Of(fold(t, h, false), whole(t, h)).Image
	require.Equal(t, containment.StateUnobserved, i.State)
}

// An attempt has its object at every event of its history, and at each its sections say how far it came.
func TestEveryPrefix(t *testing.T) {
	s := schema(t)
	seen := map[containment.Stage]bool{}
	for _, h := range []*evidencetest.History{evidencetest.Contained(), evidencetest.Success()} {
		events := h.Finished()
		for n := 1; n <= len(events); n++ {
			a, err := evidence.Fold(events[:n]...)
			require.NoError(t, err)
			e := containment.Of(&a, whole(t, h))
			b, err := e.Marshal()
			require.NoError(t, err)
			require.NoError(t, valid(t, s, b))
			seen[e.Execution.Stage] = true
			require.Equal(t, a.Run.Started, e.Controls.Held > 0)
			require.Equal(t, len(a.Custodies.Open()) == 0 && a.Snapshot != evidence.SnapshotHeld, e.Cleanup.State != containment.StateIncomplete)
		}
	}
	require.Len(t, seen, 13)
}

// req P2: no host path and no value is in the object, whatever stands in events and blobs; it stays
// within its bounds, and the schema knows every word of it.
func TestNothingPrivate(t *testing.T) {
	s := schema(t)
	rng := rand.New(rand.NewPCG(7, 8))
	paths := []string{
		"/home/alice/repo", "/var/lib/docker/x", `C:\Users\alice`, "alice@host", "unix:///run/docker.sock",
		"\x1b[31malice", "\u202ealice", "alice\n/home/alice", "\xff/alice", "/" + strings.Repeat("alice/", 90),
	}
	plants := append([]string{evidencetest.Secret, "x=" + evidencetest.Secret, "/" + evidencetest.Secret + "/x"}, paths...)
	plant := func() string { return plants[rng.IntN(len(plants))] }
	path := func() string { return paths[rng.IntN(len(paths))] }
	short := func(s string) string {
		return strings.ToValidUTF8(strings.ToValidUTF8(s, "")[:min(len(strings.ToValidUTF8(s, "")), evidence.MaxCode)], "")
	}
	unreadable := 0
	for range 400 {
		h := evidencetest.Contained()
		h.Recipe.Executable = path() + "/tool"
		h.Recipe.Args = []string{plant(), plant()}
		h.Recipe.Contained.Reference = plant()
		h.Recipe.Contained.Platform, h.Recipe.Contained.Network = evidence.Platform(plant()), evidence.Network(plant())
		h.Recipe.Contained.Writable = []string{"/home/alice/" + plant(), "\x00" + plant(), "/" + plant()}
		h.Environment.Vars = []evidence.EnvVar{{Name: "A", Value: plant()}, {Name: "/" + plant(), Value: plant()}}
		vs := values(t, h)
		for i := range vs {
			vs[i].Found, vs[i].Expected = plant(), plant()
		}
		vs[0].Found = "Image=" + plant()
		h.Preflight.Checks[0].Name, h.Preflight.Checks[0].Code = short(path()), short(path())
		h.Mutated, h.Policy = nil, nil
		if rng.IntN(2) == 0 {
			h.Mutated = &evidence.WorkspaceMutated{Code: short(path())}
		}
		for i := range h.Isolation.Controls {
			h.Isolation.Controls[i].Reason = short(path())
		}
		e := containment.Of(fold(t, h, false), containment.Blobs{Recipe: &h.Recipe, Environment: &h.Environment, Values: vs})
		b, err := e.Marshal()
		require.NoError(t, err)
		require.NoError(t, valid(t, s, b))
		for _, private := range []string{"alice", evidencetest.Secret, "/home", "/var", "docker.sock", `\u001b`, "\u202e"} {
			require.NotContains(t, string(b), private)
		}
		unreadable += bytes.Count(b, []byte(containment.Unreadable))
	}
	require.Greater(t, unreadable, 400)
}
