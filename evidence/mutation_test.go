package evidence

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func wsFile(path, content string) WorkspaceEntry {
	return WorkspaceEntry{Path: path, EntryState: *stateFile(content, 0o644)}
}

func wsDir(path string) WorkspaceEntry {
	return WorkspaceEntry{Path: path, EntryState: EntryState{Type: EntryDirectory, Mode: 0o755}}
}

func wsLink(path, target string) WorkspaceEntry {
	return WorkspaceEntry{Path: path, EntryState: *stateLink(target)}
}

func stateFile(content string, mode uint32) *EntryState {
	return &EntryState{Type: EntryFile, Mode: mode, Size: uint64(len(content)), SHA256: Sum[contentMeaning]([]byte(content))}
}

func stateLink(target string) *EntryState {
	return &EntryState{Type: EntryLink, Size: uint64(len(target)), Target: target}
}

func stateDir(mode uint32) *EntryState { return &EntryState{Type: EntryDirectory, Mode: mode} }

func workspaceOf(t *testing.T, entries ...WorkspaceEntry) WorkspaceManifest {
	t.Helper()
	m, err := NewWorkspaceManifest(entries)
	require.NoError(t, err)
	return m
}

func TestCompareWorkspaces(t *testing.T) {
	before := workspaceOf(t,
		wsDir("d"), wsFile("d/a", "one"), wsFile("d/b", "two"), wsFile("e1", ""), wsFile("f", "three"), wsFile("g", "four"),
		wsFile("same1", "same"), wsFile("same2", "same"), wsLink("l", "f"), wsFile("turns", "x"))
	exec := wsFile("f", "three")
	exec.Mode = 0o755
	after := workspaceOf(t,
		wsFile("d2", "one"), wsFile("e2", ""), exec, wsFile("g", "five"), wsFile("new", "six"),
		wsFile("same1", "same"), wsFile("same3", "same"), wsLink("l", "g"), wsDir("turns"), wsFile("turns/x", "x"))
	got := CompareWorkspaces(before, after)
	want := Mutations{
		{Path: "d", Kind: MutationDeleted, Before: stateDir(0o755)},
		{Path: "d/b", Kind: MutationDeleted, Before: stateFile("two", 0o644)},
		{Path: "d2", Kind: MutationRenamed, From: "d/a", Before: stateFile("one", 0o644), After: stateFile("one", 0o644)},
		{Path: "e1", Kind: MutationDeleted, Before: stateFile("", 0o644)}, // every empty file equals every other
		{Path: "e2", Kind: MutationAdded, After: stateFile("", 0o644)},
		{Path: "f", Kind: MutationModified, Before: stateFile("three", 0o644), After: stateFile("three", 0o755)},
		{Path: "g", Kind: MutationModified, Before: stateFile("four", 0o644), After: stateFile("five", 0o644)},
		{Path: "l", Kind: MutationModified, Before: stateLink("f"), After: stateLink("g")},
		{Path: "new", Kind: MutationAdded, After: stateFile("six", 0o644)},
		{Path: "same2", Kind: MutationDeleted, Before: stateFile("same", 0o644)}, // two had this content
		{Path: "same3", Kind: MutationAdded, After: stateFile("same", 0o644)},
		{Path: "turns", Kind: MutationModified, Before: stateFile("x", 0o644), After: stateDir(0o755)},
		{Path: "turns/x", Kind: MutationAdded, After: stateFile("x", 0o644)}, // its old path was replaced, not left
	}
	require.Equal(t, want, got)
	require.NoError(t, got.Validate())
	require.Empty(t, CompareWorkspaces(before, before))
}

// randomWorkspace is a small tree in which contents repeat.
func randomWorkspace(r *rand.Rand) WorkspaceManifest {
	at := map[string]WorkspaceEntry{}
	for range r.IntN(25) {
		path := fmt.Sprintf("f%d", r.IntN(12))
		if r.IntN(2) == 0 {
			dir := fmt.Sprintf("d%d", r.IntN(3))
			at[dir] = wsDir(dir)
			path = dir + "/" + path
		}
		switch r.IntN(6) {
		case 0:
			at[path] = wsLink(path, fmt.Sprintf("t%d", r.IntN(3)))
		case 1:
			e := wsFile(path, fmt.Sprintf("c%d", r.IntN(8)))
			e.Mode = 0o755
			at[path] = e
		default:
			at[path] = wsFile(path, strings.Repeat("c", r.IntN(9)))
		}
	}
	var entries []WorkspaceEntry
	for _, e := range at {
		entries = append(entries, e)
	}
	m, err := NewWorkspaceManifest(entries)
	if err != nil {
		panic(err)
	}
	return m
}

