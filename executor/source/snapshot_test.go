package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// readBack describes a snapshot as it lies on disk.
func readBack(t *testing.T, dir string) evidence.Manifest {
	var entries []evidence.ManifestEntry
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		switch {
		case d.IsDir():
			require.Equal(t, fs.FileMode(0o555), info.Mode().Perm(), path)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			require.NoError(t, err)
			entries = append(entries, evidence.ManifestEntry{Path: rel, Mode: evidence.ModeLink, Size: uint64(len(target)), Target: target})
		default:
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			e := evidence.ManifestEntry{Path: rel, Mode: evidence.ModeFile, Size: uint64(len(b)), SHA256: sha256.Sum256(b)}
			if info.Mode() == 0o555 {
				e.Mode = evidence.ModeExecutable
			} else {
				require.Equal(t, fs.FileMode(0o444), info.Mode(), path)
			}
			entries = append(entries, e)
		}
		return nil
	}))
	m, err := evidence.NewManifest(entries)
	require.NoError(t, err)
	return m
}

// randomTree makes up content: files, executables, links, odd names.
func randomTree(rng *rand.Rand) map[string]string {
	content := map[string]string{"a": "always"}
	names := []string{"a", "b", "a-", "a.b", "z", "caf\xe9", "ü", "sp ace", "x\ny", "-", "...", "A"}
	for range rng.IntN(30) {
		var parts []string
		for range 1 + rng.IntN(4) {
			parts = append(parts, names[rng.IntN(len(names))])
		}
		path := strings.Join(parts, "/")
		free := true
		for other := range content {
			free = free && other != path && !strings.HasPrefix(other, path+"/") && !strings.HasPrefix(path, other+"/")
		}
		if !free {
			continue
		}
		switch rng.IntN(4) {
		case 0:
			content[path] = "#!" + strings.Repeat("x", rng.IntN(100))
		case 1:
			content[path] = "-> " + strings.Repeat("../", len(parts)-1) + "a"
		default:
			content[path] = strings.Repeat(path, rng.IntN(2000))
		}
	}
	return content
}

// req B1, req B2, req B5: equal content gives equal digests and equal snapshots, from a commit,
// from a directory and from a snapshot itself.
func TestEqualContentEqualDigest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	r := newGitRepo(t)
	seen := map[evidence.ManifestDigest]bool{}
	for range 30 {
		content := randomTree(rng)
		dir := directoryOf(t, content)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "empty", "directories"), 0o700))
		require.NoError(t, os.Chmod(filepath.Join(dir, "a"), 0o602|fs.ModeSetuid))
		commit := r.subject(r.commitFiles(content))
		want := digestOf(t, commit)
		seen[want] = true
		for _, s := range []Subject{commit, directorySubject(dir)} {
			require.Equal(t, want, digestOf(t, s))
			snap, err := Materialize(context.Background(), Request{Subject: s, Parent: privateDir(t), Name: "snapshot-a1-1"})
			require.NoError(t, err)
			require.Equal(t, snap.Manifest, readBack(t, snap.Dir))
			got, err := snap.Manifest.Digest()
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, want, digestOf(t, directorySubject(snap.Dir)))
			require.NoError(t, snap.Remove())
			require.NoDirExists(t, snap.Dir)
		}
	}
	require.Greater(t, len(seen), 25)
}

// req B1
func TestSnapshotPlace(t *testing.T) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	parent := privateDir(t)
	s := directorySubject(directoryOf(t, map[string]string{"d/f": "x", "d/run": "#!x"}))
	names := map[string]bool{}
	for range 3 {
		snap, err := Materialize(context.Background(), Request{Subject: s, Parent: parent, Name: "snapshot-a.b_c-1"})
		require.NoError(t, err)
		require.Equal(t, parent, filepath.Dir(snap.Dir))
		require.Regexp(t, regexp.MustCompile(`^snapshot-a\.b_c-1-[0-9a-f]{32}$`), filepath.Base(snap.Dir))
		names[snap.Dir] = true
		readBack(t, snap.Dir) // checks every mode, whatever the umask
		readableAs(t, filepath.Join(snap.Dir, "d", "f"))
	}
	require.Len(t, names, 3)
}

// readableAs checks the mode bits the container's user, which owns nothing here, depends on.
func readableAs(t *testing.T, path string) {
	var st unix.Stat_t
	require.NoError(t, unix.Stat(path, &st))
	require.NotEqual(t, uint32(65532), st.Uid)
	require.Equal(t, uint32(0o004), st.Mode&0o006)
}

