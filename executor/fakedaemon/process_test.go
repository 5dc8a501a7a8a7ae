package fakedaemon_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/fakedaemon"
)

// The test's own binary plays a daemon or a client in a process of its own.
const roleVariable = "FAKEDAEMON_TEST_ROLE"

func TestMain(m *testing.M) {
	role, socket, _ := strings.Cut(os.Getenv(roleVariable), " ")
	var err error
	switch role {
	case "daemon":
		err = fakedaemon.Serve(context.Background(), socket, fakedaemon.Options{Images: []fakedaemon.Image{{Name: "tool:1"}}})
	case "client":
		err = createForEver(socket)
	default:
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// createForEver asks for a container and says so before.
func createForEver(socket string) error {
	driver, err := newClient(socket)
	if err != nil {
		return err
	}
	fmt.Println("asking")
	_, err = driver.ContainerCreate(context.Background(), &container.Config{Image: "tool:1", Cmd: []string{"x"}}, nil, nil, nil, "late")
	return fmt.Errorf("answered: %v", err)
}

// process starts this test's binary in a role; it is killed when the test ends.
func process(t *testing.T, role string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			require.NoError(t, cmd.Process.Kill())
			require.Error(t, cmd.Wait(), "killed")
		}
	})
	return cmd, bufio.NewReader(out)
}

// A create completes after the process that asked was killed. req G9
func TestLateAfterKill(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	b.Fault(fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.Late{}})
	client, out := process(t, "client "+b.Socket)
	_, err := out.ReadString('\n')
	require.NoError(t, err)
	require.Eventually(t, func() bool { return b.Pending() == 1 }, 30*time.Second, time.Millisecond)
	require.NoError(t, client.Process.Kill())
	require.Error(t, client.Wait())
	_, ok := b.Container("late")
	require.False(t, ok)
	require.Equal(t, 1, b.CompleteLate())
	_, ok = b.Container("late")
	require.True(t, ok)
}

// The daemon serves from a process of its own, and its death breaks every stream.
func TestServe(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "d.sock")
	daemon, _ := process(t, "daemon "+socket)
	api, err := newClient(socket)
	require.NoError(t, err)
	defer api.Close()
	require.Eventually(t, func() bool { _, err := api.Ping(patient(t)); return err == nil }, 30*time.Second, time.Millisecond)
	made, err := api.ContainerCreate(patient(t), &container.Config{Image: "tool:1", Cmd: []string{"x"}}, nil, nil, nil, "one")
	require.NoError(t, err)
	_, failed := api.ContainerWait(patient(t), made.ID, container.WaitConditionNextExit)
	require.NoError(t, daemon.Process.Kill())
	require.Error(t, daemon.Wait())
	require.Error(t, <-failed)

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- fakedaemon.Serve(ctx, socket+"2", fakedaemon.Options{}) }()
	require.Eventually(t, func() bool { _, err := os.Stat(socket + "2"); return err == nil }, 30*time.Second, time.Millisecond)
	require.Error(t, fakedaemon.Serve(ctx, socket+"2", fakedaemon.Options{}), "the path is taken")
	cancel()
	require.NoError(t, <-ended)
	_, err = os.Stat(socket + "2")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Close leaves nothing behind, whatever hangs: streams, held output, late calls, slow replies.
func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("daemon", func(t *testing.T) {
		b := newBench(t, fakedaemon.Engine20())
		b.Fault(
			fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.Late{}},
			fakedaemon.Fault{Call: fakedaemon.CallInfo, Effect: fakedaemon.Slow{Delay: time.Hour}},
			fakedaemon.Fault{Call: fakedaemon.CallInspect, Effect: fakedaemon.SlowReply{Delay: time.Hour}},
			fakedaemon.Fault{Call: fakedaemon.CallList, Effect: fakedaemon.Stalled{Delay: time.Hour}},
			fakedaemon.Fault{Call: fakedaemon.CallEvents, Effect: fakedaemon.Silent{}},
			fakedaemon.Fault{Call: fakedaemon.CallAttach, Effect: fakedaemon.Silent{}},
		)
		b.Script("/bin/talk", fakedaemon.Program{Steps: []fakedaemon.Step{fakedaemon.Write(false, make([]byte, 1<<20))}, HoldOutput: time.Hour})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var asked sync.WaitGroup
		for _, call := range []fakedaemon.Call{fakedaemon.CallCreate, fakedaemon.CallInfo, fakedaemon.CallInspect, fakedaemon.CallList, fakedaemon.CallEvents, fakedaemon.CallAttach} {
			asked.Add(1)
			go func() {
				defer asked.Done()
				b.invoke(ctx, call) // fails when the daemon ends; the daemon's end is what is looked at
			}()
			require.Eventually(t, func() bool {
				for _, r := range b.Requests(call) {
					if len(r.Faults) > 0 {
						return true
					}
				}
				return false
			}, 30*time.Second, time.Millisecond)
		}
		b.Close()
		asked.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			require.Fail(t, "goroutines left", "%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// Many clients at once: the state stays whole, under the race detector too.
func TestManyClients(t *testing.T) {
	b := newBench(t, fakedaemon.Engine20())
	var all sync.WaitGroup
	for n := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 10 {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				made, err := b.api.ContainerCreate(ctx, &container.Config{Image: "tool:1", Cmd: []string{"/bin/talk"}}, nil, nil, nil, fmt.Sprintf("c-%d-%d", n, i))
				if err != nil {
					t.Error(err)
					return
				}
				for _, err := range []error{
					b.api.ContainerStart(ctx, made.ID, container.StartOptions{}),
					b.api.ContainerRestart(ctx, made.ID, container.StopOptions{}),
					b.api.ContainerRemove(ctx, made.ID, container.RemoveOptions{Force: true}),
				} {
					if err != nil {
						t.Error(err)
					}
				}
			}
		}()
	}
	all.Wait()
	require.Len(t, b.Containers(), 2)
	require.Equal(t, 82, b.Count(fakedaemon.CallCreate))
}
