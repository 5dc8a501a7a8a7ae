package fakedaemon

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Container is a container as a test sees it.
type Container struct {
	ID, Name  string
	Labels    map[string]string
	Status    string // created, running, paused, exited
	ExitCode  int
	OOMKilled bool
	PID       int
	Starts    bool // it was started at least once
	Twin      bool // somebody else's action made it
	Hidden    bool // it belongs to a daemon that has been replaced
}

// Containers is every container that isn't removed, oldest first, those of replaced daemons
// included.
func (d *Daemon) Containers() []Container {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []Container
	seen := map[*world]bool{}
	add := func(w *world) {
		if seen[w] {
			return
		}
		seen[w] = true
		for _, c := range w.containers {
			all = append(all, Container{
				ID: c.id, Name: c.name, Labels: maps.Clone(c.config.Labels), Status: c.status(), ExitCode: c.exitCode, OOMKilled: c.oom,
				PID: c.pid, Starts: c.everStarted, Hidden: w != d.world, Twin: c.twin,
			})
		}
	}
	for _, f := range d.former {
		add(f.world)
	}
	add(d.world)
	return all
}

// Container is the container of that ID or name.
func (d *Daemon) Container(ref string) (Container, bool) {
	d.mu.Lock()
	c, ok := d.find(ref)
	d.mu.Unlock()
	if !ok {
		return Container{}, false
	}
	all := d.Containers()
	i := slices.IndexFunc(all, func(o Container) bool { return o.ID == c.id })
	if i < 0 {
		return Container{}, false // removed meanwhile
	}
	return all[i], true
}

// Event is an event that the daemon sent.
type Event struct {
	Type, Action, Actor string
	Attributes          map[string]string
	TimeNano            int64
}

// EventLog is the last events, at most 256, oldest first.
func (d *Daemon) EventLog() []Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []Event
	for _, e := range d.log {
		all = append(all, Event{e.Type, e.Action, e.Actor.ID, maps.Clone(e.Actor.Attributes), e.TimeNano})
	}
	return all
}

// Inspection is the inspect reply of a container as it is now, without any fault.
func (d *Daemon) Inspection(ref string) (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.find(ref)
	if !ok {
		return nil, fmt.Errorf("fake daemon: no such container: %s", ref)
	}
	return jsonReply(200, c.inspection()).body, nil
}
