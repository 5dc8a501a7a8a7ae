package fakedaemon

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
)

// Warnings of a daemon that lacks a controller; the limit is dropped.
const (
	warnMemory = "Your kernel does not support memory limit capabilities or the cgroup is not mounted. Limitation discarded."
	warnSwap   = "Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap."
	warnPIDs   = "Your kernel does not support PIDs limit capabilities or the cgroup is not mounted. PIDs limit discarded."
)

var (
	maskedPaths = []string{"/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

const defaultShm = 64 << 20

// decode reads the request's JSON.
func (x *exchange) decode(v any) *reply {
	err := json.Unmarshal(x.body, v)
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(x.body) == 0 {
		text = io.EOF.Error()
	}
	r := refusal(http.StatusInternalServerError, "%s", text)
	if x.d.engine.atLeast(42) {
		r = refusal(http.StatusBadRequest, "%s", text)
	}
	return &r
}

func (x *exchange) imageAsked() string {
	var q struct{ Image string }
	json.Unmarshal(x.body, &q) // unreadable names no image
	return q.Image
}

func (d *Daemon) create(x *exchange) reply {
	var q createRequest
	if r := x.decode(&q); r != nil {
		return *r
	}
	name := strings.TrimPrefix(x.r.URL.Query().Get("name"), "/")
	if q.Image == "" && q.Cmd == nil && q.Entrypoint == nil && q.HostConfig == nil {
		return refusal(http.StatusBadRequest, "Config cannot be empty in order to create a container")
	}
	c := &container{d: d, w: d.world, config: q.config, imageAsked: q.Image, endpoints: map[string]*endpoint{}}
	given := q.HostConfig != nil
	if given {
		c.host = *q.HostConfig
	}
	warnings, no := d.adapt(&c.host, given)
	if no != nil {
		return *no
	}
	img, ok := d.findImage(q.Image)
	if !ok {
		return noImageToRun(q.Image)
	}
	c.image = img
	c.config.merge(&img.config)
	command := slices.Concat(c.config.Entrypoint, c.config.Cmd)
	if len(command) == 0 {
		return refusal(http.StatusBadRequest, "No command specified")
	}
	c.path, c.args = command[0], command[1:]
	if r := c.mount(); r != nil {
		return *r
	}
	if name != "" {
		if r := d.nameTaken(name); r != nil {
			return *r
		}
	}
	c.id, c.layer, c.created = d.newID(), d.newID(), d.now()
	if c.name = name; name == "" {
		c.name = "fake_" + c.id[:12]
	}
	switch {
	case c.config.Hostname != "":
	case c.host.NetworkMode == "host":
		c.config.Hostname = d.engine.Name
	default:
		c.config.Hostname = c.id[:12]
	}
	c.join(q)
	d.containers = append(d.containers, c)
	d.emit(c.w, c.event("create", nil))
	return jsonReply(http.StatusCreated, createReply{c.id, warnings})
}

// adapt fills in and checks what the daemon decides itself. Without a host configuration in the
// request it leaves some to the start.
func (d *Daemon) adapt(h *hostConfig, given bool) (warnings []string, no *reply) {
	e := &d.engine
	warnings = []string{}
	refuse := func(format string, a ...any) ([]string, *reply) {
		r := refusal(http.StatusBadRequest, format, a...)
		return nil, &r
	}
	fill := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	fill(&h.NetworkMode, "default")
	fill(&h.IpcMode, "private")
	fill(&h.LogConfig.Type, "json-file")
	if h.LogConfig.Config == nil {
		h.LogConfig.Config = map[string]string{}
	}
	if e.CgroupVersion == "1" {
		fill(&h.CgroupnsMode, "host")
	} else {
		fill(&h.CgroupnsMode, "private")
	}
	if e.atLeast(44) {
		fill(&h.RestartPolicy.Name, "no")
		if h.NetworkMode == "default" {
			h.NetworkMode = "bridge"
		}
	}
	if h.Runtime != "" && e.Runtimes[h.Runtime] == "" {
		return refuse("Unknown runtime specified %s", h.Runtime)
	}
	if given || e.atLeast(42) {
		fill(&h.Runtime, e.DefaultRuntime)
	}
	if e.atLeast(42) {
		h.KernelMemory, h.KernelMemoryTCP = nil, nil
	} else {
		var none int64
		h.KernelMemory, h.KernelMemoryTCP = &none, &none
	}
	if h.ShmSize == 0 {
		h.ShmSize = defaultShm
	}
	if h.Privileged {
		h.SecurityOpt = append(h.SecurityOpt, "label=disable")
	} else {
		if h.MaskedPaths == nil {
			h.MaskedPaths = slices.Clone(maskedPaths)
			if e.atLeast(44) {
				h.MaskedPaths = append(h.MaskedPaths, "/sys/devices/virtual/powercap")
			}
		}
		if h.ReadonlyPaths == nil {
			h.ReadonlyPaths = slices.Clone(readonlyPaths)
		}
	}
	if e.CgroupVersion != "1" {
		h.OomKillDisable = nil
	} else if h.OomKillDisable == nil {
		h.OomKillDisable = new(bool)
	}
	if h.Memory > 0 && h.MemorySwap == 0 {
		h.MemorySwap = 2 * h.Memory
	}
	if h.Memory > 0 && !e.MemoryLimit {
		warnings = append(warnings, warnMemory)
		h.Memory, h.MemorySwap = 0, -1
	}
	if h.Memory > 0 && !e.SwapLimit {
		warnings = append(warnings, warnSwap)
		h.MemorySwap = -1
	}
	if h.PidsLimit != nil && !e.PidsLimit {
		warnings = append(warnings, warnPIDs)
		h.PidsLimit = nil
	}
	if h.NanoCpus > 0 && !(e.CPUCfsPeriod && e.CPUCfsQuota) {
		return refuse("NanoCPUs can not be set, as your kernel does not support CPU CFS scheduler or the cgroup is not mounted")
	}
	return warnings, nil
}

// merge takes from the image what the request leaves open.
func (c *config) merge(img *config) {
	fill := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	fill(&c.User, img.User)
	fill(&c.WorkingDir, img.WorkingDir)
	fill(&c.StopSignal, img.StopSignal)
	if len(c.Entrypoint) == 0 {
		if len(c.Cmd) == 0 {
			c.Cmd = img.Cmd
		}
		if c.Entrypoint == nil {
			c.Entrypoint = img.Entrypoint
		}
	}
	if len(c.Env) == 0 {
		c.Env = slices.Clone(img.Env)
	} else {
		for _, entry := range img.Env {
			name, _, _ := strings.Cut(entry, "=")
			if !slices.ContainsFunc(c.Env, func(e string) bool { n, _, _ := strings.Cut(e, "="); return n == name }) {
				c.Env = append(c.Env, entry)
			}
		}
	}
	labels := maps.Clone(img.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, c.Labels)
	c.Labels = labels
	c.ExposedPorts = union(c.ExposedPorts, img.ExposedPorts)
	c.Volumes = union(c.Volumes, img.Volumes)
	if img.Healthcheck != nil && (c.Healthcheck == nil || len(c.Healthcheck.Test) == 0) {
		c.Healthcheck = img.Healthcheck
	}
}

func union(a, b map[string]struct{}) map[string]struct{} {
	if len(b) == 0 {
		return a
	}
	all := maps.Clone(b)
	maps.Copy(all, a)
	return all
}

// mount checks the mounts asked for, against the machine's own directories, and writes them down.
func (c *container) mount() *reply {
	c.mounts = []mountPoint{}
	add := func(m mountPoint) {
		if !slices.ContainsFunc(c.mounts, func(o mountPoint) bool { return o.Destination == m.Destination }) {
			c.mounts = append(c.mounts, m)
		}
	}
	volume := func(name, at, mode string) {
		if name == "" {
			name = c.d.newID()
		}
		add(mountPoint{Type: "volume", Name: name, Source: c.d.engine.RootDir + "/volumes/" + name + "/_data", Destination: at, Driver: "local", Mode: mode, RW: true})
	}
	for _, b := range c.host.Binds {
		parts := strings.SplitN(b, ":", 3)
		if len(parts) < 2 {
			r := refusal(http.StatusBadRequest, "invalid volume specification: '%s'", b)
			return &r
		}
		mode := strings.Join(parts[2:], "")
		if !strings.HasPrefix(parts[0], "/") {
			volume(parts[0], parts[1], "z")
			continue
		}
		add(mountPoint{Type: "bind", Source: parts[0], Destination: parts[1], Mode: mode, RW: mode != "ro", Propagation: "rprivate"})
	}
	for _, m := range c.host.Mounts {
		switch m.Type {
		case "bind":
			if _, err := os.Stat(m.Source); err != nil && (m.BindOptions == nil || !m.BindOptions.CreateMountpoint) {
				r := refusal(http.StatusBadRequest, "invalid mount config for type \"bind\": bind source path does not exist: %s", m.Source)
				return &r
			}
			p := mountPoint{Type: "bind", Source: m.Source, Destination: m.Target, RW: !m.ReadOnly, Propagation: "rprivate"}
			if m.BindOptions != nil && m.BindOptions.Propagation != "" {
				p.Propagation = m.BindOptions.Propagation
			}
			add(p)
		case "tmpfs":
			add(mountPoint{Type: "tmpfs", Destination: m.Target, RW: true})
		case "volume":
			volume(m.Source, m.Target, "z")
		default:
			r := refusal(http.StatusBadRequest, "mount type unknown: %q", m.Type)
			return &r
		}
	}
	for _, at := range slices.Sorted(maps.Keys(c.config.Volumes)) {
		volume("", at, "")
	}
	return nil
}
