package bench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The source of req U4.
const (
	sourceFiles = 200
	sourceBytes = 2 << 20
)

// pairs is how many times each side runs; medians are compared.
const pairs = 15

// BenchmarkRun: a contained run from start to durable record, against `docker run --rm` with the
// same flags through Docker's own command line, for the same source and command (req U4). It needs
// a Docker daemon and its command line, and fails without them.
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	bin := filepath.Join(dir, "baildock")
	build(b, bin, "../../cmd/baildock")
	build(b, filepath.Join(dir, "misbehave"), "../demo/misbehave")
	source := filepath.Join(dir, "source")
	makeSource(b, source)
	b.Setenv("BAILDOCK_HOME", filepath.Join(dir, "home"))
	command(b, 0, bin, "init")
	image := "baildock-bench"
	command(b, 0, bin, "image", "make", image, "--add", filepath.Join(dir, "misbehave")+":/bin/misbehave")

	ours := []string{"run", "--quiet", "--image", image, "--source", source, "--", "/bin/misbehave", "exit", "0"}
	if code := command(b, -1, bin, ours...); code == 4 { // this daemon gives a reduced claim only
		ours = slices.Insert(ours, 1, reductions(b, bin)...)
	}
	theirs := strings.Fields("run --rm --network none --read-only --user 65532:65532 --workdir /source --hostname baildock " +
		"--cap-drop ALL --security-opt no-new-privileges --ipc none --cgroupns private --log-driver none --no-healthcheck " +
		"--memory 256m --memory-swap 256m --cpus 1 --pids-limit 64 --ulimit nofile=128:128 --ulimit core=0:0 " +
		"--tmpfs /scratch:rw,nosuid,nodev,noexec,size=64m,uid=65532,gid=65532,mode=0700 -e HOME=/scratch -e TMPDIR=/scratch")
	theirs = append(theirs, "--mount", "type=bind,readonly,source="+source+",target=/source", image, "/bin/misbehave", "exit", "0")

	for b.Loop() {
		var our, their []time.Duration
		for i := range pairs {
			sides := []func(){
				func() { our = append(our, timed(b, bin, ours...)) },
				func() { their = append(their, timed(b, "docker", theirs...)) },
			}
			sides[i%2]()
			sides[1-i%2]()
		}
		b.ReportMetric(median(our).Seconds()*1e3, "ours-ms")
		b.ReportMetric(median(their).Seconds()*1e3, "docker-run-ms")
		b.ReportMetric(median(our).Seconds()/median(their).Seconds(), "ratio")
		b.Logf("source: %d files, %d bytes; %d pairs", sourceFiles, sourceBytes, pairs)
	}
}

func build(b *testing.B, out, pkg string) {
	b.Helper()
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	said, err := cmd.CombinedOutput()
	require.NoError(b, err, "%s", said)
}

func makeSource(b *testing.B, dir string) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range sourceFiles {
		path := filepath.Join(dir, fmt.Sprintf("d%02d", i%20), fmt.Sprintf("f%03d.txt", i))
		require.NoError(b, os.MkdirAll(filepath.Dir(path), 0o755))
		content := make([]byte, sourceBytes/sourceFiles)
		for j := range content {
			content[j] = byte('a' + r.IntN(26))
		}
		require.NoError(b, os.WriteFile(path, content, 0o644))
	}
}

// command runs a program; want is its exit code, or -1 for any.
func command(b *testing.B, want int, name string, args ...string) int {
	b.Helper()
	cmd := exec.Command(name, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	require.NotNil(b, cmd.ProcessState, "%s: %v", name, err)
	code := cmd.ProcessState.ExitCode()
	if want >= 0 {
		require.Equal(b, want, code, "%s %q: %s", name, args, said.String())
	}
	return code
}

func timed(b *testing.B, name string, args ...string) time.Duration {
	b.Helper()
	begin := time.Now()
	command(b, 0, name, args...)
	return time.Since(begin)
}

// reductions are the flags the last refusal asked for.
func reductions(b *testing.B, bin string) []string {
	b.Helper()
	out, err := exec.Command(bin, "why", "@last").Output()
	require.NoError(b, err)
	var flags []string
	words := strings.Fields(string(out))
	for i, w := range words {
		if w == "--accept-reduced" {
			flags = append(flags, w, words[i+1])
		}
	}
	require.NotEmpty(b, flags, "%s", out)
	return flags
}

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}
