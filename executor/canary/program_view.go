package canary

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// interfaces lists those that are up, loopback apart.
func interfaces() (string, error) {
	text, err := readText("/proc/net/dev")
	if err != nil {
		return "", err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var up []string
	for line := range strings.Lines(text) {
		name, _, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || name == "lo" {
			continue
		}
		r, err := unix.NewIfreq(name)
		if err != nil {
			return "", err
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r); err != nil {
			return "", err
		}
		if r.Uint16()&unix.IFF_UP != 0 {
			up = append(up, name)
		}
	}
	return strings.Join(up, " "), nil
}

// routes lists the interfaces that have a route, loopback apart. A kernel without IPv6 has no file for it.
func routes() (string, error) {
	var out []string
	for path, column := range map[string]int{"/proc/net/route": 0, "/proc/net/ipv6_route": 9} {
		text, err := readText(path)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(text) {
			f := strings.Fields(line)
			if len(f) > column && f[column] != "lo" && f[column] != "Iface" {
				out = append(out, f[column])
			}
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " "), nil
}

// mounted is one line of mountinfo (proc_pid_mountinfo(5)).
type mounted struct {
	point   string
	options []string
	kind    string
}

func mountinfo() ([]mounted, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []mounted
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		dash := slices.Index(f, "-")
		if len(f) < 6 || dash < 0 || dash+1 >= len(f) {
			return nil, unix.EINVAL
		}
		out = append(out, mounted{point: f[4], options: strings.Split(f[5], ","), kind: f[dash+1]})
	}
	return out, nil
}

// mountOption says whether the last mount at a path has an option.
func mountOption(on string) (string, error) {
	path, option, _ := strings.Cut(on, " ")
	all, err := mountinfo()
	if err != nil {
		return "", err
	}
	says := "no mount"
	for _, m := range all {
		if m.point == path {
			says = map[bool]string{true: "yes", false: "no"}[slices.Contains(m.options, option)]
		}
	}
	return says, nil
}

// writableMounts lists the mount points that can be written to. The kernel's own file systems are left out, and
// the small tmpfs, devpts and mqueue of /dev, which hold no bytes of the host.
func writableMounts() (string, error) {
	all, err := mountinfo()
	if err != nil {
		return "", err
	}
	var out []string
	for _, m := range all {
		pseudo := slices.Contains([]string{"proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue"}, m.kind)
		if slices.Contains(m.options, "rw") && !pseudo && m.point != "/dev" && !strings.HasPrefix(m.point, "/proc/") && !strings.HasPrefix(m.point, "/sys/") {
			out = append(out, m.point)
		}
	}
	slices.Sort(out)
	return clip(strings.Join(slices.Compact(out), "\n")), nil
}

// cgroupPath is the own cgroup's path where every hierarchy has the same.
func cgroupPath() (string, error) {
	text, err := readText("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	var out []string
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			return "", unix.EINVAL
		}
		out = append(out, f[2])
	}
	slices.Sort(out)
	return clip(strings.Join(slices.Compact(out), " ")), nil
}

// cgroupLimit reads a limit from the files of cgroup v2 or, where these aren't, v1's; both come out alike.
func cgroupLimit(which string) (string, error) {
	const v2, v1 = "/sys/fs/cgroup/", "/sys/fs/cgroup/"
	switch which {
	case "memory":
		return either(v2+"memory.max", v1+"memory/memory.limit_in_bytes")
	case "pids":
		return either(v2+"pids.max", v1+"pids/pids.max")
	case "swap":
		if s, err := readText(v2 + "memory.swap.max"); err == nil {
			return s, nil
		}
		memory, err := number(v1 + "memory/memory.limit_in_bytes")
		if err != nil {
			return "", err
		}
		both, err := number(v1 + "memory/memory.memsw.limit_in_bytes")
		return fmt.Sprint(both - memory), err
	case "cpu":
		if s, err := readText(v2 + "cpu.max"); err == nil {
			return s, nil
		}
		quota, err := number(v1 + "cpu/cpu.cfs_quota_us")
		if err != nil {
			return "", err
		}
		period, err := number(v1 + "cpu/cpu.cfs_period_us")
		return fmt.Sprintf("%d %d", quota, period), err
	}
	return "", unix.EINVAL
}

func either(first, second string) (string, error) {
	if s, err := readText(first); err == nil {
		return s, nil
	}
	return readText(second)
}

func number(path string) (n int64, err error) {
	s, err := readText(path)
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(s, &n)
	return n, err
}
