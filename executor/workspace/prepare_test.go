package workspace

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// req O1
func TestPrepare(t *testing.T) {
	root := sourceOf(t, map[string]string{
		"a.txt": "hello\n", "d/run*": "#!/bin/sh\n", "d/empty/": "", "l": "-> d/run", "toempty": "-> d/empty",
		".git/config": "", ".baildock/ledger.db": "x", "d/.Baildock-x": "y", "bin": "a\x00b",
	})
	require.NoError(t, os.RemoveAll(filepath.Join(root, ".git")))
	require.NoError(t, os.Chmod(filepath.Join(root, "a.txt"), 0o440))
	then := time.Unix(1_000_000_000, 123_456_789)
	require.NoError(t, os.Chtimes(filepath.Join(root, "a.txt"), then, then))
	w := prepare(t, root)

	require.Equal(t, "workspace", filepath.Base(w.Dir))
	require.Equal(t, filepath.Dir(w.Dir), filepath.Dir(w.Evidence))
	b, err := os.ReadFile(filepath.Join(w.Dir, "l"))
	require.NoError(t, err)
	require.Equal(t, "#!/bin/sh\n", string(b))
	info, err := os.Stat(filepath.Join(w.Dir, "a.txt"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode(), "its owner can write")
	require.True(t, then.Equal(info.ModTime()))
	for _, reserved := range []string{".git", ".baildock", "d/.Baildock-x"} {
		require.NoFileExists(t, filepath.Join(w.Dir, reserved))
	}
	require.Equal(t, []source.Skipped{{Path: ".baildock", Why: source.SkippedReservedName}, {Path: "d/.Baildock-x", Why: source.SkippedReservedName}}, w.Baseline.Skipped)
	require.Nil(t, w.Baseline.Git)

	// The stored baseline is the one in memory, and what it says is what lies there.
	stored, err := os.ReadFile(filepath.Join(w.Evidence, "baseline.cbor"))
	require.NoError(t, err)
	m, err := evidence.ParseWorkspaceManifest(stored)
	require.NoError(t, err)
	require.Equal(t, w.Baseline.Manifest, m)
	state := map[string]evidence.EntryState{}
	for _, e := range m.Entries {
		state[e.Path] = e.EntryState
	}
	require.Equal(t, map[string]evidence.EntryState{
		"a.txt":   {Type: evidence.EntryFile, Mode: 0o640, Size: 6, SHA256: evidence.SumContent([]byte("hello\n"))},
		"bin":     {Type: evidence.EntryFile, Mode: 0o644, Size: 3, SHA256: evidence.SumContent([]byte("a\x00b"))},
		"d":       {Type: evidence.EntryDirectory, Mode: 0o755},
		"d/empty": {Type: evidence.EntryDirectory, Mode: 0o755},
		"d/run":   {Type: evidence.EntryFile, Mode: 0o755, Size: 10, SHA256: evidence.SumContent([]byte("#!/bin/sh\n"))},
		"l":       {Type: evidence.EntryLink, Size: 5, Target: "d/run"},
		"toempty": {Type: evidence.EntryLink, Size: 7, Target: "d/empty"},
	}, state)
	require.Empty(t, captured(t, w), "nothing changed yet")
}

// A workspace and a snapshot of the same directory have the same source digest.
func TestPrepareAgreesWithSource(t *testing.T) {
	root := sourceOf(t, map[string]string{"a": "x", "d/run*": "y", "d/e/f": "z", "l": "-> d/run"})
	w := prepare(t, root)
	m, err := w.Baseline.Manifest.Source()
	require.NoError(t, err)
	got, err := m.Digest()
	require.NoError(t, err)
	subject, err := source.Resolve(context.Background(), source.Locator{Path: root})
	require.NoError(t, err)
	content, err := source.Digest(context.Background(), subject, nil)
	require.NoError(t, err)
	want, err := content.Manifest.Digest()
	require.NoError(t, err)
	require.Equal(t, want, got)

	measured, err := Measure(context.Background(), root, nil)
	require.NoError(t, err)
	require.Equal(t, w.Baseline.Manifest, measured, "what a copy would hold, without making it")
	require.NoError(t, os.Symlink("/etc", filepath.Join(root, "out")))
	_, err = Measure(context.Background(), root, nil)
	var refusal *source.RefusedError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, source.CodeLinkAbsolute, refusal.Code)
}

