package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// moment is when a writer acts while a tree is read: after it was listed, before the file victim is
// opened, or after its first bytes were read.
type moment string

const (
	afterListing moment = "after the listing"
	beforeOpen   moment = "before the open"
	whileReading moment = "while it is read"
)

const victim = "d/e/victim"

// racing is one thing a writer does to a tree that holds victim (300,000 bytes), d/e/other and outside
// of it a secret.
type racing struct {
	name string
	at   []moment
	do   func(t testing.TB, dir, secret string)
}

func all(m ...moment) []moment { return m }

// replace puts something in a path's place in one step, as rename does.
func replace(t testing.TB, path string, put func(path string)) {
	put(path + ".new")
	require.NoError(t, os.Rename(path+".new", path))
}

var races = []racing{
	{"replaced by a link to a secret", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, secret string) {
		replace(t, filepath.Join(dir, victim), func(p string) { require.NoError(t, os.Symlink(secret, p)) })
	}},
	{"replaced by a link inside", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		replace(t, filepath.Join(dir, victim), func(p string) { require.NoError(t, os.Symlink("other", p)) })
	}},
	{"replaced by a file of equal size", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		replace(t, filepath.Join(dir, victim), func(p string) { require.NoError(t, os.WriteFile(p, make([]byte, 300_000), 0o644)) })
	}},
	{"replaced by a hard link to a secret", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, secret string) {
		replace(t, filepath.Join(dir, victim), func(p string) { require.NoError(t, os.Link(secret, p)) })
	}},
	{"replaced by a fifo", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		replace(t, filepath.Join(dir, victim), func(p string) { require.NoError(t, unix.Mkfifo(p, 0o644)) })
	}},
	{"replaced by a directory", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		require.NoError(t, os.Remove(filepath.Join(dir, victim)))
		require.NoError(t, os.Mkdir(filepath.Join(dir, victim), 0o755))
	}},
	{"removed", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		require.NoError(t, os.Remove(filepath.Join(dir, victim)))
	}},
	{"swapped with its neighbour", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		require.NoError(t, unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, victim), unix.AT_FDCWD, filepath.Join(dir, "d/e/other"), unix.RENAME_EXCHANGE))
	}},
	{"grown", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		f, err := os.OpenFile(filepath.Join(dir, victim), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString("more")
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}},
	{"shrunk", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		require.NoError(t, os.Truncate(filepath.Join(dir, victim), 200_000))
	}},
	{"emptied", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		require.NoError(t, os.Truncate(filepath.Join(dir, victim), 0))
	}},
	{"overwritten in place", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		f, err := os.OpenFile(filepath.Join(dir, victim), os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("OVERWRITTEN"), 250_000)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}},
	{"given another mode", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		require.NoError(t, os.Chmod(filepath.Join(dir, victim), 0o755))
	}},
	{"given a second name", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		require.NoError(t, os.Link(filepath.Join(dir, victim), filepath.Join(filepath.Dir(dir), "second")))
	}},
	{"joined by another file", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "d/e/late"), nil, 0o644))
	}},
	{"directory swapped for a link to outside", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, secret string) {
		require.NoError(t, os.Rename(filepath.Join(dir, "d/e"), filepath.Join(dir, "d/was")))
		require.NoError(t, os.Symlink(filepath.Dir(secret), filepath.Join(dir, "d/e")))
	}},
	{"directory swapped for a link to itself", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		require.NoError(t, os.Rename(filepath.Join(dir, "d/e"), filepath.Join(dir, "d/was")))
		require.NoError(t, os.Symlink("was", filepath.Join(dir, "d/e")))
	}},
	{"directory swapped for another", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		require.NoError(t, os.Rename(filepath.Join(dir, "d/e"), filepath.Join(dir, "d/was")))
		writeAll(t, dir, map[string]string{victim: strings.Repeat("S", 300_000), "d/e/other": "o"})
	}},
	{"parent swapped for another", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		require.NoError(t, os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "was")))
		writeAll(t, dir, map[string]string{victim: strings.Repeat("S", 300_000), "d/e/other": "o"})
	}},
	{"directory moved away and back", all(afterListing, beforeOpen, whileReading), func(t testing.TB, dir, _ string) {
		require.NoError(t, os.Rename(filepath.Join(dir, "d/e"), filepath.Join(dir, "d/was")))
		require.NoError(t, os.Rename(filepath.Join(dir, "d/was"), filepath.Join(dir, "d/e")))
	}},
}

