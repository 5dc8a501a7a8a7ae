package warden

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
)

// kennel is a watchdog that guards nothing, for a daemon that runs nothing.
type kennel struct{}

func (kennel) Guard(context.Context, evidence.ContainerID) (executor.Guard, error) {
	return kennel{}, nil
}

func (kennel) Release() error { return nil }

// yard is a home with its ledger in memory and a fake daemon.
type yard struct {
	home, source string
	ledger       ledger.Ledger
	journal      *journal.Journal
	daemon       *fakedaemon.Daemon
	warden       *Warden
	image        evidence.ImageID
}

var v1 = []evidence.Reduction{evidence.ReducedCgroupV1}

func newYard(t testing.TB, opts fakedaemon.Options) *yard {
	return newYardOn(t, ledgertest.NewMem(), opts)
}

func newYardOn(t testing.TB, led ledger.Ledger, opts fakedaemon.Options) *yard {
	top := t.TempDir()
	y := &yard{home: filepath.Join(top, "home"), source: filepath.Join(top, "source"), ledger: led}
	require.NoError(t, os.Mkdir(y.home, 0o700))
	require.NoError(t, os.Mkdir(y.source, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(y.source, "a.txt"), []byte("one\n"), 0o644))
	y.daemon = fakedaemon.Start(t, opts)
	id, err := y.daemon.AddImage(fakedaemon.Image{Name: "tool:1"})
	require.NoError(t, err)
	require.NoError(t, y.image.UnmarshalText([]byte(id)))
	y.daemon.Script("/tool", fakedaemon.Program{Steps: []fakedaemon.Step{
		fakedaemon.Stdout("hello\n"), fakedaemon.Stderr("warning\n"), fakedaemon.Exit(0),
	}})
	driver, err := docker.Open(y.daemon.Socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, driver.Close()) })
	y.journal = journal.New(journal.Config{Ledger: y.ledger, Actor: "runner"})
	require.NoError(t, y.journal.Init(context.Background(), genesis(t)))
	y.warden = New(Config{
		Home: Home{Dir: y.home, ID: evidence.HomeID{1}}, Journal: y.journal, Driver: driver, Watchdog: kennel{},
		Reserved: []source.Reserved{{Kind: source.ReservedHome, Path: y.home}},
	})
	y.warden.patience = 0
	return y
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

// registration is an ad hoc attempt of /tool over a directory.
func (y *yard) registration(id string) journal.Registration {
	nonce := evidence.Nonce{0: 1, 1: byte(len(id))}
	env := evidence.Environment{Version: 1, Nonce: &nonce, Vars: []evidence.EnvVar{}}
	return journal.Registration{
		Attempt: evidence.AttemptID(id), Subject: evidence.Subject{Kind: evidence.SubjectDirectory}, Environment: env,
		Recipe: evidence.Recipe{
			Version: 1, Profile: evidence.ProfileCommand, Image: y.image, Executable: "/tool", Environment: env.Digest(), Nonce: &nonce,
			Limits: evidence.Limits{Wall: time.Minute, Output: 64 << 10, Memory: 64 << 20, Scratch: 1 << 20, PIDs: 64, NanoCPUs: 1_000_000_000},
		},
	}
}

func (y *yard) register(t testing.TB, r journal.Registration) evidence.AttemptID {
	a, err := y.journal.Register(context.Background(), r)
	require.NoError(t, err)
	return a.Fold.Registered.Attempt
}

func (y *yard) request(id evidence.AttemptID) RunRequest {
	return RunRequest{Attempt: id, Path: y.source, Accepted: v1}
}

// snapshots lists what lies under the home's execution directory.
func (y *yard) snapshots(t testing.TB) []string {
	found, err := filepath.Glob(filepath.Join(y.home, "execution", "*", "*", "*"))
	require.NoError(t, err)
	return found
}
