//go:build live

package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/drivertest"
)

// TestLiveDriver runs the suite against the daemon at the default socket, or at
// BAILDOCK_TEST_DOCKER_SOCKET. req C1 req C2 req C3 req C4 req C5 req C7 req E3
func TestLiveDriver(t *testing.T) {
	d := openLive(t)
	id, name := loadSubject(t, d)
	source := liveSource(t)
	drivertest.Run(t, func(t *testing.T) drivertest.Env {
		return drivertest.Env{Driver: d, Image: id, Name: name, Subject: "/subject", Source: source, Kernel: true}
	})
}

func liveSocket() string {
	if s := os.Getenv("BAILDOCK_TEST_DOCKER_SOCKET"); s != "" {
		return s
	}
	return docker.DefaultSocket
}

func openLive(tb testing.TB) *docker.Driver {
	d, err := docker.Open(liveSocket())
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

// loadSubject loads the subject program's image under a tag of this run, which is removed again.
func loadSubject(tb testing.TB, d *docker.Driver) (evidence.ImageID, string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var tag [8]byte
	_, err := rand.Read(tag[:])
	require.NoError(tb, err)
	name := "baildock-drivertest/subject:" + hex.EncodeToString(tag[:])
	id, err := d.ImageLoad(ctx, bytes.NewReader(subjectArchive(tb, name)), name)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		api, err := client.NewClientWithOpts(client.WithHost("unix://"+liveSocket()), client.WithAPIVersionNegotiation())
		require.NoError(tb, err)
		defer api.Close()
		_, err = api.ImageRemove(context.Background(), name, image.RemoveOptions{})
		require.NoError(tb, err)
	})
	return id, name
}

// subjectArchive builds the subject program and packs it as a docker-archive of one layer, with what
// an image may bring along: labels, an exposed port and a stop signal.
func subjectArchive(tb testing.TB, name string) []byte {
	program := filepath.Join(tb.TempDir(), "subject")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, "../drivertest/testdata/subject")
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
	configName := hexSum(config) + ".json"
	manifest, err := json.Marshal([]any{map[string]any{"Config": configName, "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	require.NoError(tb, err)
	return pack(tb, file{"layer.tar", 0o644, layer}, file{configName, 0o644, config}, file{"manifest.json", 0o644, manifest})
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
