package docker

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/baildock/baildock/evidence"
)

// cgroups locates the cgroup of one process in each hierarchy, by the mounts this process sees.
type cgroups struct {
	host   string
	lines  map[string]string // controller → path within its hierarchy; "" is cgroup v2
	mounts []mountPoint
}

// errNoCgroup means that a controller's files can't be found from here.
var errNoCgroup = errors.New("no cgroup mount for it")

// parseCgroups reads /proc/<pid>/cgroup: `number:controllers:path` a line (cgroups(7)).
func parseCgroups(host, text string) (*cgroups, error) {
	c := &cgroups{host: host, lines: map[string]string{}}
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			return nil, fmt.Errorf("malformed cgroup line %q", clip(line, maxFact))
		}
		for _, controller := range strings.Split(f[1], ",") {
			c.lines[controller] = f[2]
		}
	}
	info, err := os.Open(filepath.Join(host, "proc/self/mountinfo"))
	if err != nil {
		return nil, err
	}
	defer info.Close()
	mounts, err := readBounded(info)
	if err != nil {
		return nil, err
	}
	c.mounts, err = parseMounts(mounts)
	return c, err
}

// path returns where the process stands for a controller, which may be the v2 hierarchy.
func (c *cgroups) path(controller string) (p string, v2, ok bool) {
	if p, ok := c.lines[controller]; ok {
		return p, false, true
	}
	p, ok = c.lines[""]
	return p, true, ok
}

// belongs reports whether the process stands in the container's own cgroup for each limit.
func (c *cgroups) belongs(id evidence.ContainerID) bool {
	for _, controller := range []string{"memory", "cpu", "pids"} {
		p, _, ok := c.path(controller)
		if base := path.Base(p); !ok || base != id.Hex() && base != "docker-"+id.Hex()+".scope" {
			return false
		}
	}
	return true
}

// read returns one control file's text and whether it is the v2 one.
func (c *cgroups) read(controller, v1, v2 string) (text string, isV2 bool, err error) {
	p, isV2, ok := c.path(controller)
	if !ok || strings.Contains(p, "..") {
		return "", isV2, errNoCgroup
	}
	name := v1
	if isV2 {
		name = v2
	}
	for _, m := range slices.Backward(c.mounts) {
		if isV2 && m.kind != "cgroup2" || !isV2 && (m.kind != "cgroup" || !slices.Contains(m.super, controller)) {
			continue
		}
		rel, below := strings.CutPrefix(p, strings.TrimSuffix(m.root, "/"))
		if !below || rel != "" && rel[0] != '/' {
			continue
		}
		f, err := os.Open(filepath.Join(c.host, m.point, rel, name))
		if err != nil {
			return "", isV2, err
		}
		defer f.Close()
		text, err := readBounded(f)
		return strings.TrimSpace(text), isV2, err
	}
	return "", isV2, errNoCgroup
}

// oomKills reads the count of processes the kernel killed for the cgroup's memory limit.
func (c *cgroups) oomKills() (uint64, error) {
	text, _, err := c.read("memory", "memory.oom_control", "memory.events")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" {
			return strconv.ParseUint(f[1], 10, 64)
		}
	}
	return 0, errors.New("no oom_kill count")
}
