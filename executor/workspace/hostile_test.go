package workspace

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// hostile is one thing that may not lie in a tree, whoever put it there. The same corpus meets preparation
// and capture: the person's directory and what the agent leaves.
type hostile struct {
	name    string
	put     func(t testing.TB, dir string)
	prepare source.Code // refusal of a source; empty: it is skipped or harmless there
	capture CaptureCode // refusal of a workspace; empty: it is recorded as a change
}

func files(content map[string]string) func(testing.TB, string) {
	return func(t testing.TB, dir string) { writeAll(t, dir, content) }
}

func mode(name string, bits uint32) func(testing.TB, string) {
	return func(t testing.TB, dir string) {
		writeAll(t, dir, map[string]string{name: "x"})
		require.NoError(t, unix.Chmod(filepath.Join(dir, name), bits))
	}
}

func device(kind uint32) func(testing.TB, string) {
	return func(t testing.TB, dir string) {
		require.NoError(t, unix.Mknod(filepath.Join(dir, "d", "device"), kind|0o600, int(unix.Mkdev(1, 3))), "devices need root")
	}
}

// nest makes directories inside each other, one handle at a time, so that no path is ever too long.
func nest(name string, depth int) func(testing.TB, string) {
	return func(t testing.TB, dir string) {
		at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		require.NoError(t, err)
		for range depth {
			require.NoError(t, unix.Mkdirat(at, name, 0o755))
			next, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
			require.NoError(t, err)
			require.NoError(t, unix.Close(at))
			at = next
		}
		require.NoError(t, unix.Close(at))
	}
}

// sparse makes files of a size without their bytes.
func sparse(n int, size int64) func(testing.TB, string) {
	return func(t testing.TB, dir string) {
		for i := range n {
			path := filepath.Join(dir, fmt.Sprintf("sparse%02d", i))
			require.NoError(t, os.WriteFile(path, nil, 0o644))
			require.NoError(t, os.Truncate(path, size))
		}
	}
}

func many(n int) func(testing.TB, string) {
	return func(t testing.TB, dir string) {
		for i := range n {
			require.NoError(t, os.Symlink("d", filepath.Join(dir, fmt.Sprintf("%06d", i))))
		}
	}
}