// The mutations, applied to what was before, give exactly what is after; each rename is the one pair of
// its content; the encoding goes there and back.
func TestMutationsAreTheWholeDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	kinds := map[MutationKind]int{}
	for range 3000 {
		before, after := randomWorkspace(r), randomWorkspace(r)
		l := CompareWorkspaces(before, after)
		have := map[string]EntryState{}
		for _, e := range before.Entries {
			have[e.Path] = e.EntryState
		}
		for _, m := range l {
			kinds[m.Kind]++
			for _, p := range m.paths() {
				delete(have, p)
			}
		}
		for _, m := range l {
			if m.After != nil {
				have[m.Path] = *m.After
			}
			if m.Kind == MutationRenamed {
				require.Equal(t, 1, contentCounts(before)[m.After.SHA256])
				require.Equal(t, 1, contentCounts(after)[m.After.SHA256])
			}
		}
		want := map[string]EntryState{}
		for _, e := range after.Entries {
			want[e.Path] = e.EntryState
		}
		require.Equal(t, want, have)
		b, err := l.Marshal()
		require.NoError(t, err)
		back, err := ParseMutations(b)
		require.NoError(t, err)
		require.Equal(t, len(l), len(back))
		again, err := back.Marshal()
		require.NoError(t, err)
		require.Equal(t, b, again)
	}
	for k := range mutationNames {
		require.Greater(t, kinds[k], 100, "%s", k)
	}
}

// Golden vectors of 2026-11-30, item by item. Old bytes are kept for ever.
var (
	workspaceGolden = strings.Join([]string{
		"82",
		"75" + "6261696c646f636b2e776f726b73706163652e7631", // "baildock.workspace.v1"
		"83",
		"85", "41" + "64", "02", "1901ed", "00", "40", // "d", a directory, 0o755
		"85", "43" + "642fff", "01", "1901a4", "02", "5820" + "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4", // "d/\xff", a file, 0o644, 2 bytes, SHA-256("hi")
		"85", "41" + "6c", "03", "00", "01", "41" + "64", // "l", a link to "d"
	}, "")
	mutationsGolden = strings.Join([]string{
		"82",
		"75" + "6261696c646f636b2e6d75746174696f6e732e7631", // "baildock.mutations.v1"
		"83",
		"85", "41" + "61", "02", "40", "80", "81" + "84" + "03" + "00" + "01" + "4164", // "a": added, a link to "d"
		"85", "41" + "62", "04", "41" + "63", // "b": renamed from "c"
		"81" + "84" + "01" + "1901a4" + "02" + "5820" + "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4",
		"81" + "84" + "01" + "1901ed" + "02" + "5820" + "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4", // now 0o755
		"85", "41" + "64", "03", "40", "81" + "84" + "02" + "1901ed" + "00" + "40", "80", // "d": deleted, a directory
	}, "")
)

const (
	workspaceGoldenDigest = "sha256:f7b49795bb3bc320e85c461ee25ce51d10ad2b16cf16a04bd835a8ba1653f1e0"
	mutationsGoldenDigest = "sha256:c36e0e5af94e045dd7764ce4087f3ad68e3e458e4856f0baddf1e8229a877ae4"
)

func goldenMutations() Mutations {
	return Mutations{
		{Path: "a", Kind: MutationAdded, After: stateLink("d")},
		{Path: "b", Kind: MutationRenamed, From: "c", Before: stateFile("hi", 0o644), After: stateFile("hi", 0o755)},
		{Path: "d", Kind: MutationDeleted, Before: stateDir(0o755)},
	}
}

func TestWorkspaceGolden(t *testing.T) {
	m := workspaceOf(t, wsDir("d"), wsFile("d/\xff", "hi"), wsLink("l", "d"))
	b, err := m.Marshal()
	require.NoError(t, err)
	require.Equal(t, workspaceGolden, hex.EncodeToString(b))
	digest, err := m.Digest()
	require.NoError(t, err)
	require.Equal(t, workspaceGoldenDigest, digest.String())
	back, err := ParseWorkspaceManifest(b)
	require.NoError(t, err)
	require.Equal(t, m, back)
	require.EqualValues(t, 2, m.Bytes())
	require.NoError(t, m.CheckLinks())

	b, err = goldenMutations().Marshal()
	require.NoError(t, err)
	require.Equal(t, mutationsGolden, hex.EncodeToString(b))
	changed, err := goldenMutations().Digest()
	require.NoError(t, err)
	require.Equal(t, mutationsGoldenDigest, changed.String())
	parsed, err := ParseMutations(b)
	require.NoError(t, err)
	require.Equal(t, goldenMutations(), parsed)
}

func TestWorkspaceFlippedBits(t *testing.T) {
	flips := 0
	for _, golden := range []string{workspaceGolden, mutationsGolden} {
		want, err := hex.DecodeString(golden)
		require.NoError(t, err)
		for i := range len(want) * 8 {
			b := bytes.Clone(want)
			b[i/8] ^= 1 << (i % 8)
			if m, err := ParseWorkspaceManifest(b); err == nil {
				again, err := m.Marshal()
				require.NoError(t, err)
				require.Equal(t, b, again)
			}
			if l, err := ParseMutations(b); err == nil {
				again, err := l.Marshal()
				require.NoError(t, err)
				require.Equal(t, b, again)
			}
			flips++
		}
	}
	require.Greater(t, flips, 1500)
}
