package source

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// home is a baildock home in dir, and what a caller reserves of it.
func home(t *testing.T, dir string) []Reserved {
	writeFiles(t, dir, map[string]string{"ledger.db": "events", "keys/bundle.pem": "secret", "execution/x": ""})
	return []Reserved{
		{ReservedHome, dir}, {ReservedLedger, filepath.Join(dir, "ledger.db")}, {ReservedKeys, filepath.Join(dir, "keys")},
		{ReservedSocket, filepath.Join(dir, "no-such-socket")},
	}
}

func refusedEverywhere(t *testing.T, s Subject, reserved []Reserved, code Code) {
	t.Helper()
	requireCode(t, Check(context.Background(), s, reserved), code)
	_, err := Digest(context.Background(), s, reserved)
	requireCode(t, err, code)
	_, err = Materialize(context.Background(), Request{Subject: s, Parent: privateDir(t), Name: "s", Reserved: reserved})
	requireCode(t, err, code)
}

// req B7: a source inside a home is refused, whichever home and by whatever path.
func TestSourceInsideHome(t *testing.T) {
	dir := realTemp(t)
	active := home(t, filepath.Join(dir, "active"))
	home(t, filepath.Join(dir, "other"))
	writeFiles(t, dir, map[string]string{"active/execution/src/f": "x", "other/execution/src/f": "x"})
	for _, path := range []string{"active", "active/execution", "active/execution/src", "active/keys", "other", "other/execution/src"} {
		refusedEverywhere(t, directorySubject(filepath.Join(dir, path)), active, CodeInsideHome)
	}
	runGit(t, filepath.Join(dir, "active/execution/src"), "init", "-q")
	runGit(t, filepath.Join(dir, "active/execution/src"), "commit", "-q", "--allow-empty", "-m", "1")
	revision := runGit(t, filepath.Join(dir, "active/execution/src"), "rev-parse", "HEAD")
	refusedEverywhere(t, commitSubject(filepath.Join(dir, "active/execution/src"), revision), active, CodeInsideHome)

	// By a link, the path is resolved first.
	require.NoError(t, os.Symlink(filepath.Join(dir, "active/execution/src"), filepath.Join(dir, "innocent")))
	s, err := Resolve(context.Background(), Locator{Path: filepath.Join(dir, "innocent")})
	require.NoError(t, err)
	refusedEverywhere(t, s, active, CodeInsideHome)
}

// req B7: a home, ledger or key under a name that isn't reserved refuses a directory; under one
// that is, it is skipped.
func TestDirectoryHoldsHome(t *testing.T) {
	t.Run("the active home", func(t *testing.T) {
		dir := directoryOf(t, map[string]string{"a": "1"})
		refusedEverywhere(t, directorySubject(dir), home(t, filepath.Join(dir, "deep/er/state")), CodeHoldsHome)
	})
	t.Run("behind something refused later", func(t *testing.T) {
		dir := directoryOf(t, map[string]string{"a": "-> /etc"})
		require.NoError(t, os.Link(filepath.Join(directoryOf(t, map[string]string{"x": "1"}), "x"), filepath.Join(dir, "b")))
		active := home(t, filepath.Join(dir, "state"))
		requireCode(t, Check(context.Background(), directorySubject(dir), active), CodeHoldsHome)
	})
	t.Run("another home", func(t *testing.T) {
		dir := directoryOf(t, map[string]string{"a": "1"})
		home(t, filepath.Join(dir, "deep/state"))
		refusedEverywhere(t, directorySubject(dir), nil, CodeHoldsHome)
	})
	t.Run("the ledger alone", func(t *testing.T) {
		dir := directoryOf(t, map[string]string{"a": "1", "d/events": "ledger"})
		refusedEverywhere(t, directorySubject(dir), []Reserved{{ReservedLedger, filepath.Join(dir, "d/events")}}, CodeHoldsHome)
	})
	t.Run("a key alone", func(t *testing.T) {
		dir := directoryOf(t, map[string]string{"a": "1", "d/key.pem": "secret"})
		refusedEverywhere(t, directorySubject(dir), []Reserved{{ReservedKeys, filepath.Join(dir, "d/key.pem")}}, CodeHoldsHome)
	})
	t.Run("the ledger by another name", func(t *testing.T) {
		dir := directoryOf(t, map[string]string{"a": "1"})
		active := home(t, realTemp(t))
		require.NoError(t, os.Link(active[1].Path, filepath.Join(dir, "notes.txt")))
		refusedEverywhere(t, directorySubject(dir), active, CodeHoldsHome)
	})
	t.Run("the snapshots' parent", func(t *testing.T) {
		dir := directoryOf(t, map[string]string{"a": "1"})
		require.NoError(t, os.Mkdir(filepath.Join(dir, "execution"), 0o700))
		_, err := Materialize(context.Background(), Request{Subject: directorySubject(dir), Parent: filepath.Join(dir, "execution"), Name: "s"})
		requireCode(t, err, CodeHoldsHome)
	})
	t.Run("a reserved name", func(t *testing.T) {
		dir := directoryOf(t, map[string]string{"a": "1"})
		want := digestOf(t, directorySubject(dir))
		active := home(t, filepath.Join(dir, ".baildock"))
		parent := filepath.Join(dir, ".baildock", "snapshots")
		require.NoError(t, os.Mkdir(parent, 0o700))
		require.NoError(t, Check(context.Background(), directorySubject(dir), active))
		snap, err := Materialize(context.Background(), Request{Subject: directorySubject(dir), Parent: parent, Name: "s", Reserved: active})
		require.NoError(t, err)
		require.Equal(t, []Skipped{{".baildock", SkippedReservedName}}, snap.Skipped)
		got, err := snap.Manifest.Digest()
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, snap.Remove())
	})
}

// req B7: the Docker socket in use is skipped wherever it lies; another socket is refused.
func TestDockerSocketIsSkipped(t *testing.T) {
	dir := directoryOf(t, map[string]string{"a": "1", "run/b": "2"})
	want := digestOf(t, directorySubject(dir))
	path := filepath.Join(dir, "run", "d.sock")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	_, err = measure(t, directorySubject(dir))
	requireCode(t, err, CodeSpecialFile)

	elsewhere := filepath.Join(realTemp(t), "docker.sock")
	require.NoError(t, os.Symlink(path, elsewhere))
	c, err := measure(t, directorySubject(dir), Reserved{ReservedSocket, elsewhere})
	require.NoError(t, err)
	require.Equal(t, []Skipped{{"run/d.sock", SkippedSocket}}, c.Skipped)
	got, err := c.Manifest.Digest()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestReservedMustBeReadable(t *testing.T) {
	loop := filepath.Join(realTemp(t), "loop")
	require.NoError(t, os.Symlink(loop, loop))
	_, err := measure(t, directorySubject(directoryOf(t, map[string]string{"a": ""})), Reserved{ReservedHome, loop})
	require.ErrorContains(t, err, "look at the home in use")
}
