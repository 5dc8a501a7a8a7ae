package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/warden"
)

// proposal is what the fake daemon's agent prints.
const proposal = `{"version":1,"changes":[{"path":"dir/a.txt","hex":"68690a"},{"path":"a.txt","hex":null}]}`

// TestFakeScripts shows verbs that need runs, on a daemon that contains nothing: the commands are
// scripts of the fake daemon.
func TestFakeScripts(t *testing.T) {
	fakeScripts(t, filepath.Join("testdata", "fake"), 2, nil, "attempt", "candidate", "change", "images", "judgement", "rerun")
}

// req R3: the same, with every home's ledger on a cluster.
func TestFakeScriptsOnCluster(t *testing.T) {
	fakeScripts(t, scriptsOf(t, filepath.Join("testdata", "fake"), "loop", "rerun"), 2, onCluster, "attempt")
}

// req R3, req G2, req G9: runners on several machines, each a process of its own, share a ledger on a
// cluster in trouble.
func TestMachines(t *testing.T) {
	fakeScripts(t, filepath.Join("testdata", "machines"), 2, onCluster)
}

func fakeScripts(t *testing.T, dir string, atLeast int, and func(*testscript.Env) error, documents ...string) {
	t.Helper()
	daemon := fakedaemon.Start(t, fakedaemon.Options{Engine: fakedaemon.Engine27()})
	id, err := daemon.AddImage(fakedaemon.Image{Name: "tool:1"})
	require.NoError(t, err)
	for name, steps := range map[string][]fakedaemon.Step{
		"/bin/agent":    {fakedaemon.Stdout(proposal + "\n")},
		"/bin/chatty":   {fakedaemon.Stdout("working\n" + proposal)},
		"/bin/same":     {fakedaemon.Stdout(`{"version":1,"changes":[{"path":"a.txt","hex":"746578740a"}]}`)},
		"/bin/reserved": {fakedaemon.Stdout(`{"version":1,"changes":[{"path":".GIT/hooks/x","hex":"00"}]}`)},
		"/bin/check":    {fakedaemon.Stdout("fine\n")},
		"/bin/slow":     {fakedaemon.Stdout("fine\n"), fakedaemon.Sleep(time.Second)},
		"/bin/fails":    {fakedaemon.Stderr("no\n"), fakedaemon.Exit(1)},
	} {
		daemon.Script(name, fakedaemon.Program{Steps: steps})
	}
	scripts(t, dir, atLeast, func(e *testscript.Env) error {
		e.Values[daemonKey{}] = daemon
		e.Setenv("SOCKET", daemon.Socket)
		e.Setenv("IMAGE", id)
		if and == nil {
			return nil
		}
		return and(e)
	}, documents...)
	require.Empty(t, daemon.Containers(), "every container was removed")
}

// req G6: custody that nothing can close is given up by an operator, once a recovery has tried. The daemon takes
// no create, so that nobody can rule out that it comes yet.
func TestAbandonScripts(t *testing.T) {
	daemon := fakedaemon.Start(t, fakedaemon.Options{Engine: fakedaemon.Engine27()})
	id, err := daemon.AddImage(fakedaemon.Image{Name: "tool:1"})
	require.NoError(t, err)
	daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallCreate, Times: fakedaemon.Always, Effect: fakedaemon.DropBefore{}})
	scripts(t, filepath.Join("testdata", "abandoned"), 1, func(e *testscript.Env) error {
		e.Setenv("SOCKET", daemon.Socket)
		e.Setenv("IMAGE", id)
		return nil
	}, "attempt", "supervise")
	require.Empty(t, daemon.Containers())
}

// TestStrayScripts shows what a supervisor says of a container that somebody else made with our labels,
// which is still there at the end.
func TestStrayScripts(t *testing.T) {
	daemon := fakedaemon.Start(t, fakedaemon.Options{Engine: fakedaemon.Engine27()})
	id, err := daemon.AddImage(fakedaemon.Image{Name: "tool:1"})
	require.NoError(t, err)
	daemon.Script("/bin/check", fakedaemon.Program{Steps: []fakedaemon.Step{fakedaemon.Stdout("fine\n")}})
	stray := makeLabelled(t, daemon, id, "left-behind", evidence.HandleKey{2})
	scripts(t, filepath.Join("testdata", "stray"), 1, func(e *testscript.Env) error {
		e.Setenv("SOCKET", daemon.Socket)
		e.Setenv("IMAGE", id)
		e.Setenv("STRAY", stray)
		return leavePreflight(t, daemon, id, filepath.Join(e.WorkDir, ".state", "baildock", "custody"))
	}, "supervise")
	left := daemon.Containers()
	require.Len(t, left, 1)
	require.Equal(t, stray, left[0].ID)
	require.Equal(t, "created", left[0].Status)
}

// leavePreflight leaves what a preflight leaves that was killed before it removed its container.
func leavePreflight(t *testing.T, daemon *fakedaemon.Daemon, image, dir string) error {
	driver, err := docker.Open(daemon.Socket)
	require.NoError(t, err)
	rt, err := driver.Probe(t.Context())
	require.NoError(t, err)
	files, err := warden.OpenCustodyFiles(dir, nil)
	require.NoError(t, err)
	rec, handle := files.Recorder(nil), evidence.HandleKey{3}
	require.NoError(t, rec.Record(t.Context(), evidence.CustodyTaken{Handle: handle, Kind: evidence.CustodyContainer,
		Name: "preflight-left", Request: evidence.RequestDigest{1}, Daemon: rt.Identity.Daemon}))
	made := evidence.ContainerCreated{Handle: handle}
	require.NoError(t, made.Container.UnmarshalText([]byte(makeLabelled(t, daemon, image, "preflight-left", handle))))
	require.NoError(t, rec.Record(t.Context(), made))
	return errors.Join(rec.Close(), driver.Close())
}

func makeLabelled(t *testing.T, daemon *fakedaemon.Daemon, image, name string, handle evidence.HandleKey) string {
	body, err := json.Marshal(map[string]any{"Image": image, "Cmd": []string{"/bin/check"}, "Labels": map[string]string{
		executor.LabelRequest: evidence.RequestDigest{1}.String(), executor.LabelHandle: handle.String(),
	}})
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", daemon.Socket)
	}}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://daemon/v1.47/containers/create?name="+name, strings.NewReader(string(body)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	require.NoError(t, err)
	var made struct{ Id string }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&made))
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	return made.Id
}
