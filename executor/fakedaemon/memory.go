package fakedaemon

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
)

// Dial makes a connection to the daemon in memory, with Options.Memory. Nothing of it waits for the
// machine, so that under a fake clock a test's whole time is the clock's: a deadline of minutes
// passes at once, and only once nothing else can happen.
func (d *Daemon) Dial(ctx context.Context) (net.Conn, error) {
	d.mu.Lock()
	m := d.dialled
	d.mu.Unlock()
	if m == nil {
		return nil, errors.New("fake daemon: it was not started with Options.Memory")
	}
	ours, theirs := net.Pipe()
	select {
	case m.arrived <- theirs:
		return ours, nil
	case <-m.closed:
		// As of a socket that nobody listens on any more.
		return nil, &net.OpError{Op: "dial", Net: "unix", Addr: m.Addr(), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// memory is a listener whose connections are made by Dial.
type memory struct {
	arrived chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

var _ net.Listener = (*memory)(nil)

func newMemory() *memory {
	return &memory{arrived: make(chan net.Conn), closed: make(chan struct{})}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.arrived:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }
