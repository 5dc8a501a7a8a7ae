package workspace

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// req O5
func TestCapture(t *testing.T) {
	root := sourceOf(t, map[string]string{"keep": "k", "mod": "one\n", "d/gone": "g", "moved": "content\n", "mode": "m", "l": "-> keep", "turns": "t"})
	w := prepare(t, root)
	in := func(p string) string { return filepath.Join(w.Dir, p) }
	require.NoError(t, os.WriteFile(in("mod"), []byte("two\n"), 0o644))
	require.NoError(t, os.RemoveAll(in("d")))
	require.NoError(t, os.MkdirAll(in("e/f"), 0o755))
	require.NoError(t, os.Rename(in("moved"), in("e/f/moved")))
	require.NoError(t, os.Chmod(in("mode"), 0o755))
	require.NoError(t, os.Remove(in("l")))
	require.NoError(t, os.Symlink("mod", in("l")))
	require.NoError(t, os.Remove(in("turns")))
	require.NoError(t, os.Mkdir(in("turns"), 0o700))

	l := captured(t, w)
	type seen struct {
		kind evidence.MutationKind
		from string
	}
	got := map[string]seen{}
	for _, m := range l {
		got[m.Path] = seen{m.Kind, m.From}
	}
	require.Equal(t, map[string]seen{
		"mod": {evidence.MutationModified, ""}, "d": {evidence.MutationDeleted, ""}, "d/gone": {evidence.MutationDeleted, ""},
		"e": {evidence.MutationAdded, ""}, "e/f": {evidence.MutationAdded, ""}, "e/f/moved": {evidence.MutationRenamed, "moved"},
		"mode": {evidence.MutationModified, ""}, "l": {evidence.MutationModified, ""}, "turns": {evidence.MutationModified, ""},
	}, got)
	require.Equal(t, l, captured(t, w), "a second capture says the same")
	require.Equal(t, l, w.Mutations())
	b, err := os.ReadFile(filepath.Join(root, "mod"))
	require.NoError(t, err)
	require.Equal(t, "one\n", string(b), "the source is as it was")
}

// The comparison is with the stored baseline, which must be the one that was stored.
func TestCaptureNeedsItsBaseline(t *testing.T) {
	w := prepare(t, sourceOf(t, map[string]string{"a": "x"}))
	file := filepath.Join(w.Evidence, "baseline.cbor")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	for name, damage := range map[string]func(){
		"other": func() { require.NoError(t, os.WriteFile(file, mustMarshal(t, evidence.WorkspaceManifest{}), 0o600)) },
		"bit": func() {
			bad := append([]byte{}, b...)
			bad[len(bad)-1] ^= 1
			require.NoError(t, os.WriteFile(file, bad, 0o600))
		},
		"trailing": func() { require.NoError(t, os.WriteFile(file, append(append([]byte{}, b...), 0), 0o600)) },
		"gone":     func() { require.NoError(t, os.Remove(file)) },
	} {
		t.Run(name, func(t *testing.T) {
			damage()
			capturedCode(t, w, CaptureBaseline)
		})
	}
	require.NoError(t, os.WriteFile(file, b, 0o600))
	require.Empty(t, captured(t, w))
}

func mustMarshal(t *testing.T, m evidence.WorkspaceManifest) []byte {
	b, err := m.Marshal()
	require.NoError(t, err)
	return b
}

// Removal takes what was made and nothing else, hostile leftovers included; what was swapped is kept.
//
// req O6
func TestRemove(t *testing.T) {
	outside := realTemp(t)
	writeAll(t, outside, map[string]string{"precious": "p"})
	w, err := Prepare(context.Background(), Request{Root: sourceOf(t, map[string]string{"a": "x"}), Parent: privateDir(t), Writable: evidence.WritablePaths{"."}})
	require.NoError(t, err)
	parent := filepath.Dir(filepath.Dir(w.Dir))
	require.NoError(t, os.WriteFile(filepath.Join(parent, "other"), nil, 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(w.Dir, "link")))
	deep := w.Dir
	at, err := os.Open(w.Dir)
	require.NoError(t, err)
	defer at.Close()
	require.NoError(t, os.MkdirAll(filepath.Join(deep, "locked", "in"), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(deep, "locked"), 0))
	require.NoError(t, os.Chmod(w.Dir, 0))
	require.NoError(t, w.Remove())
	require.FileExists(t, filepath.Join(outside, "precious"))
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, left, 1)

	w, err = Prepare(context.Background(), Request{Root: sourceOf(t, map[string]string{"a": "x"}), Parent: parent, Writable: evidence.WritablePaths{"."}})
	require.NoError(t, err)
	require.NoError(t, os.Rename(w.Dir, w.Dir+"-elsewhere"))
	require.NoError(t, os.Symlink(outside, w.Dir))
	err = w.Remove()
	var kept *LeftoverError
	require.ErrorAs(t, err, &kept)
	require.Equal(t, filepath.Dir(w.Dir), kept.Dir)
	require.NotContains(t, err.Error(), parent, "a path of the host")
	require.FileExists(t, filepath.Join(outside, "precious"))
	require.FileExists(t, filepath.Join(w.Dir+"-elsewhere", "a"))
}
