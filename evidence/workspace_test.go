package evidence

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorkspaceManifestRefuses(t *testing.T) {
	with := func(e WorkspaceEntry, change func(*WorkspaceEntry)) WorkspaceEntry {
		change(&e)
		return e
	}
	sized := func(i int) WorkspaceEntry {
		return with(wsFile(fmt.Sprintf("%02d", i), ""), func(e *WorkspaceEntry) { e.Size = MaxWorkspaceFile })
	}
	var full, text []WorkspaceEntry
	for i := range 17 {
		full = append(full, sized(i))
	}
	for i := range 3000 {
		text = append(text, wsLink(fmt.Sprintf("%05d", i), strings.Repeat("x", MaxLinkTarget)))
	}
	for name, tc := range map[string]struct {
		entries []WorkspaceEntry
		want    string
	}{
		"unsorted":              {[]WorkspaceEntry{wsFile("b", ""), wsFile("a", "")}, `not after "b"`},
		"twice":                 {[]WorkspaceEntry{wsFile("a", ""), wsFile("a", "")}, "not after"},
		"no parent":             {[]WorkspaceEntry{wsFile("d/a", "")}, `"d" is no directory`},
		"file as parent":        {[]WorkspaceEntry{wsFile("d", ""), wsFile("d/a", "")}, `"d" is no directory`},
		"reserved":              {[]WorkspaceEntry{wsDir(".GIT")}, "reserved"},
		"reserved inside":       {[]WorkspaceEntry{wsDir("a"), wsFile("a/.baildock-x", "")}, "reserved"},
		"dot dot":               {[]WorkspaceEntry{wsFile("../a", "")}, `component ".."`},
		"set-user-ID":           {[]WorkspaceEntry{with(wsFile("a", ""), func(e *WorkspaceEntry) { e.Mode = 0o4755 })}, "set-ID"},
		"set-group-ID":          {[]WorkspaceEntry{with(wsFile("a", ""), func(e *WorkspaceEntry) { e.Mode = 0o2755 })}, "set-ID"},
		"type bits in the mode": {[]WorkspaceEntry{with(wsFile("a", ""), func(e *WorkspaceEntry) { e.Mode = 0o100644 })}, "exceeds 7777"},
		"large file":            {[]WorkspaceEntry{with(wsFile("a", ""), func(e *WorkspaceEntry) { e.Size = MaxWorkspaceFile + 1 })}, "exceeds 67108864"},
		"in all too large":      {full, "exceeds 1073741824"},
		"sized directory":       {[]WorkspaceEntry{with(wsDir("a"), func(e *WorkspaceEntry) { e.Size = 1 })}, "its mode only"},
		"link with a mode":      {[]WorkspaceEntry{with(wsLink("a", "b"), func(e *WorkspaceEntry) { e.Mode = 0o777 })}, "its target and its length only"},
		"long link":             {[]WorkspaceEntry{wsLink("a", strings.Repeat("x", MaxLinkTarget+1))}, "1 to 4095 bytes"},
		"type":                  {[]WorkspaceEntry{with(wsFile("a", ""), func(e *WorkspaceEntry) { e.Type = 4 })}, "unknown entry type 4"},
		"text":                  {text, "exceed 10485760 bytes"},
		"too many":              {make([]WorkspaceEntry, MaxWorkspaceEntries+1), "exceeds 100000"},
	} {
		t.Run(name, func(t *testing.T) {
			m := WorkspaceManifest{Entries: tc.entries}
			require.ErrorContains(t, m.Validate(), tc.want)
			_, err := m.Digest()
			require.ErrorContains(t, err, tc.want)
		})
	}
	// Sixteen largest files are exactly the bound.
	require.NoError(t, WorkspaceManifest{Entries: full[:16]}.Validate())
}

// The largest manifest and the largest list have an encoding.
func TestLargestWorkspaceFits(t *testing.T) {
	entries := make([]WorkspaceEntry, 0, MaxWorkspaceEntries)
	var l Mutations
	for i := range MaxWorkspaceEntries {
		p := fmt.Sprintf("%06d%s", i, strings.Repeat("x", 98))
		entries = append(entries, wsFile(p, "content"))
		s := stateFile(p, 0o644)
		s.Size = MaxWorkspaceFile
		l = append(l, Mutation{Path: p[:52], Kind: MutationModified, Before: stateFile("content", 0o644), After: s})
	}
	m, err := NewWorkspaceManifest(entries)
	require.NoError(t, err)
	_, err = m.Digest()
	require.NoError(t, err)
	b, err := l.Marshal()
	require.NoError(t, err)
	_, err = ParseMutations(b)
	require.NoError(t, err)
	require.ErrorContains(t, append(l, Mutation{Path: "y"}).Validate(), "exceed 100000")
	for i := range l {
		l[i].Path += "yyy"
	}
	require.ErrorContains(t, l.Validate(), "exceed 5242880 bytes")
}

