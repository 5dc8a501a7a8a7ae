package conformance

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/evidencetest/spelltest"
)

// parsers read one canonical value of a named kind and return its digest, empty where it has none.
var parsers = map[string]func([]byte) (string, error){
	"meta": func(b []byte) (string, error) { return "", evidence.Unmarshal(b, new(evidence.Meta)) },
	"recipe": func(b []byte) (string, error) {
		r, err := evidence.ParseRecipe(b)
		if err != nil {
			return "", err
		}
		return r.Digest().String(), nil
	},
	"environment": func(b []byte) (string, error) {
		var e evidence.Environment
		if err := evidence.Unmarshal(b, &e); err != nil {
			return "", err
		}
		return e.Digest().String(), e.Check()
	},
	"manifest": func(b []byte) (string, error) {
		m, err := evidence.UnmarshalManifest(b)
		if err != nil {
			return "", err
		}
		d, err := m.Digest()
		return d.String(), err
	},
	"profile": func(b []byte) (string, error) {
		var p evidence.Profile
		if err := evidence.Unmarshal(b, &p); err != nil {
			return "", err
		}
		return p.Digest().String(), nil
	},
	"context": func(b []byte) (string, error) {
		var c evidence.Context
		if err := evidence.Unmarshal(b, &c); err != nil {
			return "", err
		}
		return c.Digest().String(), c.Check()
	},
	"record": func(b []byte) (string, error) {
		var r evidence.Record
		if err := evidence.Unmarshal(b, &r); err != nil {
			return "", err
		}
		return r.Digest().String(), nil
	},
	"descriptor": func(b []byte) (string, error) { return digestOf(b), evidence.Unmarshal(b, new(evidence.Descriptor)) },
	"path-list":  func(b []byte) (string, error) { _, err := evidence.ParsePathList(b); return digestOf(b), err },
}

