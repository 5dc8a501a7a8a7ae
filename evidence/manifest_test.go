package evidence

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func fileEntry(path, content string) ManifestEntry {
	return ManifestEntry{Path: path, Mode: ModeFile, Size: uint64(len(content)), SHA256: Sum[contentMeaning]([]byte(content))}
}

func linkEntry(path, target string) ManifestEntry {
	return ManifestEntry{Path: path, Mode: ModeLink, Size: uint64(len(target)), Target: target}
}

// Golden vector of 2026-11-29, item by item. Old bytes are kept for ever.
var manifestGolden = strings.Join([]string{
	"82", // array(2)
	"74" + "6261696c646f636b2e6d616e69666573742e7631", // text(20) "baildock.manifest.v1"
	"83",                                                                                                             // array(3), sorted by path
	"84", "42" + "612d", "1981a4", "02", "5820" + "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4", // "a-", 0o100644, 2 bytes, SHA-256("hi")
	"84", "43" + "612fff", "1981ed", "00", "5820" + "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", // "a/\xff", 0o100755, empty
	"84", "41" + "6c", "19a000", "02", "42" + "612d", // "l", 0o120000, link to "a-"
}, "")

const manifestGoldenDigest = "sha256:1e51b71d065a9621e347bcfc49dcb8d4ffe22623c5bb18075f1a5a27f275cdea"

func goldenManifest() Manifest {
	exec := fileEntry("a/\xff", "")
	exec.Mode = ModeExecutable
	return Manifest{Entries: []ManifestEntry{fileEntry("a-", "hi"), exec, linkEntry("l", "a-")}}
}

// req B5
func TestManifestGolden(t *testing.T) {
	want, err := hex.DecodeString(manifestGolden)
	require.NoError(t, err)
	got, err := goldenManifest().Marshal()
	require.NoError(t, err)
	require.Equal(t, manifestGolden, hex.EncodeToString(got))
	digest, err := goldenManifest().Digest()
	require.NoError(t, err)
	require.Equal(t, manifestGoldenDigest, digest.String())
	back, err := UnmarshalManifest(want)
	require.NoError(t, err)
	require.Equal(t, goldenManifest(), back)
	require.EqualValues(t, 2, back.Bytes())
}

// Every flipped bit of the golden bytes fails to decode or is another manifest.
func TestManifestFlippedBits(t *testing.T) {
	want, err := goldenManifest().Marshal()
	require.NoError(t, err)
	for i := range len(want) * 8 {
		b := bytes.Clone(want)
		b[i/8] ^= 1 << (i % 8)
		if m, err := UnmarshalManifest(b); err == nil {
			require.NotEqual(t, goldenManifest(), m, "bit %d", i)
			again, err := m.Marshal()
			require.NoError(t, err)
			require.Equal(t, b, again)
		}
	}
}