// Each tree holds d/f besides.
var corpus = []hostile{
	{"fifo", func(t testing.TB, dir string) { require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644)) }, source.CodeSpecialFile, CaptureSpecial},
	{"socket", func(t testing.TB, dir string) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s")})
		require.NoError(t, err)
		l.SetUnlinkOnClose(false)
		require.NoError(t, l.Close())
	}, source.CodeSpecialFile, CaptureSpecial},
	{"character device", device(unix.S_IFCHR), source.CodeSpecialFile, CaptureSpecial},
	{"block device", device(unix.S_IFBLK), source.CodeSpecialFile, CaptureSpecial},
	{"hard link inside", func(t testing.TB, dir string) {
		require.NoError(t, os.Link(filepath.Join(dir, "d", "f"), filepath.Join(dir, "h")))
	}, source.CodeHardLink, CaptureHardLink},
	{"hard link to outside", func(t testing.TB, dir string) {
		outside := filepath.Join(memory(t), "outside")
		require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
		require.NoError(t, os.Link(outside, filepath.Join(dir, "h")))
	}, source.CodeHardLink, CaptureHardLink},
	{"hard-linked link", func(t testing.TB, dir string) {
		require.NoError(t, os.Symlink("d", filepath.Join(dir, "l1")))
		require.NoError(t, os.Link(filepath.Join(dir, "l1"), filepath.Join(dir, "l2")))
	}, source.CodeHardLink, CaptureHardLink},

	{"absolute link", files(map[string]string{"l": "-> /etc/passwd"}), source.CodeLinkAbsolute, CaptureLink},
	{"escaping link", files(map[string]string{"d/l": "-> ../../x"}), source.CodeLinkEscapes, CaptureLink},
	{"escaping through a link", files(map[string]string{"a": "-> d", "l": "-> a/../../x"}), source.CodeLinkEscapes, CaptureLink},
	{"dangling link", files(map[string]string{"l": "-> none"}), source.CodeLinkDangling, CaptureLink},
	{"link with the longest target", files(map[string]string{"l": "-> " + strings.Repeat("n/", evidence.MaxLinkTarget/2) + "n"}), source.CodeLinkDangling, CaptureLink},
	{"link to itself", files(map[string]string{"l": "-> l"}), source.CodeLinkCycle, CaptureLink},
	{"links to each other", files(map[string]string{"l": "-> m", "m": "-> l"}), source.CodeLinkCycle, CaptureLink},
	{"link through a file", files(map[string]string{"l": "-> d/f/x"}), source.CodeLinkDangling, CaptureLink},
	{"link to .git", files(map[string]string{"l": "-> .git/config"}), source.CodeLinkReserved, CaptureLink},
	{"link to .baildock", files(map[string]string{"l": "-> d/.Baildock"}), source.CodeLinkReserved, CaptureLink},
	{"link to an empty directory", files(map[string]string{"e/": "", "l": "-> e"}), "", ""},

	{"reserved .git", files(map[string]string{".git/config": "x"}), "", CaptureReserved},
	{"reserved .GIT", files(map[string]string{".GIT/config": "x"}), "", CaptureReserved},
	{"reserved .git file", files(map[string]string{".git": "gitdir: /elsewhere"}), "", CaptureReserved},
	{"reserved .git below", files(map[string]string{"d/.gIt/HEAD": "x"}), "", CaptureReserved},
	{"reserved .git link", files(map[string]string{".git": "-> d"}), "", CaptureReserved},
	{"reserved .git with a dot", files(map[string]string{".git./x": "x"}), "", CaptureReserved},
	{"reserved .git with a stream", files(map[string]string{".git::$INDEX_ALLOCATION/x": "x"}), "", CaptureReserved},
	{"reserved git~1", files(map[string]string{"GIT~1/x": "x"}), "", CaptureReserved},
	{"reserved .git with a joiner", files(map[string]string{".g\u200cit/x": "x"}), "", CaptureReserved},
	{"reserved .baildock", files(map[string]string{".baildock/ledger.db": "x"}), "", CaptureReserved},
	{"reserved .BAILDOCK-evidence", files(map[string]string{"d/.BAILDOCK-evidence": "x"}), "", CaptureReserved},
	{"another repository inside", files(map[string]string{"d/.git": "gitdir: ../x\n"}), source.CodeSubmodule, CaptureReserved},
	{"a home under another name", files(map[string]string{"d/h/ledger.db": "", "d/h/keys/": ""}), source.CodeHoldsHome, CaptureHoldsHome},

	{"case-colliding names", files(map[string]string{"README": "1", "readme": "2", "D/f": "3"}), "", ""},
	{"non-UTF-8 name", files(map[string]string{"\xff\xfe/\xc3\x28": "x"}), "", ""},
	{"newline in a name", files(map[string]string{"a\nb/\n": "x"}), "", ""},
	{"control characters in a name", files(map[string]string{"\x1b[2J\x07": "x"}), "", ""},
	{"option-like name", files(map[string]string{"--help": "x", "-rf": "y"}), "", ""},
	{"255-byte name", files(map[string]string{strings.Repeat("n", 255): "x"}), "", ""},
	{"deepest tree", nest("n", evidence.MaxPathDepth), "", ""},
	{"one level deeper", nest("n", evidence.MaxPathDepth+1), source.CodePath, CapturePath},
	{"very deep tree", nest("n", 3000), source.CodePath, CapturePath},
	{"2,047-byte path", nest(strings.Repeat("n", 255), 8), "", ""},
	{"2,303-byte path", nest(strings.Repeat("n", 255), 9), source.CodePath, CapturePath},
	{"4,096-byte path and more", nest(strings.Repeat("n", 255), 40), source.CodePath, CapturePath},

	{"set-user-ID file", mode("suid", 0o4755), "", CaptureSetID},
	{"set-group-ID file", mode("sgid", 0o2755), "", CaptureSetID},
	{"set-ID file nobody may run", mode("s", 0o6600), "", CaptureSetID},
	{"sticky file", mode("sticky", 0o1644), "", ""},
	{"set-group-ID and sticky directory", func(t testing.TB, dir string) {
		require.NoError(t, os.Mkdir(filepath.Join(dir, "e"), 0o755))
		require.NoError(t, unix.Chmod(filepath.Join(dir, "e"), 0o3777))
	}, "", ""},
	{"everybody may write", mode("w", 0o777), "", ""},

	{"sparse file of 64 MiB", sparse(1, evidence.MaxWorkspaceFile), "", ""},
	{"file of 64 MiB and a byte", sparse(1, evidence.MaxWorkspaceFile+1), source.CodeFileTooLarge, CaptureTooLarge},
	{"sparse file of 8 TiB", sparse(1, 8<<40), source.CodeFileTooLarge, CaptureTooLarge},
	{"more than 1 GiB in all", sparse(17, evidence.MaxWorkspaceFile), source.CodeTooLarge, CaptureTooLarge},
}

