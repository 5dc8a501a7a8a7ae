package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// req N10
func TestUsage(t *testing.T) {
	w := prepare(t, sourceOf(t, map[string]string{"a": "12345", "d/b": "123", "l": "-> a"}))
	u, err := w.Usage()
	require.NoError(t, err)
	require.EqualValues(t, 4, u.Entries)
	require.GreaterOrEqual(t, u.Bytes, uint64(8))
	require.Empty(t, u.Broken)
	free, err := FreeBytes(w.Evidence)
	require.NoError(t, err)
	require.InDelta(t, free, u.Free, float64(MinFree))

	for _, tc := range []struct {
		name   string
		broken Bound
		do     func(t *testing.T, dir string)
	}{
		{"a file too large", BoundFile, func(t *testing.T, dir string) { sparse(1, evidence.MaxWorkspaceFile+1)(t, dir) }},
		{"too many bytes", BoundBytes, func(t *testing.T, dir string) { sparse(17, evidence.MaxWorkspaceFile)(t, dir) }},
		{"too deep", BoundDepth, func(t *testing.T, dir string) { nest("n", evidence.MaxPathDepth+2)(t, dir) }},
		{"very deep", BoundDepth, func(t *testing.T, dir string) { nest("n", 2000)(t, dir) }},
		{"odd things count", "", func(t *testing.T, dir string) {
			require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
			require.NoError(t, os.Symlink("/", filepath.Join(dir, "root")))
			require.NoError(t, os.Symlink(".", filepath.Join(dir, "self")))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := prepare(t, sourceOf(t, map[string]string{"a": "x"}))
			tc.do(t, w.Dir)
			u, err := w.Usage()
			require.NoError(t, err)
			require.Equal(t, tc.broken, u.Broken)
			if tc.broken == "" {
				require.EqualValues(t, 4, u.Entries)
			}
		})
	}
}

// Counting while an agent makes, moves and deletes everything it can is never an error.
func TestUsageWhileEverythingChanges(t *testing.T) {
	w := prepare(t, sourceOf(t, map[string]string{"a": "x"}))
	stop := make(chan struct{})
	var group sync.WaitGroup
	for g := range 3 {
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				dir := filepath.Join(w.Dir, fmt.Sprintf("g%d", g))
				_ = os.MkdirAll(filepath.Join(dir, "x", "y"), 0o755)
				_ = os.WriteFile(filepath.Join(dir, "x", "y", "f"), []byte("x"), 0o644)
				_ = os.RemoveAll(filepath.Join(w.Dir, fmt.Sprintf("g%d", (g+1)%3)))
				_ = os.Symlink("/", dir)
				_ = os.Remove(dir)
			}
		})
	}
	for range 300 {
		u, err := w.Usage()
		require.NoError(t, err)
		require.Empty(t, u.Broken)
	}
	close(stop)
	group.Wait()
}

// A copy is refused where it and the texts beside it wouldn't leave the disk a gigabyte.
func TestEnoughSpace(t *testing.T) {
	for _, tc := range []struct {
		free, size uint64
		ok         bool
	}{
		{MinFree, 0, true},
		{MinFree - 1, 0, false},
		{MinFree + 20, 10, true},
		{MinFree + 19, 10, false},
		{MinFree + evidence.MaxWorkspaceBytes + maxKept, evidence.MaxWorkspaceBytes, true},
		{MinFree + evidence.MaxWorkspaceBytes + maxKept - 1, evidence.MaxWorkspaceBytes, false},
	} {
		err := enoughSpace(tc.free, tc.size)
		if tc.ok {
			require.NoError(t, err)
			continue
		}
		var refusal *source.RefusedError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, CodeNoSpace, refusal.Code)
	}
}
