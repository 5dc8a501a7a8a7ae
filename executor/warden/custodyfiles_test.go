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
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/fakedaemon"
)

// shelf is a custody directory beside a yard's home.
type shelf struct {
	*yard
	files *CustodyFiles
	rec   *CustodyRecorder
	plan  executor.Plan
	rt    executor.Runtime
}

func newShelf(t testing.TB) *shelf {
	s := &shelf{yard: newYard(t, fakedaemon.Options{})}
	s.programs(running)
	s.files = s.open(t)
	s.rec = s.files.Recorder(nil)
	var err error
	s.rt, err = s.warden.Driver.Probe(t.Context())
	require.NoError(t, err)
	r := s.registration("plan")
	s.plan = executor.Plan{Recipe: r.Recipe, Environment: r.Environment, Seccomp: s.rt.Seccomp, Source: s.source}
	s.plan.Profile, err = evidence.ProfileByName(r.Recipe.Profile)
	require.NoError(t, err)
	_, err = rand.Read(s.plan.Handle[:])
	require.NoError(t, err)
	_, err = rand.Read(s.plan.Request[:])
	require.NoError(t, err)
	s.plan.Name = "baildock-preflight-" + s.plan.Handle.String()[:12]
	return s
}

func (s *shelf) open(t testing.TB) *CustodyFiles {
	files, err := OpenCustodyFiles(filepath.Join(filepath.Dir(s.home), "state", "custody"), nil)
	require.NoError(t, err)
	return files
}

func (s *shelf) taken() evidence.CustodyTaken {
	return evidence.CustodyTaken{Handle: s.plan.Handle, Kind: evidence.CustodyContainer, Name: s.plan.Name,
		Request: s.plan.Request, Daemon: s.rt.Identity.Daemon}
}

// names lists what lies in the directory.
func (s *shelf) names(t testing.TB) []string {
	entries, err := os.ReadDir(s.files.dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, filepath.Ext(e.Name()))
	}
	return out
}

func (s *shelf) supervise(t testing.TB) []Supervised {
	met, err := s.warden.Supervise(context.Background(), Pass{Custody: s.open(t), Strays: true}, nil)
	require.NoError(t, err)
	return met
}

// req E8, req E1, req E3, req E4, req E5: a process that makes an object without a ledger may die between
// any two steps: its file is there before the object can be, and a supervisor removes what it names.
func TestCustodyFilesWhereverItDied(t *testing.T) {
	ctx := context.Background()
	var id evidence.ContainerID
	steps := []struct {
		name string
		do   func(*testing.T, *shelf)
		met  []Action // of the pass after a death behind this step
	}{
		{"lock made", func(t *testing.T, s *shelf) {
			require.NoError(t, s.files.make())
			lock, err := s.files.lock(s.plan.Handle)
			require.NoError(t, err)
			require.NoError(t, lock.Close())
		}, nil},
		{"file half written", func(t *testing.T, s *shelf) {
			require.NoError(t, os.WriteFile(s.files.path(s.plan.Handle, draftSuffix), []byte{0xa2, 1}, 0o600))
		}, nil},
		{"custody taken", func(t *testing.T, s *shelf) { require.NoError(t, s.rec.Record(ctx, s.taken())) }, []Action{ActionUnconfirmed}},
		{"created", func(t *testing.T, s *shelf) {
			made, err := s.warden.Driver.Create(ctx, s.plan)
			require.NoError(t, err)
			id = made.ID
		}, []Action{ActionCleared}},
		{"ID known", func(t *testing.T, s *shelf) {
			require.NoError(t, s.rec.Record(ctx, evidence.ContainerCreated{Handle: s.plan.Handle, Container: id}))
		}, []Action{ActionCleared}},
		{"started", func(t *testing.T, s *shelf) { require.NoError(t, s.warden.Driver.Start(ctx, id)) }, []Action{ActionCleared}},
		{"removal ordered", func(t *testing.T, s *shelf) {
			require.NoError(t, s.rec.Record(ctx, evidence.RemovalOrdered{Handle: s.plan.Handle, Container: id}))
		}, []Action{ActionCleared}},
		{"removed", func(t *testing.T, s *shelf) { require.NoError(t, s.warden.Driver.Remove(ctx, id)) }, []Action{ActionCleared}},
		{"absence confirmed", func(t *testing.T, s *shelf) {
			require.NoError(t, s.rec.Record(ctx, evidence.RemovalObserved{Handle: s.plan.Handle, State: evidence.CleanupForceKilled}))
		}, nil},
	}
	for n, last := range steps {
		t.Run(last.name, func(t *testing.T) {
			s := newShelf(t)
			for _, step := range steps[:n+1] {
				step.do(t, s)
			}
			for _, suffix := range []string{holdSuffix, draftSuffix} { // long ago
				path := s.files.path(s.plan.Handle, suffix)
				if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); !errors.Is(err, os.ErrNotExist) {
					require.NoError(t, err)
				}
			}
			if n > 1 && last.met != nil { // it lives
				met := s.supervise(t)
				require.Len(t, met, 1)
				require.Equal(t, ActionRunning, met[0].Action, "%+v", met)
				require.Equal(t, s.plan.Name, met[0].Object.Name)
			}
			require.NoError(t, s.rec.Close()) // it dies: the locks are free, the files stay
			met := s.supervise(t)
			require.Len(t, met, len(last.met))
			for i, m := range met {
				require.Equal(t, last.met[i], m.Action, m.Detail)
				require.Equal(t, s.plan.Name, m.Object.Name)
				require.Equal(t, ownedBy(s.plan.Request, s.plan.Handle), m.Object.Labels)
			}
			require.Empty(t, s.daemon.Containers())
			for _, r := range s.daemon.Requests(fakedaemon.CallRemove) {
				require.Equal(t, id.Hex(), r.Object)
			}
			if last.name == "custody taken" { // a create that was perhaps sent may still come (req E5)
				require.Equal(t, []string{custodySuffix, holdSuffix}, s.names(t))
				made, err := s.warden.Driver.Create(ctx, s.plan)
				require.NoError(t, err)
				id = made.ID
				require.Equal(t, ActionCleared, s.supervise(t)[0].Action)
				require.Empty(t, s.daemon.Containers())
			}
			require.Empty(t, s.names(t))
			require.Empty(t, s.supervise(t))
		})
	}
}

