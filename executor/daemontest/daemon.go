// Package daemontest starts a Docker daemon of a test's own: its own data, sockets, containerd and
// network namespace, and nothing of the machine's daemon. It may be killed, stopped and started
// again, as the machine's may not. Its containerd is a process of its own, as where the machine's
// services are supervised: it and the containers live on when the daemon is killed.
//
//	d := daemontest.New(t)
//	d.Start()
//	driver, err := docker.Open(d.Socket)
//	…
//	d.Kill()
//	d.Start()
//
// It needs root and the programs dockerd and containerd, and fails its test without them.
package daemontest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// patience is how long a daemon may take to answer, or to end: a loaded machine takes its time.
	patience = 2 * time.Minute
	pause    = 50 * time.Millisecond
)

// Daemon is a daemon at one place. It runs from Start to Kill or Stop.
type Daemon struct {
	Socket     string
	dir        string
	args       []string
	t          testing.TB
	containerd *exec.Cmd
	cmd        *exec.Cmd // nil: it doesn't run
}

// New prepares a daemon and starts its containerd; extra are further arguments, as "--live-restore".
// Both end with the test, and so does what they left running.
func New(t testing.TB, extra ...string) *Daemon {
	dir, err := os.MkdirTemp("", "baildock-daemon-") // a short path: containerd makes sockets below it
	require.NoError(t, err)
	d := &Daemon{Socket: filepath.Join(dir, "d.sock"), dir: dir, t: t}
	t.Cleanup(d.end)
	config, containerd := d.write("daemon.json", "{}"), filepath.Join(dir, "c.sock") // not the machine's
	d.args = append([]string{
		"--config-file", config, "--host", "unix://" + d.Socket, "--containerd", containerd,
		"--data-root", filepath.Join(dir, "root"), "--exec-root", filepath.Join(dir, "exec"), "--pidfile", filepath.Join(dir, "pid"),
		"--bridge", "none", "--iptables=false", "--ip6tables=false",
	}, extra...)
	d.containerd = d.launch("containerd", "--config", d.write("containerd.toml", "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n"),
		"--address", containerd, "--root", filepath.Join(dir, "croot"), "--state", filepath.Join(dir, "cstate"))
	return d
}

func (d *Daemon) write(name, text string) string {
	path := filepath.Join(d.dir, name)
	require.NoError(d.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// launch starts a program whose words go to a log, in a network namespace of its own: a daemon without
// a bridge removes the docker0 it finds, and must not find the machine's.
func (d *Daemon) launch(program string, args ...string) *exec.Cmd {
	log, err := os.OpenFile(filepath.Join(d.dir, program+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(d.t, err)
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	require.NoError(d.t, cmd.Start())
	require.NoError(d.t, log.Close())
	return cmd
}

// Start starts the daemon and returns once it answers.
func (d *Daemon) Start() {
	d.t.Helper()
	require.Nil(d.t, d.cmd, "it runs")
	d.cmd = d.launch("dockerd", d.args...)
	for give := time.Now().Add(patience); !d.answers(); time.Sleep(pause) {
		require.True(d.t, time.Now().Before(give), "the daemon doesn't answer: %s", d.log())
	}
}

// PID is the running daemon's.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Kill ends the daemon's process as kill -9 does. Its containerd and its containers live on.
func (d *Daemon) Kill() {
	d.t.Helper()
	require.NoError(d.t, d.cmd.Process.Kill())
	var ended *exec.ExitError
	require.ErrorAs(d.t, d.cmd.Wait(), &ended)
	d.cmd = nil
}

// Stop lets the daemon end by itself.
func (d *Daemon) Stop() {
	d.t.Helper()
	require.NoError(d.t, d.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(d.t, d.cmd.Wait(), "%s", d.log())
	d.cmd = nil
}

func (d *Daemon) answers() bool {
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", d.Socket)
	}}}
	resp, err := c.Get("http://daemon/_ping")
	if err != nil {
		return false
	}
	return resp.StatusCode == http.StatusOK && resp.Body.Close() == nil
}

// log is the end of what the daemon said.
func (d *Daemon) log() string {
	b, err := os.ReadFile(filepath.Join(d.dir, "dockerd.log"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4<<10):])
}

// end stops the daemon and its containerd, ends what they left running, and removes their files.
func (d *Daemon) end() {
	for _, cmd := range []*exec.Cmd{d.cmd, d.containerd} {
		if cmd == nil {
			continue
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			d.t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			d.t.Errorf("%s: %v: %s", cmd.Path, err, d.log())
		}
	}
	for give := time.Now().Add(patience); ; time.Sleep(pause) {
		left := d.processes()
		if len(left) == 0 {
			break
		}
		require.True(d.t, time.Now().Before(give), "processes %v don't end", left)
		for _, pid := range left {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				require.ErrorIs(d.t, err, syscall.ESRCH)
			}
		}
	}
	d.unmount()
	require.NoError(d.t, os.RemoveAll(d.dir))
}

// processes lists what runs with a path of this daemon in its arguments, as the shims of containers
// do, and their children.
func (d *Daemon) processes() (pids []int) {
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(d.t, err)
	for _, name := range found {
		line, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(line), d.dir+"/") {
			continue // gone already, or somebody else's
		}
		self := strings.Split(name, "/")[2]
		children, err := os.ReadFile(filepath.Join("/proc", self, "task", self, "children"))
		if err != nil {
			continue
		}
		for _, text := range append(strings.Fields(string(children)), self) {
			pid, err := strconv.Atoi(text)
			require.NoError(d.t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// unmount takes down what a killed daemon left mounted below its directory, the newest first.
func (d *Daemon) unmount() {
	table, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(d.t, err)
	lines := strings.Split(string(table), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		f := strings.Fields(lines[i])
		if len(f) > 4 && strings.HasPrefix(f[4], d.dir+"/") {
			if err := syscall.Unmount(f[4], syscall.MNT_DETACH); !errors.Is(err, syscall.EINVAL) {
				require.NoError(d.t, err)
			}
		}
	}
}
