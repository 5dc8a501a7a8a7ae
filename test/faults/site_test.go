package faults

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
)

// full reports whether every cell is asked for.
func full() bool { return os.Getenv("BAILDOCK_FULL") != "" }

var accepted = []evidence.Reduction{evidence.ReducedCgroupV1, evidence.ReducedSeccomp}

// kennel is a watchdog that guards nothing: the runner lives as long as its test.
type kennel struct{}

func (kennel) Guard(context.Context, evidence.ContainerID) (executor.Guard, error) {
	return kennel{}, nil
}

func (kennel) Release() error { return nil }

// site is a home, a ledger and a daemon.
type site struct {
	home, source string
	memory       ledger.Ledger // as stored; what is read here never fails
	watched      *watched
	journal      *journal.Journal // of the runner: its appends may fail
	daemon       *fakedaemon.Daemon
	driver       *docker.Driver
	image        evidence.ImageID
	racer        evidence.AttemptID // of races
	strangers    []string           // IDs of containers that aren't ours
	began        time.Time
	dog          executor.Watchdog    // nil: a kennel
	prelude      int                  // requests before the attempt's
	taken        int                  // requests before a recovery began
	contained    *warden.ContainedRun // of an agent's attempt
	patient      bool                 // the ledger takes its time, so that no deadline can be held
}

// keys are the same at every site: making them is dear, and no cell depends on them.
var keys = sync.OnceValue(func() evidence.LedgerOpened {
	g := evidence.LedgerOpened{Ledger: evidence.LedgerID{7}, Origin: "test"}
	bundle, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err == nil {
		g.Bundle, err = x509.MarshalPKIXPublicKey(bundle.Public())
	}
	var checkpoint ed25519.PublicKey
	if err == nil {
		checkpoint, _, err = ed25519.GenerateKey(rand.Reader)
	}
	if err == nil {
		g.Checkpoint, err = x509.MarshalPKIXPublicKey(checkpoint)
	}
	if err != nil {
		panic(err)
	}
	return g
})

// newSite makes a site inside a bubble, with a command's attempt "one".
func newSite(t testing.TB, opts fakedaemon.Options) *site { return newSiteOf(t, opts, false) }

// newSiteOf makes a site with the attempt "one" of a command, or of an agent.
func newSiteOf(t testing.TB, opts fakedaemon.Options, agent bool) *site {
	top := t.TempDir()
	s := &site{home: filepath.Join(top, "home"), source: filepath.Join(top, "source"), memory: ledgertest.NewMem(), racer: "one"}
	require.NoError(t, os.Mkdir(s.home, 0o700))
	require.NoError(t, os.Mkdir(s.source, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.source, "a.txt"), []byte("one\n"), 0o644))
	opts.Memory = true
	s.daemon = fakedaemon.Start(t, opts)
	id, err := s.daemon.AddImage(fakedaemon.Image{Name: "tool:1"})
	require.NoError(t, err)
	require.NoError(t, s.image.UnmarshalText([]byte(id)))
	require.NoError(t, journal.New(journal.Config{Ledger: s.memory, Actor: "init"}).Init(t.Context(), keys()))
	s.driver = s.open(t)
	s.watched = &watched{Ledger: s.memory, daemon: s.daemon}
	s.journal = journal.New(journal.Config{Ledger: s.watched, Actor: "runner"})
	s.strangers = []string{s.stranger(t, "stranger", nil)}
	first := s.registration("one")
	if agent {
		first, s.contained = contained(t, first)
	}
	s.register(t, first)
	s.strangers = append(s.strangers,
		// One that takes over what it can know: the name's beginning and our label, with a nonce of its own.
		s.stranger(t, "baildock-one-000000000000", map[string]string{executor.LabelHandle: strings.Repeat("0", 32), executor.LabelRequest: "sha256:" + strings.Repeat("0", 64)}))
	s.began, s.prelude = time.Now(), len(s.daemon.Requests())
	return s
}

func (s *site) open(t testing.TB) *docker.Driver {
	d, err := docker.OpenVia(s.daemon.Socket, s.daemon.Dial)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// stranger makes somebody else's container, past every fault.
func (s *site) stranger(t testing.TB, name string, labels map[string]string) string {
	body, err := json.Marshal(map[string]any{"Image": s.image.String(), "Labels": labels, "Cmd": []string{"/stranger"}})
	require.NoError(t, err)
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.daemon.Dial(ctx) }}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://daemon/v1.41/containers/create?name="+name, strings.NewReader(string(body)))
	require.NoError(t, err)
	resp, err := c.Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusCreated, resp.StatusCode, string(text))
	var made struct{ Id string }
	require.NoError(t, json.Unmarshal(text, &made))
	return made.Id
}

