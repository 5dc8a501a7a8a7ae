package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// hostFiles writes files; a value that starts with "#!" is executable.
func hostFiles(t *testing.T, content map[string]string) string {
	dir := t.TempDir()
	for name, text := range content {
		full := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o700))
		mode := fs.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		require.NoError(t, os.WriteFile(full, []byte(text), mode))
	}
	return dir
}

func built(t *testing.T, name string, files ...ArchiveFile) (*Archive, []byte) {
	t.Helper()
	a, err := buildArchive(context.Background(), name, files, "amd64")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, a.Write(context.Background(), &b))
	require.EqualValues(t, b.Len(), a.Size())
	return a, b.Bytes()
}

// Golden values of 2026-11-29: an image made of these files has this ID for ever.
const (
	goldenImageID       = "sha256:7b39331040dc08bac1368c61ec6ed10072736b5e36237d13a78181d40a047ac9"
	goldenArchiveSHA256 = "647adcd4468fbc75da9efbe2dc47b4cd954762d742c2781c201a1d1c051d9f51"
)

func goldenFiles(t *testing.T) []ArchiveFile {
	dir := hostFiles(t, map[string]string{
		"tool": "#!/bin/sh\necho hi\n", "data/a": "1", "data/sub/" + strings.Repeat("n", 120): "long", "data/sub/run": "#!x", "data/ü": "utf-8",
	})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data", "empty"), 0o700))
	return []ArchiveFile{{filepath.Join(dir, "tool"), "/bin/tool"}, {filepath.Join(dir, "data"), "/usr/share/data"}}
}

// The same files give the same archive and the same ID, whoever owns them, whenever they were
// written and in whatever order they are named.
func TestArchiveIsDeterministic(t *testing.T) {
	files := goldenFiles(t)
	a, b := built(t, "golden", files...)
	sum := sha256.Sum256(b)
	require.Equal(t, goldenImageID, a.ID().String())
	require.Equal(t, goldenArchiveSHA256, hex.EncodeToString(sum[:]))

	other := goldenFiles(t)
	require.NoError(t, filepath.WalkDir(filepath.Dir(other[0].Host), func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		require.NoError(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(2, 0)))
		return os.Chown(path, os.Getuid(), os.Getgid())
	}))
	require.NoError(t, os.Chmod(other[0].Host, 0o777|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
	require.NoError(t, os.Chmod(filepath.Join(other[1].Host, "a"), 0o666))
	require.NoError(t, os.Chmod(other[1].Host, 0o777|fs.ModeSticky))
	_, again := built(t, "golden", other[1], other[0])
	require.Equal(t, b, again)

	renamed, _ := built(t, "other:1", files...)
	require.Equal(t, a.ID(), renamed.ID(), "the name isn't part of the image")
	arm, err := buildArchive(context.Background(), "golden", files, "arm64")
	require.NoError(t, err)
	require.NotEqual(t, a.ID(), arm.ID())
}

type tarEntry struct {
	header tar.Header
	body   []byte
}

func untar(t *testing.T, b []byte) (entries []tarEntry) {
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return entries
		}
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		entries = append(entries, tarEntry{*h, body})
	}
}

