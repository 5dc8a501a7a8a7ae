package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// req E5: a daemon's process is known by PID and start, and gone only when nothing else can be.
func TestDaemonProcess(t *testing.T) {
	d := &Driver{host: "/"}
	child := exec.Command("sleep", "60")
	require.NoError(t, child.Start())
	p, name, err := d.readProcess(uint32(child.Process.Pid))
	require.NoError(t, err)
	require.Equal(t, "sleep", name)
	require.NotZero(t, p.Start)
	require.NotZero(t, p.Namespace)
	require.Nil(t, d.daemonProcess(int32(child.Process.Pid)), "what listens there is not the daemon")
	require.Nil(t, d.daemonProcess(0))

	ended := func(p evidence.DaemonProcess) bool {
		gone, err := d.DaemonEnded(p)
		require.NoError(t, err)
		return gone
	}
	require.False(t, ended(p))
	other := p
	other.Namespace++
	require.False(t, ended(other), "seen from elsewhere, nothing can be said")
	other = p
	other.Start++
	require.True(t, ended(other), "its number was given to another")

	require.NoError(t, child.Process.Kill())
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(child.Process.Pid), "stat"))
		return err == nil && len(b) > 0
	}, 5*time.Second, time.Millisecond, "it is a zombie until it is waited for")
	require.False(t, ended(p), "a zombie may be anything")
	require.Error(t, child.Wait())
	require.True(t, ended(p))
	other = p
	other.Namespace++
	require.False(t, ended(other))
}

// A process may call itself what it likes.
func TestProcessNames(t *testing.T) {
	host := t.TempDir()
	d := &Driver{host: host}
	require.NoError(t, os.MkdirAll(filepath.Join(host, "proc/self/ns/pid"), 0o755))
	for name, stat := range map[string]string{
		"dockerd":     "7 (dockerd) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 30 0 4711 1 2",
		"a) b (c":     "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 30 0 4711 1 2",
		"short":       "7 (dockerd) S 1",
		"not a state": "7",
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.MkdirAll(filepath.Join(host, "proc/7"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(host, "proc/7/stat"), []byte(stat), 0o644))
			p := d.daemonProcess(7)
			if name != "dockerd" {
				require.Nil(t, p)
				return
			}
			require.NotNil(t, p)
			require.EqualValues(t, 4711, p.Start)
			require.EqualValues(t, 7, p.PID)
		})
	}
}