func TestManifestRefuses(t *testing.T) {
	big := fileEntry("a", "")
	big.Size = MaxManifestFile + 1
	fileWithTarget := fileEntry("a", "")
	fileWithTarget.Target = "b"
	linkWithDigest := linkEntry("a", "b")
	linkWithDigest.SHA256[0] = 1
	linkWithSize := linkEntry("a", "b")
	linkWithSize.Size = 2
	mode := fileEntry("a", "")
	mode.Mode = 0o100600
	var text []ManifestEntry
	for i := range 3000 {
		text = append(text, linkEntry(fmt.Sprintf("%05d", i), strings.Repeat("x", MaxLinkTarget)))
	}
	for name, tc := range map[string]struct {
		entries []ManifestEntry
		want    string
	}{
		"unsorted":         {[]ManifestEntry{fileEntry("b", ""), fileEntry("a", "")}, `path "a" is not after "b"`},
		"twice":            {[]ManifestEntry{fileEntry("a", ""), fileEntry("a", "")}, "is not after"},
		"file in a file":   {[]ManifestEntry{fileEntry("a", ""), fileEntry("a-", ""), fileEntry("a/b/c", "")}, `"a" is a file and the directory of "a/b/c"`},
		"file in a link":   {[]ManifestEntry{linkEntry("a", "."), fileEntry("a/b", "")}, `"a" is a file and the directory`},
		"empty path":       {[]ManifestEntry{fileEntry("", "")}, "empty path"},
		"absolute":         {[]ManifestEntry{fileEntry("/a", "")}, "empty component"},
		"trailing slash":   {[]ManifestEntry{fileEntry("a/", "")}, "empty component"},
		"dot":              {[]ManifestEntry{fileEntry("a/./b", "")}, `component "."`},
		"dot dot":          {[]ManifestEntry{fileEntry("../b", "")}, `component ".."`},
		"NUL":              {[]ManifestEntry{fileEntry("a\x00b", "")}, "NUL"},
		"long path":        {[]ManifestEntry{fileEntry(strings.Repeat("a/", MaxPath/2)+"b", "")}, "exceeds 2048"},
		"long component":   {[]ManifestEntry{fileEntry(strings.Repeat("a", 256), "")}, "exceeds 255"},
		"deep":             {[]ManifestEntry{fileEntry(strings.Repeat("a/", 128)+"b", "")}, "more than 128 components"},
		"big file":         {[]ManifestEntry{big}, "exceeds 67108864"},
		"file with target": {[]ManifestEntry{fileWithTarget}, "no link target"},
		"link with digest": {[]ManifestEntry{linkWithDigest}, "its target and its length only"},
		"link with size":   {[]ManifestEntry{linkWithSize}, "its target and its length only"},
		"empty link":       {[]ManifestEntry{linkEntry("a", "")}, "link target is 1 to"},
		"NUL in a link":    {[]ManifestEntry{linkEntry("a", "b\x00")}, "link target is 1 to"},
		"long link":        {[]ManifestEntry{linkEntry("a", strings.Repeat("x", MaxLinkTarget+1))}, "link target is 1 to"},
		"mode":             {[]ManifestEntry{mode}, "unknown mode 100600"},
		"text":             {text, "exceed 10485760 bytes"},
		"too many":         {make([]ManifestEntry, MaxManifestEntries+1), "exceeds 100000"},
	} {
		t.Run(name, func(t *testing.T) {
			m := Manifest{Entries: tc.entries}
			require.ErrorContains(t, m.Validate(), tc.want)
			_, err := m.Marshal()
			require.ErrorContains(t, err, tc.want)
			_, err = m.Digest()
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestUnmarshalManifestRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ hex, want string }{
		"empty":            {"", "decode"},
		"other domain":     {"8261618" + "0", `domain "a"`},
		"trailing bytes":   {manifestGolden + "00", "decode"},
		"non-minimal size": {strings.Replace(manifestGolden, "1981a402", "1981a41802", 1), "canonical"},
		"text path":        {strings.Replace(manifestGolden, "42612d1981a4", "62612d1981a4", 1), "decode"},
		"null entries":     {manifestGolden[:2+42] + "f6", "canonical"},
		"short digest":     {manifestGolden[:2+42] + "81" + "84" + "4161" + "1981a4" + "00" + "4100", "digest of 1 bytes"},
		"unsorted":         {manifestGolden[:2+42] + "82" + "84416219a000014161" + "84416119a000014161", "is not after"},
		"five items":       {manifestGolden[:2+42] + "81" + "85416119a00001416100", "decode"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := hex.DecodeString(tc.hex)
			require.NoError(t, err)
			_, err = UnmarshalManifest(b)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// The order entries arrive in doesn't matter.
func TestNewManifestSorts(t *testing.T) {
	entries := goldenManifest().Entries
	for range 20 {
		shuffled := slices.Clone(entries)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		m, err := NewManifest(shuffled)
		require.NoError(t, err)
		require.Equal(t, goldenManifest(), m)
	}
}

// The largest manifest of a workspace still fits one canonical value.
func TestLargestManifestFits(t *testing.T) {
	entries := make([]ManifestEntry, MaxManifestEntries)
	pad := strings.Repeat("x", MaxManifestText/MaxManifestEntries-7)
	for i := range entries {
		entries[i] = ManifestEntry{Path: fmt.Sprintf("%06d%s", i, pad), Mode: ModeFile, Size: MaxManifestFile}
	}
	b, err := Manifest{Entries: entries}.Marshal()
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), MaxValue)
	_, err = UnmarshalManifest(b)
	require.NoError(t, err)
}

// req B4
func TestCheckLinks(t *testing.T) {
	chain := func(n int) []ManifestEntry {
		entries := []ManifestEntry{fileEntry("end", "")}
		for i := range n {
			target := "end"
			if i > 0 {
				target = fmt.Sprintf("l%03d", i-1)
			}
			entries = append(entries, linkEntry(fmt.Sprintf("l%03d", i), target))
		}
		return entries
	}
	for name, tc := range map[string]struct {
		entries []ManifestEntry
		fault   LinkFault
	}{
		"to a file":                     {[]ManifestEntry{fileEntry("a", ""), linkEntry("l", "a")}, ""},
		"to a file below":               {[]ManifestEntry{fileEntry("d/e/a", ""), linkEntry("l", "d/./e//a")}, ""},
		"to a file above":               {[]ManifestEntry{fileEntry("a", ""), linkEntry("d/e/l", "../../a")}, ""},
		"to a directory":                {[]ManifestEntry{fileEntry("d/a", ""), linkEntry("l", "d/")}, ""},
		"to the root":                   {[]ManifestEntry{linkEntry("d/l", "..")}, ""},
		"to its directory":              {[]ManifestEntry{linkEntry("d/l", ".")}, ""},
		"through a link to a directory": {[]ManifestEntry{fileEntry("d/a", ""), linkEntry("k", "d"), linkEntry("l", "k/a")}, ""},
		"up after a link, as the kernel does": {[]ManifestEntry{fileEntry("x/a", ""), fileEntry("x/y/b", ""),
			linkEntry("k", "x/y"), linkEntry("l", "k/../a")}, ""},
		"not up from the link's own place": {[]ManifestEntry{fileEntry("a", ""), fileEntry("x/y/b", ""),
			linkEntry("k", "x/y"), linkEntry("l", "k/../a")}, LinkDangling},
		"absolute":                     {[]ManifestEntry{linkEntry("l", "/etc/passwd")}, LinkAbsolute},
		"absolute through another":     {[]ManifestEntry{linkEntry("k", "l/x"), linkEntry("l", "/etc")}, LinkAbsolute},
		"escaping":                     {[]ManifestEntry{linkEntry("l", "../a")}, LinkEscapes},
		"escaping and back":            {[]ManifestEntry{fileEntry("d/a", ""), linkEntry("d/l", "../../src/d/a")}, LinkEscapes},
		"escaping through another":     {[]ManifestEntry{fileEntry("d/e/a", ""), linkEntry("d/k", ".."), linkEntry("l", "d/k/../x")}, LinkEscapes},
		"dangling":                     {[]ManifestEntry{linkEntry("l", "nowhere")}, LinkDangling},
		"a file used as a directory":   {[]ManifestEntry{fileEntry("a", ""), linkEntry("l", "a/b")}, LinkDangling},
		"a file with a trailing slash": {[]ManifestEntry{fileEntry("a", ""), linkEntry("l", "a/")}, LinkDangling},
		"a slash through a link":       {[]ManifestEntry{fileEntry("a", ""), linkEntry("k", "a"), linkEntry("l", "k/")}, LinkDangling},
		"to itself":                    {[]ManifestEntry{linkEntry("l", "l")}, LinkCycle},
		"two to each other":            {[]ManifestEntry{linkEntry("k", "l"), linkEntry("l", "k")}, LinkCycle},
		"into itself":                  {[]ManifestEntry{linkEntry("l", "l/x")}, LinkCycle},
		"40 links":                     {chain(40), ""},
		"41 links":                     {chain(41), LinkCycle},
		"into .git":                    {[]ManifestEntry{linkEntry("l", ".git/config")}, LinkReserved},
		"into .GIT from below":         {[]ManifestEntry{linkEntry("d/l", "../.GIT")}, LinkReserved},
		"into .baildock":               {[]ManifestEntry{linkEntry("l", ".baildock-x/ledger.db")}, LinkReserved},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := NewManifest(tc.entries)
			require.NoError(t, err)
			err = m.CheckLinks()
			if tc.fault == "" {
				require.NoError(t, err)
				return
			}
			var link *LinkError
			require.ErrorAs(t, err, &link)
			require.Equal(t, tc.fault, link.Fault)
			require.ErrorContains(t, err, string(tc.fault))
		})
	}
}

// A manifest made to be slow to check is refused instead.
func TestCheckLinksIsBounded(t *testing.T) {
	entries := []ManifestEntry{fileEntry("d/a", "")}
	slow := strings.Repeat("d/../", 400) + "d"
	for i := range 2000 {
		target := slow
		if i > 0 && i%39 != 0 {
			target = fmt.Sprintf("%sk%05d", strings.Repeat("d/../", 400), i-1)
		}
		entries = append(entries, linkEntry(fmt.Sprintf("k%05d", i), target))
	}
	m, err := NewManifest(entries)
	require.NoError(t, err)
	var link *LinkError
	require.ErrorAs(t, m.CheckLinks(), &link)
	require.Equal(t, LinkCycle, link.Fault)
}

// The kernel is the judge: a link is accepted exactly when it resolves inside a real tree.
func TestCheckLinksAgreesWithTheKernel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "b", "d", "e", "l", "k", "..", ".", ""}
	accepted, refused := 0, 0
	for range 400 {
		entries := []ManifestEntry{fileEntry("a", ""), fileEntry("d/b", ""), fileEntry("d/e/a", "")}
		for _, path := range []string{"l", "k", "d/l", "d/e/k"} {
			if rng.IntN(2) == 0 {
				continue
			}
			var parts []string
			for range 1 + rng.IntN(3) {
				parts = append(parts, pieces[rng.IntN(len(pieces))])
			}
			if target := strings.TrimLeft(strings.Join(parts, "/"), "/"); target != "" {
				entries = append(entries, linkEntry(path, target))
			}
		}
		m, err := NewManifest(entries)
		require.NoError(t, err)
		outer, err := filepath.EvalSymlinks(t.TempDir())
		require.NoError(t, err)
		root := filepath.Join(outer, "root")
		for _, e := range m.Entries {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, e.Path)), 0o755))
			if e.Mode == ModeLink {
				require.NoError(t, os.Symlink(e.Target, filepath.Join(root, e.Path)))
			} else {
				require.NoError(t, os.WriteFile(filepath.Join(root, e.Path), nil, 0o644))
			}
		}
		inside := true
		for _, e := range m.Entries {
			if e.Mode != ModeLink {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, e.Path)); err != nil {
				inside = false
				continue
			}
			real, err := filepath.EvalSymlinks(filepath.Join(root, e.Path))
			require.NoError(t, err)
			if real != root && !strings.HasPrefix(real, root+"/") {
				inside = false
			}
		}
		err = m.CheckLinks()
		if inside {
			require.NoError(t, err, "%+v", m.Entries)
			accepted++
		} else {
			require.Error(t, err, "%+v", m.Entries)
			refused++
		}
	}
	require.Greater(t, accepted, 20)
	require.Greater(t, refused, 20)
}

