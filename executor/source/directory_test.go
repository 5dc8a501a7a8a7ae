package source

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// req B2, req B4: what a directory may not hold.
func TestDirectoryRefused(t *testing.T) {
	files := func(content map[string]string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { writeFiles(t, dir, content) }
	}
	for name, tc := range map[string]struct {
		make func(t *testing.T, dir string)
		code Code
		path string
	}{
		"fifo": {func(t *testing.T, dir string) { require.NoError(t, unix.Mkfifo(filepath.Join(dir, "d", "p"), 0o644)) }, CodeSpecialFile, "d/p"},
		"socket": {func(t *testing.T, dir string) {
			l, err := net.Listen("unix", filepath.Join(dir, "s"))
			require.NoError(t, err)
			t.Cleanup(func() { l.Close() })
		}, CodeSpecialFile, "s"},
		"device": {func(t *testing.T, dir string) {
			require.NoError(t, unix.Mknod(filepath.Join(dir, "n"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
		}, CodeSpecialFile, "n"},
		"hard link inside": {func(t *testing.T, dir string) {
			require.NoError(t, os.Link(filepath.Join(dir, "d", "f"), filepath.Join(dir, "h")))
		}, CodeHardLink, "d/f"},
		"hard link to outside": {func(t *testing.T, dir string) {
			outside := filepath.Join(filepath.Dir(dir), "outside")
			require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
			require.NoError(t, os.Link(outside, filepath.Join(dir, "h")))
		}, CodeHardLink, "h"},
		"submodule":         {files(map[string]string{"sub/.git": "gitdir: ../.git/modules/sub\n", "sub/f": "x"}), CodeSubmodule, "sub"},
		"absolute link":     {files(map[string]string{"l": "-> /etc/passwd"}), CodeLinkAbsolute, "l"},
		"escaping link":     {files(map[string]string{"l": "-> d/../../x"}), CodeLinkEscapes, "l"},
		"dangling link":     {files(map[string]string{"l": "-> none"}), CodeLinkDangling, "l"},
		"link cycle":        {files(map[string]string{"l": "-> l"}), CodeLinkCycle, "l"},
		"link to .git":      {files(map[string]string{".git/config": "x", "l": "-> .git/config"}), CodeLinkReserved, "l"},
		"link to .baildock": {files(map[string]string{".baildock/x": "x", "d/l": "-> ../.baildock"}), CodeLinkReserved, "d/l"},
		"link to an empty directory": {func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
			require.NoError(t, os.Symlink("empty", filepath.Join(dir, "l")))
		}, CodeLinkDangling, "l"},
		"deep": {func(t *testing.T, dir string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", evidence.MaxPathDepth+1)), 0o755))
		}, CodePath, ""},
		"long path": {func(t *testing.T, dir string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, strings.Repeat(strings.Repeat("n", 250)+"/", 9)), 0o755))
		}, CodePath, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(realTemp(t), "source")
			require.NoError(t, os.Mkdir(dir, 0o755))
			writeFiles(t, dir, map[string]string{"d/f": "x"})
			tc.make(t, dir)
			_, err := measure(t, directorySubject(dir))
			require.Equal(t, tc.path, requireCode(t, err, tc.code).Path)
			require.NoError(t, Check(context.Background(), directorySubject(dir), nil), "only homes are refused before anything is recorded")
		})
	}
}

// req B3
func TestDirectoryLimits(t *testing.T) {
	s := directorySubject(directoryOf(t, map[string]string{"a": "12345", "d/b": "123", "l": "-> a"}))
	for name, tc := range map[string]struct {
		limits Limits
		code   Code
	}{
		"exactly":   {bounded(3, 8, 5), ""},
		"files":     {bounded(2, 8, 5), CodeTooManyFiles},
		"bytes":     {bounded(3, 7, 5), CodeTooLarge},
		"file size": {bounded(3, 8, 4), CodeFileTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Materialize(context.Background(), Request{Subject: s, Parent: privateDir(t), Name: "s", Limits: tc.limits})
			if tc.code == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, requireCode(t, err, tc.code), "this is not the large-repository profile")
		})
	}
}

