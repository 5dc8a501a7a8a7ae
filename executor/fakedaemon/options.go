package fakedaemon

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// Options of one daemon. The zero value is Engine 20.10 with no images, every program of which
// exits 0 at once.
type Options struct {
	Engine Engine // zero = Engine20()
	Socket string // "" = a new one in a private temporary directory (Start)
	Memory bool   // requests come through Daemon.Dial alone; the socket lies there and is never served
	Seed   string // makes every ID; "" = random, so that no two daemons share one

	Images   []Image            // there from the start
	Programs map[string]Program // as Daemon.Script
	Program  func(Invocation) (Program, bool)
	Faults   []Fault // as Daemon.Fault

	PID  int           // of every running container; 0 = one that no process can have
	Slow time.Duration // what slow effects wait unless they say otherwise; 0 = 6 s, past a 5 s deadline
}

// TB is what Start needs of a test.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Start serves a daemon until the test ends. Everything it started has ended by then.
func Start(t TB, opts Options) *Daemon {
	t.Helper()
	if opts.Socket == "" {
		// Not the test's own directory: its name may exceed the 107 bytes of a socket's address.
		dir, err := os.MkdirTemp("", "daemon")
		if err != nil {
			t.Fatalf("fake daemon: %v", err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		opts.Socket = filepath.Join(dir, "docker.sock")
	}
	d, err := Listen(opts)
	if err != nil {
		t.Fatalf("fake daemon: %v", err)
	}
	t.Cleanup(d.Close)
	return d
}

// Serve serves a daemon at socket until ctx ends. It is what a process of its own runs.
func Serve(ctx context.Context, socket string, opts Options) error {
	opts.Socket = socket
	d, err := Listen(opts)
	if err != nil {
		return err
	}
	<-ctx.Done()
	d.Close()
	return nil
}

// Listen serves a daemon at opts.Socket, an absolute path where nothing may lie yet, until Close.
func Listen(opts Options) (*Daemon, error) {
	d := newDaemon(opts)
	for _, img := range opts.Images {
		if _, err := d.AddImage(img); err != nil {
			return nil, err
		}
	}
	if err := d.listen(); err != nil {
		return nil, err
	}
	return d, nil
}
