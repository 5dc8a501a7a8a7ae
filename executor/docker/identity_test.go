package docker

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// reported is what one daemon and its machine say.
type reported struct {
	info    system.Info
	version types.Version
	api     string
	sock    socketFacts
	host    hostFacts
}

func goldenReport(t *testing.T) reported {
	r := reported{
		api:  "1.41",
		sock: socketFacts{dev: 5, ino: 6, peer: 0},
		host: hostFacts{machineID: "0123456789abcdef0123456789abcdef\n", bootID: "01234567-89ab-cdef-0123-456789abcdef\n", kernel: "6.1.0-21-amd64\n"},
	}
	require.NoError(t, json.Unmarshal(testdata(t, "info.json"), &r.info))
	require.NoError(t, json.Unmarshal(testdata(t, "version.json"), &r.version))
	return r
}

func (r reported) identify() (executor.Runtime, error) {
	return identify(r.info, r.version, r.api, r.sock, r.host)
}

func codes(rt executor.Runtime) []string {
	out := []string{}
	for _, r := range rt.Refusals {
		out = append(out, r.Code)
	}
	slices.Sort(out)
	return out
}

// req C2, req C3, req C8: each missing requirement and each reduction has its own name.
func TestIdentify(t *testing.T) {
	v1 := evidence.ReducedCgroupV1
	for name, c := range map[string]struct {
		change   func(*reported)
		refusals []string
		reduced  []evidence.Reduction
	}{
		"cgroup v1": {func(*reported) {}, nil, []evidence.Reduction{v1}},
		"cgroup v2": {func(r *reported) { r.info.CgroupVersion = "2" }, nil, nil},
		"cgroup ?":  {func(r *reported) { r.info.CgroupVersion = "" }, []string{RefusedCgroup}, nil},
		"no memory": {func(r *reported) { r.info.MemoryLimit = false }, []string{RefusedMemory}, []evidence.Reduction{v1}},
		"no swap":   {func(r *reported) { r.info.SwapLimit = false }, []string{RefusedSwap}, []evidence.Reduction{v1}},
		"no quota":  {func(r *reported) { r.info.CPUCfsQuota = false }, []string{RefusedCPU}, []evidence.Reduction{v1}},
		"no period": {func(r *reported) { r.info.CPUCfsPeriod = false }, []string{RefusedCPU}, []evidence.Reduction{v1}},
		"no pids":   {func(r *reported) { r.info.PidsLimit = false }, []string{RefusedPIDs}, []evidence.Reduction{v1}},
		"no runc":   {func(r *reported) { delete(r.info.Runtimes, "runc") }, []string{RefusedRunc}, []evidence.Reduction{v1}},
		"another program named runc": {func(r *reported) {
			r.info.Runtimes["runc"] = system.RuntimeWithStatus{Runtime: system.Runtime{Path: "/opt/kata"}}
		}, []string{RefusedRunc}, []evidence.Reduction{v1}},
		"runc with arguments": {func(r *reported) {
			r.info.Runtimes["runc"] = system.RuntimeWithStatus{Runtime: system.Runtime{Path: "runc", Args: []string{"--debug"}}}
		}, []string{RefusedRunc}, []evidence.Reduction{v1}},
		"runc in full": {func(r *reported) {
			r.info.Runtimes["runc"] = system.RuntimeWithStatus{Runtime: system.Runtime{Path: "/usr/bin/runc"}}
		}, nil, []evidence.Reduction{v1}},
		"builtin":            {func(r *reported) { r.info.SecurityOptions = []string{"name=seccomp,profile=builtin"} }, nil, []evidence.Reduction{v1}},
		"unconfined":         {func(r *reported) { r.info.SecurityOptions = []string{"name=seccomp,profile=unconfined"} }, []string{RefusedSeccomp}, []evidence.Reduction{v1}},
		"own profile":        {func(r *reported) { r.info.SecurityOptions = []string{"name=seccomp,profile=/etc/p.json"} }, []string{RefusedSeccomp}, []evidence.Reduction{v1}},
		"no seccomp":         {func(r *reported) { r.info.SecurityOptions = nil }, []string{RefusedSeccomp}, []evidence.Reduction{v1}},
		"apparmor's profile": {func(r *reported) { r.info.SecurityOptions = []string{"name=apparmor,profile=default"} }, []string{RefusedSeccomp}, []evidence.Reduction{v1}},
		"rootless":           {func(r *reported) { r.info.SecurityOptions = append(r.info.SecurityOptions, "name=rootless") }, nil, []evidence.Reduction{v1, evidence.ReducedRootless}},
		"userns":             {func(r *reported) { r.info.SecurityOptions = append(r.info.SecurityOptions, "name=userns") }, nil, []evidence.Reduction{v1, evidence.ReducedUserns}},
		"desktop": {func(r *reported) { r.info.OperatingSystem, r.host.kernel = "Docker Desktop", "23.0.0" }, nil,
			[]evidence.Reduction{v1, evidence.ReducedDesktop}},
		"desktop by platform": {func(r *reported) { r.version.Platform.Name = "Docker Desktop 4.30" }, nil, []evidence.Reduction{v1, evidence.ReducedDesktop}},
		"podman":              {func(r *reported) { r.version.Components[0].Name = "Podman Engine" }, []string{RefusedPodman}, []evidence.Reduction{v1}},
		"windows":             {func(r *reported) { r.info.OSType, r.version.Os = "windows", "windows" }, []string{RefusedPlatform}, []evidence.Reduction{v1}},
		"remote":              {func(r *reported) { r.host.kernel = "6.9.0\n" }, []string{RefusedRemote}, []evidence.Reduction{v1}},
		"kernel unknown":      {func(r *reported) { r.host.kernel = "" }, []string{RefusedRemote}, []evidence.Reduction{v1}},
		"no machine ID":       {func(r *reported) { r.host.machineID = "" }, nil, []evidence.Reduction{v1, evidence.ReducedNoMachineID}},
		"no boot ID":          {func(r *reported) { r.host.bootID = "" }, []string{RefusedBoot}, []evidence.Reduction{v1}},
		"old API":             {func(r *reported) { r.api = "1.40" }, []string{RefusedAPI}, []evidence.Reduction{v1}},
		"several at once": {func(r *reported) { r.info.MemoryLimit, r.info.PidsLimit, r.info.SecurityOptions = false, false, nil },
			[]string{RefusedSeccomp, RefusedMemory, RefusedPIDs}, []evidence.Reduction{v1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := goldenReport(t)
			c.change(&r)
			rt, err := r.identify()
			require.NoError(t, err)
			require.ElementsMatch(t, c.refusals, codes(rt))
			require.ElementsMatch(t, c.reduced, rt.Reductions)
			require.True(t, slices.IsSorted(rt.Reductions))
			for _, f := range rt.Refusals {
				require.NotEmpty(t, f.Detail)
			}
		})
	}
}

