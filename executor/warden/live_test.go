//go:build live

package warden_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/sqlite"
)

// This binary is also its own watchdog and, for the crash, its own runner.
func init() {
	warden.Children["watchdog"] = func(args []string) error {
		d, err := docker.Open(args[0])
		if err != nil {
			return err
		}
		return warden.WatchdogMain(context.Background(), d, os.Stdin, os.Stdout)
	}
	warden.Children["runner"] = func(args []string) error {
		s, err := open(args[0], args[1], args[2])
		if err != nil {
			return err
		}
		_, err = s.warden(s.driver).Run(context.Background(), warden.RunRequest{Attempt: evidence.AttemptID(args[3]), Path: s.source, Accepted: v1}, nil)
		return err
	}
}

var v1 = []evidence.Reduction{evidence.ReducedCgroupV1}

const liveImage = "baildock-wardentest/subject:live"

// site is a home, its ledger and the daemon.
type site struct {
	home, source, socket string
	store                *sqlite.Store
	journal              *journal.Journal
	driver               *docker.Driver
	dog                  *warden.Watchdog
	image                evidence.ImageID
	api                  *client.Client
}

func liveSocket() string {
	if s := os.Getenv("BAILDOCK_TEST_DOCKER_SOCKET"); s != "" {
		return s
	}
	return docker.DefaultSocket
}

func open(home, src, socket string) (*site, error) {
	s := &site{home: home, source: src, socket: socket}
	var err error
	if s.store, err = sqlite.Open(context.Background(), filepath.Join(home, "ledger.db"), sqlite.Options{}); err != nil {
		return nil, err
	}
	s.journal = journal.New(journal.Config{Ledger: s.store, Actor: "runner"})
	if s.driver, err = docker.Open(socket); err != nil {
		return nil, err
	}
	s.dog, err = warden.StartWatchdog("/proc/self/exe", "watchdog", socket)
	return s, err
}

func (s *site) warden(d executor.Driver) *warden.Warden {
	return warden.New(warden.Config{
		Home: warden.Home{Dir: s.home, ID: evidence.HomeID{1}}, Journal: s.journal, Driver: d, Watchdog: s.dog,
		Reserved: []source.Reserved{{Kind: source.ReservedHome, Path: s.home}},
		Probe: &warden.Probe{
			Image:      func(context.Context) (evidence.ImageID, error) { return s.image, nil },
			Executable: "/subject", Args: []string{"report"},
		},
	})
}

// subject is the program of the image, built once and kept in memory.
var subject = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "baildock-wardentest-")
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "subject")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "./testdata/subject")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	binary, err := os.ReadFile(program)
	return binary, errors.Join(err, os.RemoveAll(dir))
})

