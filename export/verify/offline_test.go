package verify_test

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/export/verify"
)

// offlineEnv marks the child of TestOffline.
const offlineEnv = "VERIFY_TEST_OFFLINE"

// req T2: verification needs no network. It runs here in a network namespace of its own, in which no
// interface is up.
func TestOffline(t *testing.T) {
	if os.Getenv(offlineEnv) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestOffline$", "-test.v")
		cmd.Env = append(os.Environ(), offlineEnv+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		if os.Geteuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "verified without a network")
		return
	}
	interfaces, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range interfaces {
		require.Zero(t, i.Flags&net.FlagUp, "interface %s is up", i.Name)
	}
	f, file := one(t)
	require.Equal(t, verify.Valid, verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)}).Verdict)
	t.Log("verified without a network")
}
