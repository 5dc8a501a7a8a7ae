package fakedaemon

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// container is one container. Everything in it is guarded by the daemon's lock.
type container struct {
	d          *Daemon
	w          *world
	id         string
	name       string // without the slash
	created    time.Time
	image      *image
	imageAsked string // as the request named it
	path       string
	args       []string
	config     config
	host       hostConfig
	mounts     []mountPoint
	layer      string // ID of its writable layer

	running, paused, removed, everStarted bool
	twin                                  bool // made by somebody else's action
	oom                                   bool
	pid, exitCode                         int
	failure                               string
	started, finished                     time.Time
	sandbox                               string
	endpoints                             map[string]*endpoint // by network name
	execs                                 []string
	attached                              []*attachment
	waiters                               []*waiter
	run                                   *run // while running
	program                               Program
}

var nameRule = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)

// find resolves a full ID, then a name, then an unambiguous beginning of an ID.
func (d *Daemon) find(ref string) (*container, bool) {
	for _, c := range d.containers {
		if c.id == ref {
			return c, true
		}
	}
	for _, c := range d.containers {
		if c.name == strings.TrimPrefix(ref, "/") {
			return c, true
		}
	}
	var found *container
	for _, c := range d.containers {
		if ref != "" && strings.HasPrefix(c.id, ref) {
			if found != nil {
				return nil, false
			}
			found = c
		}
	}
	return found, found != nil
}

// target is the container of the request's path, or the answer that there is none.
func (x *exchange) target() (*container, *reply) {
	if c, ok := x.d.find(x.object); ok {
		return c, nil
	}
	r := noContainer(x.object)
	return nil, &r
}

func noContainer(ref string) reply {
	return refusal(http.StatusNotFound, "No such container: %s", ref)
}

func notRunning(c *container) reply {
	return refusal(http.StatusConflict, "Container %s is not running", c.id)
}

func (d *Daemon) remove(x *exchange) reply {
	c, no := x.target()
	if no != nil {
		return *no
	}
	if c.running {
		if !x.flag("force") {
			return refusal(http.StatusConflict, "You cannot remove a running container %s. Stop the container before attempting removal or force remove", c.id)
		}
		if d.signal(c, 9); c.running {
			return refusal(http.StatusInternalServerError, "Could not kill running container %s, cannot remove - tried to kill container, but did not receive an exit event", c.id)
		}
	}
	d.destroy(c)
	return done(http.StatusNoContent)
}

// destroy takes a container that doesn't run out of the world. Clients attached to one that isn't
// running are left hanging, as the daemon leaves them.
func (d *Daemon) destroy(c *container) {
	c.removed = true
	c.w.containers = slices.DeleteFunc(c.w.containers, func(o *container) bool { return o == c })
	d.emit(c.w, c.event("destroy", nil))
	for _, w := range c.waiters {
		w.answer(c.exitCode) // also those that wait for an exit, as the daemon does
	}
	c.waiters = nil
}

func (d *Daemon) rename(x *exchange) reply {
	c, no := x.target()
	if no != nil {
		return *no
	}
	name := strings.TrimPrefix(x.r.URL.Query().Get("name"), "/")
	switch {
	case name == "":
		return refusal(http.StatusBadRequest, "Neither old nor new names may be empty")
	case name == c.name:
		return refusal(http.StatusBadRequest, "Renaming a container with the same name as its current name")
	}
	if r := d.nameTaken(name); r != nil {
		return *r
	}
	d.renamed(c, name)
	return done(http.StatusNoContent)
}

func (d *Daemon) renamed(c *container, name string) {
	old := c.name
	c.name = name
	d.emit(c.w, c.event("rename", map[string]string{"oldName": "/" + old}))
}

func (d *Daemon) nameTaken(name string) *reply {
	var r reply
	if !nameRule.MatchString(name) {
		r = refusal(http.StatusBadRequest, "Invalid container name (%s), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed", name)
		return &r
	}
	for _, c := range d.containers {
		if c.name == name {
			r = refusal(http.StatusConflict, "Conflict. The container name \"/%s\" is already in use by container \"%s\". You have to remove (or rename) that container to be able to reuse that name.", name, c.id)
			return &r
		}
	}
	return nil
}

func (d *Daemon) update(x *exchange) reply {
	c, no := x.target()
	if no != nil {
		return *no
	}
	var asked struct {
		resources
		RestartPolicy restartPolicy
	}
	if r := x.decode(&asked); r != nil {
		return *r
	}
	d.updated(c, asked.resources, asked.RestartPolicy)
	return jsonReply(http.StatusOK, map[string]any{"Warnings": nil})
}

func (d *Daemon) updated(c *container, r resources, p restartPolicy) {
	set := func(to *int64, v int64) {
		if v != 0 {
			*to = v
		}
	}
	set(&c.host.Memory, r.Memory)
	set(&c.host.MemorySwap, r.MemorySwap)
	set(&c.host.MemoryReservation, r.MemoryReservation)
	set(&c.host.NanoCpus, r.NanoCpus)
	set(&c.host.CpuShares, r.CpuShares)
	set(&c.host.CpuQuota, r.CpuQuota)
	set(&c.host.CpuPeriod, r.CpuPeriod)
	if r.PidsLimit != nil {
		c.host.PidsLimit = r.PidsLimit
	}
	if p.Name != "" {
		c.host.RestartPolicy = p
	}
	d.emit(c.w, c.event("update", nil))
}

func (d *Daemon) top(x *exchange) reply {
	c, no := x.target()
	if no != nil {
		return *no
	}
	if !c.running {
		return notRunning(c)
	}
	d.emit(c.w, c.event("top", nil))
	return jsonReply(http.StatusOK, struct {
		Processes [][]string
		Titles    []string
	}{[][]string{{"root", "1", "0", "0", "00:00", "?", "00:00:00", c.command()}}, []string{"UID", "PID", "PPID", "C", "STIME", "TTY", "TIME", "CMD"}})
}

func (c *container) command() string { return strings.Join(append([]string{c.path}, c.args...), " ") }
