package warden

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// Words between a runner and its watchdog, a line each.
const (
	wordGuarding = "guarding" // watchdog: the ID was read
	wordRelease  = "release"  // runner: the container is gone
)

// Watchdog keeps child processes that guard one container each. One is started ahead of time: by
// the time a container exists it is ready.
type Watchdog struct {
	program string
	args    []string

	mu    sync.Mutex
	spare *guard
}

var _ executor.Watchdog = (*Watchdog)(nil)

// StartWatchdog starts program, which must call WatchdogMain when it gets args. A child has a
// session of its own, an empty environment, and nothing of this process but two pipes.
func StartWatchdog(program string, args ...string) (*Watchdog, error) {
	g, err := startGuard(program, args)
	if err != nil {
		return nil, err
	}
	return &Watchdog{program: program, args: args, spare: g}, nil
}

// Guard hands a child the container and returns once it said that it guards it.
func (w *Watchdog) Guard(ctx context.Context, id evidence.ContainerID) (executor.Guard, error) {
	w.mu.Lock()
	g := w.spare
	w.spare = nil
	w.mu.Unlock()
	if g == nil {
		var err error
		if g, err = startGuard(w.program, w.args); err != nil {
			return nil, err
		}
	}
	if err := g.take(ctx, id); err != nil {
		return nil, errors.Join(err, g.leave())
	}
	return g, nil
}

// Close ends the child that guards nothing, if there is one.
func (w *Watchdog) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spare == nil {
		return nil
	}
	g := w.spare
	w.spare = nil
	return g.leave()
}

// guard is one child.
type guard struct {
	cmd   *exec.Cmd
	in    *os.File // to the child; its end is what the child waits for
	out   *os.File // from the child
	ended chan error
}

var _ executor.Guard = (*guard)(nil)

func startGuard(program string, args []string) (*guard, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the watchdog: %w", err), childIn.Close(), in.Close())
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.Stdin, cmd.Stdout = childIn, childOut
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = errors.Join(cmd.Start(), childIn.Close(), childOut.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the watchdog: %w", err), in.Close(), out.Close())
	}
	g := &guard{cmd: cmd, in: in, out: out, ended: make(chan error, 1)}
	go func() { g.ended <- cmd.Wait() }()
	return g, nil
}

func (g *guard) take(ctx context.Context, id evidence.ContainerID) error {
	if _, err := fmt.Fprintln(g.in, id.Hex()); err != nil {
		return fmt.Errorf("the watchdog is gone: %w", err)
	}
	by := time.Now().Add(ackBound)
	if d, ok := ctx.Deadline(); ok && d.Before(by) {
		by = d
	}
	if err := g.out.SetReadDeadline(by); err != nil {
		return fmt.Errorf("wait for the watchdog: %w", err)
	}
	line, err := readWord(bufio.NewReaderSize(g.out, maxWatchdogLine))
	if err != nil {
		return fmt.Errorf("the watchdog gave no answer: %w", err)
	}
	if line != wordGuarding {
		return fmt.Errorf("the watchdog answered %q instead of %q", line, wordGuarding)
	}
	return nil
}

// Release tells the child that its container is gone and waits until it ended.
func (g *guard) Release() error {
	_, err := fmt.Fprintln(g.in, wordRelease)
	if err != nil {
		err = fmt.Errorf("the watchdog was gone before its container: %w", err)
	}
	return errors.Join(err, g.leave())
}

// leave ends the connection and waits for a child that guards nothing or was released. One that
// still guards takes it for its runner's death, and kills; it is not waited for long.
func (g *guard) leave() error {
	err := errors.Join(g.in.Close(), g.out.Close())
	select {
	case end := <-g.ended:
		if end != nil {
			err = errors.Join(err, fmt.Errorf("the watchdog failed: %w", end))
		}
	case <-time.After(releaseBound):
	}
	return err
}

// readWord reads one short line.
func readWord(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", fmt.Errorf("a line longer than %d bytes", maxWatchdogLine)
	}
	if err != nil {
		if err == io.EOF && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	return string(line[:len(line)-1]), nil
}