// A file too large is refused by its size, before a byte of it is read: it has none on disk.
func TestSparseFileIsNotRead(t *testing.T) {
	dir := directoryOf(t, map[string]string{"f": "x"})
	require.NoError(t, os.Truncate(filepath.Join(dir, "f"), 1<<40))
	_, err := measure(t, directorySubject(dir))
	requireCode(t, err, CodeFileTooLarge)
}

func TestDirectoriesAreCounted(t *testing.T) {
	dir := realTemp(t)
	limits := Limits{Files: 10, Bytes: 10, FileBytes: 10, Directories: 20, Skipped: 5}
	listed := func() error {
		d, err := openDirectoryTree(dir, guard{})
		require.NoError(t, err)
		defer d.close()
		_, err = d.list(context.Background(), limits)
		return err
	}
	for i := range limits.Directories {
		require.NoError(t, listed())
		require.NoError(t, os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o755))
	}
	require.ErrorContains(t, requireCode(t, listed(), CodeTooManyFiles), "more than 20 directories")
	require.NoError(t, check(context.Background(), directorySubject(dir), nil, limits))
	for i := range directoryChunk {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("x", i)), nil, 0o644))
	}
	require.ErrorContains(t, requireCode(t, listed(), CodeTooManyFiles), "more than 35 entries")
	require.NoError(t, check(context.Background(), directorySubject(dir), nil, limits))
}

// req B7: reserved names are skipped, and the skip is recorded.
func TestReservedNamesAreSkipped(t *testing.T) {
	plain := map[string]string{"a": "1", "d/b": "2", ".gitignore": "x", ".github/w": "y"}
	dir := directoryOf(t, plain)
	want := digestOf(t, directorySubject(dir))
	writeFiles(t, dir, map[string]string{
		".git/config": "x", ".git/objects/aa": "y", "d/.git/HEAD": "nested", "d/.GIT": "odd", ".baildock/ledger.db": "", ".baildock/keys/k": "",
		"d/.BailDock-2/x": "y", "git~1/x": "y", "d/.git.": "z",
	})
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, ".baildock", "pipe"), 0o600))
	c, err := measure(t, directorySubject(dir))
	require.NoError(t, err)
	got, err := c.Manifest.Digest()
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.ElementsMatch(t, []Skipped{
		{".git", SkippedReservedName}, {".baildock", SkippedReservedName}, {"git~1", SkippedReservedName},
		{"d/.git", SkippedReservedName}, {"d/.GIT", SkippedReservedName}, {"d/.BailDock-2", SkippedReservedName}, {"d/.git.", SkippedReservedName},
	}, c.Skipped)
	require.NoError(t, Check(context.Background(), directorySubject(dir), nil))

	_, err = Materialize(context.Background(), Request{
		Subject: directorySubject(dir), Parent: privateDir(t), Name: "s", Limits: Limits{Files: 10, Bytes: 100, FileBytes: 100, Directories: 10, Skipped: 6},
	})
	require.ErrorContains(t, requireCode(t, err, CodeTooManyFiles), "more than 6 reserved names")
}

// changing is a sink that changes the source when a file is about to be copied.
type changing struct {
	discard
	before string
	change func()
}

func (c changing) file(e evidence.ManifestEntry) (io.WriteCloser, error) {
	if e.Path == c.before {
		c.change()
	}
	return c.discard.file(e)
}

// A path swapped while the source is copied fails closed.
func TestChangedWhileCopied(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir, outside string){
		"nothing": nil,
		"content": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "d/e/f"), []byte("y"), 0o644))
		},
		"longer": func(t *testing.T, dir, outside string) {
			require.NoError(t, appendFile(filepath.Join(dir, "d/e/f"), "more"))
		},
		"mode": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.Chmod(filepath.Join(dir, "d/e/f"), 0o755))
		},
		"replaced by an equal file": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), []byte("x"), 0o644))
			require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "d/e/f")))
		},
		"replaced by a link": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "d/e/f")))
			require.NoError(t, os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, "d/e/f")))
		},
		"replaced by a fifo": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "d/e/f")))
			require.NoError(t, unix.Mkfifo(filepath.Join(dir, "d/e/f"), 0o644))
		},
		"removed": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "d/e/f")))
		},
		"directory replaced by a link": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.Rename(filepath.Join(dir, "d/e"), filepath.Join(dir, "gone")))
			require.NoError(t, os.Symlink(outside, filepath.Join(dir, "d/e")))
		},
		"directory replaced by another": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "gone")))
			require.NoError(t, os.Rename(outside, filepath.Join(dir, "d")))
		},
		"file added beside": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "d/e/g"), nil, 0o644))
		},
		"file added at the top": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "z"), nil, 0o644))
		},
	} {
		for _, before := range []string{"a", "d/e/b", "d/e/f"} { // before d/e is opened, and while it is open
			t.Run(name+" before "+before, func(t *testing.T) {
				dir := directoryOf(t, map[string]string{"a": "1", "d/e/b": "2", "d/e/f": "x"})
				outside := directoryOf(t, map[string]string{"f": "x", "e/f": "x"})
				d, err := openDirectoryTree(dir, guard{})
				require.NoError(t, err)
				defer d.close()
				_, err = transfer(context.Background(), d, DefaultLimits, changing{before: before, change: func() {
					if change != nil {
						time.Sleep(20 * time.Millisecond) // past the clock tick that stamps a file
						change(t, dir, outside)
					}
				}})
				if change == nil {
					require.NoError(t, err)
				} else {
					requireCode(t, err, CodeChanged)
				}
			})
		}
	}
}

// What this user may not read is told from what changed.
func TestUnreadable(t *testing.T) {
	for _, path := range []string{"f", "d"} {
		dir := directoryOf(t, map[string]string{"f": "x", "d/f": "x"})
		require.NoError(t, os.Chmod(filepath.Join(filepath.Dir(dir)), 0o755))
		require.NoError(t, os.Chmod(dir, 0o755))
		require.NoError(t, os.Chmod(filepath.Join(dir, path), 0))
		// Root reads everything, so this thread gives that up.
		runtime.LockOSThread()
		_, err := unix.SetfsuidRetUid(65532)
		require.NoError(t, err)
		d, err := openDirectoryTree(dir, guard{})
		if err == nil {
			_, err = transfer(context.Background(), d, DefaultLimits, discard{})
			d.close()
		}
		_, restoreErr := unix.SetfsuidRetUid(os.Getuid())
		require.NoError(t, restoreErr)
		runtime.UnlockOSThread()
		require.Equal(t, path, requireCode(t, err, CodeUnreadable).Path)
	}
}

// growing makes a file longer or shorter while its bytes pass.
type growing struct {
	discard
	onWrite func()
}

func (g growing) file(evidence.ManifestEntry) (io.WriteCloser, error) { return g, nil }
func (g growing) Write(p []byte) (int, error)                         { g.onWrite(); return len(p), nil }
func (g growing) Close() error                                        { return nil }

func TestChangedWhileRead(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, copyBuffer) },
		"appended":  func(path string) error { return appendFile(path, "x") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := directoryOf(t, map[string]string{"f": strings.Repeat("x", 3*copyBuffer)})
			d, err := openDirectoryTree(dir, guard{})
			require.NoError(t, err)
			defer d.close()
			_, err = transfer(context.Background(), d, DefaultLimits, growing{onWrite: func() { require.NoError(t, change(filepath.Join(dir, "f"))) }})
			requireCode(t, err, CodeChanged)
		})
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	dir := directoryOf(t, map[string]string{"f": strings.Repeat("x", 3*copyBuffer)})
	d, err := openDirectoryTree(dir, guard{})
	require.NoError(t, err)
	defer d.close()
	writes := 0
	_, err = transfer(ctx, d, DefaultLimits, growing{onWrite: func() { writes++; cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, writes, "a large file is left in the middle")

	parent := privateDir(t)
	for _, s := range []Subject{directorySubject(dir), func() Subject { r := newGitRepo(t); return r.subject(r.commitFiles(map[string]string{"f": "x"})) }()} {
		_, err = Materialize(ctx, Request{Subject: s, Parent: parent, Name: "s"})
		require.ErrorIs(t, err, context.Canceled)
	}
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Empty(t, left)
	require.ErrorIs(t, Check(ctx, directorySubject(dir), nil), context.Canceled)
}