// req C4: the profile is named from API 1.42 on.
func TestSeccompNaming(t *testing.T) {
	for api, want := range map[string]evidence.SeccompNaming{"1.41": evidence.SeccompReported, "1.42": evidence.SeccompNamed, "1.51": evidence.SeccompNamed} {
		r := goldenReport(t)
		r.api = api
		rt, err := r.identify()
		require.NoError(t, err)
		require.Equal(t, want, rt.Seccomp)
	}
}

// req C3: a change of anything that decides containment is another identity; counters are not.
func TestIdentityChanges(t *testing.T) {
	base, err := goldenReport(t).identify()
	require.NoError(t, err)
	require.Equal(t, "runc 1.1.5+ds1 1.1.5+ds1-1+deb12u1", base.Identity.Build.Runtime)
	for name, change := range map[string]func(*reported){
		"engine":         func(r *reported) { r.info.ID = "OTHER" },
		"machine":        func(r *reported) { r.host.machineID = "1123456789abcdef0123456789abcdef" },
		"boot":           func(r *reported) { r.host.bootID = "11234567-89ab-cdef-0123-456789abcdef" },
		"socket device":  func(r *reported) { r.sock.dev++ },
		"socket inode":   func(r *reported) { r.sock.ino++ },
		"peer":           func(r *reported) { r.sock.peer = 1000 },
		"version":        func(r *reported) { r.version.Version = "20.10.25" },
		"commit":         func(r *reported) { r.version.GitCommit = "abc" },
		"API":            func(r *reported) { r.version.APIVersion = "1.42" },
		"kernel":         func(r *reported) { r.info.KernelVersion, r.version.KernelVersion = "6.1.1", "6.1.1" },
		"architecture":   func(r *reported) { r.info.Architecture = "aarch64" },
		"runc":           func(r *reported) { r.version.Components[2].Version = "1.1.6" },
		"containerd":     func(r *reported) { r.info.ContainerdCommit.ID = "x" },
		"cgroup driver":  func(r *reported) { r.info.CgroupDriver = "systemd" },
		"security":       func(r *reported) { r.info.SecurityOptions = append(r.info.SecurityOptions, "name=selinux") },
		"other runtime":  func(r *reported) { r.info.Runtimes["crun"] = system.RuntimeWithStatus{} },
		"swap limit":     func(r *reported) { r.info.SwapLimit = false },
		"live restore":   func(r *reported) { r.info.LiveRestoreEnabled = true },
		"authorization":  func(r *reported) { r.info.Plugins.Authorization = []string{"p"} },
		"storage driver": func(r *reported) { r.info.Driver = "overlay2" },
		"data directory": func(r *reported) { r.info.DockerRootDir = "/srv" },
	} {
		r := goldenReport(t)
		change(&r)
		rt, err := r.identify()
		require.NoError(t, err, name)
		require.False(t, base.Identity.Equal(rt.Identity), name)
	}
	for name, change := range map[string]func(*reported){
		"containers": func(r *reported) { r.info.Containers++ },
		"goroutines": func(r *reported) { r.info.NGoroutines++ },
		"time":       func(r *reported) { r.info.SystemTime = "later" },
		"images":     func(r *reported) { r.info.Images++ },
		"order":      func(r *reported) { slices.Reverse(r.version.Components) },
	} {
		r := goldenReport(t)
		change(&r)
		rt, err := r.identify()
		require.NoError(t, err, name)
		require.True(t, base.Identity.Equal(rt.Identity), name)
	}
}

// Replies that can't carry an identity are an error, not a refusal.
func TestIdentifyMalformed(t *testing.T) {
	for name, change := range map[string]func(*reported){
		"no engine ID":           func(r *reported) { r.info.ID = "" },
		"long engine ID":         func(r *reported) { r.info.ID = string(make([]byte, 500)) },
		"escape in version":      func(r *reported) { r.version.Version = "1\x1b[0m" },
		"no kernel":              func(r *reported) { r.info.KernelVersion = "" },
		"kernels contradict":     func(r *reported) { r.version.KernelVersion = "5" },
		"systems contradict":     func(r *reported) { r.version.Os = "windows" },
		"broken security option": func(r *reported) { r.info.SecurityOptions = []string{"name=,x"} },
	} {
		r := goldenReport(t)
		change(&r)
		_, err := r.identify()
		require.Error(t, err, name)
	}
}
