//go:build live

package warden_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/warden"
)

// BenchmarkLiveRun takes an attempt from its registration to its durable record, over a source of
// 200 files and 2 MB, and prints its median time as a ratio to Docker's own command line running
// the same command under the same flags in the same minute (req U4: at most 1.0).
func BenchmarkLiveRun(b *testing.B) {
	s := newSite(b)
	for i := range 200 {
		require.NoError(b, os.WriteFile(filepath.Join(s.source, fmt.Sprintf("file-%03d", i)), make([]byte, 10<<10), 0o644))
	}
	require.NoError(b, s.dog.Close())
	var ours, theirs []time.Duration
	n := 0
	for b.Loop() {
		n++
		cli := exec.Command("docker", "-H", "unix://"+s.socket, "run", "--rm", "--network", "none", "--read-only", "--user", "65532:65532",
			"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--ipc", "none", "--cgroupns", "private", "--log-driver", "none",
			"--memory", "64m", "--memory-swap", "64m", "--cpus", "1", "--pids-limit", "64", "--ulimit", "nofile=128:128", "--ulimit", "core=0:0",
			"--tmpfs", "/scratch:rw,nosuid,nodev,noexec,size=1048576,uid=65532,gid=65532,mode=0700",
			"--mount", "type=bind,source="+s.source+",target=/source,readonly", "--workdir", "/source", "--hostname", "baildock",
			"--entrypoint", "/subject", s.image.String(), "cat", "a.txt")
		time.Sleep(settle)
		begin := time.Now()
		out, err := cli.CombinedOutput()
		theirs = append(theirs, time.Since(begin))
		require.NoError(b, err, "%s", out)

		time.Sleep(settle)
		begin = time.Now()
		var startErr error
		s.dog, startErr = warden.StartWatchdog("/proc/self/exe", "watchdog", s.socket)
		require.NoError(b, startErr)
		id := s.register(b, fmt.Sprintf("bench-%d", n), nil, "cat", "a.txt")
		res, err := s.warden(s.driver).Run(context.Background(), warden.RunRequest{Attempt: id, Path: s.source, Accepted: v1}, nil)
		ours = append(ours, time.Since(begin))
		require.NoError(b, err)
		require.Equal(b, "ok", res.Verdict.Detail)
	}
	b.ReportMetric(float64(median(ours))/float64(median(theirs)), "×docker-run")
	b.ReportMetric(float64(median(ours).Milliseconds()), "ms/run")
	b.ReportMetric(float64(median(theirs).Milliseconds()), "ms/docker-run")
	b.ReportMetric(0, "ns/op")
}

// settle lets the daemon finish what the run before left it: Docker's command line returns before
// its removal is done.
const settle = 300 * time.Millisecond

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
