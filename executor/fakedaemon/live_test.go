//go:build live

package fakedaemon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/fakedaemon"
)

// TestLiveLikeness sends the same requests to the real daemon and to a fake with the real one's
// facts, and wants the same answers: status, media type, every field and every event, after IDs,
// times, addresses and process numbers have been made alike. req C5
func TestLiveLikeness(t *testing.T) {
	socket := "/var/run/docker.sock"
	if s := os.Getenv("BAILDOCK_TEST_DOCKER_SOCKET"); s != "" {
		socket = s
	}
	real := &side{t: t, name: "real", socket: socket}
	fake := &side{t: t, name: "fake", socket: fakedaemon.Start(t, fakedaemon.Options{Engine: realEngine(t, real), Program: subject}).Socket}
	p := pair{t: t, real: real, fake: fake, tag: fmt.Sprintf("baildock-likeness-%d", time.Now().UnixNano())}
	archive := dockerArchive(t, p.tag+":1", map[string]any{"Env": []string{"A=b"}, "Labels": map[string]string{"of": "image"}}, subjectProgram(t))
	for _, s := range []*side{real, fake} {
		a := s.do("POST", "/images/load?quiet=1", archive.bytes)
		require.Equal(t, 200, a.status, "%s", a.body)
		s.put("image", p.tag+":1")
	}
	t.Cleanup(func() { real.do("DELETE", "/images/"+p.tag+":1?force=1", nil) })

	p.same("ping", "HEAD", "/_ping", nil)
	p.same("ping", "GET", "/_ping", nil)
	p.same("version", "GET", "/version", nil)
	p.alikeInfo()
	p.same("image", "GET", "/images/{image}/json", nil)
	p.same("no image", "GET", "/images/never/json", nil)
	p.same("no image by ID", "GET", "/images/sha256:"+strings.Repeat("ab", 32)+"/json", nil)
	// A network's own page also shows who is on it, which may be others.
	p.same("networks", "GET", `/networks?filters={"name":{"none":true}}`, nil)
	p.same("networks", "GET", `/networks?filters={"name":{"host":true}}`, nil)
	p.same("no page", "GET", "/no/such", nil)
	p.same("no network", "GET", "/networks/never", nil)
	p.same("bad filter", "GET", `/containers/json?filters={"bogus":{"a":true}}`, nil)

	source := t.TempDir()
	for name, body := range bodies(p.tag+":1", source) {
		t.Run(name, func(t *testing.T) {
			q := p
			q.t = t
			q.life(body)
		})
	}
	for name, body := range refusedBodies(p.tag+":1", source) {
		t.Run(name, func(t *testing.T) {
			q := p
			q.t = t
			q.same("create", "POST", "/containers/create?name="+p.tag+"-no", body)
		})
	}
}

// bodies are create requests: what the driver renders, and what it never would.
func bodies(image, source string) map[string]map[string]any {
	hard := func() map[string]any {
		return map[string]any{
			"Hostname": "baildock", "User": "65532:65532", "AttachStdout": true, "AttachStderr": true, "Env": []string{"GREETING=hello", "HOME=/scratch"},
			"Cmd": []string{"print", "out", "err"}, "Healthcheck": map[string]any{"Test": []string{"NONE"}}, "Image": image, "WorkingDir": "/source",
			"Entrypoint": []string{"/prog"}, "Labels": map[string]string{"dev.baildock.request": "r", "dev.baildock.handle": "h"}, "StopSignal": "SIGKILL",
			"HostConfig": map[string]any{
				"LogConfig": map[string]any{"Type": "none"}, "NetworkMode": "none", "RestartPolicy": map[string]any{"Name": "no"}, "CapDrop": []string{"ALL"},
				"CgroupnsMode": "private", "IpcMode": "none", "ReadonlyRootfs": true, "SecurityOpt": []string{"no-new-privileges"},
				"Tmpfs":   map[string]string{"/scratch": "rw,nosuid,nodev,noexec,size=1048576,uid=65532,gid=65532,mode=0700"},
				"ShmSize": 64 << 20, "Runtime": "runc", "Memory": 64 << 20, "MemorySwap": 64 << 20, "NanoCpus": 1000000000, "PidsLimit": 64,
				"Ulimits": []any{map[string]any{"Name": "core", "Soft": 0, "Hard": 0}, map[string]any{"Name": "nofile", "Soft": 128, "Hard": 128}},
				"Mounts": []any{map[string]any{"Type": "bind", "Source": source, "Target": "/source", "ReadOnly": true,
					"BindOptions": map[string]any{"Propagation": "rprivate"}}},
				"Init": false,
			},
			"NetworkingConfig": map[string]any{},
		}
	}
	failing := hard()
	failing["Cmd"] = []string{"exit", "3"}
	sleeping := hard()
	sleeping["Cmd"] = []string{"sleep", "5m"}
	missing := hard()
	missing["Entrypoint"] = []string{"/nope"}
	plain := map[string]any{"Image": image, "Entrypoint": []string{"/prog"}, "Cmd": []string{"exit", "0"}, "HostConfig": map[string]any{"LogConfig": map[string]any{"Type": "none"}}}
	mounted := map[string]any{"Image": image, "Entrypoint": []string{"/prog"}, "Cmd": []string{"exit", "0"}, "ExposedPorts": map[string]any{"80/tcp": map[string]any{}},
		"HostConfig": map[string]any{"LogConfig": map[string]any{"Type": "none"}, "Binds": []string{source + ":/a:ro"}, "Memory": 64 << 20,
			"CapAdd": []string{"NET_ADMIN"}, "Sysctls": map[string]string{}, "PortBindings": map[string]any{}, "Dns": []string{}}}
	privileged := map[string]any{"Image": image, "Entrypoint": []string{"/prog"}, "Cmd": []string{"exit", "0"},
		"HostConfig": map[string]any{"LogConfig": map[string]any{"Type": "none"}, "Privileged": true, "NetworkMode": "host"}}
	return map[string]map[string]any{"hard": hard(), "failing": failing, "sleeping": sleeping, "missing": missing, "plain": plain, "mounted": mounted, "privileged": privileged}
}

