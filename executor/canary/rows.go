package canary

import "github.com/baildock/baildock/evidence"

func canary(name evidence.CanaryName, area, shows string, steps ...Step) Canary {
	return Canary{Name: name, Area: area, Shows: shows, Outcome: evidence.OutcomeSuccess, Steps: steps}
}

// refused is a step that must fail with one of these errors.
func refused(a Action, on string, errnos ...string) Step {
	return Step{Action: a, On: on, Errnos: errnos}
}

// gives is a step that must succeed with exactly this value.
func gives(a Action, on, value string) Step { return Step{Action: a, On: on, Value: &value} }

func (s Step) because(why string) Step {
	s.Why = why
	return s
}

func network() []Canary {
	noRoute := "no route, or no address family at all"
	return []Canary{
		canary("network.direct", "network", "addresses outside can't be reached",
			refused(Connect, "tcp4 192.0.2.1 80", "ENETUNREACH"), refused(Connect, "udp4 192.0.2.1 9", "ENETUNREACH"),
			refused(Connect, "tcp6 2001:db8::1 80", "ENETUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT").because(noRoute)),
		canary("network.dns", "network", "no name server can be asked",
			refused(Connect, "udp4 192.0.2.53 53", "ENETUNREACH"), refused(Connect, "tcp4 192.0.2.53 53", "ENETUNREACH")),
		canary("network.links", "network", "no interface but loopback is up, and nothing is routed elsewhere",
			gives(Interfaces, "", ""), gives(Routes, "", "")),
	}
}

func filesystem() []Canary {
	both := "the default seccomp filter and a missing CAP_SYS_ADMIN refuse alike"
	return []Canary{
		canary("filesystem.root", "filesystem", "the root and everything below it is read-only",
			gives(MountOption, "/ ro", "yes"),
			refused(Create, "/canary", "EROFS"), refused(Mkdir, "/tmp", "EROFS"),
			refused(Create, "/etc/canary", "EROFS"), refused(Create, "/usr/canary", "EROFS")),
		canary("filesystem.source", "filesystem", "the source is read-only",
			gives(MountOption, "/source ro", "yes"), refused(Create, "/source/canary", "EROFS")),
		canary("filesystem.scratch", "filesystem", "scratch is writable, bounded, without set-ID and devices",
			gives(MountOption, "/scratch nosuid", "yes"), gives(MountOption, "/scratch nodev", "yes"),
			gives(Create, "/scratch/canary", ""), refused(Fill, "/scratch/fill", "ENOSPC")),
		canary("filesystem.remount", "filesystem", "nothing can be made writable again",
			refused(Remount, "/", "EPERM").because(both), refused(Remount, "/source", "EPERM").because(both)),
		canary("filesystem.mounts", "filesystem", "nothing but scratch is mounted writable",
			gives(Mounts, "", "/scratch")),
	}
}

func privileges() []Canary {
	const id, none = "65532 65532 65532 65532", "0000000000000000"
	both := "the default seccomp filter and a missing capability refuse alike"
	return []Canary{
		canary("privileges.identity", "privileges", "UID and GID 65532, no other groups",
			gives(Status, "Uid", id), gives(Status, "Gid", id), gives(Status, "Groups", "65532").because("the daemon lists the own group as a supplementary one")),
		canary("privileges.capabilities", "privileges", "every capability set is empty",
			gives(Status, "CapInh", none), gives(Status, "CapPrm", none), gives(Status, "CapEff", none), gives(Status, "CapBnd", none), gives(Status, "CapAmb", none)),
		canary("privileges.filter", "privileges", "no new privileges, and a seccomp filter in place",
			gives(Status, "NoNewPrivs", "1"), gives(Status, "Seccomp", "2")),
		canary("privileges.environment", "privileges", "exactly the environment of recipe, profile and daemon",
			gives(Environ, "", "HOME=/scratch\nHOSTNAME=baildock\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nTMPDIR=/scratch")),
		canary("privileges.limits", "privileges", "open files and core dumps are bounded",
			gives(Rlimit, "nofile", "128 128"), gives(Rlimit, "core", "0 0")),
		canary("privileges.secrets", "privileges", "no socket, database, key or home of ours can be found, and what is planted is",
			gives(Search, "/", "/source/decoy.pem\n/source/decoy.sqlite")),
		canary("privileges.mount", "privileges", "nothing can be mounted, and the root not changed",
			refused(Mount, "/scratch", "EPERM").because(both), refused(Chroot, "/scratch", "EPERM").because(both)),
	}
}