// req B1
func TestParentRefused(t *testing.T) {
	s := directorySubject(directoryOf(t, map[string]string{"f": "x"}))
	base := realTemp(t)
	private := filepath.Join(base, "private")
	require.NoError(t, os.Mkdir(private, 0o700))
	for name, tc := range map[string]struct {
		parent func() string
		code   Code
	}{
		"missing":  {func() string { return filepath.Join(base, "none") }, CodeParent},
		"relative": {func() string { return "execution" }, CodeParent},
		"unclean":  {func() string { return private + "/../private" }, CodeParent},
		"a link": {func() string {
			require.NoError(t, os.Symlink(private, filepath.Join(base, "link")))
			return filepath.Join(base, "link")
		}, CodeParent},
		"a file": {func() string {
			require.NoError(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o700))
			return filepath.Join(base, "file")
		}, CodeParent},
		"readable by the group": {func() string { return withMode(t, base, "group", 0o750) }, CodeParent},
		"entered by others":     {func() string { return withMode(t, base, "others", 0o701) }, CodeParent},
		"sticky":                {func() string { return withMode(t, base, "sticky", 0o700|fs.ModeSticky) }, CodeParent},
		"not writable":          {func() string { return withMode(t, base, "frozen", 0o500) }, CodeParent},
		"another owner": {func() string {
			dir := withMode(t, base, "other", 0o700)
			require.NoError(t, os.Chown(dir, 65532, 65532))
			return dir
		}, CodeParent},
		"comma":         {func() string { return withMode(t, base, "a,b", 0o700) }, CodeDelimiter},
		"colon":         {func() string { return withMode(t, base, "a:b", 0o700) }, CodeDelimiter},
		"newline":       {func() string { return withMode(t, base, "a\nb", 0o700) }, CodeDelimiter},
		"NUL":           {func() string { return private + "\x00" }, CodeDelimiter},
		"invalid UTF-8": {func() string { return withMode(t, base, "a\xffb", 0o700) }, CodeDelimiter},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Materialize(context.Background(), Request{Subject: s, Parent: tc.parent(), Name: "s"})
			requireCode(t, err, tc.code)
		})
	}
	for _, name := range []string{"", "a,b", "a:b", "a/b", "..", ".a", "-a", "A", "a\n", "a\x00", strings.Repeat("a", 129)} {
		_, err := Materialize(context.Background(), Request{Subject: s, Parent: private, Name: name})
		requireCode(t, err, CodeDelimiter)
	}
	left, err := os.ReadDir(private)
	require.NoError(t, err)
	require.Empty(t, left)
}

func withMode(t *testing.T, base, name string, mode fs.FileMode) string {
	dir := filepath.Join(base, name)
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chmod(dir, mode))
	return dir
}

