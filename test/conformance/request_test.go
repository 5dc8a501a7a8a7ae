package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

func sum(b []byte) []byte { s := sha256.Sum256(b); return s[:] }

func sumHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return sum(b)
}

// length is the hex of a CBOR number below 2^16.
func length(n int) string {
	switch {
	case n < 24:
		return fmt.Sprintf("%02x", n)
	case n < 256:
		return fmt.Sprintf("18%02x", n)
	}
	return fmt.Sprintf("19%04x", n)
}

// requestInput is what a request digest covers, as the vectors write it.
type requestInput struct {
	Attempt     string  `json:"attempt"`
	Generation  uint64  `json:"generation"`
	Repository  string  `json:"repository,omitempty"` // 16 bytes; absent for an attempt of no change
	Change      string  `json:"change,omitempty"`
	Version     uint64  `json:"version,omitempty"`
	Context     string  `json:"context,omitempty"`
	Commit      string  `json:"commit,omitempty"` // or
	Manifest    string  `json:"manifest,omitempty"`
	Recipe      string  `json:"recipe"`
	Toolchain   *string `json:"toolchain,omitempty"`
	Environment string  `json:"environment"`
	Profile     string  `json:"profile"`
}

func requests(t *testing.T) []vector {
	t.Helper()
	d := func(b byte) string { return hexOf(sum([]byte{b})) }
	toolchain := d(9)
	base := requestInput{
		Attempt: "one", Generation: 1, Repository: "5e000000000000000000000000000000", Change: "fix", Version: 1, Context: d(1),
		Commit: "0123456789abcdef0123456789abcdef01234567", Recipe: d(2), Environment: d(3), Profile: d(4), Toolchain: &toolchain,
	}
	var out []vector
	seen := map[string]string{}
	add := func(name string, bend func(*requestInput)) {
		r := base
		bend(&r)
		preimage := preimageOf(t, r)
		got := hexOf(sum(preimage))
		require.Empty(t, seen[got], "%s and %s have one digest", name, seen[got])
		seen[got] = name
		var in values
		require.NoError(t, json.Unmarshal([]byte(text(t, r)), &in))
		out = append(out, vector{Name: "request: " + name, Class: accept, Input: in, Output: values{"request": got, "preimage": hexOf(preimage)}})
	}
	add("bound", func(*requestInput) {})
	add("of no change", func(r *requestInput) { r.Repository, r.Change, r.Version, r.Context = "", "", 0, "" })
	add("of a directory", func(r *requestInput) { r.Commit, r.Manifest = "", d(5) })
	add("no toolchain", func(r *requestInput) { r.Toolchain = nil })
	add("another attempt", func(r *requestInput) { r.Attempt = "two" })
	add("another generation", func(r *requestInput) { r.Generation = 2 })
	add("another repository", func(r *requestInput) { r.Repository = "5f000000000000000000000000000000" })
	add("another change", func(r *requestInput) { r.Change = "fix2" })
	add("another version", func(r *requestInput) { r.Version = 2 })
	add("another context", func(r *requestInput) { r.Context = d(6) })
	add("another revision", func(r *requestInput) { r.Commit = "1123456789abcdef0123456789abcdef01234567" })
	add("another recipe", func(r *requestInput) { r.Recipe = d(7) })
	add("another toolchain", func(r *requestInput) { other := d(8); r.Toolchain = &other })
	add("another environment", func(r *requestInput) { r.Environment = d(10) })
	add("another profile", func(r *requestInput) { r.Profile = d(11) })
	return out
}

// preimageOf writes the array by hand, item by item, as evidence/FORMAT.md lists it.
func preimageOf(t *testing.T, r requestInput) []byte {
	t.Helper()
	textItem := func(s string) string {
		n := len(s)
		if n < 24 {
			return fmt.Sprintf("%02x", 0x60+n) + hexOf([]byte(s))
		}
		return fmt.Sprintf("78%02x", n) + hexOf([]byte(s))
	}
	null := func(present bool, item string) string {
		if !present {
			return "f6"
		}
		return item
	}
	bound := r.Change != ""
	s := "8c" + textItem("baildock.execution-request.v1") + textItem(r.Attempt) + length(int(r.Generation)) +
		null(bound, "50"+r.Repository) + null(bound, textItem(r.Change)) + null(bound, length(int(r.Version))) + null(bound, "5820"+r.Context)
	if r.Manifest != "" {
		s += "5820" + r.Manifest
	} else {
		s += textItem(r.Commit)
	}
	s += "5820" + r.Recipe
	if r.Toolchain == nil {
		s += "f6"
	} else {
		s += "5820" + *r.Toolchain
	}
	s += "5820" + r.Environment + "5820" + r.Profile
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func runDigest(t *testing.T, in values) (string, values, error) {
	if _, ok := in["globs"]; ok {
		return accept, values{"paths": evidence.PathPolicyDigest(in.list(t, "globs")).String()}, nil
	}
	if _, ok := in["salt"]; ok {
		w := evidence.Withhold(evidence.Salt(in.bytes(t, "salt")), in.bytes(t, "bytes"))
		return accept, values{"salted": hexOf(w.Ref.Salted[:]), "descriptor": hexOf(w.Ref.Descriptor[:]), "descriptor_cbor": hexOf(evidence.Marshal(w.Descriptor))}, nil
	}
	var r requestInput
	require.NoError(t, json.Unmarshal([]byte(text(t, in)), &r))
	d := func(s string) [32]byte { return [32]byte(values{"d": s}.bytes(t, "d")) }
	q := evidence.Request{
		Attempt: evidence.AttemptID(r.Attempt), Generation: r.Generation, Recipe: d(r.Recipe), Environment: d(r.Environment), Profile: d(r.Profile),
		Revision: evidence.Revision{Commit: r.Commit},
	}
	if r.Change != "" {
		q.Binding = &evidence.Binding{Repository: evidence.RepositoryID(values{"r": r.Repository}.bytes(t, "r")), Change: evidence.ChangeID(r.Change), Version: r.Version, Context: d(r.Context)}
	}
	if r.Manifest != "" {
		m := evidence.ManifestDigest(d(r.Manifest))
		q.Revision.Manifest = &m
	}
	if r.Toolchain != nil {
		tc := evidence.ToolchainDigest(d(*r.Toolchain))
		q.Toolchain = &tc
	}
	got := q.Digest()
	return accept, values{"request": hexOf(got[:]), "preimage": hexOf(preimageOf(t, r))}, nil
}
