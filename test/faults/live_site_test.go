//go:build live

package faults

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger/sqlite"
)

const (
	childMortal   = "mortal-runner"
	childWatchdog = "watchdog"
)

func init() {
	children[childMortal] = mortalRunner
	children[childWatchdog] = func(args []string) error {
		d, err := docker.Open(args[0])
		if err != nil {
			return err
		}
		return warden.WatchdogMain(context.Background(), d, os.Stdin, os.Stdout)
	}
}

// liveSite is a site whose daemon is a real one.
type liveSite struct {
	*site
	socket string
	api    *client.Client
}

// program is what the containers run, built once.
var program = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "baildock-faultstest-")
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "subject")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", name, "../../executor/warden/testdata/subject")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(err, errors.New(string(out)))
	}
	b, err := os.ReadFile(name)
	return b, errors.Join(err, os.RemoveAll(dir))
})

func machineSocket() string {
	if s := os.Getenv("BAILDOCK_TEST_DOCKER_SOCKET"); s != "" {
		return s
	}
	return docker.DefaultSocket
}

// newLiveSite makes a home, a ledger and a source on disk, and the image at the daemon.
func newLiveSite(t testing.TB, socket string) *liveSite {
	ctx := context.Background()
	binary, err := program()
	require.NoError(t, err)
	top := t.TempDir()
	s := &liveSite{site: &site{home: filepath.Join(top, "home"), source: filepath.Join(top, "source")}, socket: socket}
	require.NoError(t, os.Mkdir(s.home, 0o700))
	require.NoError(t, os.Mkdir(s.source, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.source, "a.txt"), []byte("one\n"), 0o644))
	host := filepath.Join(top, "subject")
	require.NoError(t, os.WriteFile(host, binary, 0o755))
	store, err := sqlite.Open(ctx, filepath.Join(s.home, "ledger.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s.memory = store
	s.journal = journal.New(journal.Config{Ledger: store, Actor: "init"})
	require.NoError(t, s.journal.Init(ctx, keys()))
	s.driver, err = docker.Open(socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.driver.Close()) })
	s.api, err = client.NewClientWithOpts(client.WithHost("unix://"+socket), client.WithAPIVersionNegotiation())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.api.Close()) })

	name := "baildock-faultstest/subject:" + tag(t)
	a, err := docker.BuildArchive(ctx, name, []docker.ArchiveFile{{Host: host, Dest: "/tool"}, {Host: host, Dest: "/subject"}})
	require.NoError(t, err)
	r, w := io.Pipe()
	go func() { w.CloseWithError(a.Write(ctx, w)) }()
	s.image, err = s.driver.ImageLoad(ctx, r, a.Name())
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := s.api.ImageRemove(ctx, name, image.RemoveOptions{})
		require.NoError(t, err)
	})
	return s
}

func tag(t testing.TB) string {
	var b [6]byte
	_, err := rand.Read(b[:])
	require.NoError(t, err)
	return hex.EncodeToString(b[:])
}

// registers makes a pending attempt of the program, of a name that no other test's containers have.
func (s *liveSite) registers(t testing.TB, args ...string) evidence.AttemptID {
	r := s.registration("a" + tag(t))
	r.Recipe.Args = args
	return s.register(t, r)
}

// ours lists the attempt's containers, running or not: by custody's labels, and by name whoever names it.
func (s *liveSite) ours(t testing.TB, id evidence.AttemptID) []container.Summary {
	var by []filters.KeyValuePair
	for _, k := range s.stored(t, id).Fold.Custodies {
		by = append(by, filters.Arg("label", executor.LabelHandle+"="+k.Handle.String()))
	}
	var all []container.Summary
	for _, f := range append(by, filters.Arg("name", "baildock-"+string(id)+"-")) {
		list, err := s.api.ContainerList(context.Background(), container.ListOptions{All: true, Filters: filters.NewArgs(f)})
		require.NoError(t, err)
		all = append(all, list...)
	}
	return all
}

// passes lets a supervisor make some passes over the whole home.
func (s *liveSite) passes(t testing.TB, n int) {
	for range n {
		w := s.wardenOf(journal.New(journal.Config{Ledger: s.memory, Actor: "supervisor"}), s.driver)
		_, err := w.Supervise(t.Context(), warden.Pass{Audit: true}, nil)
		require.NoError(t, err)
	}
}

// nothingLeft: no container, no snapshot, no lock of an attempt that ended.
func (s *liveSite) nothingLeft(t testing.TB, id evidence.AttemptID) {
	require.Empty(t, s.ours(t, id))
	require.NoDirExists(t, filepath.Join(s.home, "execution", string(id)))
	require.NoFileExists(t, filepath.Join(s.home, "locks", string(id)))
}
