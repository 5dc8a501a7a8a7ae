package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

// testContext is for helpers that outlive a test's own context.
var testContext = context.Background()

// childVar makes the test binary play another process: it names the part, and the ledger follows
// as an argument.
const childVar = "BAILDOCK_LEDGER_CHILD"

var parts = map[string]func(s *Store, args []string) error{
	"interleave": interleave,
	"crash":      appendUntilKilled,
	"hold":       holdLock,
}

func TestMain(m *testing.M) {
	part := os.Getenv(childVar)
	if part == "" {
		os.Exit(m.Run())
	}
	s, err := Open(testContext, os.Args[1], Options{})
	if err == nil {
		err = errors.Join(parts[part](s, os.Args[2:]), s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(t testing.TB, part, path string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, append([]string{path}, args...)...)
	cmd.Env = append(os.Environ(), childVar+"="+part)
	cmd.Stderr = os.Stderr
	return cmd
}

// interleave appends args[1] events: to a stream of its own, named args[0], and now and then to
// one that both processes want.
func interleave(s *Store, args []string) error {
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	own, shared := ledger.NoStream, ledger.NoStream
	for i := 0; i < count; {
		stream, expected := ledger.StreamID(args[0]), &own
		if i%10 == 0 {
			stream, expected = "shared", &shared
		}
		done, err := s.Append(testContext, stream, *expected, event(args[0]+" "+strconv.Itoa(i)))
		var conflict *ledger.ConflictError
		switch {
		case errors.As(err, &conflict) && stream == "shared":
			*expected = conflict.Actual
			continue
		case err != nil:
			return err
		}
		*expected = done.Last().Version
		i++
	}
	return nil
}

// appendUntilKilled appends from several goroutines and prints what was acknowledged.
func appendUntilKilled(s *Store, args []string) error {
	lines := make(chan string)
	for w := range 4 {
		go func() {
			stream := ledger.StreamID(fmt.Sprintf("%s-%d", args[0], w))
			last := ledger.NoStream
			for {
				done, err := s.Append(testContext, stream, last, event(string(stream)), event(last.String()))
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				last = done.Last().Version
				for _, e := range done.Events {
					lines <- fmt.Sprintf("%s %d %d %s\n", e.Stream, e.Version, e.Index, e.ID())
				}
			}
		}()
	}
	for line := range lines {
		if _, err := io.WriteString(os.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// holdLock keeps the write lock until its input ends.
func holdLock(s *Store, _ []string) error {
	return s.submit(testContext, &job{do: func(*writer) (error, error) {
		fmt.Println("held")
		_, err := bufio.NewReader(os.Stdin).ReadByte()
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err, nil
	}})
}