// req B1: an existing destination is refused and left alone, a planted link too.
func TestDestinationExists(t *testing.T) {
	s := directorySubject(directoryOf(t, map[string]string{"f": "x"}))
	outside := realTemp(t)
	fixed := func() (string, error) { return "0", nil }
	for name, plant := range map[string]func(path string) error{
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"file":      func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"link":      func(path string) error { return os.Symlink(outside, path) },
	} {
		t.Run(name, func(t *testing.T) {
			parent := privateDir(t)
			require.NoError(t, plant(filepath.Join(parent, "s-0")))
			before, err := os.Lstat(filepath.Join(parent, "s-0"))
			require.NoError(t, err)
			_, err = materialize(context.Background(), Request{Subject: s, Parent: parent, Name: "s"}, fixed)
			requireCode(t, err, CodeExists)
			after, err := os.Lstat(filepath.Join(parent, "s-0"))
			require.NoError(t, err)
			require.True(t, os.SameFile(before, after))
			left, err := os.ReadDir(outside)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
	_, err := materialize(context.Background(), Request{Subject: s, Parent: privateDir(t), Name: "s"}, func() (string, error) { return "", errors.New("no randomness") })
	require.ErrorContains(t, err, "no randomness")
}

// req B6: a snapshot nobody can write is removed; nothing outside is touched.
func TestRemove(t *testing.T) {
	parent := privateDir(t)
	outside := directoryOf(t, map[string]string{"keep/f": "x"})
	require.NoError(t, os.Chmod(filepath.Join(outside, "keep"), 0o555))
	snap, err := Materialize(context.Background(), Request{
		Subject: directorySubject(directoryOf(t, map[string]string{"d/e/f": "x", "d/l": "-> e", "run": "#!"})), Parent: parent, Name: "s",
	})
	require.NoError(t, err)
	// Links a stranger might have planted.
	require.NoError(t, os.Chmod(filepath.Join(snap.Dir, "d"), 0o755))
	require.NoError(t, os.Symlink(outside, filepath.Join(snap.Dir, "d", "out")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "keep"), filepath.Join(snap.Dir, "d", "keep")))
	require.NoError(t, os.Chmod(filepath.Join(snap.Dir, "d"), 0o555))
	require.NoError(t, snap.Remove())
	require.NoDirExists(t, snap.Dir)
	require.FileExists(t, filepath.Join(outside, "keep", "f"))
	info, err := os.Stat(filepath.Join(outside, "keep"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o555), info.Mode().Perm())
	require.NoError(t, snap.Remove(), "again")
	require.NoError(t, Remove(filepath.Join(parent, "none", "none")))

	link := filepath.Join(parent, "link")
	require.NoError(t, os.Symlink(outside, link))
	require.ErrorContains(t, Remove(link), "not a directory")
	require.FileExists(t, filepath.Join(outside, "keep", "f"))
	linkedParent := filepath.Join(realTemp(t), "parent")
	require.NoError(t, os.Symlink(outside, linkedParent))
	require.Error(t, Remove(filepath.Join(linkedParent, "keep")))
	require.FileExists(t, filepath.Join(outside, "keep", "f"))
	for _, dir := range []string{"", "relative", "/"} {
		require.Error(t, Remove(dir))
	}
}

// A mount left in a snapshot is never emptied. Needs the right to mount.
func TestRemoveStopsAtMounts(t *testing.T) {
	snap, err := Materialize(context.Background(), Request{
		Subject: directorySubject(directoryOf(t, map[string]string{"d/f": "x"})), Parent: privateDir(t), Name: "s",
	})
	require.NoError(t, err)
	mounted := filepath.Join(snap.Dir, "d")
	require.NoError(t, unix.Mount("baildock-test", mounted, "tmpfs", 0, "size=64k"))
	defer unix.Unmount(mounted, unix.MNT_DETACH) //nolint:errcheck // unmounted below
	require.NoError(t, os.WriteFile(filepath.Join(mounted, "keep"), []byte("x"), 0o600))
	require.ErrorContains(t, snap.Remove(), "another filesystem")
	require.FileExists(t, filepath.Join(mounted, "keep"))
	require.NoError(t, unix.Unmount(mounted, 0))
	require.NoError(t, snap.Remove())
}

// trap is a context that fails once, after doing something.
type trap struct {
	context.Context
	spring func() bool
}

func (c trap) Err() error {
	if c.spring() {
		return context.Canceled
	}
	return nil
}

// An unfinished snapshot that can't be removed is named, with why it failed and why it's left.
func TestLeftover(t *testing.T) {
	parent := privateDir(t)
	mounted := filepath.Join(parent, "s-0", "d")
	ctx := trap{context.Background(), func() bool {
		if _, err := os.Stat(mounted); err != nil {
			return false
		}
		require.NoError(t, unix.Mount("baildock-test", mounted, "tmpfs", 0, "size=64k"))
		return true
	}}
	s := directorySubject(directoryOf(t, map[string]string{"d/f": "x", "e": "y"}))
	_, err := materialize(ctx, Request{Subject: s, Parent: parent, Name: "s"}, func() (string, error) { return "0", nil })
	defer unix.Unmount(mounted, unix.MNT_DETACH) //nolint:errcheck // unmounted below
	var left *LeftoverError
	require.ErrorAs(t, err, &left)
	require.Equal(t, filepath.Join(parent, "s-0"), left.Dir)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, left.Remove, "another filesystem")
	require.NotContains(t, left.Error(), parent)
	require.NoError(t, unix.Unmount(mounted, 0))
	require.NoError(t, Remove(left.Dir))
	require.NoDirExists(t, left.Dir)
}

// U4's source, 200 files and 2 MB: copying, hashing and freezing it beside writing the same files
// and nothing else.
func BenchmarkMaterialize(b *testing.B) {
	content := map[string]string{}
	for i := range 200 {
		content[fmt.Sprintf("d%d/e%d/f%d", i%10, i%20, i)] = strings.Repeat(fmt.Sprintf("line %d\n", i), 1000)
	}
	base := realTemp(b)
	dir := filepath.Join(base, "source")
	writeFiles(b, dir, content)
	parent := filepath.Join(base, "execution")
	require.NoError(b, os.Mkdir(parent, 0o700))
	runGit(b, dir, "init", "-q")
	runGit(b, dir, "add", "-A")
	runGit(b, dir, "commit", "-q", "-m", "1")
	loose := commitSubject(dir, runGit(b, dir, "rev-parse", "HEAD"))
	runGit(b, base, "clone", "-q", "--bare", "file://"+dir, "packed")
	packed := commitSubject(filepath.Join(base, "packed"), loose.Revision)
	var baseline float64
	b.Run("plain", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			to := filepath.Join(base, fmt.Sprint("plain", i))
			writeFiles(b, to, content)
			b.StopTimer()
			require.NoError(b, os.RemoveAll(to))
			b.StartTimer()
		}
		baseline = float64(b.Elapsed()) / float64(b.N)
	})
	for name, s := range map[string]Subject{"directory": directorySubject(dir), "loose": loose, "packed": packed} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				snap, err := Materialize(context.Background(), Request{Subject: s, Parent: parent, Name: "s"})
				require.NoError(b, err)
				b.StopTimer()
				require.NoError(b, snap.Remove())
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/baseline, "x-plain")
		})
	}
}