func TestWorkspaceLinks(t *testing.T) {
	for target, want := range map[string]LinkFault{
		"a": "", "d": "", "d/": "", "empty": "", "d/../a": "", "./a": "", "chain": "",
		"/a": LinkAbsolute, "../a": LinkEscapes, "d/../../a": LinkEscapes, "nothing": LinkDangling, "a/": LinkDangling,
		".git/config": LinkReserved, "d/.Git": LinkReserved, ".baildock": LinkReserved, "link": LinkCycle,
	} {
		m := workspaceOf(t, wsFile("a", ""), wsDir("d"), wsFile("d/x", ""), wsDir("empty"), wsLink("chain", "d/x"), wsLink("link", target))
		err := m.CheckLinks()
		if want == "" {
			require.NoError(t, err, target)
			continue
		}
		var link *LinkError
		require.ErrorAs(t, err, &link, target)
		require.Equal(t, want, link.Fault, target)
	}
}

// A workspace's source digest is that of the same tree as a snapshot has it.
func TestWorkspaceSource(t *testing.T) {
	run := wsFile("d/run", "x")
	run.Mode = 0o711
	m := workspaceOf(t, wsFile("a", "hi"), wsDir("d"), run, wsDir("empty"), wsLink("l", "a"))
	got, err := m.Source()
	require.NoError(t, err)
	exec := fileEntry("d/run", "x")
	exec.Mode = ModeExecutable
	require.Equal(t, Manifest{Entries: []ManifestEntry{fileEntry("a", "hi"), exec, linkEntry("l", "a")}}, got)
}

// req O2
func TestWritablePaths(t *testing.T) {
	for _, good := range []WritablePaths{{"."}, {"src"}, {"a/b", "a/c"}, {"src", "srcs"}, {"a-b", "a/b"}} {
		require.NoError(t, good.Validate(), "%q", good)
	}
	many := make(WritablePaths, MaxWritable+1)
	for i := range many {
		many[i] = fmt.Sprintf("%02d", i)
	}
	require.NoError(t, many[:MaxWritable].Validate())
	bad := 0
	for _, tc := range []struct {
		paths WritablePaths
		want  string
	}{
		{nil, "0 writable paths"},
		{many, "17 writable paths"},
		{WritablePaths{".", "src"}, "must stand alone"},
		{WritablePaths{"a", "."}, "must stand alone"},
		{WritablePaths{".", "."}, "must stand alone"},
		{WritablePaths{"a", "a"}, "repeated"},
		{WritablePaths{"b", "a"}, "not after"},
		{WritablePaths{"a", "a/b"}, "overlap"},
		{WritablePaths{"a", "a-b", "a/b"}, "overlap"},
		{WritablePaths{"A", "a"}, "overlap"},
		{WritablePaths{"A", "a/b"}, "overlap"},
		{WritablePaths{""}, "empty path"},
		{WritablePaths{"/a"}, "empty component"},
		{WritablePaths{"a/"}, "empty component"},
		{WritablePaths{"a//b"}, "empty component"},
		{WritablePaths{"./a"}, `component "."`},
		{WritablePaths{"../a"}, `component ".."`},
		{WritablePaths{"a/../b"}, `component ".."`},
		{WritablePaths{".git"}, "reserved"},
		{WritablePaths{".git/hooks"}, "reserved"},
		{WritablePaths{"a/.GIT"}, "reserved"},
		{WritablePaths{".baildock"}, "reserved"},
		{WritablePaths{".baildock-evidence"}, "reserved"},
		{WritablePaths{"git~1"}, "reserved"},
		{WritablePaths{"a,b"}, "can't be named"},
		{WritablePaths{"a:b"}, "can't be named"},
		{WritablePaths{"a\nb"}, "can't be named"},
		{WritablePaths{"a\xff"}, "can't be named"},
		{WritablePaths{"a\x00"}, "NUL"},
	} {
		require.ErrorContains(t, tc.paths.Validate(), tc.want, "%q", tc.paths)
		bad++
	}
	t.Logf("count: %d lists of writable paths refused", bad)

	changed := Mutations{
		{Path: "out", Kind: MutationModified, Before: stateDir(0o755), After: stateDir(0o700)},
		{Path: "out/a", Kind: MutationAdded, After: stateFile("x", 0o644)},
		{Path: "out2", Kind: MutationRenamed, From: "out/b", Before: stateFile("y", 0o644), After: stateFile("y", 0o644)},
		{Path: "src", Kind: MutationDeleted, Before: stateDir(0o755)},
	}
	require.Equal(t, PathList{"out2", "src"}, WritablePaths{"out"}.Outside(changed))
	require.Equal(t, PathList{"src"}, WritablePaths{"out", "src"}.Outside(changed[3:]), "a mount can't be deleted")
	require.Empty(t, WritablePaths{"."}.Outside(changed))
}
