package fakedaemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

func (d *Daemon) inspect(x *exchange) reply {
	c, no := x.target()
	if no != nil {
		return *no
	}
	return jsonReply(http.StatusOK, c.inspection())
}

func (c *container) status() string {
	switch {
	case c.paused:
		return "paused"
	case c.running:
		return "running"
	case c.started.IsZero():
		return "created"
	}
	return "exited"
}

func (c *container) state() containerState {
	return containerState{
		Status: c.status(), Running: c.running, Paused: c.paused, OOMKilled: c.oom, Pid: c.pid, ExitCode: c.exitCode, Error: c.failure,
		StartedAt: stamp(c.started), FinishedAt: stamp(c.finished),
	}
}

func (c *container) inspection() inspectReply {
	e := &c.d.engine
	r := inspectReply{
		Id: c.id, Created: stamp(c.created), Path: c.path, Args: append([]string{}, c.args...), State: c.state(), Image: c.image.id,
		Name: "/" + c.name, Driver: e.StorageDriver, Platform: "linux", ExecIDs: c.execs, HostConfig: c.host,
		GraphDriver: c.graph(), Mounts: c.mounts, Config: c.config, NetworkSettings: c.network(),
	}
	if c.everStarted {
		dir := e.RootDir + "/containers/" + c.id
		r.ResolvConfPath, r.HostnamePath, r.HostsPath = dir+"/resolv.conf", dir+"/hostname", dir+"/hosts"
		if c.host.LogConfig.Type == "json-file" {
			r.LogPath = dir + "/" + c.id + "-json.log"
		}
	}
	return r
}

func (c *container) graph() graphDriver {
	dir := c.d.engine.RootDir + "/" + c.d.engine.StorageDriver + "/"
	return graphDriver{Name: c.d.engine.StorageDriver, Data: map[string]string{
		"LowerDir":  dir + c.layer + "-init/diff:" + dir + c.image.layer + "/diff",
		"MergedDir": dir + c.layer + "/merged", "UpperDir": dir + c.layer + "/diff", "WorkDir": dir + c.layer + "/work",
	}}
}

// network is the settings as a container's own and, copied up, those of the default bridge.
func (c *container) network() networkSettings {
	n := networkSettings{SandboxID: c.sandbox, Ports: map[string]any{}, Networks: map[string]endpoint{}}
	if c.sandbox != "" {
		n.SandboxKey = "/var/run/docker/netns/" + c.sandbox[:12]
	}
	for name, e := range c.endpoints {
		n.Networks[name] = *e
	}
	if b := c.endpoints["bridge"]; b != nil {
		n.EndpointID, n.Gateway, n.IPAddress, n.IPPrefixLen, n.MacAddress = b.EndpointID, b.Gateway, b.IPAddress, b.IPPrefixLen, b.MacAddress
	}
	return n
}

// list answers containers/json, newest first.
func (d *Daemon) list(x *exchange) reply {
	f, no := x.filters()
	if no != nil {
		return *no
	}
	if r := f.only("label", "name", "id", "status", "ancestor", "network", "exited", "before", "since", "volume", "health"); r != nil {
		return *r
	}
	out := []listEntry{}
	for i := len(d.containers) - 1; i >= 0; i-- {
		c := d.containers[i]
		if !c.running && !x.flag("all") && len(f["status"]) == 0 {
			continue
		}
		if f.labels(c.config.Labels) && f.any("status", func(v string) bool { return v == c.status() }) &&
			f.any("name", func(v string) bool { return strings.Contains("/"+c.name, v) }) &&
			f.any("id", func(v string) bool { return strings.HasPrefix(c.id, v) }) &&
			f.any("network", func(v string) bool { return c.endpoints[v] != nil }) {
			out = append(out, c.entry())
		}
	}
	return jsonReply(http.StatusOK, out)
}

func (c *container) entry() listEntry {
	l := listEntry{
		Id: c.id, Names: []string{"/" + c.name}, Image: c.imageAsked, ImageID: c.image.id, Command: c.command(),
		Created: c.created.Unix(), Ports: []any{}, Labels: c.config.Labels, State: c.status(), Status: c.ago(), Mounts: c.mounts,
	}
	l.HostConfig.NetworkMode = c.host.NetworkMode
	l.NetworkSettings.Networks = c.network().Networks
	return l
}

func (c *container) ago() string {
	up := func() string { return fmt.Sprintf("Up %d seconds", int(time.Since(c.started).Seconds())) }
	switch c.status() {
	case "created":
		return "Created"
	case "exited":
		return fmt.Sprintf("Exited (%d) %d seconds ago", c.exitCode, int(time.Since(c.finished).Seconds()))
	case "paused":
		return up() + " (Paused)"
	}
	return up()
}

// filters are a request's filters: name → values.
type filters map[string][]string

func (x *exchange) filters() (filters, *reply) {
	text := x.r.URL.Query().Get("filters")
	f := filters{}
	if text == "" {
		return f, nil
	}
	var sets map[string]map[string]bool
	if json.Unmarshal([]byte(text), &sets) != nil {
		// The form of clients before 1.22.
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			r := refusal(http.StatusInternalServerError, "%s", err)
			return nil, &r
		}
		return f, nil
	}
	for name, set := range sets {
		for v := range set {
			f[name] = append(f[name], v)
		}
	}
	return f, nil
}

func (f filters) only(known ...string) *reply {
	for name := range f {
		if !slices.Contains(known, name) {
			r := refusal(http.StatusBadRequest, "Invalid filter '%s'", name)
			return &r
		}
	}
	return nil
}

// any holds if the filter is unset or one of its values fits.
func (f filters) any(name string, fits func(string) bool) bool {
	if len(f[name]) == 0 {
		return true
	}
	for _, v := range f[name] {
		if fits(v) {
			return true
		}
	}
	return false
}

// labels holds if every label asked for is there, with its value where one is given.
func (f filters) labels(labels map[string]string) bool {
	for _, want := range f["label"] {
		k, v, valued := strings.Cut(want, "=")
		if got, ok := labels[k]; !ok || valued && got != v {
			return false
		}
	}
	return true
}