// memory makes a directory where a hundred thousand names and 17 sparse files cost little.
func memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "workspace-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, source.Remove(dir)) })
	return dir
}

func hostileTree(t testing.TB, put func(testing.TB, string)) string {
	dir := filepath.Join(memory(t), "source")
	require.NoError(t, os.Mkdir(dir, 0o755))
	writeAll(t, dir, map[string]string{"d/f": "x"})
	put(t, dir)
	return dir
}

// What a person's directory may not hold is refused before anything is made, and the rest is copied as
// it is.
//
// req O3 req O6
func TestHostileSources(t *testing.T) {
	refusals := 0
	for _, tc := range corpus {
		t.Run(tc.name, func(t *testing.T) {
			root := hostileTree(t, tc.put)
			parent := filepath.Join(memory(t), "execution")
			require.NoError(t, os.Mkdir(parent, 0o700))
			r := Request{Root: root, Parent: parent, Writable: evidence.WritablePaths{"."}}
			if tc.prepare != "" {
				refusals++
				refused(t, r, tc.prepare)
				return
			}
			w, err := Prepare(t.Context(), r)
			require.NoError(t, err)
			for _, e := range w.Baseline.Manifest.Entries {
				require.LessOrEqual(t, e.Mode, uint32(0o777), "%q", e.Path)
				for name := range strings.SplitSeq(e.Path, "/") {
					require.False(t, evidence.ReservedName(name), "%q", e.Path)
				}
			}
			require.Empty(t, captured(t, w))
			require.NoError(t, w.Remove())
			requireEmpty(t, parent)
		})
	}
	t.Logf("count: %d hostile sources, %d refused", len(corpus), refusals)
	require.Greater(t, len(corpus), 50)
	require.Greater(t, refusals, 20)
}

// What an agent may not leave fails the capture, everything else is a change; and all of it can be removed.
//
// req O3 req O5 req O6
func TestHostileWorkspaces(t *testing.T) {
	refusals := 0
	parent := filepath.Join(memory(t), "execution")
	require.NoError(t, os.Mkdir(parent, 0o700))
	for _, tc := range corpus {
		t.Run(tc.name, func(t *testing.T) {
			w, err := Prepare(t.Context(), Request{Root: sourceOf(t, map[string]string{"d/f": "x", "marker": "m"}), Parent: parent, Writable: evidence.WritablePaths{"."}})
			require.NoError(t, err)
			tc.put(t, w.Dir)
			if tc.capture != "" {
				refusals++
				capturedCode(t, w, tc.capture)
				require.Nil(t, w.Mutations())
			} else {
				require.NotEmpty(t, captured(t, w))
				_, err := w.Diff(t.Context(), DiffRequest{Bound: 64 << 10})
				require.NoError(t, err)
			}
			require.NoError(t, w.Remove())
			requireEmpty(t, parent)
		})
	}
	t.Logf("count: %d hostile workspaces, %d refused", len(corpus), refusals)
	require.Greater(t, refusals, 30)
}

// Exactly 100,000 entries are copied and captured; one more is refused on either side.
//
// req O6
func TestHundredThousandEntries(t *testing.T) {
	root := hostileTree(t, many(evidence.MaxWorkspaceEntries-2))
	parent := filepath.Join(memory(t), "execution")
	require.NoError(t, os.Mkdir(parent, 0o700))
	r := Request{Root: root, Parent: parent, Writable: evidence.WritablePaths{"."}}
	w, err := Prepare(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, w.Baseline.Manifest.Entries, evidence.MaxWorkspaceEntries)
	require.Empty(t, captured(t, w))
	u, err := w.Usage()
	require.NoError(t, err)
	require.EqualValues(t, evidence.MaxWorkspaceEntries, u.Entries)
	require.Empty(t, u.Broken, "exactly the bound")

	writeAll(t, w.Dir, map[string]string{"one more": ""})
	capturedCode(t, w, CaptureTooLarge)
	u, err = w.Usage()
	require.NoError(t, err)
	require.Equal(t, BoundEntries, u.Broken)
	require.NoError(t, w.Remove())

	writeAll(t, root, map[string]string{"one more": ""})
	refused(t, r, source.CodeTooManyFiles)
}
