//go:build live

package docker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/daemontest"
)

// TestLiveDaemonProcess restarts a daemon of its own: its process is known before, ended after, and
// another one by then (req E5).
func TestLiveDaemonProcess(t *testing.T) {
	own := daemontest.New(t)
	own.Start()
	d, err := Open(own.Socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	asked, err := d.Probe(context.Background())
	require.NoError(t, err)
	p := asked.Identity.Daemon.Process
	require.NotNil(t, p, "the daemon listens itself")
	require.EqualValues(t, own.PID(), p.PID)
	gone, err := d.DaemonEnded(*p)
	require.NoError(t, err)
	require.False(t, gone)

	own.Stop()
	gone, err = d.DaemonEnded(*p)
	require.NoError(t, err)
	require.True(t, gone)

	own.Start()
	now, err := d.Probe(context.Background())
	require.NoError(t, err)
	require.True(t, now.Identity.Daemon.SameHost(asked.Identity.Daemon))
	require.NotEqual(t, *p, *now.Identity.Daemon.Process)
	gone, err = d.DaemonEnded(*now.Identity.Daemon.Process)
	require.NoError(t, err)
	require.False(t, gone)
}
