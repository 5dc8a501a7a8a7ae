package fakedaemon

import "fmt"

// Action is what somebody else with the socket does to a container.
type Action string

// The actions. Each leaves the events that the daemon sends for it, and does nothing to a container
// for which the daemon would refuse it.
const (
	ActExec       Action = "exec"       // runs a command inside
	ActUpdate     Action = "update"     // doubles its memory limit
	ActRename     Action = "rename"     // gives it another name
	ActPause      Action = "pause"      // freezes it
	ActBlink      Action = "blink"      // freezes it and lets it go on at once
	ActConnect    Action = "connect"    // takes it off no network, then puts it on the bridge
	ActDisconnect Action = "disconnect" // takes it off its networks
	ActCopyOut    Action = "copy_out"   // reads a file
	ActCopyIn     Action = "copy_in"    // writes a file
	ActAttach     Action = "attach"     // attaches a second time
	ActTop        Action = "top"        // lists its processes
	ActStart      Action = "start"      // starts it unless it runs
	ActRestart    Action = "restart"    // stops it and starts it again
	ActKill       Action = "kill"       // kills it
	ActStop       Action = "stop"       // stops it
	ActRemove     Action = "remove"     // removes it
	ActReuseName  Action = "reuse_name" // renames it and makes another container with its name
	ActReplace    Action = "replace"    // removes it and makes another container with its name and labels
	ActRelabel    Action = "relabel"    // makes another container with its labels and a name of its own
)

// Actions lists every action.
func Actions() []Action {
	return []Action{
		ActExec, ActUpdate, ActRename, ActPause, ActBlink, ActConnect, ActDisconnect, ActCopyOut, ActCopyIn, ActAttach, ActTop, ActStart, ActRestart,
		ActKill, ActStop, ActRemove, ActReuseName, ActReplace, ActRelabel,
	}
}

// Interfere does an action now, to the container of that ID or name.
func (d *Daemon) Interfere(a Action, ref string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.find(ref)
	if !ok {
		return fmt.Errorf("fake daemon: no such container: %s", ref)
	}
	d.interfere(a, c)
	return nil
}

func (d *Daemon) interfere(a Action, c *container) {
	switch a {
	case ActUpdate:
		d.updated(c, resources{Memory: 2 * c.host.Memory, MemorySwap: 2 * c.host.MemorySwap}, restartPolicy{})
	case ActRename:
		d.renamed(c, c.name+"_renamed")
	case ActConnect:
		if none := c.endpoints["none"]; none != nil {
			d.disconnectAll(c)
		}
		if n, ok := d.findNetwork("bridge"); ok {
			d.connect(c, n) // refused, it changes nothing
		}
	case ActDisconnect:
		d.disconnectAll(c)
	case ActCopyOut:
		d.emit(c.w, c.event("archive-path", nil))
	case ActCopyIn:
		d.emit(c.w, c.event("extract-to-dir", nil))
	case ActAttach:
		d.attached(c, true, true).leave()
	case ActStart:
		if !c.running {
			d.begin(c)
		}
	case ActRestart:
		d.again(c)
	case ActRemove:
		d.take(c)
	case ActReuseName:
		name := c.name
		d.renamed(c, name+"_former")
		d.twin(c, name, false)
	case ActReplace:
		name := c.name
		d.take(c)
		d.twin(c, name, true)
	case ActRelabel:
		d.twin(c, c.name+"_twin", true)
	default:
		if c.running {
			d.interfereRunning(a, c)
		}
	}
}

func (d *Daemon) interfereRunning(a Action, c *container) {
	switch a {
	case ActExec:
		if !c.paused {
			d.runExec(d.newExec(c, []string{"/bin/sh", "-c", "id"}))
		}
	case ActPause:
		if !c.paused {
			d.freeze(c)
		}
	case ActBlink:
		if !c.paused {
			d.freeze(c)
			d.thaw(c)
		}
	case ActTop:
		d.emit(c.w, c.event("top", nil))
	case ActKill:
		d.signal(c, 9)
	case ActStop:
		d.halt(c)
	default:
		panic(fmt.Sprintf("fake daemon: unknown action %q", a))
	}
}

// leave takes back an attachment that has no client.
func (a *attachment) leave() { close(a.left) }

func (d *Daemon) disconnectAll(c *container) {
	for name := range c.endpoints {
		if n, ok := d.findNetwork(name); ok {
			d.disconnect(c, n)
		}
	}
}

// take removes a container by force.
func (d *Daemon) take(c *container) {
	if c.running {
		d.signal(c, 9)
	}
	if !c.running && !c.removed {
		d.destroy(c)
	}
}

// twin makes a container like c, under a name, with its labels or without.
func (d *Daemon) twin(c *container, name string, labels bool) *container {
	t := &container{
		d: d, w: c.w, id: d.newID(), name: name, created: d.now(), image: c.image, imageAsked: c.imageAsked, path: c.path, args: c.args,
		config: c.config, host: c.host, mounts: c.mounts, layer: d.newID(), endpoints: map[string]*endpoint{},
		twin: true,
	}
	if !labels {
		t.config.Labels = map[string]string{}
	}
	for n := range c.endpoints {
		t.endpoints[n] = d.newEndpoint()
	}
	c.w.containers = append(c.w.containers, t)
	d.emit(t.w, t.event("create", nil))
	return t
}
