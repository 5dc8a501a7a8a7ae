package warden

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/ledger"
)

// stage is how far a runner came before it died.
type stage int

const (
	claimed     stage = iota // nothing but the claim
	placed                   // its source is in place
	taken                    // custody taken, the create never sent
	lost                     // created, and the answer never recorded
	made                     // ContainerCreated is on record
	running                  // the container runs
	exited                   // it exited by itself
	putDownBody              // its watchdog killed it
)

func (s stage) String() string {
	return [...]string{"claimed", "placed", "taken", "lost", "made", "running", "exited", "put down"}[s]
}

// husk is what a dead runner leaves: its appends, its snapshot, its container, its lock file.
type husk struct {
	id        evidence.AttemptID
	handle    evidence.HandleKey
	container evidence.ContainerID // zero before lost
	daemon    evidence.DaemonIdentity
}

// die makes the husk of a runner of this home. bend may change its claim's and its custody's view of
// machine and daemon.
func (y *yard) die(t testing.TB, id string, at stage, bend ...func(*journal.Claim, *evidence.DaemonIdentity)) husk {
	ctx := context.Background()
	h := husk{id: y.register(t, y.registration(id))}
	k, err := y.warden.prepare(ctx, y.request(h.id), func(string, string) {})
	require.NoError(t, err)
	k.life = ctx
	claim, err := y.warden.claim(k.profile, k.recipe)
	require.NoError(t, err)
	claim.Accepted = v1
	rt, err := y.warden.Driver.Probe(ctx)
	require.NoError(t, err)
	h.daemon = rt.Identity.Daemon
	for _, f := range bend {
		f(&claim, &h.daemon)
	}
	lock, err := y.warden.Home.Lock(h.id)
	require.NoError(t, err)
	require.NoError(t, lock.Close(), "it dies: the lock is free, the file stays")
	p, err := y.journal.Claim(ctx, h.id, 0, claim)
	require.NoError(t, err)
	k.appender, k.rec = p, &recorder{journal: y.journal, appender: p}
	if at == claimed {
		return h
	}
	ok, err := k.materialize(ctx)
	require.NoError(t, err)
	require.True(t, ok)
	if at == placed {
		return h
	}
	fold := p.Attempt()
	request, ok := fold.Request()
	require.True(t, ok)
	_, err = rand.Read(h.handle[:])
	require.NoError(t, err)
	plan := executor.Plan{
		Profile: k.profile, Recipe: k.recipe, Environment: k.env, Seccomp: rt.Seccomp, Request: request.Digest(),
		Handle: h.handle, Name: "baildock-" + id, Source: k.snapshot.Dir,
	}
	identity := rt.Identity
	identity.Daemon = h.daemon
	require.NoError(t, k.rec.Record(ctx,
		evidence.RuntimeObserved{Point: evidence.BeforeCreate, Identity: &identity, Reductions: rt.Reductions, Seccomp: rt.Seccomp},
		evidence.CustodyTaken{Handle: h.handle, Kind: evidence.CustodyContainer, Name: plan.Name, Request: plan.Request, Daemon: h.daemon}))
	if at == taken {
		return h
	}
	created, err := y.warden.Driver.Create(ctx, plan)
	require.NoError(t, err)
	h.container = created.ID
	if at == lost {
		return h
	}
	require.NoError(t, k.rec.Record(ctx, evidence.ContainerCreated{Handle: h.handle, Container: h.container}))
	if at == made {
		return h
	}
	require.NoError(t, y.warden.Driver.Start(ctx, h.container))
	if at == putDownBody {
		require.NoError(t, y.warden.Driver.Kill(ctx, h.container))
	}
	if at != running {
		require.Eventually(t, func() bool {
			in, err := y.warden.Driver.Inspect(ctx, h.container)
			return err == nil && in.Status == "exited"
		}, 10*time.Second, 5*time.Millisecond)
	}
	return h
}

// recoverBy is one recovery at a generation.
func (y *yard) recoverBy(t testing.TB, id evidence.AttemptID, generation uint64, by evidence.FencedBy) (Result, error) {
	return y.warden.Recover(context.Background(), RecoverRequest{Attempt: id, Generation: generation, By: by, Reason: "because\n"}, nil)
}

// sound holds what must be true after anything: the ledger means what it says, and nothing was ever
// removed but by full ID, and only what was ours.
func (y *yard) sound(t testing.TB, ours ...evidence.ContainerID) {
	ctx := context.Background()
	m, bytes := &journal.Meaning{}, ledger.NewChecker()
	for e, err := range y.ledger.ReadAll(ctx, 0) {
		require.NoError(t, err)
		_, err := bytes.Check(e)
		require.NoError(t, err)
		require.NoError(t, m.Visit(e))
	}
	for _, r := range y.daemon.Requests(fakedaemon.CallRemove) {
		owned := false
		for _, id := range ours {
			owned = owned || r.Object == id.Hex()
		}
		require.True(t, owned, "%s was asked to be removed", r.Object)
	}
}

func (y *yard) stored(t testing.TB, id evidence.AttemptID) evidence.Attempt {
	a, err := y.journal.Attempt(context.Background(), id)
	require.NoError(t, err)
	return a.Fold
}

// atRest holds what must be true of a finished attempt of this home.
func (y *yard) atRest(t testing.TB, h husk) {
	require.Equal(t, evidence.StateFinished, y.stored(t, h.id).State)
	require.Empty(t, y.daemon.Containers())
	require.Empty(t, y.snapshots(t))
	require.NoFileExists(t, filepath.Join(y.home, "locks", string(h.id)))
	require.NoDirExists(t, filepath.Join(y.home, "execution", string(h.id)))
}

// programs makes what the husk's command does fit the stage.
func (y *yard) programs(at stage) {
	steps := []fakedaemon.Step{fakedaemon.Stdout("hello\n"), fakedaemon.Exit(0)}
	if at == running || at == putDownBody {
		steps = []fakedaemon.Step{fakedaemon.Never()}
	}
	y.daemon.Script("/tool", fakedaemon.Program{Steps: steps})
}

func reasonOf(t testing.TB, y *yard, a evidence.Attempt) string {
	last := a.Fences[len(a.Fences)-1]
	require.NotNil(t, last.Reason)
	kept, err := y.journal.Kept(context.Background(), *last.Reason)
	require.NoError(t, err)
	return strings.TrimSpace(string(kept.Bytes))
}

// leave puts something of a dead runner's making where its snapshots lie.
func (y *yard) leave(t testing.TB, id evidence.AttemptID, name string) string {
	dir := filepath.Join(y.home, "execution", string(id), "1")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Join(path, "sub"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(path, "sub", "f"), nil, 0o444))
	require.NoError(t, os.Chmod(filepath.Join(path, "sub"), 0o555))
	return path
}

var errLost = errors.New("lost")

func asGeneration(err error, target **journal.GenerationError) bool { return errors.As(err, target) }
