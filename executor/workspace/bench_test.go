package workspace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// repositoryOf is a repository of 10,000 files in 500 directories, 4 KiB each on average, 40 MiB in all,
// committed.
func repositoryOf(b *testing.B) string {
	b.Helper()
	dir := filepath.Join(realTemp(b), "repository")
	r := rand.New(rand.NewPCG(5, 6))
	content := make([]byte, 8<<10)
	for i := range content {
		content[i] = "abcdefghijklmnopqrstuvwxyz \n"[r.IntN(28)]
	}
	for i := range 10_000 {
		d := filepath.Join(dir, fmt.Sprintf("d%02d/e%02d", i%25, i/25%20))
		require.NoError(b, os.MkdirAll(d, 0o755))
		at := r.IntN(4 << 10)
		require.NoError(b, os.WriteFile(filepath.Join(d, fmt.Sprintf("f%05d.txt", i)), fmt.Appendf(content[:at:at], "%d", i), 0o644))
	}
	git(b, dir, "init", "-q", "-b", "main")
	git(b, dir, "config", "gc.auto", "0")
	git(b, dir, "add", ".")
	git(b, dir, "commit", "-qm", "all")
	return dir
}

// BenchmarkPrepare prepares a repository of 10,000 files, git status included, with `cp -a` of the same files
// followed by `sha256sum` of the copy as the baseline, alternating in one run. The ratio is ours over theirs: below 1 is faster.
func BenchmarkPrepare(b *testing.B) {
	dir := repositoryOf(b)
	parent := privateDir(b)
	var ours, theirs, capture, remove time.Duration
	for b.Loop() {
		to := filepath.Join(parent, "copy")
		start := time.Now()
		out, err := exec.Command("sh", "-c", `mkdir "$2" && cp -a "$1"/* "$2" && cd "$2" && find . -type f -print0 | xargs -0 sha256sum >"$2.sums"`, "sh", dir, to).CombinedOutput()
		theirs += time.Since(start)
		require.NoError(b, err, "%s", out)
		require.NoError(b, os.RemoveAll(to))

		start = time.Now()
		w, err := Prepare(context.Background(), Request{Root: dir, Parent: parent, Writable: evidence.WritablePaths{"."}})
		ours += time.Since(start)
		require.NoError(b, err)
		require.Len(b, w.Baseline.Manifest.Entries, 10_525)
		require.True(b, w.Baseline.Git.Clean())
		start = time.Now()
		l, err := w.Capture(context.Background())
		capture += time.Since(start)
		require.NoError(b, err)
		require.Empty(b, l)
		start = time.Now()
		require.NoError(b, w.Remove())
		remove += time.Since(start)
	}
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "prepare/cp+sha256sum")
	b.ReportMetric(ours.Seconds()*1000/float64(b.N), "prepare-ms/op")
	b.ReportMetric(capture.Seconds()*1000/float64(b.N), "capture-ms/op")
	b.ReportMetric(remove.Seconds()*1000/float64(b.N), "remove-ms/op")
}

// BenchmarkUsage counts a workspace of 10,000 files with `du` of the same tree as the baseline.
func BenchmarkUsage(b *testing.B) {
	w, err := Prepare(context.Background(), Request{Root: repositoryOf(b), Parent: privateDir(b), Writable: evidence.WritablePaths{"."}})
	require.NoError(b, err)
	var ours, theirs time.Duration
	for b.Loop() {
		start := time.Now()
		require.NoError(b, exec.Command("du", "-s", "--apparent-size", w.Dir).Run())
		theirs += time.Since(start)
		start = time.Now()
		u, err := w.Usage()
		ours += time.Since(start)
		require.NoError(b, err)
		require.EqualValues(b, 10_525, u.Entries)
		require.Empty(b, u.Broken)
	}
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "usage/du")
	b.ReportMetric(ours.Seconds()*1000/float64(b.N), "usage-ms/op")
	require.NoError(b, w.Remove())
}
