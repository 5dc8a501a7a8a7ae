package fakedaemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/fakedaemon"
)

// bench is a daemon with one of each object, and the official client.
type bench struct {
	*fakedaemon.Daemon
	t       *testing.T
	api     *client.Client
	idle    string // ID of a created container, labelled own=yes
	busy    string // of a running one
	exec    string // of an exec that hasn't started
	network string
	archive madeArchive
}

const slow = 500 * time.Millisecond // of the benches' slow faults: long against a call, short against a test

func newBench(t *testing.T, engine fakedaemon.Engine) *bench {
	t.Helper()
	d := fakedaemon.Start(t, fakedaemon.Options{Engine: engine, Slow: slow, Images: []fakedaemon.Image{{Name: "tool:1", Labels: map[string]string{"of": "image"}}}})
	d.Script("/bin/never", fakedaemon.Program{Steps: []fakedaemon.Step{fakedaemon.Stdout("ready\n"), fakedaemon.Never()}})
	d.Script("/bin/talk", fakedaemon.Program{Steps: []fakedaemon.Step{fakedaemon.Stdout("to stdout\n"), fakedaemon.Stderr("to stderr\n"), fakedaemon.Exit(3)}})
	b := &bench{Daemon: d, t: t, api: official(t, d)}
	ctx := patient(t)
	b.idle = b.create(ctx, "idle", "/bin/talk")
	b.busy = b.create(ctx, "busy", "/bin/never")
	require.NoError(t, b.api.ContainerStart(ctx, b.busy, container.StartOptions{}))
	exec, err := b.api.ContainerExecCreate(ctx, b.busy, container.ExecOptions{Cmd: []string{"/bin/id"}})
	require.NoError(t, err)
	n, err := b.api.NetworkCreate(ctx, "net", network.CreateOptions{Labels: map[string]string{"own": "yes"}})
	require.NoError(t, err)
	b.exec, b.network = exec.ID, n.ID
	b.archive = dockerArchive(t, "loaded:1", map[string]any{}, []byte("program"))
	return b
}

func official(t *testing.T, d *fakedaemon.Daemon) *client.Client {
	t.Helper()
	api, err := newClient(d.Socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, api.Close()) })
	return api
}

// newClient is the official client, with a connection a request: a kept one that breaks makes
// net/http ask again by itself, past the fault.
func newClient(socket string) (*client.Client, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if bound, ok := ctx.Value(bounded{}).(context.Context); ok && err == nil {
			context.AfterFunc(bound, func() { conn.Close() })
		}
		return conn, err
	}
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return client.NewClientWithOpts(client.WithHTTPClient(fresh), client.WithHost("unix://"+socket), client.WithAPIVersionNegotiation(), client.WithDialContext(dial))
}

// bounded marks a context that ends the connection made under it: the client's own handshake of an
// attach or exec waits for ever.
type bounded struct{}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (b *bench) create(ctx context.Context, name, program string) string {
	b.t.Helper()
	made, err := b.api.ContainerCreate(ctx, &container.Config{Image: "tool:1", Cmd: []string{program}, Labels: map[string]string{"own": "yes"}},
		&container.HostConfig{ReadonlyRootfs: true}, nil, nil, name)
	require.NoError(b.t, err)
	return made.ID
}