// registration is an ad hoc attempt of a scene.
func (s *site) registration(id string) journal.Registration {
	nonce := evidence.Nonce{0: 1, 1: byte(len(id))}
	env := evidence.Environment{Version: 1, Nonce: &nonce, Vars: []evidence.EnvVar{}}
	return journal.Registration{
		Attempt: evidence.AttemptID(id), Subject: evidence.Subject{Kind: evidence.SubjectDirectory}, Environment: env,
		Recipe: evidence.Recipe{
			Version: 1, Profile: evidence.ProfileCommand, Image: s.image, Executable: "/tool", Environment: env.Digest(), Nonce: &nonce,
			Limits: evidence.Limits{Wall: wall, Output: outputLimit, Memory: 64 << 20, Scratch: 1 << 20, PIDs: 64, NanoCPUs: 1_000_000_000},
		},
	}
}

func (s *site) register(t testing.TB, r journal.Registration) evidence.AttemptID {
	a, err := s.journal.Register(t.Context(), r)
	require.NoError(t, err)
	return a.Fold.Registered.Attempt
}

// warden is a runner's at this site.
func (s *site) warden() *warden.Warden { return s.wardenOf(s.journal, s.driver) }

func (s *site) wardenOf(j *journal.Journal, d executor.Driver) *warden.Warden {
	dog := s.dog
	if dog == nil {
		dog = kennel{}
	}
	return warden.New(warden.Config{
		Home: warden.Home{Dir: s.home, ID: evidence.HomeID{1}}, Journal: j, Driver: d, Watchdog: dog,
		Reserved: []source.Reserved{{Kind: source.ReservedHome, Path: s.home}},
	})
}

// run runs a scene as attempt "one".
func (s *site) run(t testing.TB, c scene) (warden.Result, error) {
	ctx := t.Context()
	if c.cancel > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, c.cancel)
		defer stop()
	}
	return s.warden().Run(ctx, warden.RunRequest{Attempt: "one", Path: s.source, Accepted: accepted, Contained: s.contained}, nil)
}

// stored reads an attempt as it is kept, past every fault.
func (s *site) stored(t testing.TB, id evidence.AttemptID) journal.Attempt {
	a, err := journal.New(journal.Config{Ledger: s.memory, Actor: "reader"}).Attempt(context.Background(), id)
	require.NoError(t, err)
	return a
}

// requests is what the attempt asked of the daemon.
func (s *site) requests(calls ...fakedaemon.Call) []fakedaemon.Request {
	return slices.DeleteFunc(s.daemon.Requests(calls...), func(r fakedaemon.Request) bool { return r.Seq <= s.prelude })
}

// snapshots lists what lies under the home's execution directory.
func (s *site) snapshots(t testing.TB) []string {
	found, err := filepath.Glob(filepath.Join(s.home, "execution", "*", "*", "*"))
	require.NoError(t, err)
	return found
}

// calm takes every fault back and lets whatever was late come.
func (s *site) calm() {
	s.daemon.ClearFaults()
	for range 64 { // a fault that hit several calls replaced the daemon as often
		s.daemon.Restore()
	}
	s.daemon.CompleteLate()
}

// watched notes when each event became durable, in requests that the daemon had seen by then.
type watched struct {
	ledger.Ledger
	daemon *fakedaemon.Daemon

	mu    sync.Mutex
	open  int // appends that were begun and not acknowledged
	marks []mark
}

// mark is one event of an attempt and how many requests had arrived when it was durable.
type mark struct {
	typ      string
	requests int
}

func (w *watched) Append(ctx context.Context, id ledger.StreamID, v ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	w.mu.Lock()
	w.open++
	w.mu.Unlock()
	done, err := w.Ledger.Append(ctx, id, v, events...)
	if err != nil {
		return done, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	n := len(w.daemon.Requests())
	for _, e := range events {
		w.marks = append(w.marks, mark{e.Type, n})
	}
	return done, nil
}

// durable reports when an event of a type was acknowledged; false if none was.
func (w *watched) durable(typ string) (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.marks {
		if m.typ == typ {
			return m.requests, true
		}
	}
	return 0, false
}
