package fakedaemon_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/drivertest"
	"github.com/baildock/baildock/executor/fakedaemon"
)

// TestDriverSuite runs the suite that the live driver passes. What it says of one it says of both:
// the driver's contract holds over the fake, and the fake is like a daemon in all that the suite
// looks at. req C1 req C2 req C3 req C4 req C5 req C7 req E3
func TestDriverSuite(t *testing.T) {
	for name, engine := range map[string]fakedaemon.Engine{
		"20.10":           fakedaemon.Engine20(),
		"20.10 cgroup v2": fakedaemon.Engine20().With(fakedaemon.CgroupV2),
		"27":              fakedaemon.Engine27(),
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(t *testing.T) drivertest.Env {
				d := fakedaemon.Start(t, fakedaemon.Options{Engine: engine, Program: subject})
				driver := open(t, d)
				id, err := d.AddImage(fakedaemon.Image{Name: "subject:1", Labels: map[string]string{"org.example": "image's own"}})
				require.NoError(t, err)
				return drivertest.Env{Driver: driver, Image: imageID(t, id), Name: "subject:1", Subject: "/subject", Source: source(t)}
			})
		})
	}
}

// subject does what the suite's program does.
func subject(i fakedaemon.Invocation) (fakedaemon.Program, bool) {
	if i.Argv[0] != "/subject" && i.Argv[0] != "/prog" {
		return fakedaemon.Program{StartError: &fakedaemon.StartError{}}, true
	}
	var steps []fakedaemon.Step
	switch verb, value := i.Argv[1], i.Argv[2]; verb {
	case "print":
		steps = append(steps, fakedaemon.Stdout(unquote(value)), fakedaemon.Stderr(unquote(i.Argv[3])))
	case "flood":
		n, err := strconv.Atoi(value)
		if err != nil {
			return fakedaemon.Program{}, false
		}
		steps = append(steps, fakedaemon.Write(false, make([]byte, n)))
	case "exit":
		code, err := strconv.Atoi(value)
		if err != nil {
			return fakedaemon.Program{}, false
		}
		steps = append(steps, fakedaemon.Exit(code))
	case "sleep":
		d, err := time.ParseDuration(value)
		if err != nil {
			return fakedaemon.Program{}, false
		}
		steps = append(steps, fakedaemon.Sleep(d))
	}
	return fakedaemon.Program{Steps: steps}, len(steps) > 0
}

func unquote(s string) string {
	text, err := strconv.Unquote(`"` + s + `"`)
	if err != nil {
		return s
	}
	return text
}

func open(t *testing.T, d *fakedaemon.Daemon) *docker.Driver {
	t.Helper()
	driver, err := docker.Open(d.Socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, driver.Close()) })
	return driver
}

func imageID(t *testing.T, text string) evidence.ImageID {
	t.Helper()
	var id evidence.ImageID
	require.NoError(t, id.UnmarshalText([]byte(text)))
	return id
}

func source(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644))
	return dir
}

// An archive that the product's own builder makes is loaded under the ID that the digest of its
// configuration gives, as the real daemon does.
func TestDriverLoad(t *testing.T) {
	d := fakedaemon.Start(t, fakedaemon.Options{})
	driver := open(t, d)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a := dockerArchive(t, "made:1", map[string]any{"Env": []string{"A=b"}}, []byte("program"))
	id, err := driver.ImageLoad(ctx, bytes.NewReader(a.bytes), "made:1")
	require.NoError(t, err)
	require.Equal(t, a.id, id.String())
	again, err := driver.ImageLoad(ctx, bytes.NewReader(a.bytes), "made:1")
	require.NoError(t, err)
	require.Equal(t, id, again)
	list, err := driver.ImageList(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, []string{"made:1"}, list[0].Names)

	broken := bytes.Replace(a.bytes, []byte("program"), []byte("PROGRAM"), 1)
	_, err = driver.ImageLoad(ctx, bytes.NewReader(broken), "made:1")
	require.ErrorContains(t, err, "diffID")
}

// Every variant is refused or reduced by name. req C2 req C8
func TestDriverProbesVariants(t *testing.T) {
	for _, c := range []struct {
		name       string
		change     func(*fakedaemon.Engine)
		refusals   string
		reductions string
	}{
		{"full", func(*fakedaemon.Engine) {}, "", ""},
		{"cgroup v1", fakedaemon.CgroupV1, "", "cgroup-v1"},
		{"no cgroup version", fakedaemon.CgroupUnknown, "cgroup_version_unknown", ""},
		{"no memory limit", fakedaemon.NoMemoryLimit, "no_memory_limit", ""},
		{"no swap limit", fakedaemon.NoSwapLimit, "no_swap_limit", ""},
		{"no CPU limit", fakedaemon.NoCPULimit, "no_cpu_limit", ""},
		{"no PIDs limit", fakedaemon.NoPIDsLimit, "no_pids_limit", ""},
		{"no runc", fakedaemon.NoRunc, "no_runc", ""},
		{"no seccomp", fakedaemon.NoSeccomp, "no_builtin_seccomp", ""},
		{"own seccomp", fakedaemon.CustomSeccomp, "no_builtin_seccomp", ""},
		{"rootless", fakedaemon.Rootless, "", "rootless"},
		{"userns-remap", fakedaemon.UsernsRemap, "", "userns-remap"},
		{"Desktop", fakedaemon.Desktop, "", "docker-desktop"},
		{"Podman", fakedaemon.Podman, "podman", ""},
		{"remote", fakedaemon.OtherKernel, "remote_daemon", ""},
		{"Windows", fakedaemon.Windows, "platform_unsupported", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := fakedaemon.Start(t, fakedaemon.Options{Engine: fakedaemon.Engine27().With(c.change)})
			rt, err := open(t, d).Probe(context.Background())
			require.NoError(t, err)
			var refusals, reductions []string
			for _, r := range rt.Refusals {
				refusals = append(refusals, r.Code)
			}
			for _, r := range rt.Reductions {
				if r != evidence.ReducedNoMachineID { // this machine's, not the daemon's
					reductions = append(reductions, string(r))
				}
			}
			require.Equal(t, c.refusals, strings.Join(refusals, " "))
			require.Equal(t, c.reductions, strings.Join(reductions, " "))
		})
	}
}
