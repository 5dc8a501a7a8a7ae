package fakedaemon

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Daemon is one running fake daemon. Its methods are safe for concurrent use.
type Daemon struct {
	// Socket is the path that the daemon listens at.
	Socket string

	opts   Options
	stop   context.Context // ends with the daemon
	cancel context.CancelFunc
	work   sync.WaitGroup // every goroutine but the server's own

	mu       sync.Mutex // guards all below and everything in a world
	engine   Engine
	*world   // what the daemon knows now
	former   []formerly
	programs map[string]Program
	server   *http.Server
	served   chan struct{}         // closed when server has ended
	conns    map[net.Conn]struct{} // taken over from the server
	shown    net.Listener          // with Options.Memory: what lies at the socket's path
	dialled  *memory               // with Options.Memory: what Dial reaches
	requests []*Request
	faults   []*armed
	late     []*lateCall
	ids      int // made so far
	seed     string
	lastTime time.Time
}

// world is all objects of a daemon. A replaced daemon has another one.
type world struct {
	containers  []*container // oldest first
	images      []*image
	networks    []*netw
	execs       map[string]*execution
	log         []event // the last 256
	subscribers map[*subscriber]struct{}
	addresses   int // given on bridges so far
}

type formerly struct {
	engine Engine
	world  *world
}

const firstAbsentPID = 1 << 22 // the kernel's largest pid_max: no process has it or more

func newDaemon(opts Options) *Daemon {
	if opts.Engine.API == "" {
		opts.Engine = Engine20()
	}
	if opts.Slow == 0 {
		opts.Slow = 6 * time.Second
	}
	d := &Daemon{
		Socket: opts.Socket, opts: opts, engine: opts.Engine.With(), programs: map[string]Program{},
		conns: map[net.Conn]struct{}{}, seed: opts.Seed,
	}
	if d.seed == "" {
		d.seed = rand.Text()
	}
	d.stop, d.cancel = context.WithCancel(context.Background())
	if d.engine.ID == "" {
		d.engine.ID = d.newEngineID()
	}
	if d.engine.Kernel == "" {
		d.engine.Kernel = hostKernel()
	}
	d.world = d.newWorld()
	for match, p := range opts.Programs {
		d.programs[match] = p
	}
	d.Fault(opts.Faults...)
	return d
}

func (d *Daemon) newWorld() *world {
	w := &world{execs: map[string]*execution{}, subscribers: map[*subscriber]struct{}{}}
	for _, n := range []struct{ name, driver string }{{"none", "null"}, {"host", "host"}, {"bridge", "bridge"}} {
		w.networks = append(w.networks, d.newNetwork(n.name, n.driver))
	}
	return w
}

// listen opens the socket and serves it, or with Options.Memory shows it and serves Dial.
func (d *Daemon) listen() error {
	l, err := net.Listen("unix", d.Socket)
	if err != nil {
		return fmt.Errorf("fake daemon: %w", err)
	}
	// The socket is removed by Close and Restart themselves: with the listener's own removal a
	// restarted daemon's socket could go with its predecessor.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if !d.opts.Memory {
		d.serve(l)
		return nil
	}
	m := newMemory()
	d.mu.Lock()
	d.shown, d.dialled = l, m
	d.mu.Unlock()
	d.serve(m)
	return nil
}

func (d *Daemon) serve(l net.Listener) {
	server := &http.Server{Handler: http.HandlerFunc(d.handle), ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan struct{})
	d.mu.Lock()
	d.server, d.served = server, served
	d.mu.Unlock()
	go func() {
		defer close(served)
		server.Serve(l) // ends with the server's Close, which is the only error it can have
	}()
}

// Close ends the daemon: every connection is cut, every program ends, the socket goes.
func (d *Daemon) Close() {
	d.mu.Lock()
	d.cancel() // under the lock: nothing is added to work after it
	d.mu.Unlock()
	d.cut()
	d.work.Wait()
}

// newID makes the next 64 hex digits.
func (d *Daemon) newID() string {
	sum := d.nextSum()
	return hex.EncodeToString(sum[:])
}

func (d *Daemon) newEngineID() string {
	sum := d.nextSum()
	text := base32.StdEncoding.EncodeToString(sum[:])[:48]
	var groups []string
	for i := 0; i < 48; i += 4 {
		groups = append(groups, text[i:i+4])
	}
	return strings.Join(groups, ":")
}

func (d *Daemon) nextSum() [32]byte {
	d.ids++
	return sha256.Sum256(fmt.Appendf(nil, "%s %d", d.seed, d.ids))
}

// now is the wall time, and later than every time given out before.
func (d *Daemon) now() time.Time {
	t := time.Now().UTC()
	if !t.After(d.lastTime) {
		t = d.lastTime.Add(1)
	}
	d.lastTime = t
	return t
}

// stamp writes a time as the daemon does; the zero time means never.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
