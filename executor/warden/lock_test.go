package warden

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// req G8: one holder at a time; a lock whose file was replaced is no lock.
func TestLock(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	l, err := h.Lock("one")
	require.NoError(t, err)
	_, err = h.Lock("one")
	var held *HeldError
	require.ErrorAs(t, err, &held)
	other, err := h.Lock("two")
	require.NoError(t, err)
	require.NoError(t, other.Close())
	require.FileExists(t, filepath.Join(h.Dir, "locks", "two"), "an unfinished attempt keeps its file")

	require.NoError(t, l.Close())
	l, err = h.Lock("one")
	require.NoError(t, err)
	require.NoError(t, l.Delete())
	require.NoFileExists(t, l.path)

	l, err = h.Lock("one")
	require.NoError(t, err)
	require.NoError(t, os.Remove(l.path))
	again, err := h.Lock("one")
	require.NoError(t, err, "the file that lies there is free")
	require.NoError(t, l.Delete())
	require.FileExists(t, again.path, "only the holder of that file deletes it")
	require.NoError(t, again.Delete())

	_, err = h.Lock("../one")
	require.Error(t, err)
	require.NoError(t, os.Symlink("/dev/null", filepath.Join(h.Dir, "locks", "link")))
	_, err = h.Lock("link")
	require.ErrorIs(t, err, unix.ELOOP)
}

// Many holders that each delete the file: never two at once.
func TestLockRaces(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	var inside, taken atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				l, err := h.Lock("one")
				if err != nil {
					continue
				}
				if inside.Add(1) != 1 {
					t.Error("two holders")
				}
				taken.Add(1)
				inside.Add(-1)
				if err := l.Delete(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Positive(t, taken.Load())
}

// req D5: no child inherits a lock.
func TestChildrenInheritNoLock(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	l, err := h.Lock("one")
	require.NoError(t, err)
	child := exec.Command("sleep", "60")
	require.NoError(t, child.Start())
	defer func() {
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())
	}()
	require.NoError(t, l.Close())
	l, err = h.Lock("one")
	require.NoError(t, err)
	require.NoError(t, l.Delete())
}
