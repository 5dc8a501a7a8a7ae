//go:build live

package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/drivertest"
)

const liveImage = "baildock-drivertest/subject:live"

// TestLiveDriver runs the suite against the daemon at the default socket, or at
// BAILDOCK_TEST_DOCKER_SOCKET. req C1 C2 C3 C4 C5 C7 E3
func TestLiveDriver(t *testing.T) {
	d := openLive(t)
	id := loadSubject(t, d)
	source := liveSource(t)
	drivertest.Run(t, func(t *testing.T) drivertest.Env {
		return drivertest.Env{Driver: d, Image: id, Name: liveImage, Subject: "/subject", Source: source, Kernel: true}
	})
}

func openLive(tb testing.TB) *docker.Driver {
	socket := docker.DefaultSocket
	if s := os.Getenv("BAILDOCK_TEST_DOCKER_SOCKET"); s != "" {
		socket = s
	}
	d, err := docker.Open(socket)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, d.Close()) })
	return d
}

// liveSource is a directory whose parents the daemon and UID 65532 can traverse.
func liveSource(tb testing.TB) string {
	dir, err := os.MkdirTemp("", "baildock-drivertest-")
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, os.RemoveAll(dir)) })
	require.NoError(tb, os.Chmod(dir, 0o755))
	require.NoError(tb, os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644))
	return dir
}

func loadSubject(tb testing.TB, d *docker.Driver) evidence.ImageID {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, err := d.ImageLoad(ctx, bytes.NewReader(subjectArchive(tb)), liveImage)
	require.NoError(tb, err)
	return id
}

// subjectArchive builds the subject program and packs it as a docker-archive of one layer.
func subjectArchive(tb testing.TB) []byte {
	program := filepath.Join(tb.TempDir(), "subject")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "../drivertest/testdata/subject")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(tb, err, "%s", out)
	binary, err := os.ReadFile(program)
	require.NoError(tb, err)
	layer := pack(tb, file{"subject", 0o755, binary})
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": "1970-01-01T00:00:00Z",
		"config": map[string]any{"Labels": map[string]string{"org.example": "image's own"}, "ExposedPorts": map[string]any{"80/tcp": map[string]any{}}, "StopSignal": "SIGQUIT"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hexSum(layer)}},
	})
	require.NoError(tb, err)
	name := hexSum(config) + ".json"
	manifest, err := json.Marshal([]any{map[string]any{"Config": name, "RepoTags": []string{liveImage}, "Layers": []string{"layer.tar"}}})
	require.NoError(tb, err)
	return pack(tb, file{"layer.tar", 0o644, layer}, file{name, 0o644, config}, file{"manifest.json", 0o644, manifest})
}

type file struct {
	name string
	mode int64
	data []byte
}

func pack(tb testing.TB, files ...file) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		require.NoError(tb, w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data))}))
		_, err := w.Write(f.data)
		require.NoError(tb, err)
	}
	require.NoError(tb, w.Close())
	return b.Bytes()
}

func hexSum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
