package docker

import (
	"fmt"
	"slices"
	"strings"
)

// mountPoint is one line of mountinfo (proc_pid_mountinfo(5)).
type mountPoint struct {
	root    string // of the mount within its file system
	point   string
	options []string // of this mount
	kind    string   // file system type
	super   []string // options of the file system
}

func (m mountPoint) readOnly() bool { return slices.Contains(m.options, "ro") }

// superValue returns the value of key=value among the file system's options.
func (m mountPoint) superValue(key string) string {
	for _, o := range m.super {
		if v, ok := strings.CutPrefix(o, key+"="); ok {
			return v
		}
	}
	return ""
}

var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func parseMounts(text string) ([]mountPoint, error) {
	var out []mountPoint
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 6 || len(r) < 3 {
			return nil, fmt.Errorf("malformed mountinfo line %q", clip(line, maxFact))
		}
		out = append(out, mountPoint{
			root:    mountEscapes.Replace(l[3]),
			point:   mountEscapes.Replace(l[4]),
			options: strings.Split(l[5], ","),
			kind:    r[0],
			super:   strings.Split(r[len(r)-1], ","),
		})
	}
	return out, nil
}

// mountAt returns the topmost mount at a point: later ones cover earlier ones.
func mountAt(mounts []mountPoint, point string) (mountPoint, bool) {
	for _, m := range slices.Backward(mounts) {
		if m.point == point {
			return m, true
		}
	}
	return mountPoint{}, false
}

// Device files that a daemon without the right to make them binds from the host.
var boundDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// foreignMounts returns the mount points that are neither the profile's nor Docker's own furniture:
// /proc, /dev and /sys with their masks, and three read-only files under /etc.
func foreignMounts(mounts []mountPoint, own ...string) []string {
	var out []string
	for _, m := range mounts {
		if !slices.Contains(own, m.point) && !isFurniture(m) {
			out = append(out, m.point)
		}
	}
	return out
}

func isFurniture(m mountPoint) bool {
	mask := m.kind == "tmpfs" && (m.readOnly() || m.root == "/null")
	switch {
	case m.point == "/etc/resolv.conf", m.point == "/etc/hostname", m.point == "/etc/hosts":
		return m.readOnly()
	case m.point == "/proc":
		return m.kind == "proc"
	case strings.HasPrefix(m.point, "/proc/"):
		return m.kind == "proc" && m.readOnly() || mask || m.kind == "devtmpfs" && m.root == "/null"
	case m.point == "/dev":
		return m.kind == "tmpfs"
	case m.point == "/dev/pts":
		return m.kind == "devpts"
	case m.point == "/dev/mqueue":
		return m.kind == "mqueue"
	case slices.Contains(boundDevices, m.point):
		return m.kind == "devtmpfs" || m.kind == "tmpfs"
	case m.point == "/sys":
		return m.kind == "sysfs" && m.readOnly()
	case m.point == "/sys/fs/cgroup" && m.kind == "tmpfs":
		return true // holds the controllers' read-only mounts of cgroup v1
	case strings.HasPrefix(m.point, "/sys/"):
		return (m.kind == "cgroup" || m.kind == "cgroup2" || m.kind == "sysfs") && m.readOnly() || mask
	}
	return false
}