// req E5: a file whose create was asked of a daemon of a former boot is closed with that proof, by the
// same rule as an attempt's custody.
func TestCustodyFileOfAFormerBoot(t *testing.T) {
	s := newShelf(t)
	e := s.taken()
	e.Daemon.Boot[0]++
	require.NoError(t, s.rec.Record(t.Context(), e))
	require.NoError(t, s.rec.Close())
	met := s.supervise(t)
	require.Len(t, met, 1)
	require.Equal(t, ActionCleared, met[0].Action, met[0].Detail)
	require.Empty(t, s.names(t))
}

// req E3, req E4: what a supervisor can't prove gone stays under its file, which a thousand tries don't
// lengthen; another daemon's objects are not looked for here.
func TestCustodyFileStaysOpen(t *testing.T) {
	for name, c := range map[string]struct {
		bend  func(*shelf, *evidence.CustodyTaken)
		fault *fakedaemon.Fault
		code  string
	}{
		"labels differ":   {nil, &fakedaemon.Fault{Call: fakedaemon.CallInspect, Effect: fakedaemon.WrongLabel{}, Times: fakedaemon.Always}, executor.OpenLabels},
		"no answer":       {nil, &fakedaemon.Fault{Call: fakedaemon.CallInfo, Effect: fakedaemon.DropBefore{}, Times: fakedaemon.Always}, executor.OpenUnprobed},
		"another daemon":  {func(_ *shelf, e *evidence.CustodyTaken) { e.Daemon.Engine = "OTHER" }, nil, executor.OpenReplaced},
		"another machine": {func(_ *shelf, e *evidence.CustodyTaken) { e.Daemon.Machine = &evidence.MachineID{1} }, nil, executor.OpenReplaced},
		"another kind":    {func(_ *shelf, e *evidence.CustodyTaken) { e.Kind = "volume" }, nil, executor.OpenKind},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			e := s.taken()
			if c.bend != nil {
				c.bend(s, &e)
			}
			require.NoError(t, s.rec.Record(t.Context(), e))
			made, err := s.warden.Driver.Create(t.Context(), s.plan)
			require.NoError(t, err)
			require.NoError(t, s.rec.Record(t.Context(), evidence.ContainerCreated{Handle: s.plan.Handle, Container: made.ID}))
			require.NoError(t, s.rec.Close())
			if c.fault != nil {
				s.daemon.Fault(*c.fault)
			}
			var sizes []int64
			for range 3 {
				met, err := s.warden.Supervise(t.Context(), Pass{Custody: s.open(t)}, nil)
				require.NoError(t, err)
				require.Len(t, met, 1)
				require.Equal(t, ActionUnconfirmed, met[0].Action)
				require.Contains(t, met[0].Detail, c.code)
				require.Equal(t, made.ID.Hex(), met[0].Object.ID)
				st, err := os.Stat(s.files.path(s.plan.Handle, custodySuffix))
				require.NoError(t, err)
				sizes = append(sizes, st.Size())
			}
			require.Equal(t, sizes[1], sizes[2])
			_, there := s.daemon.Container(made.ID.Hex())
			require.True(t, there)
			s.daemon.ClearFaults()
			if c.bend == nil {
				require.Equal(t, ActionCleared, s.supervise(t)[0].Action)
				require.Empty(t, s.daemon.Containers())
				require.Empty(t, s.names(t))
			}
		})
	}
}

