//go:build live

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/docker"
)

// An ordinary user who may use the daemon runs an agent as itself and as nobody else.
//
// req N3
func TestLiveContainedAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root can become an ordinary user here; run this as root, as make test-live does in its machine")
	}
	const uid = 4242
	socket, err := os.Stat(docker.DefaultSocket)
	require.NoError(t, err)
	group := socket.Sys().(*syscall.Stat_t).Gid
	top, err := os.MkdirTemp("", "baildock-user-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(top)) })
	for name, pkg := range map[string]string{"baildock": ".", "misbehave": "../../test/demo/misbehave"} {
		build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(top, name), pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(top, "src"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(top, "src", "a.txt"), []byte("one\n"), 0o644))
	require.NoError(t, filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, uid, uid)
	}))
	baildock := func(args ...string) (stdout string, code int) {
		c := exec.Command(filepath.Join(top, "baildock"), args...)
		c.Dir, c.Env = top, []string{"HOME=" + top, "PATH=/usr/bin:/bin", "XDG_STATE_HOME=" + filepath.Join(top, "state")}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{group}}}
		var out, errOut bytes.Buffer
		c.Stdout, c.Stderr = &out, &errOut
		err := c.Run()
		t.Logf("%v: %v\n%s%s", args, err, &out, &errOut)
		return out.String(), c.ProcessState.ExitCode()
	}
	_, code := baildock("init")
	require.Zero(t, code)
	out, code := baildock("image", "make", "baildock-test-user", "--add", filepath.Join(top, "misbehave")+":/bin/misbehave")
	require.Zero(t, code)
	t.Cleanup(func() {
		api, err := client.NewClientWithOpts(client.WithHost("unix://"+docker.DefaultSocket), client.WithAPIVersionNegotiation())
		require.NoError(t, err)
		defer api.Close()
		_, err = api.ImageRemove(context.Background(), "baildock-test-user", image.RemoveOptions{})
		require.NoError(t, err)
	})
	lines := bytes.Split(bytes.TrimSpace([]byte(out)), []byte("\n"))
	configure := func(user int) string {
		path := filepath.Join(top, fmt.Sprintf("as-%d.yaml", user))
		text := fmt.Sprintf("sandbox:\n  type: docker\n  image: %s\ncontained_execution:\n  version: 1\n  required_uid: %d\n  required_gid: %d\n", lines[len(lines)-1], user, user)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	run := func(user int, id string) (artifact, int) {
		out, code := baildock("--json", "contained-run", configure(user), "--source", "src", "--attempt", id, "--accept-reduced", "cgroup-v1", "--", "misbehave", "edit", "/workspace/new.txt")
		var a artifact
		require.NoError(t, json.Unmarshal([]byte(out), &a), out)
		return a, code
	}
	own, code := run(uid, "own")
	require.Zero(t, code)
	require.Equal(t, stageDone, own.Stage)
	require.EqualValues(t, 1, own.Workspace.Added)
	require.NoFileExists(t, filepath.Join(top, "src", "new.txt"))

	other, code := run(1000, "other")
	require.Equal(t, 4, code)
	require.Equal(t, stagePreflight, other.Stage)
	require.Equal(t, "preflight_refused", other.Detail)
	require.Nil(t, other.Workspace, "nothing was prepared")
	entries, err := os.ReadDir(filepath.Join(top, ".baildock", "execution"))
	if err == nil {
		require.Empty(t, entries)
	}
}