// raceTree is a directory with the victim, and a secret outside of it.
func raceTree(t testing.TB) (dir, secret string) {
	base := realTemp(t)
	dir, secret = filepath.Join(base, "source"), filepath.Join(base, "outside", "victim")
	require.NoError(t, os.Mkdir(dir, 0o755))
	writeAll(t, dir, map[string]string{victim: strings.Repeat("v", 300_000), "d/e/other": "other"})
	writeAll(t, base, map[string]string{"outside/victim": "SECRET" + strings.Repeat("s", 299_994), "outside/other": "o"})
	return dir, secret
}

// at calls f once, when the moment comes.
func (h *hooks) at(m moment, f func()) {
	once := func(path string) {
		if path == victim && f != nil {
			f()
			f = nil
		}
	}
	switch m {
	case afterListing:
		h.listed = func() { once(victim) }
	case beforeOpen:
		h.opened = once
	case whileReading:
		h.read = once
	}
}

// A source that changes while it is copied, in any of these ways and at any of these moments, fails closed:
// nothing is left, and no byte from outside was ever in the copy.
//
// req O4
func TestSourceSwappedWhileCopied(t *testing.T) {
	n := 0
	for _, tc := range races {
		for _, m := range tc.at {
			t.Run(tc.name+" "+string(m), func(t *testing.T) {
				dir, secret := raceTree(t)
				parent := privateDir(t)
				r := Request{Root: dir, Parent: parent, Writable: evidence.WritablePaths{"."}}
				acted := false
				r.hooks.at(m, func() { acted = true; tc.do(t, dir, secret) })
				refused(t, r, source.CodeChanged)
				require.True(t, acted)
				n++
			})
		}
	}
	t.Logf("count: %d swaps while a tree is copied", n)
	require.Equal(t, 3*len(races), n)
}

// What still changes while it is captured fails closed, too.
func TestWorkspaceSwappedWhileCaptured(t *testing.T) {
	n := 0
	for _, tc := range races {
		t.Run(tc.name, func(t *testing.T) {
			dir, secret := raceTree(t)
			w := prepare(t, dir)
			acted := false
			w.hooks.at(beforeOpen, func() { acted = true; tc.do(t, w.Dir, secret) })
			capturedCode(t, w, CaptureChanged)
			require.True(t, acted)
			n++
			w.hooks = hooks{}
			os.Remove(filepath.Join(filepath.Dir(w.Dir), "second"))
		})
	}
	t.Logf("count: %d swaps while a tree is captured", n)
	require.Equal(t, len(races), n)
}

// A source moved away as a whole, with a link to outside in its place, fails closed: it is read through its
// handle, which shows that it was touched.
func TestSourceMovedAsAWhole(t *testing.T) {
	dir, secret := raceTree(t)
	r := Request{Root: dir, Parent: privateDir(t), Writable: evidence.WritablePaths{"."}}
	r.hooks.at(beforeOpen, func() {
		require.NoError(t, os.Rename(dir, dir+"-moved"))
		require.NoError(t, os.Symlink(filepath.Dir(secret), dir))
	})
	_, err := Prepare(context.Background(), r)
	var refusal *source.RefusedError
	require.ErrorAs(t, err, &refusal, "its directory's change time is another")
	require.Equal(t, source.CodeChanged, refusal.Code)
	requireEmpty(t, r.Parent)
}