func TestArchiveForm(t *testing.T) {
	a, b := built(t, "example.org:5000/team/tool:1.2", goldenFiles(t)...)
	require.Equal(t, "example.org:5000/team/tool:1.2", a.Name())
	outer := untar(t, b)
	require.Len(t, outer, 3)
	layer, config, manifest := outer[0], outer[1], outer[2]

	diffID := sha256.Sum256(layer.body)
	require.Equal(t, hex.EncodeToString(diffID[:])+"/layer.tar", layer.header.Name)
	require.JSONEq(t, `{"architecture":"amd64","config":{},"created":"1970-01-01T00:00:00Z",
		"history":[{"created":"1970-01-01T00:00:00Z","created_by":"baildock image make"}],
		"os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:`+hex.EncodeToString(diffID[:])+`"]}}`, string(config.body))
	id := sha256.Sum256(config.body)
	require.Equal(t, "sha256:"+hex.EncodeToString(id[:]), a.ID().String())
	require.Equal(t, hex.EncodeToString(id[:])+".json", config.header.Name)
	require.Equal(t, "manifest.json", manifest.header.Name)
	var m []archiveManifest
	require.NoError(t, json.Unmarshal(manifest.body, &m))
	require.Equal(t, []archiveManifest{{Config: config.header.Name, RepoTags: []string{a.Name()}, Layers: []string{layer.header.Name}}}, m)

	var got []string
	for _, e := range append(untar(t, layer.body), outer...) {
		h := e.header
		require.Zero(t, h.Uid+h.Gid)
		require.Empty(t, h.Uname+h.Gname)
		require.True(t, h.ModTime.Equal(time.Unix(0, 0)) && h.AccessTime.IsZero() && h.ChangeTime.IsZero(), "%+v", h)
	}
	for _, e := range untar(t, layer.body) {
		got = append(got, fmt.Sprintf("%c %04o %s %d", e.header.Typeflag, e.header.Mode, e.header.Name, len(e.body)))
	}
	require.Equal(t, []string{
		"5 0755 bin/ 0", "0 0755 bin/tool 18", "5 0755 usr/ 0", "5 0755 usr/share/ 0", "5 0755 usr/share/data/ 0", "0 0644 usr/share/data/a 1",
		"5 0755 usr/share/data/empty/ 0", "5 0755 usr/share/data/sub/ 0", "0 0644 usr/share/data/sub/" + strings.Repeat("n", 120) + " 4",
		"0 0755 usr/share/data/sub/run 3", "0 0644 usr/share/data/ü 5",
	}, got)
}

func TestArchiveRootAndMerging(t *testing.T) {
	root := hostFiles(t, map[string]string{"bin/a": "#!a", "etc/x": "1"})
	more := hostFiles(t, map[string]string{"b": "#!b"})
	_, b := built(t, "merged", ArchiveFile{root, "/"}, ArchiveFile{more, "/bin"})
	var names []string
	for _, e := range untar(t, untar(t, b)[0].body) {
		names = append(names, e.header.Name)
	}
	require.Equal(t, []string{"bin/", "bin/a", "bin/b", "etc/", "etc/x"}, names)
}

func requireArchiveCode(t *testing.T, err error, code ArchiveCode) *ArchiveRefusedError {
	t.Helper()
	var refused *ArchiveRefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, code, refused.Code, "%v", err)
	require.NotEmpty(t, refused.Detail)
	return refused
}

func TestArchiveNames(t *testing.T) {
	for name, want := range map[string]string{
		"tool": "tool:latest", "tool:1": "tool:1", "team/tool": "team/tool:latest", "docker.io/library/tool": "tool:latest",
		"example.org/tool:V1": "example.org/tool:V1", "localhost:5000/tool": "localhost:5000/tool:latest",
	} {
		got, err := archiveName(name)
		require.NoError(t, err, name)
		require.Equal(t, want, got)
	}
	for _, name := range []string{
		"", "Tool", "a b", "-x", "tool:", ":1", "tool:-x", "tool@sha256:" + strings.Repeat("a", 64), strings.Repeat("a", 64),
		"sha256:" + strings.Repeat("a", 64), "../x", "a//b", "tool\n", strings.Repeat("a/", 120) + strings.Repeat("b", 40),
	} {
		_, err := archiveName(name)
		requireArchiveCode(t, err, ArchiveName)
	}
}

