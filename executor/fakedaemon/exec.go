package fakedaemon

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// execution is one exec. It runs for no time, writes nothing and exits 0.
type execution struct {
	id   string
	c    *container
	argv []string
	ran  bool
}

func noExec(ref string) reply { return refusal(http.StatusNotFound, "No such exec instance: %s", ref) }

func (d *Daemon) execCreate(x *exchange) reply {
	c, no := x.target()
	if no != nil {
		return *no
	}
	var q struct{ Cmd []string }
	if r := x.decode(&q); r != nil {
		return *r
	}
	switch {
	case len(q.Cmd) == 0:
		return refusal(http.StatusBadRequest, "No exec command specified")
	case !c.running:
		return notRunning(c)
	case c.paused:
		return refusal(http.StatusConflict, "Container %s is paused, unpause the container before exec", c.id)
	}
	return jsonReply(http.StatusCreated, map[string]string{"Id": d.newExec(c, q.Cmd).id})
}

func (d *Daemon) newExec(c *container, argv []string) *execution {
	e := &execution{id: d.newID(), c: c, argv: argv}
	c.w.execs[e.id] = e
	c.execs = append(c.execs, e.id)
	d.emit(c.w, e.event("exec_create: "+strings.Join(argv, " "), nil))
	return e
}

func (e *execution) event(action string, more map[string]string) event {
	ev := e.c.event(action, more)
	ev.Actor.Attributes["execID"] = e.id
	return ev
}

// runExec starts and ends it at once.
func (d *Daemon) runExec(e *execution) {
	e.ran = true
	d.emit(e.c.w, e.event("exec_start: "+strings.Join(e.argv, " "), nil))
	d.emit(e.c.w, e.event("exec_die", map[string]string{"exitCode": strconv.Itoa(0)}))
	if e.c.execs = slices.DeleteFunc(e.c.execs, func(id string) bool { return id == e.id }); len(e.c.execs) == 0 {
		e.c.execs = nil
	}
}

func (d *Daemon) execStart(x *exchange) reply {
	e, ok := d.execs[x.object]
	switch {
	case !ok:
		return noExec(x.object)
	case e.ran:
		return refusal(http.StatusConflict, "Error: Exec command %s has already run", e.id)
	case !e.c.running:
		return notRunning(e.c)
	}
	var q struct{ Detach bool }
	if r := x.decode(&q); r != nil {
		return *r
	}
	d.runExec(e)
	if q.Detach {
		return done(http.StatusOK)
	}
	return reply{status: http.StatusSwitchingProtocols, flow: func(s *stream) {
		if s.upgrade("") {
			s.end()
		}
	}}
}

func (d *Daemon) execInspect(x *exchange) reply {
	e, ok := d.execs[x.object]
	if !ok {
		return noExec(x.object)
	}
	var code *int
	if e.ran {
		code = new(int)
	}
	return jsonReply(http.StatusOK, map[string]any{
		"ID": e.id, "Running": false, "ExitCode": code, "ContainerID": e.c.id, "DetachKeys": "", "Pid": 0,
		"OpenStdin": false, "OpenStderr": false, "OpenStdout": true, "CanRemove": false,
		"ProcessConfig": map[string]any{"tty": false, "entrypoint": e.argv[0], "arguments": e.argv[1:], "privileged": false},
	})
}
