package fakedaemon

import (
	"net/http"
	"time"
)

const buildTime = "2026-05-07T21:09:36.000000000+00:00"

func (d *Daemon) ping(x *exchange) reply {
	r := reply{status: http.StatusOK, media: "text/plain; charset=utf-8", header: http.Header{
		"Cache-Control": {"no-cache, no-store, must-revalidate"},
		"Pragma":        {"no-cache"},
	}}
	if d.engine.atLeast(42) {
		r.header.Set("Builder-Version", "2")
		r.header.Set("Swarm", "inactive")
	}
	if x.r.Method == http.MethodHead {
		r.header.Set("Content-Length", "0")
		return r
	}
	r.body = []byte("OK")
	return r
}

type componentReply struct {
	Name    string
	Version string
	Details map[string]string
}

func (d *Daemon) version(*exchange) reply {
	e := &d.engine
	arch := goArch(e.Architecture)
	parts := []componentReply{{"Engine", e.Version, map[string]string{
		"ApiVersion": e.API, "Arch": arch, "BuildTime": buildTime, "Experimental": "false", "GitCommit": e.GitCommit,
		"GoVersion": "go1.19.8", "KernelVersion": e.Kernel, "MinAPIVersion": e.MinAPI, "Os": e.OSType,
	}}}
	for _, c := range e.Components {
		parts = append(parts, componentReply{c.Name, c.Version, map[string]string{"GitCommit": c.GitCommit}})
	}
	return jsonReply(http.StatusOK, struct {
		Platform      struct{ Name string }
		Components    []componentReply
		Version       string
		ApiVersion    string
		MinAPIVersion string
		GitCommit     string
		GoVersion     string
		Os            string
		Arch          string
		KernelVersion string
		BuildTime     string
	}{struct{ Name string }{e.Platform}, parts, e.Version, e.API, e.MinAPI, e.GitCommit, "go1.19.8", e.OSType, arch, e.Kernel, buildTime})
}

func goArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

type commitReply struct{ ID, Expected string }

type infoReply struct {
	ID                 string
	Containers         int
	ContainersRunning  int
	ContainersPaused   int
	ContainersStopped  int
	Images             int
	Driver             string
	DriverStatus       [][2]string
	Plugins            map[string][]string
	MemoryLimit        bool
	SwapLimit          bool
	KernelMemory       *bool `json:",omitempty"` // gone in 1.42
	KernelMemoryTCP    *bool `json:",omitempty"` // gone in 1.42
	CpuCfsPeriod       bool
	CpuCfsQuota        bool
	CPUShares          bool
	CPUSet             bool
	PidsLimit          bool
	IPv4Forwarding     bool
	BridgeNfIptables   bool
	BridgeNfIp6tables  bool
	Debug              bool
	NFd                int
	OomKillDisable     bool
	NGoroutines        int
	SystemTime         string
	LoggingDriver      string
	CgroupDriver       string
	CgroupVersion      string
	NEventsListener    int
	KernelVersion      string
	OperatingSystem    string
	OSVersion          string
	OSType             string
	Architecture       string
	IndexServerAddress string
	RegistryConfig     map[string]any
	NCPU               int
	MemTotal           int64
	GenericResources   []any
	DockerRootDir      string
	HttpProxy          string
	HttpsProxy         string
	NoProxy            string
	Name               string
	Labels             []string
	ExperimentalBuild  bool
	ServerVersion      string
	Runtimes           map[string]map[string]string
	DefaultRuntime     string
	Swarm              map[string]any
	LiveRestoreEnabled bool
	Isolation          string
	InitBinary         string
	ContainerdCommit   commitReply
	RuncCommit         commitReply
	InitCommit         commitReply
	SecurityOptions    []string
	Warnings           []string
}

func (d *Daemon) info(*exchange) reply {
	e := &d.engine
	r := infoReply{
		ID: e.ID, Containers: len(d.containers), Images: len(d.images), Driver: e.StorageDriver,
		Plugins: map[string][]string{
			"Volume": {"local"}, "Network": {"bridge", "host", "ipvlan", "macvlan", "null", "overlay"}, "Authorization": nil,
			"Log": {"awslogs", "fluentd", "gcplogs", "gelf", "journald", "json-file", "local", "logentries", "splunk", "syslog"},
		},
		MemoryLimit: e.MemoryLimit, SwapLimit: e.SwapLimit, CpuCfsPeriod: e.CPUCfsPeriod, CpuCfsQuota: e.CPUCfsQuota,
		CPUShares: true, CPUSet: true, PidsLimit: e.PidsLimit, IPv4Forwarding: true, BridgeNfIptables: true, BridgeNfIp6tables: true,
		NFd: 24, OomKillDisable: e.CgroupVersion == "1", NGoroutines: 40, SystemTime: stamp(time.Now()), LoggingDriver: "json-file",
		CgroupDriver: e.CgroupDriver, CgroupVersion: e.CgroupVersion, NEventsListener: len(d.subscribers),
		KernelVersion: e.Kernel, OperatingSystem: e.OperatingSystem, OSVersion: e.OSVersion, OSType: e.OSType, Architecture: e.Architecture,
		IndexServerAddress: "https://index.docker.io/v1/",
		RegistryConfig: map[string]any{
			"AllowNondistributableArtifactsCIDRs": []string{}, "AllowNondistributableArtifactsHostnames": []string{},
			"InsecureRegistryCIDRs": []string{"127.0.0.0/8"}, "Mirrors": []string{},
			"IndexConfigs": map[string]any{"docker.io": map[string]any{"Name": "docker.io", "Mirrors": []string{}, "Secure": true, "Official": true}},
		},
		NCPU: 2, MemTotal: 8 << 30, DockerRootDir: e.RootDir, Name: e.Name, Labels: []string{}, ServerVersion: e.Version,
		Runtimes: map[string]map[string]string{}, DefaultRuntime: e.DefaultRuntime,
		Swarm:              map[string]any{"NodeID": "", "NodeAddr": "", "LocalNodeState": "inactive", "ControlAvailable": false, "Error": "", "RemoteManagers": nil},
		LiveRestoreEnabled: e.LiveRestore, InitBinary: "docker-init",
		SecurityOptions: e.SecurityOptions, Warnings: e.Warnings,
	}
	for _, c := range d.containers {
		switch {
		case c.paused:
			r.ContainersPaused++
		case c.running:
			r.ContainersRunning++
		default:
			r.ContainersStopped++
		}
	}
	if !e.atLeast(42) {
		yes := true
		r.KernelMemory, r.KernelMemoryTCP = &yes, &yes
	}
	for name, path := range e.Runtimes {
		r.Runtimes[name] = map[string]string{"path": path}
	}
	for _, c := range e.Components {
		commit := commitReply{c.GitCommit, c.GitCommit}
		switch c.Name {
		case "containerd":
			r.ContainerdCommit = commit
		case "runc":
			r.RuncCommit = commit
		case "docker-init":
			r.InitCommit = commit
		}
	}
	return jsonReply(http.StatusOK, r)
}