func TestParseArchiveFile(t *testing.T) {
	for text, want := range map[string]ArchiveFile{
		"./a:/bin/a":        {"./a", "/bin/a"},
		"/x:y/a:/b":         {"/x:y/a", "/b"},
		"/x:/y:/z":          {"/x:/y", "/z"},
		"dir:/":             {"dir", "/"},
		"a:/b:c":            {"a", "/b:c"},
		"a:/dot.files/.x.y": {"a", "/dot.files/.x.y"},
		"a:/tmpfs":          {"a", "/tmpfs"},
		"a:/usr/tmp/x":      {"a", "/usr/tmp/x"},
	} {
		got, err := ParseArchiveFile(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{
		"", "a", "a:", ":/a", "a:b", "a:./b", "a:/b/", "a://b", "a:/b//c", "a:/b/../c", "a:/..", "a:/b/.", "a:/\xff", "a:/b\nc", "a:/b\x00", "a:/b\u0085",
		"a:/.wh.b", "a:/b/.wh..wh..opq", "a:/tmp", "a:/tmp/x", "a:/scratch", "a:/source/x", "a:/workspace/a/b", "a:/" + strings.Repeat("n", 256),
		"a:/" + strings.Repeat("d/", 2000) + "x",
	} {
		_, err := ParseArchiveFile(text)
		requireArchiveCode(t, err, ArchiveDestination)
	}
}

func TestArchiveRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		files func(t *testing.T) []ArchiveFile
		code  ArchiveCode
		want  string
	}{
		"nothing":           {func(t *testing.T) []ArchiveFile { return nil }, ArchiveHost, "nothing to put"},
		"empty directory":   {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{t.TempDir(), "/"}} }, ArchiveHost, "nothing to put"},
		"missing":           {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{"/none/at/all", "/a"}} }, ArchiveHost, "can't be read"},
		"unclean":           {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{one(t), "/a/../b"}} }, ArchiveDestination, "clean"},
		"relative":          {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{one(t), "b"}} }, ArchiveDestination, "absolute"},
		"file as root":      {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{one(t), "/"}} }, ArchiveDestination, "root directory"},
		"twice":             {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{one(t), "/a"}, {one(t), "/a"}} }, ArchiveConflict, "given twice"},
		"directory twice":   {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{tree(t), "/a"}, {tree(t), "/a"}} }, ArchiveConflict, "given twice"},
		"below a file":      {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{one(t), "/a"}, {one(t), "/a/b"}} }, ArchiveConflict, "one place"},
		"above a file":      {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{one(t), "/a/b"}, {one(t), "/a"}} }, ArchiveConflict, "one place"},
		"file in two trees": {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{tree(t), "/a"}, {one(t), "/a/d/f"}} }, ArchiveConflict, "one place"},
		"directory on file": {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{one(t), "/a/d"}, {tree(t), "/a"}} }, ArchiveConflict, "one place"},
		"mount point inside": {func(t *testing.T) []ArchiveFile {
			return []ArchiveFile{{hostFiles(t, map[string]string{"tmp/x": ""}), "/"}}
		}, ArchiveDestination, "/tmp is mounted"},
		"empty mount point": {func(t *testing.T) []ArchiveFile {
			dir := tree(t)
			require.NoError(t, os.Mkdir(filepath.Join(dir, "scratch"), 0o755))
			return []ArchiveFile{{dir, "/"}}
		}, ArchiveDestination, "/scratch is mounted"},
		"whiteout inside": {func(t *testing.T) []ArchiveFile {
			return []ArchiveFile{{hostFiles(t, map[string]string{"d/.wh.x": ""}), "/a"}}
		}, ArchiveDestination, "delete files"},
		"link": {func(t *testing.T) []ArchiveFile {
			link := filepath.Join(t.TempDir(), "l")
			require.NoError(t, os.Symlink(one(t), link))
			return []ArchiveFile{{link, "/a"}}
		}, ArchiveHost, "links don't go"},
		"link inside": {func(t *testing.T) []ArchiveFile {
			dir := tree(t)
			require.NoError(t, os.Symlink("d", filepath.Join(dir, "l")))
			return []ArchiveFile{{dir, "/a"}}
		}, ArchiveHost, "links don't go"},
		"fifo": {func(t *testing.T) []ArchiveFile {
			dir := tree(t)
			require.NoError(t, unix.Mkfifo(filepath.Join(dir, "p"), 0o600))
			return []ArchiveFile{{dir, "/a"}}
		}, ArchiveHost, "neither file nor directory"},
		"socket": {func(t *testing.T) []ArchiveFile {
			path := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", path)
			require.NoError(t, err)
			t.Cleanup(func() { l.Close() })
			return []ArchiveFile{{path, "/a"}}
		}, ArchiveHost, "neither file nor directory"},
		"device":      {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{"/dev/null", "/a"}} }, ArchiveHost, "neither file nor directory"},
		"kernel file": {func(t *testing.T) []ArchiveFile { return []ArchiveFile{{"/proc/cpuinfo", "/a"}} }, ArchiveChanged, "longer than it said"},
		"too large": {func(t *testing.T) []ArchiveFile {
			path := one(t)
			require.NoError(t, os.Truncate(path, maxArchiveBytes+1))
			return []ArchiveFile{{path, "/a"}}
		}, ArchiveTooLarge, "larger than"},
		"too large together": {func(t *testing.T) []ArchiveFile {
			dir := hostFiles(t, map[string]string{"a": "", "b": ""})
			require.NoError(t, os.Truncate(filepath.Join(dir, "a"), maxArchiveBytes))
			require.NoError(t, os.Truncate(filepath.Join(dir, "b"), 1))
			return []ArchiveFile{{dir, "/a"}}
		}, ArchiveTooLarge, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := BuildArchive(context.Background(), "x", tc.files(t))
			require.ErrorContains(t, requireArchiveCode(t, err, tc.code), tc.want)
		})
	}
	_, err := BuildArchive(context.Background(), "X", []ArchiveFile{{one(t), "/a"}})
	requireArchiveCode(t, err, ArchiveName)
}

