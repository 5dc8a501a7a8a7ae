package docker

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// Refusal codes: each one missing requirement of the runtime (req C2).
const (
	RefusedPlatform = "platform_unsupported" // the daemon or this machine is not Linux
	RefusedPodman   = "podman"               // an imitation of the API
	RefusedRemote   = "remote_daemon"        // the daemon runs on another kernel than this process
	RefusedAPI      = "api_too_old"
	RefusedCgroup   = "cgroup_version_unknown"
	RefusedMemory   = "no_memory_limit"
	RefusedSwap     = "no_swap_limit"
	RefusedCPU      = "no_cpu_limit"
	RefusedPIDs     = "no_pids_limit"
	RefusedRunc     = "no_runc"
	RefusedSeccomp  = "no_builtin_seccomp"
	RefusedBoot     = "no_boot_id"
)

// hostFacts are the texts of this machine that tell it from others; "" = could not be read.
type hostFacts struct {
	machineID string // /etc/machine-id
	bootID    string // /proc/sys/kernel/random/boot_id
	kernel    string // /proc/sys/kernel/osrelease
}

// identify judges what a daemon says of itself. It is pure. An error means that the replies lack
// what an identity needs, so that nothing can be said about the daemon.
func identify(info system.Info, version types.Version, api string, sock socketFacts, host hostFacts) (executor.Runtime, error) {
	rt := executor.Runtime{Reductions: []evidence.Reduction{}, Seccomp: evidence.SeccompReported}
	for _, f := range []struct{ name, text string }{
		{"engine ID", info.ID}, {"version", version.Version}, {"API version", version.APIVersion},
		{"kernel", info.KernelVersion}, {"operating system", info.OSType}, {"architecture", info.Architecture},
	} {
		if f.text == "" || clip(f.text, maxFact) != f.text {
			return rt, fmt.Errorf("the daemon's %s %q is empty, too long or holds control characters", f.name, clip(f.text, maxFact))
		}
	}
	if version.KernelVersion != info.KernelVersion || version.Os != info.OSType {
		return rt, fmt.Errorf("the daemon contradicts itself: kernel %q and %q, system %q and %q",
			clip(version.KernelVersion, maxFact), info.KernelVersion, clip(version.Os, maxFact), info.OSType)
	}
	refuse := func(code, format string, a ...any) {
		rt.Refusals = append(rt.Refusals, executor.Refusal{Code: code, Detail: clip(fmt.Sprintf(format, a...), maxMessage)})
	}
	reduce := func(r evidence.Reduction) { rt.Reductions = append(rt.Reductions, r) }

	daemon := evidence.DaemonIdentity{Engine: info.ID, SocketDev: sock.dev, SocketIno: sock.ino, PeerUID: sock.peer}
	if m, err := evidence.ParseMachineID([]byte(host.machineID)); err == nil {
		daemon.Machine = &m
	} else {
		reduce(evidence.ReducedNoMachineID)
	}
	if b, err := evidence.ParseBootID([]byte(host.bootID)); err == nil {
		daemon.Boot = b
	} else {
		refuse(RefusedBoot, "this machine's boot ID can't be read, so a reboot would go unnoticed")
	}

	desktop := isDesktop(info, version)
	if info.OSType != "linux" {
		refuse(RefusedPlatform, "the daemon runs %s containers; only Linux ones are supported", info.OSType)
	}
	if isPodman(version) {
		refuse(RefusedPodman, "the socket is served by Podman; only Docker Engine is supported")
	}
	if desktop {
		reduce(evidence.ReducedDesktop)
	} else if strings.TrimSpace(host.kernel) != info.KernelVersion {
		refuse(RefusedRemote, "the daemon runs on kernel %s, this machine on %s: a forwarded socket is not local", info.KernelVersion, strings.TrimSpace(host.kernel))
	}
	if versions.LessThan(api, minAPI) {
		refuse(RefusedAPI, "the daemon speaks API %s; at least %s is needed", api, minAPI)
	}
	switch info.CgroupVersion {
	case "2":
	case "1":
		reduce(evidence.ReducedCgroupV1)
	default:
		refuse(RefusedCgroup, "the daemon reports cgroup version %q", info.CgroupVersion)
	}
	for _, l := range []struct {
		has        bool
		code, name string
	}{
		{info.MemoryLimit, RefusedMemory, "memory"}, {info.SwapLimit, RefusedSwap, "swap"},
		{info.CPUCfsQuota && info.CPUCfsPeriod, RefusedCPU, "CPU"}, {info.PidsLimit, RefusedPIDs, "process"},
	} {
		if !l.has {
			refuse(l.code, "the daemon reports no support for %s limits; it would drop them with a warning", l.name)
		}
	}
	if r, ok := info.Runtimes[runtimeName]; !ok || path.Base(r.Path) != runtimeName || len(r.Args) != 0 || r.Type != "" {
		refuse(RefusedRunc, "the daemon has no plain runc runtime")
	}
	opts, err := system.DecodeSecurityOptions(info.SecurityOptions)
	if err != nil {
		return rt, fmt.Errorf("the daemon's security options can't be read: %w", err)
	}
	builtin := false
	for _, o := range opts {
		switch o.Name {
		case "seccomp":
			for _, kv := range o.Options {
				builtin = builtin || kv.Key == "profile" && (kv.Value == "default" || kv.Value == "builtin")
			}
		case "selinux":
			rt.SELinux = true
		case "rootless":
			reduce(evidence.ReducedRootless)
		case "userns":
			reduce(evidence.ReducedUserns)
		}
	}
	if !builtin {
		refuse(RefusedSeccomp, "the daemon does not report the built-in seccomp profile as its default")
	}
	if !versions.LessThan(api, seccompAPI) {
		rt.Seccomp = evidence.SeccompNamed
	}
	slices.Sort(rt.Reductions)
	rt.Reductions = slices.Compact(rt.Reductions)
	rt.Identity = evidence.RuntimeIdentity{Daemon: daemon, Build: build(info, version)}
	return rt, nil
}

func isDesktop(info system.Info, v types.Version) bool {
	return strings.Contains(info.OperatingSystem, "Docker Desktop") || strings.HasPrefix(v.Platform.Name, "Docker Desktop") ||
		info.Name == "docker-desktop"
}

func isPodman(v types.Version) bool {
	return slices.ContainsFunc(v.Components, func(c types.ComponentVersion) bool {
		return strings.Contains(strings.ToLower(c.Name), "podman")
	})
}

func build(info system.Info, v types.Version) evidence.BuildIdentity {
	runc := clip(info.RuncCommit.ID, maxFact)
	for _, c := range v.Components {
		if c.Name == runtimeName {
			runc = clip(c.Version+" "+c.Details["GitCommit"], maxFact)
		}
	}
	return evidence.BuildIdentity{
		Version:   v.Version,
		GitCommit: clip(v.GitCommit, maxFact),
		API:       v.APIVersion,
		Kernel:    info.KernelVersion,
		OS:        info.OSType,
		Arch:      info.Architecture,
		Runtime:   strings.TrimSpace(runtimeName + " " + runc),
		Facts:     digestFacts(info, v),
	}
}