// req B7
func TestReservedName(t *testing.T) {
	for _, name := range []string{
		".git", ".GIT", ".Git", "git~1", "GIT~1", ".git.", ".git ", ".git. .", ".git::$INDEX_ALLOCATION", ".git:x",
		`.git\config`, `a\.git`, ".g\u200cit", "\ufeff.git", ".gi\u206ft", ".git\u200e ", "git~1 .",
		".baildock", ".BAILDOCK", ".Baildock-home", ".baildock.d", ".bail\u200ddock", "BAILDO~1", "baildo~12", `x\.baildock`, ".baildoc\u212a",
	} {
		require.True(t, ReservedName(name), "%q", name)
	}
	for _, name := range []string{
		"", "git", ".gitignore", ".gitmodules", ".gitattributes", ".github", "a.git", "git~2", "git~10", ".gi", "baildock", "baildo~", "baildo~x",
		"baildocks", "x.baildock", ".bail", ".git\xff", ".g it",
	} {
		require.False(t, ReservedName(name), "%q", name)
	}
}

func FuzzUnmarshalManifest(f *testing.F) {
	seeds, err := filepath.Glob("testdata/fuzz/FuzzUnmarshalManifest/*")
	require.NoError(f, err)
	require.GreaterOrEqual(f, len(seeds), 4)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := UnmarshalManifest(b)
		if err != nil {
			return
		}
		again, err := m.Marshal()
		require.NoError(t, err)
		require.Equal(t, b, again)
		var link *LinkError
		if err := m.CheckLinks(); err != nil {
			require.ErrorAs(t, err, &link)
		}
	})
}