func one(t *testing.T) string  { return filepath.Join(hostFiles(t, map[string]string{"f": "x"}), "f") }
func tree(t *testing.T) string { return hostFiles(t, map[string]string{"d/f": "x"}) }

func TestArchiveCountsFiles(t *testing.T) {
	p := planner{entries: map[string]archiveEntry{}}
	for i := range maxArchiveFiles {
		require.NoError(t, p.put(archiveEntry{path: fmt.Sprint(i)}))
	}
	requireArchiveCode(t, p.put(archiveEntry{path: "x"}), ArchiveTooLarge)
}

// The ID is promised before the bytes are sent, so a file that changes in between stops them
// before the manifest: what was sent can't be loaded.
func TestArchiveChangedBetweenPasses(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"content":  func(path string) error { return os.WriteFile(path, []byte("y"), 0o600) },
		"longer":   func(path string) error { return os.WriteFile(path, []byte("xx"), 0o600) },
		"shorter":  func(path string) error { return os.Truncate(path, 0) },
		"mode":     func(path string) error { return os.Chmod(path, 0o755) },
		"removed":  os.Remove,
		"replaced": func(path string) error { return os.Rename(path+"2", path) },
		"linked": func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink(path+"2", path))
		},
		"fifo": func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(hostFiles(t, map[string]string{"f": "x", "f2": "x"}), "f")
			a, err := BuildArchive(context.Background(), "x", []ArchiveFile{{path, "/a"}})
			require.NoError(t, err)
			time.Sleep(20 * time.Millisecond) // past the clock tick that stamps a file
			require.NoError(t, change(path))
			var b bytes.Buffer
			var refused *ArchiveRefusedError
			require.ErrorAs(t, a.Write(context.Background(), &b), &refused)
			require.Contains(t, []ArchiveCode{ArchiveChanged, ArchiveHost}, refused.Code)
			require.NotContains(t, b.String(), "manifest.json")
		})
	}
}

// Whatever the stamps say, other bytes than those first read are never called by that ID.
func TestArchiveComparesBytes(t *testing.T) {
	path := one(t)
	a, err := BuildArchive(context.Background(), "x", []ArchiveFile{{path, "/a"}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("y"), 0o600))
	var st unix.Stat_t
	require.NoError(t, unix.Stat(path, &st))
	a.entries[0].seen = stampOf(&st)
	var b bytes.Buffer
	requireArchiveCode(t, a.Write(context.Background(), &b), ArchiveChanged)
	require.NotContains(t, b.String(), "manifest.json")
}

func TestArchiveCancelledAndBroken(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	files := []ArchiveFile{{tree(t), "/a"}}
	a, err := BuildArchive(ctx, "x", files)
	require.NoError(t, err)
	for n := range a.Size() / tarBlock {
		require.ErrorIs(t, a.Write(ctx, &brokenWriter{left: n * tarBlock}), io.ErrClosedPipe)
	}
	cancel()
	require.ErrorIs(t, a.Write(ctx, io.Discard), context.Canceled)
	_, err = BuildArchive(ctx, "x", files)
	require.ErrorIs(t, err, context.Canceled)
}

type brokenWriter struct{ left int64 }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}