func refusedBodies(image, source string) map[string]map[string]any {
	with := func(host map[string]any) map[string]any {
		return map[string]any{"Image": image, "Cmd": []string{"x"}, "HostConfig": host}
	}
	return map[string]map[string]any{
		"nothing":         {},
		"no image":        {"Image": "never:1", "Cmd": []string{"x"}},
		"no command":      {"Image": image},
		"unknown runtime": with(map[string]any{"Runtime": "nope"}),
		"missing source":  with(map[string]any{"Mounts": []any{map[string]any{"Type": "bind", "Source": source + "/missing", "Target": "/x"}}}),
	}
}

// life takes one container through everything and holds each answer against the other's.
func (p pair) life(body map[string]any) {
	start := time.Now()
	name := p.tag + "-" + filepath.Base(p.t.Name())
	p.same("create", "POST", "/containers/create?name="+name, body)
	for _, s := range []*side{p.real, p.fake} {
		var made struct{ Id string }
		require.NoError(p.t, json.Unmarshal(s.last.body, &made))
		s.put("id", made.Id)
	}
	p.t.Cleanup(func() { p.real.do("DELETE", "/containers/{id}?force=1&v=1", nil) })
	p.same("created", "GET", "/containers/{id}/json", nil)
	if host, _ := body["HostConfig"].(map[string]any); host["Privileged"] == true {
		return // may not start on every machine
	}
	p.same("name taken", "POST", "/containers/create?name="+name, body)
	p.same("kill", "POST", "/containers/{id}/kill?signal=SIGKILL", nil)
	p.same("stop", "POST", "/containers/{id}/stop", nil)
	p.same("pause", "POST", "/containers/{id}/pause", nil)
	p.same("rename", "POST", "/containers/{id}/rename?name="+name, nil)
	p.same("connect", "POST", "/networks/none/connect", map[string]any{"Container": "{id}"})
	for _, s := range []*side{p.real, p.fake} {
		s.attach()
	}
	p.same("start", "POST", "/containers/{id}/start", nil)
	started := p.real.last.status == http.StatusNoContent
	if sleeps := fmt.Sprint(body["Cmd"]) == "[sleep 5m]"; sleeps {
		p.same("start again", "POST", "/containers/{id}/start", nil)
		p.same("running", "GET", "/containers/{id}/json", nil)
		p.same("listed", "GET", `/containers/json?filters={"label":{"dev.baildock.handle=h":true},"id":{"{id}":true}}`, nil)
		p.same("remove", "DELETE", "/containers/{id}", nil)
		p.same("exec", "POST", "/containers/{id}/exec", map[string]any{"Cmd": []string{"/prog", "exit", "0"}})
		p.same("update", "POST", "/containers/{id}/update", map[string]any{"Memory": 128 << 20, "MemorySwap": 128 << 20})
		p.same("rename", "POST", "/containers/{id}/rename?name="+name+"-2", nil)
		p.same("bridge", "POST", "/networks/bridge/connect", map[string]any{"Container": "{id}"})
		p.same("pause", "POST", "/containers/{id}/pause", nil)
		p.same("pause again", "POST", "/containers/{id}/pause", nil)
		p.same("paused", "GET", "/containers/{id}/json", nil)
		p.same("unpause", "POST", "/containers/{id}/unpause", nil)
		p.same("unpause again", "POST", "/containers/{id}/unpause", nil)
		p.same("leave", "POST", "/networks/none/disconnect", map[string]any{"Container": "{id}"})
		p.same("off", "GET", "/containers/{id}/json", nil)
		p.same("restart", "POST", "/containers/{id}/restart", nil)
		p.same("kill", "POST", "/containers/{id}/kill", nil)
		p.same("bad signal", "POST", "/containers/{id}/kill?signal=BOGUS", nil)
	}
	if started {
		p.same("wait", "POST", "/containers/{id}/wait", nil)
	}
	p.same("ended", "GET", "/containers/{id}/json", nil)
	p.same("remove", "DELETE", "/containers/{id}?force=1&v=1", nil)
	for _, call := range []struct{ method, path string }{
		{"GET", "/json"}, {"POST", "/start"}, {"POST", "/kill"}, {"POST", "/stop"}, {"POST", "/wait?condition=next-exit"}, {"DELETE", ""}, {"POST", "/pause"},
	} {
		p.same("gone", call.method, "/containers/{id}"+call.path, nil)
	}
	for _, s := range []*side{p.real, p.fake} {
		if started {
			s.ended()
		}
		s.output.Close()
	}
	if started && fmt.Sprint(body["Cmd"]) != "[sleep 5m]" {
		require.Equal(p.t, p.real.streams(), p.fake.streams())
	}
	p.sameEvents(start)
}

