package fakedaemon

import (
	"maps"
	"os"
	"slices"
	"strings"
)

// Engine is what the daemon says about itself in ping, version and info. Engine20 and Engine27
// make whole ones; With changes them.
type Engine struct {
	ID              string // "" = made at start
	Version         string
	API             string // newest API spoken, such as "1.41"
	MinAPI          string
	GitCommit       string
	Platform        string // "" as Debian's build, "Docker Engine - Community", …
	Kernel          string // "" = this machine's
	OSType          string
	OperatingSystem string
	OSVersion       string
	Architecture    string
	Name            string
	CgroupDriver    string
	CgroupVersion   string
	StorageDriver   string
	MemoryLimit     bool
	SwapLimit       bool
	CPUCfsPeriod    bool
	CPUCfsQuota     bool
	PidsLimit       bool
	Runtimes        map[string]string // name → path
	DefaultRuntime  string
	SecurityOptions []string
	Components      []Component // beside the engine itself
	LiveRestore     bool
	Warnings        []string
	RootDir         string
}

// Component is a part of the server as version lists it.
type Component struct {
	Name, Version, GitCommit string
}

// Engine20 is Debian's Engine 20.10 on a machine with cgroup v1: API 1.41, as the replies in this
// package were taken from.
func Engine20() Engine {
	return Engine{
		Version: "20.10.24+dfsg1", API: "1.41", MinAPI: "1.12", GitCommit: "5d6db84",
		OSType: "linux", OperatingSystem: "Debian GNU/Linux 12 (bookworm)", OSVersion: "12", Architecture: "x86_64", Name: "vm",
		CgroupDriver: "cgroupfs", CgroupVersion: "1", StorageDriver: "overlay2",
		MemoryLimit: true, SwapLimit: true, CPUCfsPeriod: true, CPUCfsQuota: true, PidsLimit: true,
		Runtimes:       map[string]string{"io.containerd.runc.v2": "runc", "io.containerd.runtime.v1.linux": "runc", "runc": "runc"},
		DefaultRuntime: "runc", SecurityOptions: []string{"name=seccomp,profile=default"},
		Components: []Component{
			{"containerd", "1.6.20~ds1", "1.6.20~ds1-1+deb12u3"},
			{"runc", "1.1.5+ds1", "1.1.5+ds1-1+deb12u1"},
			{"docker-init", "0.19.0", ""},
		},
		RootDir: "/var/lib/docker",
	}
}

// Engine27 is Engine 27 on a machine with cgroup v2: API 1.47, which can name the built-in seccomp
// profile. Its replies follow the published API description, not a daemon that was at hand.
func Engine27() Engine {
	return Engine20().With(CgroupV2, func(e *Engine) {
		e.Version, e.API, e.MinAPI, e.GitCommit = "27.5.1", "1.47", "1.24", "4c9b3b0"
		e.Platform = "Docker Engine - Community"
		e.Runtimes = map[string]string{"io.containerd.runc.v2": "runc", "runc": "runc"}
		e.SecurityOptions = []string{"name=seccomp,profile=builtin", "name=cgroupns"}
		e.Components = []Component{{"containerd", "1.7.25", "bcc810d6b9066471b0b6fa75f557a15a1cbf31bb"}, {"runc", "1.2.4", "v1.2.4-0-g6c52b3f"}, {"docker-init", "0.19.0", "de40ad0"}}
	})
}

// With returns a changed copy.
func (e Engine) With(changes ...func(*Engine)) Engine {
	e.Runtimes = maps.Clone(e.Runtimes)
	e.SecurityOptions = slices.Clone(e.SecurityOptions)
	e.Components = slices.Clone(e.Components)
	e.Warnings = slices.Clone(e.Warnings)
	for _, change := range changes {
		change(&e)
	}
	return e
}

// Changes of an engine, each a fact that a probe must notice.

// CgroupV1 makes the daemon report cgroup v1.
func CgroupV1(e *Engine) { e.CgroupVersion, e.CgroupDriver = "1", "cgroupfs" }

// CgroupV2 makes the daemon report cgroup v2.
func CgroupV2(e *Engine) { e.CgroupVersion, e.CgroupDriver = "2", "systemd" }

// CgroupUnknown makes the daemon report no cgroup version.
func CgroupUnknown(e *Engine) { e.CgroupVersion = "" }

// NoMemoryLimit takes the memory controller away.
func NoMemoryLimit(e *Engine) { e.MemoryLimit = false }

// NoSwapLimit takes swap accounting away.
func NoSwapLimit(e *Engine) { e.SwapLimit = false }

// NoCPULimit takes the CPU quota away.
func NoCPULimit(e *Engine) { e.CPUCfsPeriod, e.CPUCfsQuota = false, false }

// NoPIDsLimit takes the process controller away.
func NoPIDsLimit(e *Engine) { e.PidsLimit = false }

// NoRunc leaves another runtime only.
func NoRunc(e *Engine) { e.Runtimes, e.DefaultRuntime = map[string]string{"crun": "crun"}, "crun" }

// NoSeccomp leaves containers unconfined.
func NoSeccomp(e *Engine) {
	e.SecurityOptions = slices.DeleteFunc(slices.Clone(e.SecurityOptions), func(s string) bool { return strings.HasPrefix(s, "name=seccomp") })
}

// CustomSeccomp replaces the built-in profile by a file.
func CustomSeccomp(e *Engine) {
	NoSeccomp(e)
	e.SecurityOptions = append(e.SecurityOptions, "name=seccomp,profile=/etc/docker/seccomp.json")
}

// Rootless makes the daemon run without root.
func Rootless(e *Engine) { e.SecurityOptions = append(e.SecurityOptions, "name=rootless") }

// UsernsRemap makes the daemon map container users.
func UsernsRemap(e *Engine) { e.SecurityOptions = append(e.SecurityOptions, "name=userns") }

// Desktop makes the daemon that of Docker Desktop, in its own virtual machine.
func Desktop(e *Engine) {
	e.OperatingSystem, e.Name, e.Platform, e.Kernel = "Docker Desktop", "docker-desktop", "Docker Desktop 4.38.0 (181591)", "6.10.14-linuxkit"
}

// Podman makes the daemon Podman's imitation of the API.
func Podman(e *Engine) {
	e.Version, e.Components = "4.3.1", []Component{{"Podman Engine", "4.3.1", ""}, {"Conmon", "conmon version 2.1.6", ""}, {"OCI Runtime (crun)", "crun version 1.8.1", ""}}
}

// OtherKernel makes the daemon run on another kernel than this process: a forwarded socket.
func OtherKernel(e *Engine) { e.Kernel = "5.4.0-200-remote" }

// Windows makes the daemon run Windows containers.
func Windows(e *Engine) { e.OSType = "windows" }

// Upgraded makes the daemon the next build of itself.
func Upgraded(e *Engine) { e.Version, e.GitCommit = e.Version+".1", "0000001" }

// hostKernel is this machine's kernel release.
func hostKernel() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "6.1.0-fake"
	}
	return strings.TrimSpace(string(b))
}

// atLeast reports whether the engine speaks API 1.minor.
func (e *Engine) atLeast(minor int) bool {
	_, m, ok := parseAPI(e.API)
	return ok && m >= minor
}