// newSite makes a home with an initialised ledger, a source of two files, and the image.
func newSite(t testing.TB) *site {
	ctx := context.Background()
	binary, err := subject()
	require.NoError(t, err)
	top := t.TempDir()
	home, src := filepath.Join(top, "home"), filepath.Join(top, "source")
	require.NoError(t, os.Mkdir(home, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(src, "dir"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(src, "a.txt"), []byte("one\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(src, "dir", "b.txt"), []byte("two\n"), 0o644))
	program := filepath.Join(top, "subject")
	require.NoError(t, os.WriteFile(program, binary, 0o755))
	s, err := open(home, src, liveSocket())
	require.NoError(t, err)
	require.NoError(t, s.journal.Init(ctx, genesis(t)))

	a, err := docker.BuildArchive(ctx, liveImage, []docker.ArchiveFile{{Host: program, Dest: "/subject"}})
	require.NoError(t, err)
	r, w := io.Pipe()
	go func() { w.CloseWithError(a.Write(ctx, w)) }()
	s.image, err = s.driver.ImageLoad(ctx, r, a.Name())
	require.NoError(t, err)
	s.api, err = client.NewClientWithOpts(client.WithHost("unix://"+s.socket), client.WithAPIVersionNegotiation())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.dog.Close())
		require.NoError(t, s.store.Close())
		require.NoError(t, s.driver.Close())
		require.NoError(t, s.api.Close())
	})
	return s
}

func genesis(t testing.TB) evidence.LedgerOpened {
	bundle, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	checkpoint, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	g := evidence.LedgerOpened{Ledger: evidence.LedgerID{7}, Origin: "test"}
	g.Bundle, err = x509.MarshalPKIXPublicKey(bundle.Public())
	require.NoError(t, err)
	g.Checkpoint, err = x509.MarshalPKIXPublicKey(checkpoint)
	require.NoError(t, err)
	return g
}

// register makes a pending attempt of the subject.
func (s *site) register(t testing.TB, id string, change func(*evidence.Recipe), args ...string) evidence.AttemptID {
	var nonce evidence.Nonce
	_, err := rand.Read(nonce[:])
	require.NoError(t, err)
	env := evidence.Environment{Version: 1, Nonce: &nonce, Vars: []evidence.EnvVar{{Name: "GREETING", Value: "hello"}}}
	r := evidence.Recipe{
		Version: 1, Profile: evidence.ProfileCommand, Image: s.image, Executable: "/subject", Args: args, Environment: env.Digest(), Nonce: &nonce,
		Limits: evidence.Limits{Wall: 20 * time.Second, Output: 64 << 10, Memory: 64 << 20, Scratch: 1 << 20, PIDs: 64, NanoCPUs: 1_000_000_000},
	}
	if change != nil {
		change(&r)
	}
	a, err := s.journal.Register(context.Background(), journal.Registration{
		Attempt: evidence.AttemptID(id), Subject: evidence.Subject{Kind: evidence.SubjectDirectory}, Recipe: r, Environment: env,
	})
	require.NoError(t, err)
	return a.Fold.Registered.Attempt
}

// leftovers lists the attempt's containers by their label, whatever their state. The daemon may be
// busy with others' at the same time.
func (s *site) leftovers(t testing.TB, id evidence.AttemptID) []container.Summary {
	a, err := s.journal.Attempt(context.Background(), id)
	require.NoError(t, err)
	var all []container.Summary
	for _, c := range a.Fold.Custodies {
		label := filters.Arg("label", executor.LabelHandle+"="+c.Handle.String())
		list, err := s.api.ContainerList(context.Background(), container.ListOptions{All: true, Filters: filters.NewArgs(label)})
		require.NoError(t, err)
		all = append(all, list...)
	}
	return all
}

// settled checks what holds after every run: the history is legal as stored, the record
// re-derives, and neither a container nor a snapshot nor a lock is left.
func (s *site) settled(t testing.TB, res warden.Result) {
	t.Helper()
	require.True(t, res.Finished)
	stored, err := s.journal.Attempt(context.Background(), res.Attempt)
	require.NoError(t, err)
	require.Equal(t, evidence.StateFinished, stored.Fold.State)
	require.Equal(t, stored.Fold.Finished.Record, res.Record.Digest())
	require.Equal(t, res.Index, stored.Events[len(stored.Events)-1].Index)
	require.Empty(t, s.leftovers(t, res.Attempt))
	require.NoDirExists(t, filepath.Join(s.home, "execution", string(res.Attempt)))
	require.NoFileExists(t, filepath.Join(s.home, "locks", string(res.Attempt)))
}

// TestLiveOutcomes runs one attempt for every end that needs no fault. req C8 req D1 req D2 req D3 req E3 req E6 req E9 req F2 req F3 req B6
func TestLiveOutcomes(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		name    string
		args    []string
		change  func(*evidence.Recipe)
		reduced []evidence.Reduction
		outcome evidence.Outcome
		detail  string
		state   evidence.CleanupState // empty: nothing was created
		check   func(t *testing.T, res warden.Result)
	}{
		{name: "success", args: []string{"cat", "a.txt"}, reduced: v1, outcome: evidence.OutcomeSuccess, detail: "ok", state: evidence.CleanupTerminated,
			check: func(t *testing.T, res warden.Result) {
				require.Equal(t, evidence.ClaimReduced, res.Record.Claim)
				require.Equal(t, v1, res.Record.Reductions)
				require.Equal(t, res.Record.Controls.Total, res.Record.Controls.Equal)
				require.Equal(t, "one\n", s.output(t, res.Record.Stdout))
				require.Equal(t, "read 4\n", s.output(t, res.Record.Stderr))
				require.NotZero(t, res.Record.Duration)
			}},
		{name: "reduction-refused", args: []string{"cat", "a.txt"}, outcome: evidence.OutcomeUnavailable, detail: "reduction_not_accepted",
			check: func(t *testing.T, res warden.Result) { require.Equal(t, evidence.ClaimNone, res.Record.Claim) }},
		{name: "exit-3", args: []string{"exit", "3"}, reduced: v1, outcome: evidence.OutcomeFailed, detail: "exit_nonzero", state: evidence.CleanupTerminated,
			check: func(t *testing.T, res warden.Result) { require.EqualValues(t, 3, *res.Record.ExitCode) }},
		{name: "timeout", args: []string{"tree", "1h"}, change: wall(2 * time.Second), reduced: v1, outcome: evidence.OutcomeTimedOut, detail: "timeout", state: evidence.CleanupForceKilled,
			check: func(t *testing.T, res warden.Result) {
				require.GreaterOrEqual(t, res.Record.Duration, uint64(2*time.Second))
				require.Contains(t, s.output(t, res.Record.Stdout), "sleeping")
				require.False(t, res.Record.Incomplete)
			}},
		{name: "flood", args: []string{"flood"}, reduced: v1, outcome: evidence.OutcomeOutputLimit, detail: "output_limit", state: evidence.CleanupForceKilled,
			check: func(t *testing.T, res warden.Result) {
				require.EqualValues(t, 64<<10, res.Record.Stdout.Stored)
				require.Greater(t, res.Record.Stdout.Received, uint64(64<<10))
				require.True(t, res.Record.Stdout.Truncated)
			}},
		{name: "not-found", change: func(r *evidence.Recipe) { r.Executable = "/absent" }, reduced: v1, outcome: evidence.OutcomeIncomplete, detail: "start_failed", state: evidence.CleanupRemoved},
		{name: "no-image", change: func(r *evidence.Recipe) { r.Image = evidence.ImageID{1} }, reduced: v1, outcome: evidence.OutcomeUnavailable, detail: "runtime_refused",
			check: func(t *testing.T, res warden.Result) {
				require.Equal(t, []string{executor.RefusedNoImage}, res.Record.Refusals)
			}},
		{name: "oom-child", args: []string{"parent"}, reduced: v1, outcome: evidence.OutcomeIncomplete, detail: "oom", state: evidence.CleanupTerminated,
			check: func(t *testing.T, res warden.Result) {
				require.EqualValues(t, 0, *res.Record.ExitCode)
				require.Equal(t, evidence.OOMSeen, res.Fold.Run.Exited.OOMEvent)
			}},
		{name: "oom", args: []string{"hog"}, reduced: v1, outcome: evidence.OutcomeIncomplete, detail: "oom", state: evidence.CleanupTerminated},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := s.register(t, c.name, c.change, c.args...)
			var stages []string
			res, err := s.warden(s.driver).Run(context.Background(), warden.RunRequest{Attempt: id, Path: s.source, Accepted: c.reduced},
				func(stage, text string) { stages = append(stages, stage+" "+text) })
			require.NoError(t, err, "%v", stages)
			require.Equal(t, c.outcome, res.Verdict.Outcome, "%v %v %+v", res.Verdict, res.Record.Refusals, s.details(t, res))
			require.Equal(t, c.detail, res.Verdict.Detail, res.Verdict.Causes)
			s.settled(t, res)
			if c.state == "" {
				require.Empty(t, res.Record.Cleanup)
			} else {
				require.Len(t, res.Record.Cleanup, 1)
				require.Equal(t, c.state, res.Record.Cleanup[0].State)
			}
			if c.check != nil {
				c.check(t, res)
			}
		})
	}
}