// pair is the two daemons side by side.
type pair struct {
	t          *testing.T
	real, fake *side
	tag        string
}

func (p pair) same(what, method, path string, body any) {
	p.t.Helper()
	a, b := p.real.do(method, path, body), p.fake.do(method, path, body)
	require.Equal(p.t, p.real.plain(a), p.fake.plain(b), "%s: %s %s", what, method, path)
}

func (p pair) alikeInfo() {
	p.t.Helper()
	shape := func(s *side) map[string]string {
		var info map[string]any
		require.NoError(p.t, json.Unmarshal(s.do("GET", "/info", nil).body, &info))
		types := map[string]string{}
		for k, v := range info {
			types[k] = fmt.Sprintf("%T", v)
		}
		delete(types, "DriverStatus") // a driver's own, or null
		return types
	}
	require.Equal(p.t, shape(p.real), shape(p.fake))
}

// sameEvents compares what both said about the container since start.
func (p pair) sameEvents(start time.Time) {
	p.t.Helper()
	told := func(s *side) []string {
		query := url.Values{"since": {fmt.Sprintf("%d.%09d", start.Unix(), start.Nanosecond())}, "until": {fmt.Sprintf("%.6f", float64(time.Now().UnixMicro())/1e6)}}
		var lines []string
		for line := range bytes.Lines(s.do("GET", "/events?"+query.Encode(), nil).body) {
			// A detach comes when the daemon gives up a stream before it saw its end: a race of its own.
			if bytes.Contains(line, []byte(s.vars["id"])) && !bytes.Contains(line, []byte(`"Action":"detach"`)) {
				lines = append(lines, s.plain(answer{body: line}))
			}
		}
		return lines
	}
	require.Equal(p.t, told(p.real), told(p.fake))
}

// realEngine takes over the real daemon's facts, so that only habits are compared.
func realEngine(t *testing.T, real *side) fakedaemon.Engine {
	t.Helper()
	var info struct {
		Driver, CgroupVersion, CgroupDriver, DockerRootDir, OperatingSystem, OSVersion, Name string
		MemoryLimit, SwapLimit, CpuCfsPeriod, CpuCfsQuota, PidsLimit                         bool
		SecurityOptions                                                                      []string
	}
	require.NoError(t, json.Unmarshal(real.do("GET", "/info", nil).body, &info))
	var version struct {
		Version, ApiVersion, MinAPIVersion, GitCommit string
		Components                                    []struct {
			Name, Version string
			Details       map[string]string
		}
	}
	require.NoError(t, json.Unmarshal(real.do("GET", "/version", nil).body, &version))
	require.Equal(t, "1.41", version.ApiVersion, "the likeness is to API 1.41")
	return fakedaemon.Engine20().With(func(e *fakedaemon.Engine) {
		e.StorageDriver, e.CgroupVersion, e.CgroupDriver, e.RootDir = info.Driver, info.CgroupVersion, info.CgroupDriver, info.DockerRootDir
		e.OperatingSystem, e.OSVersion, e.Name, e.SecurityOptions = info.OperatingSystem, info.OSVersion, info.Name, info.SecurityOptions
		e.MemoryLimit, e.SwapLimit, e.CPUCfsPeriod, e.CPUCfsQuota, e.PidsLimit = info.MemoryLimit, info.SwapLimit, info.CpuCfsPeriod, info.CpuCfsQuota, info.PidsLimit
		e.Version, e.GitCommit, e.MinAPI, e.Components = version.Version, version.GitCommit, version.MinAPIVersion, nil
		for _, c := range version.Components[1:] {
			e.Components = append(e.Components, fakedaemon.Component{Name: c.Name, Version: c.Version, GitCommit: c.Details["GitCommit"]})
		}
	})
}

func subjectProgram(t *testing.T) []byte {
	t.Helper()
	program := filepath.Join(t.TempDir(), "prog")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "../drivertest/testdata/subject")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	b, err := os.ReadFile(program)
	require.NoError(t, err)
	return b
}