// req O2
func TestOwnership(t *testing.T) {
	root := sourceOf(t, map[string]string{"src/a": "x", "out/": "", "f": "x"})
	w, err := Prepare(context.Background(), Request{Root: root, Parent: privateDir(t), Writable: evidence.WritablePaths{"out", "src"}})
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(w.Evidence, "ownership.json"))
	require.NoError(t, err)
	require.Equal(t, `{"version":1,"workspace":"${RUN_ROOT}/workspace","evidence":"${RUN_ROOT}/evidence","writable_paths":["out","src"],`+
		`"baseline":"${RUN_ROOT}/evidence/baseline.cbor","cleanup_targets":["${RUN_ROOT}/workspace","${RUN_ROOT}/evidence","${RUN_ROOT}"],`+
		`"reserved_paths":[".git",".baildock*"],"bounds":{"entries":100000,"file_bytes":67108864,"total_bytes":1073741824,"link_target_bytes":4095}}`+"\n", string(b))
	var back Ownership
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, w.Ownership, back)

	writeAll(t, w.Dir, map[string]string{"out/new": "x"})
	require.Len(t, captured(t, w), 1)
	writeAll(t, w.Dir, map[string]string{"f": "y"})
	require.Equal(t, "f", capturedCode(t, w, CaptureOutside).Path)
	require.NoError(t, w.Remove())

	refused(t, Request{Root: root, Writable: evidence.WritablePaths{"src", "src/a"}}, CodeWritable)
	refused(t, Request{Root: root, Writable: evidence.WritablePaths{".", "src"}}, CodeWritable)
	require.Equal(t, "none", refused(t, Request{Root: root, Writable: evidence.WritablePaths{"none"}}, CodeWritable).Path)
	require.Equal(t, "f", refused(t, Request{Root: root, Writable: evidence.WritablePaths{"f"}}, CodeWritable).Path)
}

// The parent is private, ours and can be mounted; a source may not lie in it or hold it.
//
// req B7
func TestPrepareWhere(t *testing.T) {
	root := sourceOf(t, map[string]string{"a": "x", "sub/b": "y"})
	open := privateDir(t)
	require.NoError(t, os.Chmod(open, 0o750))
	refused(t, Request{Root: root, Parent: open}, source.CodeParent)
	comma := filepath.Join(realTemp(t), "a,b")
	require.NoError(t, os.Mkdir(comma, 0o700))
	refused(t, Request{Root: root, Parent: comma}, source.CodeDelimiter)
	refused(t, Request{Root: filepath.Join(root, "a")}, source.CodeNotFound)
	refused(t, Request{Root: filepath.Join(root, "nothing")}, source.CodeNotFound)

	inside := filepath.Join(root, "place")
	require.NoError(t, os.Mkdir(inside, 0o700))
	require.Equal(t, "place", refused(t, Request{Root: root, Parent: inside}, source.CodeHoldsHome).Path)
	require.NoError(t, os.Remove(inside))
	reserved := filepath.Join(root, ".baildock", "execution")
	require.NoError(t, os.MkdirAll(reserved, 0o700))
	w, err := Prepare(context.Background(), Request{Root: root, Parent: reserved, Writable: evidence.WritablePaths{"."}})
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(w.Dir, ".baildock"))
	require.NoError(t, w.Remove())
	requireEmpty(t, reserved)

	home := sourceOf(t, map[string]string{"h/ledger.db": "", "h/keys/": "", "h/tree/a": "x", "other/key.pem": "k", "other/a": "x"})
	refused(t, Request{Root: home}, source.CodeHoldsHome)
	refused(t, Request{Root: filepath.Join(home, "h", "tree")}, source.CodeInsideHome)
	refused(t, Request{Root: filepath.Join(home, "other"), Reserved: []source.Reserved{{Kind: source.ReservedKeys, Path: filepath.Join(home, "other", "key.pem")}}}, source.CodeHoldsHome)
}