// invoke makes one call through the official client and returns what it said. A stream is read to
// its end, or to the first thing that shows that it works.
func (b *bench) invoke(ctx context.Context, c fakedaemon.Call) (any, error) {
	api := b.api
	if c == fakedaemon.CallAttach || c == fakedaemon.CallExecStart {
		ctx = context.WithValue(ctx, bounded{}, ctx)
	}
	nothing := func(err error) (any, error) { return nil, err }
	switch c {
	case fakedaemon.CallPing:
		p, err := api.Ping(ctx)
		return p, err
	case fakedaemon.CallVersion:
		v, err := api.ServerVersion(ctx)
		return v, err
	case fakedaemon.CallInfo:
		v, err := api.Info(ctx)
		return v, err
	case fakedaemon.CallImageList:
		v, err := api.ImageList(ctx, image.ListOptions{})
		return v, err
	case fakedaemon.CallImageInspect:
		v, err := api.ImageInspect(ctx, "tool:1")
		return v, err
	case fakedaemon.CallImageRemove:
		v, err := api.ImageRemove(ctx, "tool:1", image.RemoveOptions{Force: true})
		return v, err
	case fakedaemon.CallImageLoad:
		return b.load(ctx)
	case fakedaemon.CallCreate:
		v, err := api.ContainerCreate(ctx, &container.Config{Image: "tool:1", Cmd: []string{"x"}, Labels: map[string]string{"own": "yes"}}, &container.HostConfig{}, nil, nil, "new")
		return v, err
	case fakedaemon.CallInspect:
		_, raw, err := api.ContainerInspectWithRaw(ctx, b.busy, false)
		return string(raw), err
	case fakedaemon.CallList:
		v, err := api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "own=yes"))})
		return v, err
	case fakedaemon.CallAttach:
		return b.attach(ctx)
	case fakedaemon.CallWait:
		return b.wait(ctx)
	case fakedaemon.CallStart:
		return nothing(api.ContainerStart(ctx, b.idle, container.StartOptions{}))
	case fakedaemon.CallKill:
		return nothing(api.ContainerKill(ctx, b.busy, "SIGKILL"))
	case fakedaemon.CallStop:
		return nothing(api.ContainerStop(ctx, b.busy, container.StopOptions{}))
	case fakedaemon.CallRestart:
		return nothing(api.ContainerRestart(ctx, b.busy, container.StopOptions{}))
	case fakedaemon.CallPause:
		return nothing(api.ContainerPause(ctx, b.busy))
	case fakedaemon.CallUnpause:
		return nothing(api.ContainerUnpause(ctx, b.busy))
	case fakedaemon.CallRename:
		return nothing(api.ContainerRename(ctx, b.busy, "other"))
	case fakedaemon.CallUpdate:
		v, err := api.ContainerUpdate(ctx, b.busy, container.UpdateConfig{Resources: container.Resources{CPUShares: 7}})
		return v, err
	case fakedaemon.CallRemove:
		return nothing(api.ContainerRemove(ctx, b.busy, container.RemoveOptions{Force: true}))
	case fakedaemon.CallTop:
		v, err := api.ContainerTop(ctx, b.busy, nil)
		return v, err
	case fakedaemon.CallEvents:
		return b.follow(ctx)
	case fakedaemon.CallExecCreate:
		v, err := api.ContainerExecCreate(ctx, b.busy, container.ExecOptions{Cmd: []string{"/bin/id"}})
		return v, err
	case fakedaemon.CallExecStart:
		h, err := api.ContainerExecAttach(ctx, b.exec, container.ExecAttachOptions{})
		if err != nil {
			return nil, err
		}
		return copyAll(ctx, h)
	case fakedaemon.CallExecInspect:
		v, err := api.ContainerExecInspect(ctx, b.exec)
		return v, err
	case fakedaemon.CallCopyFrom:
		r, _, err := api.CopyFromContainer(ctx, b.busy, "/x")
		if err != nil {
			return nil, err
		}
		defer r.Close()
		text, err := io.ReadAll(r)
		return string(text), err
	case fakedaemon.CallCopyStat:
		v, err := api.ContainerStatPath(ctx, b.busy, "/x")
		return v, err
	case fakedaemon.CallCopyTo:
		return nothing(api.CopyToContainer(ctx, b.busy, "/", bytes.NewReader(tarball(b.t, entry{"x", nil})), container.CopyToContainerOptions{}))
	case fakedaemon.CallNetworkList:
		v, err := api.NetworkList(ctx, network.ListOptions{})
		return v, err
	case fakedaemon.CallNetworkInspect:
		_, raw, err := api.NetworkInspectWithRaw(ctx, b.network, network.InspectOptions{})
		return string(raw), err
	case fakedaemon.CallNetworkCreate:
		v, err := api.NetworkCreate(ctx, "another", network.CreateOptions{})
		return v, err
	case fakedaemon.CallNetworkConnect:
		return nothing(api.NetworkConnect(ctx, b.network, b.busy, nil))
	case fakedaemon.CallNetworkDisconnect:
		return nothing(api.NetworkDisconnect(ctx, "bridge", b.busy, false))
	case fakedaemon.CallNetworkRemove:
		return nothing(api.NetworkRemove(ctx, b.network))
	}
	return nil, fmt.Errorf("no test makes the call %s", c)
}

// prepare makes the call possible.
func (b *bench) prepare(c fakedaemon.Call) {
	if c == fakedaemon.CallUnpause {
		require.NoError(b.t, b.api.ContainerPause(patient(b.t), b.busy))
	}
}

func (b *bench) load(ctx context.Context) (any, error) {
	r, err := b.api.ImageLoad(ctx, bytes.NewReader(b.archive.bytes))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var said strings.Builder
	for dec := json.NewDecoder(r.Body); ; {
		var line struct{ Stream, Error string }
		err := dec.Decode(&line)
		if errors.Is(err, io.EOF) {
			return said.String(), nil
		}
		if err != nil {
			return said.String(), err
		}
		if line.Error != "" {
			return said.String(), errors.New(line.Error)
		}
		said.WriteString(line.Stream)
	}
}

// attach runs the idle container and reads its output.
func (b *bench) attach(ctx context.Context) (any, error) {
	attached, err := b.api.ContainerAttach(ctx, b.idle, container.AttachOptions{Stream: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, err
	}
	if err := b.api.ContainerStart(ctx, b.idle, container.StartOptions{}); err != nil {
		return nil, err
	}
	return copyAll(ctx, attached)
}

// copyAll takes the output apart until it ends or ctx does.
func copyAll(ctx context.Context, h types.HijackedResponse) (any, error) {
	stop := context.AfterFunc(ctx, h.Close)
	defer stop()
	defer h.Close()
	var out, err strings.Builder
	_, failed := stdcopy.StdCopy(&out, &err, h.Reader)
	if ctx.Err() != nil {
		failed = ctx.Err()
	}
	return [2]string{out.String(), err.String()}, failed
}

// wait waits for the busy container, which it kills once the wait is registered.
func (b *bench) wait(ctx context.Context) (any, error) {
	result, failed := b.api.ContainerWait(ctx, b.busy, container.WaitConditionNextExit)
	select {
	case err := <-failed:
		return nil, err
	default:
	}
	if err := b.api.ContainerKill(ctx, b.busy, "SIGKILL"); err != nil && !strings.Contains(err.Error(), "is not running") {
		return nil, err
	}
	select {
	case r := <-result:
		return r.StatusCode, nil
	case err := <-failed:
		return nil, err
	}
}

// follow waits for the first thing the daemon has to say of the idle container: its creation.
func (b *bench) follow(ctx context.Context) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	since := time.Now().Add(-time.Hour).Format(time.RFC3339)
	messages, failed := b.api.Events(ctx, events.ListOptions{Since: since, Filters: filters.NewArgs(filters.Arg("container", b.idle))})
	select {
	case m := <-messages:
		return string(m.Action), nil
	case err := <-failed:
		return nil, err
	}
}