func wall(d time.Duration) func(*evidence.Recipe) {
	return func(r *evidence.Recipe) { r.Limits.Wall = d }
}

func (s *site) output(t testing.TB, o *evidence.Stream) string {
	w, err := s.journal.Kept(context.Background(), o.Bytes)
	require.NoError(t, err)
	return string(w.Bytes)
}

// details reads what the run kept for people.
func (s *site) details(t testing.TB, res warden.Result) []string {
	var refs []*evidence.BlobRef
	f := res.Fold
	for _, o := range []*evidence.RuntimeObserved{f.BeforeCreate, f.BeforeStart, f.AfterExit} {
		if o != nil {
			refs = append(refs, o.Detail)
		}
	}
	if f.Isolation != nil {
		refs = append(refs, f.Isolation.Detail)
	}
	if f.Run.StartFailed != nil {
		refs = append(refs, f.Run.StartFailed.Detail)
	}
	var out []string
	for _, ref := range refs {
		if ref != nil {
			w, err := s.journal.Kept(context.Background(), *ref)
			require.NoError(t, err)
			out = append(out, string(w.Bytes))
		}
	}
	return out
}

// while runs an attempt and does something once it prints that it sleeps.
func (s *site) while(t *testing.T, name string, act func(cancel context.CancelFunc, id string)) warden.Result {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	id := s.register(t, name, nil, "sleep", "3s")
	acted := make(chan struct{})
	var once sync.Once
	tell := writer(func(b []byte) {
		once.Do(func() {
			go func() {
				defer close(acted)
				list := s.leftovers(t, id)
				if len(list) == 1 {
					act(cancel, list[0].ID)
				}
			}()
		})
	})
	res, err := s.warden(s.driver).Run(ctx, warden.RunRequest{Attempt: id, Path: s.source, Accepted: v1, Stdout: tell}, nil)
	require.NoError(t, err)
	<-acted
	return res
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// req J3, req D3: a signal ends the run as cancelled, with its container removed.
func TestLiveCancel(t *testing.T) {
	s := newSite(t)
	res := s.while(t, "cancelled", func(cancel context.CancelFunc, _ string) { cancel() })
	require.Equal(t, "cancelled", res.Verdict.Detail, res.Verdict.Causes)
	require.Equal(t, evidence.CleanupForceKilled, res.Record.Cleanup[0].State)
	require.Less(t, res.Record.Duration, uint64(3*time.Second))
	s.settled(t, res)
}

// req D5, req G9: kill -9 of a runner kills its container, and what it recorded names it.
func TestLiveRunnerDies(t *testing.T) {
	s := newSite(t)
	id := s.register(t, "orphan", nil, "tree", "1h")
	runner := exec.Command("/proc/self/exe", "runner", s.home, s.source, s.socket, string(id))
	var errs bytes.Buffer
	runner.Stderr = &errs
	require.NoError(t, runner.Start())
	var fold evidence.Attempt
	require.Eventually(t, func() bool {
		a, err := s.journal.Attempt(context.Background(), id)
		require.NoError(t, err)
		fold = a.Fold
		return fold.Run.Started
	}, 20*time.Second, 20*time.Millisecond, "%s", &errs)
	list := s.leftovers(t, id)
	require.Len(t, list, 1)
	main, _ := fold.Custodies.MainContainer()
	require.Equal(t, main.Container.Hex(), list[0].ID)
	_, err := warden.Home{Dir: s.home}.Lock(id)
	var held *warden.HeldError
	require.ErrorAs(t, err, &held, "the runner holds its lock")

	require.NoError(t, runner.Process.Kill())
	require.Error(t, runner.Wait())
	require.Eventually(t, func() bool {
		in, err := s.api.ContainerInspect(context.Background(), list[0].ID)
		require.NoError(t, err)
		return in.State.Status == "exited"
	}, 10*time.Second, 20*time.Millisecond, "the watchdog kills the container")
	lock, err := warden.Home{Dir: s.home}.Lock(id)
	require.NoError(t, err, "a dead runner holds no lock, and its watchdog doesn't inherit it")
	require.NoError(t, lock.Close())
	require.NoError(t, s.api.ContainerRemove(context.Background(), list[0].ID, container.RemoveOptions{Force: true}))
}

// unreduced hides the daemon's one reduction, so that only what can't be named is left.
type unreduced struct{ executor.Driver }

func (u unreduced) Probe(ctx context.Context) (executor.Runtime, error) {
	rt, err := u.Driver.Probe(ctx)
	rt.Reductions = nil
	return rt, err
}

// req C4: a runtime is probed once, by an attempt of its own that later runs cite.
func TestLiveRuntimeProbe(t *testing.T) {
	s := newSite(t)
	w := s.warden(unreduced{s.driver})
	var first *evidence.Basis
	for i := range 2 {
		id := s.register(t, fmt.Sprintf("proven-%d", i), nil, "cat", "a.txt")
		res, err := w.Run(context.Background(), warden.RunRequest{Attempt: id, Path: s.source}, nil)
		require.NoError(t, err)
		require.Equal(t, "ok", res.Verdict.Detail, "%v %v", res.Verdict.Causes, s.details(t, res))
		require.Equal(t, evidence.ClaimFull, res.Record.Claim)
		s.settled(t, res)
		proof := res.Fold.BeforeCreate.Probe
		require.NotNil(t, proof)
		if i == 0 {
			first = proof
		}
		require.Equal(t, first, proof, "probed once")
	}
	var probes []evidence.RuntimeProbed
	var attempts []string
	for e, err := range s.store.ReadAll(context.Background(), 0) {
		require.NoError(t, err)
		if e.Type == "RuntimeProbed" {
			p, _, err := journal.Decode(e)
			require.NoError(t, err)
			probes = append(probes, p.(evidence.RuntimeProbed))
			require.Equal(t, ledger.StreamID(first.Stream), e.Stream)
		}
		if e.Type == "AttemptRegistered" && strings.HasPrefix(string(e.Stream), "attempt-probe-") {
			attempts = append(attempts, string(e.Stream))
		}
	}
	require.Len(t, probes, 1)
	require.True(t, probes[0].ProvesSeccomp())
	require.Equal(t, []string{"attempt-" + string(probes[0].Attempt)}, attempts)
}
