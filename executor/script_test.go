package executor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// script is a daemon with one container, in memory. A hook of a call runs before it (its error is
// returned and nothing happens) or after it (it happened, and its reply is lost).
type script struct {
	mu      sync.Mutex
	before  map[string]func() error
	after   map[string]func() error
	calls   []string
	runtime []Runtime // by probe; the last one stays
	image   Image
	compare func(Isolation, Inspection) Isolation
	warn    []string
	command func(*box) // what runs; nil: prints two lines and exits 0
	others  int        // containers that carry our labels too
	ended   bool       // the daemon's former process is gone

	box    *box
	events chan Event
	torn   chan struct{} // closed: the subscription breaks
}

// box is the scripted container.
type box struct {
	s       *script
	id      evidence.ContainerID
	plan    Plan
	in      Inspection
	chunks  chan Chunk
	closed  chan struct{}
	killed  chan struct{}
	exits   chan Exit
	fail    error // of the output stream
	oomKill uint64
}

func newScript() *script {
	h := evidencetest.Success()
	return &script{
		before: map[string]func() error{}, after: map[string]func() error{},
		runtime: []Runtime{{Identity: *h.BeforeCreate.Identity, Reductions: h.BeforeCreate.Reductions, Seccomp: h.BeforeCreate.Seccomp}},
		image:   Image{ID: h.Recipe.Image, OS: "linux"},
		events:  make(chan Event, 64),
		torn:    make(chan struct{}),
	}
}

var _ Driver = (*script)(nil)

// call runs the hooks around f.
func (s *script) call(name string, f func() error) error {
	s.mu.Lock()
	s.calls = append(s.calls, name)
	before, after := s.before[name], s.after[name]
	s.mu.Unlock()
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	err := f()
	s.mu.Unlock()
	if err == nil && after != nil {
		return after()
	}
	return err
}

// then is a hook that makes another call fail from now on.
func (s *script) then(name string, err error) func() error {
	return func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.before[name] = func() error { return err }
		return nil
	}
}

func (s *script) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if c == name {
			n++
		}
	}
	return n
}

func (s *script) emit(e Event) {
	select {
	case s.events <- e:
	default:
		panic("the script has more events than room")
	}
}

func (s *script) emitBox(action string) {
	s.emit(Event{Type: "container", Action: action, Actor: s.box.id.Hex()})
}

func (s *script) Probe(context.Context) (rt Runtime, err error) {
	return rt, s.call("probe", func() error {
		rt = s.runtime[0]
		if len(s.runtime) > 1 {
			s.runtime = s.runtime[1:]
		}
		return nil
	})
}

func (s *script) DaemonEnded(evidence.DaemonProcess) (ended bool, err error) {
	err = s.call("ended", func() error { ended = s.ended; return nil })
	return ended, err
}

func (s *script) ImageInspect(_ context.Context, ref string) (img Image, err error) {
	return img, s.call("image", func() error { img = s.image; return nil })
}

func (s *script) ImageList(context.Context) ([]Image, error) { return []Image{s.image}, nil }

func (s *script) ImageLoad(context.Context, io.Reader, string) (evidence.ImageID, error) {
	return evidence.ImageID{}, errors.New("not scripted")
}

func (s *script) Create(_ context.Context, p Plan) (c Created, err error) {
	err = s.call("create", func() error {
		b := &box{s: s, id: sha256.Sum256([]byte(p.Name)), plan: p, chunks: make(chan Chunk), closed: make(chan struct{}),
			killed: make(chan struct{}), exits: make(chan Exit, 2)}
		b.in = Inspection{ID: b.id, Request: p.Request.String(), Handle: p.Handle.String(), Status: "created"}
		s.box = b
		s.emitBox("create")
		c = Created{ID: b.id, Warnings: s.warn}
		return nil
	})
	return c, err
}

func (s *script) Inspect(_ context.Context, id evidence.ContainerID) (in Inspection, err error) {
	err = s.call("inspect", func() error {
		if s.box == nil || s.box.id != id {
			return fmt.Errorf("container: %w", ErrAbsent)
		}
		in = s.box.in
		return nil
	})
	return in, err
}

func (s *script) FindOwned(_ context.Context, r evidence.RequestDigest, h evidence.HandleKey) (ids []evidence.ContainerID, err error) {
	err = s.call("find", func() error {
		if s.box != nil && s.box.plan.Request == r && s.box.plan.Handle == h {
			ids = append(ids, s.box.id)
			for i := range s.others {
				ids = append(ids, evidence.ContainerID{0: byte(i + 1)})
			}
		}
		return nil
	})
	return ids, err
}

func (s *script) FindLabelled(context.Context, evidence.CustodyKind) ([]Labelled, error) {
	return nil, errors.New("not scripted")
}

