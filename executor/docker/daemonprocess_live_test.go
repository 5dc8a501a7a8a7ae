//go:build live

package docker

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLiveDaemonProcess restarts a daemon of its own, with its own root, socket, network namespace
// and no bridge: its process is known before, ended after, and another one by then (req E5).
func TestLiveDaemonProcess(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "d.sock")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "daemon.json"), []byte("{}"), 0o600)) // not the machine's
	start := func() *exec.Cmd {
		log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		cmd := exec.Command("dockerd", "--config-file", filepath.Join(dir, "daemon.json"), "--host", "unix://"+socket, "--data-root", filepath.Join(dir, "root"),
			"--exec-root", filepath.Join(dir, "exec"), "--pidfile", filepath.Join(dir, "pid"),
			"--bridge", "none", "--iptables=false", "--ip6tables=false")
		cmd.Stdout, cmd.Stderr = log, log
		// A daemon without a bridge removes the docker0 it finds: it must not find the machine's.
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		require.NoError(t, cmd.Start())
		require.NoError(t, log.Close())
		return cmd
	}
	d, err := Open(socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	ready := func() {
		require.Eventually(t, func() bool {
			_, err := d.Probe(context.Background())
			return err == nil
		}, time.Minute, 100*time.Millisecond)
	}
	first := start()
	defer func() { first.Process.Kill() }() //nolint:errcheck // ended already when all went well
	ready()
	asked, err := d.Probe(context.Background())
	require.NoError(t, err)
	p := asked.Identity.Daemon.Process
	require.NotNil(t, p, "the daemon listens itself")
	require.EqualValues(t, first.Process.Pid, p.PID)
	gone, err := d.DaemonEnded(*p)
	require.NoError(t, err)
	require.False(t, gone)

	require.NoError(t, first.Process.Signal(syscall.SIGTERM))
	require.NoError(t, first.Wait())
	gone, err = d.DaemonEnded(*p)
	require.NoError(t, err)
	require.True(t, gone)

	second := start()
	defer func() {
		require.NoError(t, second.Process.Signal(syscall.SIGTERM))
		require.NoError(t, second.Wait())
	}()
	ready()
	now, err := d.Probe(context.Background())
	require.NoError(t, err)
	require.True(t, now.Identity.Daemon.SameHost(asked.Identity.Daemon))
	require.NotEqual(t, *p, *now.Identity.Daemon.Process)
	gone, err = d.DaemonEnded(*now.Identity.Daemon.Process)
	require.NoError(t, err)
	require.False(t, gone)
}