func digestOf(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// samples are a good value of each kind.
func samples(t *testing.T) map[string][]byte {
	t.Helper()
	h := evidencetest.Success()
	a, err := evidence.Fold(h.Events()...)
	require.NoError(t, err)
	profile, err := evidence.ProfileByName(evidence.ProfileCommand)
	require.NoError(t, err)
	paths, err := evidence.PathList{"a.txt", "src/b.txt"}.Marshal()
	require.NoError(t, err)
	manifest, err := h.Manifest.Marshal()
	require.NoError(t, err)
	toolchain := evidence.ToolchainDigest{1}
	return map[string][]byte{
		"meta":        evidence.Marshal(evidence.Meta{Schema: 1, Actor: "runner", Cause: []byte{9}, Nonce: evidence.Nonce{1}}),
		"recipe":      evidence.Marshal(h.Recipe),
		"environment": evidence.Marshal(h.Environment),
		"manifest":    manifest,
		"profile":     evidence.Marshal(profile),
		"context": evidence.Marshal(evidence.Context{
			Version: 1, Revision: strings.Repeat("a", 40), Capabilities: []string{evidence.CapabilityCommand},
			Required:    []evidence.RequiredEvidence{{Kind: evidence.EvidenceCommand, Digest: evidence.PlainDigest(h.Recipe.Digest())}},
			Environment: h.Environment.Digest(), Toolchain: &toolchain, Policy: evidence.DefaultPolicy, Epoch: 1,
			Reductions: []evidence.Reduction{evidence.ReducedCgroupV1},
		}),
		"record":     evidence.Marshal(evidence.RecordOf(&a)),
		"descriptor": evidence.Marshal(h.Blobs[0].Descriptor),
		"path-list":  paths,
	}
}

func encodings() family {
	return family{
		name: "encodings", least: 250,
		about: "Canonical values (evidence/FORMAT.md, schemas/*.cddl). Input: of, the kind of value, and cbor. Accepted: digest, the SHA-256 of the bytes where the kind is named by one. Refused: kind says spelling (another spelling of the same value, or what a careless decoder takes for it) or range (a legal encoding of a value that is not allowed).",
		make: func(t *testing.T) []vector {
			var out []vector
			good := samples(t)
			for _, of := range sorted(good) {
				digest, err := parsers[of](good[of])
				require.NoError(t, err, of)
				var o values
				if digest != "" {
					o = values{"digest": digest}
				}
				out = append(out, vector{Name: of, Class: accept, Input: values{"of": of, "cbor": hexOf(good[of])}, Output: o})
				spelltest.Respelled(good[of], func(name string, bent []byte) {
					out = append(out, vector{Name: of + ": " + name, Class: refuse, Kind: "spelling", Input: values{"of": of, "cbor": hexOf(bent)}})
				})
			}
			bad := ranges(t)
			for _, name := range sorted(bad) {
				of, _, _ := strings.Cut(name, ":")
				out = append(out, vector{Name: name, Class: refuse, Kind: "range", Input: values{"of": of, "cbor": hexOf(bad[name])}})
			}
			return sortedVectors(out)
		},
		run: func(t *testing.T, in values) (string, values, error) {
			parse := parsers[in.text(t, "of")]
			require.NotNil(t, parse)
			digest, err := parse(in.bytes(t, "cbor"))
			return settled(values{"digest": digest}, err)
		},
	}
}

// ranges are values in their one spelling that no reader may take.
func ranges(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	recipe := func(name string, bend func(*evidence.Recipe)) {
		r := evidencetest.Success().Recipe
		bend(&r)
		out["recipe: "+name] = evidence.Marshal(r)
	}
	recipe("version 2", func(r *evidence.Recipe) { r.Version = 2 })
	recipe("unknown profile", func(r *evidence.Recipe) { r.Profile = "command/v9" })
	recipe("relative executable", func(r *evidence.Recipe) { r.Executable = "bin/tool" })
	recipe("65 arguments", func(r *evidence.Recipe) { r.Args = make([]string, 65) })
	recipe("argument text beyond 16 KiB", func(r *evidence.Recipe) { r.Args = []string{strings.Repeat("x", 16<<10)} })
	recipe("NUL in an argument", func(r *evidence.Recipe) { r.Args = []string{"a\x00b"} })
	recipe("no wall time", func(r *evidence.Recipe) { r.Limits.Wall = 0 })
	recipe("wall time beyond 5 minutes", func(r *evidence.Recipe) { r.Limits.Wall = 5*time.Minute + 1 })
	recipe("output of 255 bytes", func(r *evidence.Recipe) { r.Limits.Output = 255 })
	recipe("output beyond 1 MiB", func(r *evidence.Recipe) { r.Limits.Output = 1<<20 + 1 })
	recipe("memory under 16 MiB", func(r *evidence.Recipe) { r.Limits.Memory = 16<<20 - 1 })
	recipe("memory beyond 4 GiB", func(r *evidence.Recipe) { r.Limits.Memory = 4<<30 + 1 })
	recipe("scratch under 1 MiB", func(r *evidence.Recipe) { r.Limits.Scratch = 1<<20 - 1 })
	recipe("no processes", func(r *evidence.Recipe) { r.Limits.PIDs = 0 })
	recipe("257 processes", func(r *evidence.Recipe) { r.Limits.PIDs = 257 })
	recipe("beyond 4 cores", func(r *evidence.Recipe) { r.Limits.NanoCPUs = 4_000_000_001 })
	env := func(name string, vars ...evidence.EnvVar) {
		e := evidencetest.Success().Environment
		e.Vars = vars
		out["environment: "+name] = evidence.Marshal(e)
	}
	env("out of order", evidence.EnvVar{Name: "B"}, evidence.EnvVar{Name: "A"})
	env("a name twice", evidence.EnvVar{Name: "A"}, evidence.EnvVar{Name: "A", Value: "b"})
	env("empty name", evidence.EnvVar{})
	env("= in a name", evidence.EnvVar{Name: "A=B"})
	env("NUL in a value", evidence.EnvVar{Name: "A", Value: "\x00"})
	for _, name := range []string{"LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "PROMPT_COMMAND", "PYTHONSTARTUP", "DOCKER_HOST"} {
		env("reserved "+name, evidence.EnvVar{Name: name, Value: "x"})
	}
	var many []evidence.EnvVar
	for i := range 33 {
		many = append(many, evidence.EnvVar{Name: fmt.Sprintf("N%02d", i)})
	}
	env("33 entries", many...)
	sample := samples(t)["manifest"]
	manifest := func(name string, bend func(entries *spelltest.Item)) {
		root := spelltest.Parse(sample)
		bend(root.Kids[1])
		out["manifest: "+name] = root.Bytes()
	}
	manifest("out of order", func(l *spelltest.Item) { l.Kids = reversed(l.Kids) })
	manifest("a path twice", func(l *spelltest.Item) { l.Kids = append(l.Kids[:1:1], l.Kids...) })
	manifest("mode of a directory", func(l *spelltest.Item) { l.Kids[0].Kids[1].N = 0o40000 })
	manifest("size beyond 64 MiB", func(l *spelltest.Item) { l.Kids[0].Kids[2].N = 64<<20 + 1 })
	manifest("digest of 31 bytes", func(l *spelltest.Item) { set(l.Kids[0].Kids[3], string(make([]byte, 31))) })
	for _, path := range []string{"", "/a", "a/../b", "./a", "a//b", "a/"} {
		manifest(fmt.Sprintf("path %q", path), func(l *spelltest.Item) {
			l.Kids = l.Kids[:1]
			set(l.Kids[0].Kids[0], path)
		})
	}
	out["path-list: out of order"] = evidence.Marshal([][]byte{[]byte("b"), []byte("a")})
	out["path-list: a path twice"] = evidence.Marshal([][]byte{[]byte("a"), []byte("a")})
	out["path-list: leaving the tree"] = evidence.Marshal([][]byte{[]byte("../a")})
	return out
}

func digests() family {
	return family{
		name: "digests", least: 20,
		about: "Digests (evidence/FORMAT.md). Three kinds of input. {salt, bytes}: salted is SHA-256(salt, bytes); descriptor_cbor is the descriptor of these bytes kept whole, descriptor its SHA-256. {attempt, …}: request is the request digest (absent members are null). {globs}: paths is the digest of the set of allowed paths.",
		make: func(t *testing.T) []vector {
			var out []vector
			for _, n := range []int{0, 1, 31, 32, 33, 55, 56, 63, 64, 65, 1000} {
				b := make([]byte, n)
				for i := range b {
					b[i] = byte(i)
				}
				salt := evidence.Salt(sha256.Sum256(fmt.Appendf(nil, "salt %d", n)))
				salted := sha256.Sum256(append(salt[:], b...))
				plain := hexOf(sum(b))
				// The descriptor by hand: {1: salt, 2: length, 3: stored, 4: received}.
				want := "a4015820" + hexOf(salt[:]) + "02" + length(n) + "035820" + plain + "045820" + plain
				out = append(out, vector{Name: fmt.Sprintf("%d bytes", n), Class: accept, Input: values{"salt": hexOf(salt[:]), "bytes": hexOf(b)},
					Output: values{"salted": hexOf(salted[:]), "descriptor_cbor": want, "descriptor": hexOf(sumHex(t, want))}})
			}
			out = append(out, requests(t)...)
			for _, globs := range [][]string{{"**"}, {"*.txt", "src/**"}, {"a"}} {
				out = append(out, vector{Name: fmt.Sprint("paths ", globs), Class: accept, Input: values{"globs": globs}, Output: values{"paths": evidence.PathPolicyDigest(globs).String()}})
			}
			return out
		},
		run: runDigest,
	}
}