func processes() []Canary {
	return []Canary{
		canary("processes.flood", "processes", "children stay within the bound of processes",
			gives(Limit, "pids", "32"), refused(Fork, "", "EAGAIN")),
		canary("processes.view", "processes", "it is process 1 and sees no other",
			gives(Process, "", "1"), gives(Processes, "", "1")),
	}
}

func namespaces() []Canary {
	both := "the default seccomp filter and a missing CAP_SYS_ADMIN refuse alike"
	made := canary("namespaces.unshare", "namespaces", "no namespace can be made")
	for _, kind := range []string{"user", "mount", "net", "pid", "ipc", "uts", "cgroup"} {
		made.Steps = append(made.Steps, refused(Unshare, kind, "EPERM").because(both))
	}
	readOnly := "read-only, or not ours to write; a kernel may be built without it"
	kcore := gives(Read, "/proc/kcore", "")
	kcore.Errnos = []string{"ENOENT"}
	return []Canary{
		made,
		canary("namespaces.host", "namespaces", "host name and clock can't be set",
			refused(Hostname, "", "EPERM").because(both), refused(Clock, "", "EPERM").because(both)),
		canary("namespaces.cgroup", "namespaces", "the own cgroup is the root of what it sees, with the limits of the recipe",
			gives(Cgroup, "", "/"), gives(Limit, "memory", "67108864"), gives(Limit, "swap", "0"), gives(Limit, "cpu", "100000 100000"), gives(Limit, "pids", "32")),
		canary("devices.nodes", "devices", "no device of the host is there, and none can be made",
			refused(Stat, "/dev/mem", "ENOENT"), refused(Stat, "/dev/kmsg", "ENOENT"), refused(Stat, "/dev/fuse", "ENOENT"),
			refused(Stat, "/dev/sda", "ENOENT"), refused(Create, "/dev/shm/canary", "ENOENT", "EROFS").because("the directory is missing, or lies on the read-only root"),
			refused(Mknod, "c 1 1", "EPERM"), refused(Mknod, "b 8 0", "EPERM")),
		canary("devices.kernel", "devices", "files that reach the kernel are empty or can't be written",
			kcore.because("masked by an empty file; a kernel may be built without it"), refused(Write, "/proc/sysrq-trigger", "EROFS", "EACCES", "ENOENT").because(readOnly),
			refused(Write, "/proc/sys/kernel/hostname", "EROFS", "EACCES").because(readOnly), refused(Write, "/proc/sys/vm/drop_caches", "EROFS", "EACCES").because(readOnly)),
	}
}

// bounds are what only the outcome shows: no report ends them.
func bounds() []Canary {
	only := func(name evidence.CanaryName, area, shows string, o evidence.Outcome, a Action) Canary {
		return Canary{Name: name, Area: area, Shows: shows, Outcome: o, Steps: []Step{{Action: a}}}
	}
	return []Canary{
		only("bounds.memory", "bounds", "memory past its bound is never a success", evidence.OutcomeIncomplete, Allocate),
		only("bounds.output", "bounds", "output past its bound stops the container", evidence.OutcomeOutputLimit, Flood),
		only("bounds.time", "bounds", "the whole process tree ends at the wall time", evidence.OutcomeTimedOut, Sleep),
	}
}
