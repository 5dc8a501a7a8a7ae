package warden

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/fakedaemon"
)

func init() { Children["test-preflight"] = testPreflight }

// preflightAsked is what a child that makes a preflight is told.
type preflightAsked struct {
	Socket, Custody, Dir string
	Probe                evidence.ImageID
	Recipe               []byte
}

// testPreflight makes one preflight in a process of its own.
func testPreflight(args []string) error {
	var asked preflightAsked
	if err := json.Unmarshal([]byte(args[0]), &asked); err != nil {
		return err
	}
	recipe, err := evidence.ParseRecipe(asked.Recipe)
	if err != nil {
		return err
	}
	table, err := recipe.Table()
	if err != nil {
		return err
	}
	d, err := docker.Open(asked.Socket)
	if err != nil {
		return err
	}
	files, err := OpenCustodyFiles(asked.Custody, nil)
	if err != nil {
		return err
	}
	look := Preflight{Driver: d, Watchdog: kennel{}, Custody: files, Dir: asked.Dir, Probe: &Probe{
		Image:      func(context.Context) (evidence.ImageID, error) { return asked.Probe, nil },
		Executable: "/baildock", Args: []string{"preflight-self"},
	}}
	env, _, err := evidence.CommitEnv(recipe.Nonce, nil)
	if err != nil {
		return err
	}
	f := look.Examine(context.Background(), executor.Job{Recipe: recipe, Profile: table, Environment: env})
	fmt.Println(f.Result())
	return nil
}

// req M4, req E8: a preflight that is killed between any two steps leaves what a supervisor finds by its
// custody and removes; the next one removes the directory that its container had.
func TestPreflightKilledAnywhere(t *testing.T) {
	points := []struct {
		call  fakedaemon.Call
		nth   int
		after bool // done before the death
	}{
		{fakedaemon.CallInfo, 1, false}, {fakedaemon.CallEvents, 1, false}, {fakedaemon.CallCreate, 1, false}, {fakedaemon.CallCreate, 1, true},
		{fakedaemon.CallInspect, 1, false}, {fakedaemon.CallAttach, 1, true}, {fakedaemon.CallWait, 1, false}, {fakedaemon.CallStart, 1, false},
		{fakedaemon.CallStart, 1, true}, {fakedaemon.CallInspect, 2, true}, {fakedaemon.CallRemove, 1, false}, {fakedaemon.CallRemove, 1, true},
	}
	deaths, cleared := 0, 0
	for _, at := range points {
		t.Run(fmt.Sprintf("%s %d %t", at.call, at.nth, at.after), func(t *testing.T) {
			p := newProbation(t, fakedaemon.Options{Engine: fakedaemon.Engine27(), Slow: time.Hour})
			reached := make(chan struct{}, 64)
			fault := fakedaemon.Fault{Call: at.call, Nth: at.nth, Effect: fakedaemon.Slow{}, If: func(fakedaemon.Request) bool { reached <- struct{}{}; return true }}
			if at.after {
				fault.Effect = fakedaemon.SlowReply{}
			}
			p.daemon.Fault(fault)
			probe, err := p.look.Probe.Image(t.Context())
			require.NoError(t, err)
			asked, err := json.Marshal(preflightAsked{p.daemon.Socket, filepath.Join(p.top, "custody"), p.look.Dir, probe, evidence.Marshal(p.job.Recipe)})
			require.NoError(t, err)
			child := exec.Command("/proc/self/exe", "test-preflight", string(asked))
			var said bytes.Buffer
			child.Stdout, child.Stderr = &said, &said
			require.NoError(t, child.Start())
			for range at.nth {
				select {
				case <-reached:
				case <-time.After(time.Minute):
					t.Fatalf("it never came there: %s", said.String())
				}
			}
			if at.after && at.call == fakedaemon.CallCreate {
				require.Eventually(t, func() bool { return len(p.daemon.Containers()) == 1 }, time.Minute, time.Millisecond)
			}
			require.NoError(t, child.Process.Kill())
			var ended *exec.ExitError
			require.ErrorAs(t, child.Wait(), &ended)
			deaths++
			p.daemon.ClearFaults()
			w := New(Config{Home: Home{Dir: filepath.Join(p.top, "home")}, Driver: p.driver})
			met, err := w.Supervise(t.Context(), Pass{Custody: p.custody(t)}, nil)
			require.NoError(t, err)
			for _, m := range met {
				if m.Action == ActionCleared {
					cleared++
				} else { // no container, and a create that was perhaps sent
					require.Equal(t, ActionUnconfirmed, m.Action, m.Detail)
					require.Equal(t, fakedaemon.CallCreate, at.call)
				}
			}
			require.Empty(t, p.daemon.Containers())
			f := p.examine(t)
			require.True(t, f.Go(), "%v", f.Lines())
			entries, err := os.ReadDir(p.look.Dir)
			require.NoError(t, err)
			require.Empty(t, entries)
		})
	}
	t.Logf("%d deaths, %d custodies cleared", deaths, cleared)
	require.Equal(t, len(points), deaths)
	require.GreaterOrEqual(t, cleared, 8)
}