// Git's state is noted first; none of it enters the copy.
func TestPrepareNotesGit(t *testing.T) {
	root := sourceOf(t, map[string]string{"a": "x", "b": "y", ".gitignore": "*.o\n"})
	git(t, root, "init", "-q", "-b", "main")
	git(t, root, "add", ".")
	git(t, root, "commit", "-qm", "c")
	writeAll(t, root, map[string]string{"a": "changed", "new": "n", "x.o": "o"})
	w := prepare(t, root)
	g := w.Baseline.Git
	require.NotNil(t, g)
	require.Equal(t, git(t, root, "rev-parse", "HEAD"), g.Head+"\n")
	require.Equal(t, "refs/heads/main", g.Branch)
	require.Empty(t, g.Unavailable)
	require.Equal(t, []source.StatusLine{{Index: ' ', Worktree: 'M', Path: "a"}, {Index: '?', Worktree: '?', Path: "new"}}, g.Status)
	kept, err := os.ReadFile(filepath.Join(w.Evidence, "origin.json"))
	require.NoError(t, err)
	require.Equal(t, `{"version":1,"git":{"head":"`+g.Head+`","branch":"refs/heads/main","status":[" M \"a\"","?? \"new\""],"more":0},`+
		`"skipped":[{"path":"\".git\"","why":"reserved_name"}],"stripped":0}`+"\n", string(kept))
	require.NoDirExists(t, filepath.Join(w.Dir, ".git"))
	require.FileExists(t, filepath.Join(w.Dir, "x.o"), "an ignored file is part of the directory")

	// Commits made afterwards change nothing about the comparison.
	git(t, root, "commit", "-qam", "later")
	require.Empty(t, captured(t, w))
}

// What is prepared belongs to nobody else; a cancelled preparation leaves nothing.
func TestPreparePrivateAndCancelled(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	root := sourceOf(t, map[string]string{"a": "x", "d/b": "y"})
	w := prepare(t, root)
	for _, dir := range []string{w.Dir, w.Evidence, filepath.Dir(w.Dir)} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), dir)
	}

	ctx, cancel := context.WithCancel(context.Background())
	parent := privateDir(t)
	r := Request{Root: root, Parent: parent, Writable: evidence.WritablePaths{"."}}
	r.hooks.opened = func(string) { cancel() }
	_, err := Prepare(ctx, r)
	require.ErrorIs(t, err, context.Canceled)
	requireEmpty(t, parent)
}

// A failed preparation that can't take back what it made says so, and names it to the operator alone.
func TestPreparationLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	parent := privateDir(t)
	r := Request{Root: sourceOf(t, map[string]string{"a": "x"}), Parent: parent, Writable: evidence.WritablePaths{"."}}
	r.hooks.opened = func(string) {
		made, err := filepath.Glob(filepath.Join(parent, "*", "workspace"))
		require.NoError(t, err)
		require.Len(t, made, 1)
		require.NoError(t, os.Rename(made[0], made[0]+"-moved"))
		require.NoError(t, os.Mkdir(made[0], 0o700))
		cancel()
	}
	w, err := Prepare(ctx, r)
	require.Nil(t, w)
	require.ErrorIs(t, err, context.Canceled)
	var left *LeftoverError
	require.ErrorAs(t, err, &left)
	require.DirExists(t, left.Dir)
	require.Equal(t, parent, filepath.Dir(left.Dir))
	require.NotContains(t, err.Error(), parent)
	require.Zero(t, handles(t), "handles are given back all the same")
}