func (s *script) InspectNetwork(context.Context, evidence.ContainerID) (Network, error) {
	return Network{}, errors.New("not scripted")
}

func (s *script) RemoveNetwork(context.Context, evidence.ContainerID) error {
	return errors.New("not scripted")
}

func (s *script) Compare(p Plan, _ Image, _ Runtime, in Inspection) Isolation {
	var iso Isolation
	for _, c := range p.Profile.Controls {
		kind := evidence.Observed
		if c.ID == evidence.CtlMountSpace || c.ID == evidence.CtlSeccomp { // as on an API that can't name the profile
			kind = evidence.Accepted
		}
		iso.Findings = append(iso.Findings, Finding{ID: c.ID, Kind: kind, Equal: true, Expected: "x", Found: "x"})
	}
	if s.compare != nil {
		iso = s.compare(iso, in)
	}
	return iso
}

func (s *script) Kernel(p Plan, _ evidence.ContainerID, pid int) (k KernelSight) {
	err := s.call("kernel", func() error {
		k.Findings = []Finding{{ID: evidence.CtlUser, Kind: evidence.Unavailable, Reason: "gone"}}
		if pid != 0 {
			k.Findings = []Finding{{ID: evidence.CtlUser, Kind: evidence.Kernel, Equal: true, Found: "x"}}
			k.OOMKills, k.OOMKnown = s.box.oomKill, true
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return k
}

func (s *script) Attach(context.Context, evidence.ContainerID) (out Output, err error) {
	err = s.call("attach", func() error { s.emitBox("attach"); out = (*boxOutput)(s.box); return nil })
	return out, err
}

func (s *script) Wait(context.Context, evidence.ContainerID) (c <-chan Exit, err error) {
	err = s.call("wait", func() error { c = s.box.exits; return nil })
	return c, err
}

func (s *script) Start(context.Context, evidence.ContainerID) error {
	return s.call("start", func() error {
		b := s.box
		if b.in.Running {
			return answered("start", http.StatusNotModified)
		}
		b.in.Status, b.in.Running, b.in.PID = "running", true, 77
		s.emit(Event{Type: "network", Action: "connect", Container: b.id.Hex(), Network: "none"})
		s.emitBox("start")
		command := s.command
		if command == nil {
			command = func(b *box) { b.print("a.txt\n"); b.printErr("warning\n"); b.exit(0) }
		}
		go command(b)
		return nil
	})
}

func (s *script) Kill(context.Context, evidence.ContainerID) error {
	return s.call("kill", func() error {
		if s.box == nil {
			return ErrAbsent
		}
		if s.box.in.Running {
			s.emitBox("kill")
			s.box.end(137)
		}
		return nil
	})
}

func (s *script) Remove(context.Context, evidence.ContainerID) error {
	return s.call("remove", func() error {
		if s.box == nil {
			return ErrAbsent
		}
		if s.box.in.Running {
			s.box.end(137)
		}
		s.emitBox("destroy")
		s.box = nil
		return nil
	})
}

func (s *script) Events(ctx context.Context) (EventStream, error) {
	c := make(chan Event)
	err := s.call("events", func() error { return nil })
	if err != nil {
		return EventStream{}, err
	}
	go func() {
		defer close(c)
		for {
			select {
			case e := <-s.events:
				select {
				case c <- e:
				case <-ctx.Done():
					return
				}
			case <-s.torn:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return EventStream{C: c, Err: func() error { return nil }}, nil
}

func (s *script) Close() error { return nil }

// end is called with the lock held.
func (b *box) end(code int64) {
	if !b.in.Running {
		return
	}
	b.in.Status, b.in.Running, b.in.PID, b.in.ExitCode = "exited", false, 0, code
	b.s.emit(Event{Type: "container", Action: "die", Actor: b.id.Hex(), ExitCode: strconv.FormatInt(code, 10)})
	close(b.killed)
	b.exits <- Exit{Code: code}
}

// with changes the container as the daemon holds it.
func (b *box) with(f func()) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	f()
}

// exit ends the command and its output.
func (b *box) exit(code int64) { b.die(code); b.hangUp(nil) }

// die ends the command and leaves its output open.
func (b *box) die(code int64) { b.with(func() { b.end(code) }) }

// hangUp ends the output.
func (b *box) hangUp(err error) {
	b.fail = err
	close(b.chunks)
}

func (b *box) print(text string)    { b.send(Chunk{Bytes: []byte(text)}) }
func (b *box) printErr(text string) { b.send(Chunk{Stderr: true, Bytes: []byte(text)}) }

func (b *box) send(c Chunk) {
	select {
	case b.chunks <- c:
	case <-b.killed:
	case <-b.closed:
	}
}

// sleep waits until the container is killed, then hangs up.
func (b *box) sleep() { <-b.killed; b.hangUp(nil) }

type boxOutput box

func (o *boxOutput) Next() (Chunk, error) {
	select {
	case c, ok := <-o.chunks:
		if !ok {
			if o.fail != nil {
				return Chunk{}, o.fail
			}
			return Chunk{}, io.EOF
		}
		return c, nil
	case <-o.closed:
		return Chunk{}, errors.New("closed")
	}
}

func (o *boxOutput) Close() error { close(o.closed); return nil }

// book is a recorder in memory that holds every event to the attempt's fold.
type book struct {
	mu     sync.Mutex
	fold   evidence.Attempt
	types  []string
	fail   map[string]error // by event type, before it is stored
	hook   func(typ string) // before an event is stored
	keep   error
	blobs  map[evidence.SaltedDigest][]byte
	stored func(typ string) // after an event was stored
}

func newBook(h *evidencetest.History) *book {
	opening := []evidence.Payload{*h.Registered, *h.Claimed, *h.Materialized}
	if h.Preflight != nil {
		opening = slices.Insert(opening, 2, evidence.Payload(*h.Preflight))
	}
	fold, err := evidence.Fold(opening...)
	if err != nil {
		panic(err)
	}
	return &book{fold: fold, fail: map[string]error{}, blobs: map[evidence.SaltedDigest][]byte{}}
}

func (b *book) Record(ctx context.Context, events ...evidence.Payload) error {
	if err := ctx.Err(); err != nil {
		return err // nothing of a run is recorded on its caller's cancelled context
	}
	for _, e := range events {
		if b.hook != nil {
			b.hook(e.EventType())
		}
		if err := b.fail[e.EventType()]; err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.fold
	for _, e := range events {
		if err := next.Apply(decoded(e)); err != nil {
			return err
		}
	}
	b.fold = next
	for _, e := range events {
		b.types = append(b.types, e.EventType())
		if b.stored != nil {
			b.stored(e.EventType())
		}
	}
	return nil
}

// decoded is the event as a reader gets it.
func decoded(p evidence.Payload) evidence.Payload {
	meta, data := evidence.Encode(p, evidence.Meta{Schema: evidence.SchemaVersion, Actor: "test"})
	out, _, err := evidence.Decode(p.EventType(), meta, data)
	if err != nil {
		panic(err)
	}
	return out
}

func (b *book) Keep(ctx context.Context, w ...evidence.Withholdable) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range w {
		b.blobs[one.Ref.Salted] = slices.Clone(one.Bytes)
	}
	return b.keep
}

// kennel is a watchdog that remembers.
type kennel struct {
	err      error
	guarded  []evidence.ContainerID
	released int
}

func (k *kennel) Guard(_ context.Context, id evidence.ContainerID) (Guard, error) {
	if k.err != nil {
		return nil, k.err
	}
	k.guarded = append(k.guarded, id)
	return k, nil
}

func (k *kennel) Release() error { k.released++; return nil }

// scene is everything of one scripted run.
type scene struct {
	script *script
	book   *book
	dogs   *kennel
	job    Job
	ctx    context.Context
	cancel context.CancelFunc
	stages []string
}

func newScene() *scene {
	h := evidencetest.Success()
	profile, err := evidence.ProfileByName(h.Recipe.Profile)
	if err != nil {
		panic(err)
	}
	s := &scene{script: newScript(), book: newBook(h), dogs: &kennel{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.job = Job{
		Attempt: h.Registered.Attempt, Profile: profile, Recipe: h.Recipe, Environment: h.Environment,
		Request: h.Request(), Source: "/home/execution/one/1/snapshot", Accepted: h.Claimed.Accepted,
	}
	return s
}

// perform runs the scene in virtual time and returns the verdict that follows from its events.
func (s *scene) perform() (evidence.Verdict, error) {
	defer s.cancel()
	err := Run(s.ctx, Config{
		Driver: s.script, Recorder: s.book, Watchdog: s.dogs,
		Progress: func(stage, _ string) { s.stages = append(s.stages, stage) },
	}, s.job)
	if len(s.book.fold.Custodies.Open()) == 0 {
		if e := s.book.fold.Apply(evidence.SnapshotRemoved{}); e != nil {
			panic(e)
		}
	}
	return evidence.VerdictOf(&s.book.fold), err
}

// play stages a scene in a bubble of virtual time, where every goroutine must end.
func play(t *testing.T, name string, f func(t *testing.T, s *scene)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, newScene()) })
	})
}

func unanswered(call string) error { return &Fault{Call: call, Err: errors.New("reply lost")} }

func answered(call string, status int) error {
	return &Fault{Call: call, Answered: true, Status: status, Err: errors.New("refused")}
}

func cleanup(t *testing.T, s *scene) evidence.CleanupState {
	t.Helper()
	c, ok := s.book.fold.Custodies.MainContainer()
	require.True(t, ok, "custody was taken")
	return c.State
}