// book is what stands behind a custody recorder.
type book struct {
	types []string
	kept  int
	fail  string
}

func (b *book) Record(_ context.Context, events ...evidence.Payload) error {
	for _, e := range events {
		if e.EventType() == b.fail {
			return errLost
		}
		b.types = append(b.types, e.EventType())
	}
	return nil
}

func (b *book) Keep(_ context.Context, ws ...evidence.Withholdable) error {
	b.kept += len(ws)
	return nil
}

// req E8, req E1: a whole run of the executor under a custody file: nothing is created without one, and
// nothing of it is left.
func TestRunUnderACustodyFile(t *testing.T) {
	run := func(t *testing.T, s *shelf, b *book) error {
		s.daemon.Script("/tool", fakedaemon.Program{Steps: []fakedaemon.Step{fakedaemon.Stdout("hello\n"), fakedaemon.Exit(0)}})
		rec := s.files.Recorder(b)
		err := executor.Run(t.Context(), executor.Config{Driver: s.warden.Driver, Recorder: rec, Watchdog: kennel{}}, executor.Job{
			Attempt: "preflight", Profile: s.plan.Profile, Recipe: s.plan.Recipe, Environment: s.plan.Environment,
			Request: s.plan.Request, Source: s.source, Accepted: v1,
		})
		return errors.Join(err, rec.Close())
	}
	t.Run("success", func(t *testing.T) {
		s, b := newShelf(t), &book{}
		require.NoError(t, run(t, s, b))
		require.Contains(t, b.types, "ContainerExited")
		require.Equal(t, "RemovalObserved", b.types[len(b.types)-1])
		require.Positive(t, b.kept)
		require.Empty(t, s.daemon.Containers())
		require.Empty(t, s.names(t))
	})
	t.Run("custody can't be kept", func(t *testing.T) {
		s, b := newShelf(t), &book{}
		require.NoError(t, os.MkdirAll(filepath.Dir(s.files.dir), 0o700))
		require.NoError(t, os.WriteFile(s.files.dir, nil, 0o600))
		require.Error(t, run(t, s, b))
		require.Zero(t, s.daemon.Count(fakedaemon.CallCreate))
		require.NotContains(t, b.types, "CustodyTaken")
	})
	t.Run("its end can't be told", func(t *testing.T) {
		s, b := newShelf(t), &book{fail: "RemovalObserved"}
		require.ErrorIs(t, run(t, s, b), errLost)
		require.Empty(t, s.daemon.Containers())
		require.Equal(t, []string{custodySuffix, holdSuffix}, s.names(t))
		require.Equal(t, ActionCleared, s.supervise(t)[0].Action)
	})
}

// A custody that is taken this moment is not taken from under its maker.
func TestCustodyFileJustTaken(t *testing.T) {
	s := newShelf(t)
	require.NoError(t, s.files.make())
	lock, err := s.files.lock(s.plan.Handle)
	require.NoError(t, err)
	require.NoError(t, lock.Close())
	require.Empty(t, s.supervise(t))
	require.Equal(t, []string{holdSuffix}, s.names(t))
	require.NoError(t, s.rec.Record(t.Context(), s.taken()))
	require.Equal(t, []string{custodySuffix, holdSuffix}, s.names(t))
	require.ErrorContains(t, s.files.Recorder(nil).Record(t.Context(), s.taken()), "lock custody")
	require.Error(t, s.rec.Record(t.Context(), s.taken()), "taken twice")
	require.ErrorContains(t, s.rec.Record(t.Context(), evidence.StartOrdered{Handle: s.plan.Handle}), "nobody else takes it")
	require.NoError(t, s.rec.Close())
	require.ErrorContains(t, s.files.Recorder(nil).Record(t.Context(), s.taken()), "has a file already")
}

// req E8, req E10: a file holds the custody events, word for word; one that was cut, moved to another
// name, or written by a newer version is shown and acted on by nobody.
func TestCustodyFileDamaged(t *testing.T) {
	s := newShelf(t)
	require.NoError(t, s.rec.Record(t.Context(), s.taken()))
	require.NoError(t, s.rec.Close())
	path := s.files.path(s.plan.Handle, custodySuffix)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(good), string(evidence.Marshal(s.taken())))
	k, err := decodeCustody(s.plan.Handle, good)
	require.NoError(t, err)
	require.Equal(t, good, k.encode())
	require.Equal(t, s.plan.Name, k.custody().Name)

	newer := custodyDocument{Version: 1, Events: append(k.events, custodyEvent{Type: "SomethingNewer", Data: []byte{1}})}
	_, err = decodeCustody(s.plan.Handle, evidence.Marshal(newer))
	require.NoError(t, err, "an event of a newer version hides nothing")

	bad := map[string][]byte{
		"empty": {}, "trailing": append(good[:len(good):len(good)], 0), "too long": append(good[:len(good):len(good)], make([]byte, maxCustodyFile)...),
		"version 2": evidence.Marshal(custodyDocument{Version: 2, Events: k.events}),
		"no events": evidence.Marshal(custodyDocument{Version: 1}),
		"twice":     evidence.Marshal(custodyDocument{Version: 1, Events: append(k.events, k.events...)}),
	}
	for n := range good {
		_, err := decodeCustody(s.plan.Handle, good[:n])
		require.Error(t, err, "cut at %d", n)
	}
	for name, b := range bad {
		require.NoError(t, os.WriteFile(path, b, 0o600))
		met := s.supervise(t)
		require.Len(t, met, 1, name)
		require.Equal(t, ActionFailed, met[0].Action, name)
		require.Equal(t, filepath.Base(path), met[0].Object.Name)
	}
	require.NoError(t, os.WriteFile(path, good, 0o600))
	other := evidence.HandleKey{1}
	require.NoError(t, os.Rename(path, s.files.path(other, custodySuffix)))
	_, err = s.files.read(other)
	require.ErrorContains(t, err, "named after")
	require.NoError(t, os.Remove(s.files.path(other, custodySuffix)))
	require.NoError(t, os.Symlink("/dev/null", s.files.path(other, custodySuffix)))
	_, err = s.files.read(other)
	require.Error(t, err, "no link is followed")
}

// The directory is private, its owner's, and on a disk of this machine; what else lies in it is nobody's.
func TestCustodyDirectory(t *testing.T) {
	_, err := OpenCustodyFiles("custody", nil)
	require.ErrorContains(t, err, "absolute")
	dir := filepath.Join(t.TempDir(), "custody")
	_, err = OpenCustodyFiles(dir, func(string) error { return errLost })
	require.NoError(t, err, "it isn't there yet")
	require.NoError(t, os.Mkdir(dir, 0o750))
	_, err = OpenCustodyFiles(dir, nil)
	require.ErrorContains(t, err, "0700")
	require.NoError(t, os.Chmod(dir, 0o700))
	_, err = OpenCustodyFiles(dir, func(string) error { return errLost })
	require.ErrorIs(t, err, errLost)
	files, err := OpenCustodyFiles(dir, nil)
	require.NoError(t, err)
	link := dir + "-link"
	require.NoError(t, os.Symlink(dir, link))
	_, err = OpenCustodyFiles(link, nil)
	require.ErrorContains(t, err, "0700")
	for _, name := range []string{"notes.txt", "ab.custody", strings.Repeat("0", 32), strings.Repeat("0", 32) + ".custody.old"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	handles, err := files.handles()
	require.NoError(t, err)
	require.Empty(t, handles)
}
