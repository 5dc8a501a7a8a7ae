//go:build live

package docker_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
)

const archiveImage = "baildock-archivetest/files:live"

// TestLiveArchive loads an image made of local files: the daemon gives it exactly the ID that was
// promised before a byte was sent, and gives nothing to one whose files changed.
func TestLiveArchive(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	socket := docker.DefaultSocket
	if s := os.Getenv("BAILDOCK_TEST_DOCKER_SOCKET"); s != "" {
		socket = s
	}
	d, err := docker.Open(socket)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	api, err := client.NewClientWithOpts(client.WithHost("unix://"+socket), client.WithAPIVersionNegotiation())
	require.NoError(t, err)
	defer api.Close()

	dir := t.TempDir()
	tool := filepath.Join(dir, "tool")
	require.NoError(t, os.WriteFile(tool, []byte("#!/bin/sh\n"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "ü"), []byte(t.Name()), 0o600))
	files := []docker.ArchiveFile{{Host: tool, Dest: "/bin/tool"}, {Host: filepath.Join(dir, "data"), Dest: "/data"}}

	a, err := docker.BuildArchive(ctx, archiveImage, files)
	require.NoError(t, err)
	_, err = d.ImageInspect(ctx, archiveImage)
	require.ErrorIs(t, err, executor.ErrAbsent, "left by an earlier run")
	remove := func() {
		_, err := api.ImageRemove(context.WithoutCancel(ctx), archiveImage, image.RemoveOptions{})
		require.True(t, err == nil || strings.Contains(err.Error(), "No such image"), "%v", err)
	}
	defer remove()
	for range 2 {
		r, w := io.Pipe()
		go func() { w.CloseWithError(a.Write(ctx, w)) }()
		id, err := d.ImageLoad(ctx, r, a.Name())
		require.NoError(t, err)
		require.Equal(t, a.ID(), id)
		img, err := d.ImageInspect(ctx, id.String())
		require.NoError(t, err)
		require.Equal(t, []string{archiveImage}, img.Names)
		require.Empty(t, img.Env)
		require.Empty(t, img.Labels)
		remove()
	}

	a, err = docker.BuildArchive(ctx, archiveImage, files)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(tool, []byte("#!/bin/no\n"), 0o755))
	r, w := io.Pipe()
	go func() { w.CloseWithError(a.Write(ctx, w)) }()
	_, err = d.ImageLoad(ctx, r, a.Name())
	var changed *docker.ArchiveRefusedError
	require.True(t, errors.As(err, &changed), "%v", err)
	_, err = d.ImageInspect(ctx, archiveImage)
	require.ErrorIs(t, err, executor.ErrAbsent)
}
