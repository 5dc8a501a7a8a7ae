package warden

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// WatchdogMain is the whole life of a watchdog process (req D5): in and out are its pipes to the
// runner. It returns nil when it guarded nothing, was released, or saw the container of a dead
// runner exited, absent, or only created for a minute. Signals that a terminal or an operator
// sends to a group of processes don't end it.
func WatchdogMain(ctx context.Context, d executor.Driver, in io.Reader, out io.Writer) error {
	// Without SIGPIPE ignored, a runner that dies between its ID and the answer would take its
	// watchdog with it.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGQUIT)
	return watchOver(context.WithoutCancel(ctx), d, in, out)
}

func watchOver(ctx context.Context, d executor.Driver, in io.Reader, out io.Writer) error {
	lines := bufio.NewReaderSize(in, maxWatchdogLine)
	line, err := readWord(lines)
	if errors.Is(err, io.EOF) {
		return nil // there was never a container
	}
	if err != nil {
		return fmt.Errorf("read the container's ID: %w", err)
	}
	var id evidence.ContainerID
	if err := id.UnmarshalText([]byte(line)); err != nil {
		return fmt.Errorf("read the container's ID: %w", err)
	}
	// Whether the runner reads the answer is its own matter: from here the container is guarded.
	_, ackErr := fmt.Fprintln(out, wordGuarding)
	if word, err := readWord(lines); err == nil && word == wordRelease {
		return nil
	}
	return errors.Join(putDown(ctx, d, id), ackErr)
}

// putDown kills a container until it is seen not to run any more. A created one may be about to
// run: its start may have been sent. An error proves nothing.
func putDown(ctx context.Context, d executor.Driver, id evidence.ContainerID) error {
	begin := time.Now()
	for {
		killErr := d.Kill(ctx, id)
		in, err := d.Inspect(ctx, id)
		since := time.Since(begin)
		switch {
		case errors.Is(err, executor.ErrAbsent):
			return nil
		case err == nil && in.Status == "created" && since >= guardCreated:
			return nil
		case err == nil && !in.Running && (in.Status == "exited" || in.Status == "dead"):
			return nil
		case since >= guardErrors:
			return fmt.Errorf("container %s could not be seen stopped within %v: %w", id.Hex(), guardErrors, errors.Join(killErr, err))
		}
		time.Sleep(guardPause)
	}
}
