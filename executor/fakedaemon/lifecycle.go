package fakedaemon

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

func (d *Daemon) start(x *exchange) reply {
	c, no := x.target()
	if no != nil {
		return *no
	}
	if c.running {
		return done(http.StatusNotModified)
	}
	return d.begin(c)
}

// begin starts a container that doesn't run.
func (d *Daemon) begin(c *container) reply {
	if no := d.plug(c); no != nil {
		return *no
	}
	if no := d.seccomp(c); no != nil {
		return *no
	}
	c.program = d.programOf(c)
	c.everStarted = true
	if c.host.Runtime == "" {
		c.host.Runtime = d.engine.DefaultRuntime
	}
	if f := c.program.StartError; f != nil {
		d.unplug(c)
		c.exitCode, c.failure = f.exitCode(), f.message()
		return refusal(f.status(), "%s", c.failure)
	}
	c.running, c.paused, c.oom, c.failure, c.exitCode = true, false, false, "", 0
	c.started = d.now()
	c.pid = d.pidOf(c)
	c.run = &run{dead: make(chan struct{})}
	d.emit(c.w, c.event("start", nil))
	d.work.Add(1)
	go d.execute(c, c.run, c.program)
	return done(http.StatusNoContent)
}

// seccomp refuses a profile that the engine can't load: the built-in one has a name since 1.42.
func (d *Daemon) seccomp(c *container) *reply {
	for _, o := range c.host.SecurityOpt {
		name, value, _ := strings.Cut(strings.Replace(o, ":", "=", 1), "=")
		if name != "seccomp" || value == "unconfined" || strings.HasPrefix(value, "{") || value == "builtin" && d.engine.atLeast(42) {
			continue
		}
		d.unplug(c)
		c.exitCode, c.failure = 128, fmt.Sprintf("Decoding seccomp profile failed: invalid character '%s' looking for beginning of value", value[:1])
		r := refusal(http.StatusInternalServerError, "%s", c.failure)
		return &r
	}
	return nil
}

func (d *Daemon) pidOf(c *container) int {
	switch {
	case c.program.PID != 0:
		return c.program.PID
	case d.opts.PID != 0:
		return d.opts.PID
	}
	d.ids++
	return firstAbsentPID + d.ids
}

// ended makes a running container an exited one, without a word to anyone.
func (d *Daemon) ended(c *container, code int) {
	c.running, c.paused, c.pid, c.exitCode = false, false, 0, code
	c.finished = d.now()
	close(c.run.dead)
	c.run, c.execs = nil, nil
}

// exit ends a running container: its output ends, whoever waits is answered, the events go out.
func (d *Daemon) exit(c *container, code int) {
	hold := c.program.HoldOutput
	d.ended(c, code)
	switch {
	case hold == 0:
		c.loose()
	case hold > 0:
		held := c.attached
		d.work.Add(1)
		go func() {
			defer d.work.Done()
			d.sleep(hold)
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, a := range held {
				a.finish()
			}
		}()
	}
	c.attached = nil
	d.emit(c.w, c.event("die", map[string]string{"exitCode": strconv.Itoa(code)}))
	d.unplug(c)
	kept := c.waiters[:0]
	for _, w := range c.waiters {
		if w.removal {
			kept = append(kept, w)
			continue
		}
		w.answer(code)
	}
	c.waiters = kept
}

// loose ends the output of everyone attached.
func (c *container) loose() {
	for _, a := range c.attached {
		a.finish()
	}
	c.attached = nil
}

// signal sends a signal to a running container. Only a program that says so survives one that
// ends a process.
func (d *Daemon) signal(c *container, number int) {
	d.emit(c.w, c.event("kill", map[string]string{"signal": strconv.Itoa(number)}))
	switch {
	case number == 9 && c.program.IgnoreKill:
	case number != 9 && c.program.IgnoreSignals:
	case c.program.KillDelay > 0:
		r, delay := c.run, c.program.KillDelay
		d.work.Add(1)
		go func() {
			defer d.work.Done()
			d.sleep(delay)
			d.mu.Lock()
			defer d.mu.Unlock()
			if c.run == r {
				d.exit(c, 128+number)
			}
		}()
	case number == 9 || number == 15 || number == 2 || number == 1 || number == 3:
		d.exit(c, 128+number)
	}
}

var signals = map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "USR1": 10, "USR2": 12, "TERM": 15, "CONT": 18, "STOP": 19}

func signalNumber(s string) (int, bool) {
	if s == "" {
		return 9, true
	}
	if n, err := strconv.Atoi(s); err == nil {
		return n, n > 0 && n < 65
	}
	n, ok := signals[strings.TrimPrefix(strings.ToUpper(s), "SIG")]
	return n, ok
}

func (d *Daemon) kill(x *exchange) reply {
	number, ok := signalNumber(x.r.URL.Query().Get("signal"))
	if !ok {
		return refusal(http.StatusBadRequest, "Invalid signal: %s", x.r.URL.Query().Get("signal"))
	}
	c, found := d.find(x.object)
	if !found {
		return refusal(http.StatusNotFound, "Cannot kill container: %s: No such container: %s", x.object, x.object)
	}
	if !c.running {
		return refusal(http.StatusConflict, "Cannot kill container: %s: Container %s is not running", x.object, c.id)
	}
	d.signal(c, number)
	return done(http.StatusNoContent)
}

func (d *Daemon) stopCall(x *exchange) reply {
	c, no := x.target()
	if no != nil {
		return *no
	}
	if !c.running {
		return done(http.StatusNotModified)
	}
	d.halt(c)
	return done(http.StatusNoContent)
}

// halt stops a running container: its stop signal, then SIGKILL for one that ignores it. The fake
// does not wait in between.
func (d *Daemon) halt(c *container) {
	if number, ok := signalNumber(c.config.StopSignal); ok && c.config.StopSignal != "" {
		d.signal(c, number)
	} else {
		d.signal(c, 15)
	}
	if c.running {
		d.signal(c, 9)
	}
	if !c.running {
		d.emit(c.w, c.event("stop", nil))
	}
}

func (d *Daemon) restart(x *exchange) reply {
	c, no := x.target()
	if no != nil {
		return *no
	}
	return d.again(c)
}

func (d *Daemon) again(c *container) reply {
	if c.running {
		d.halt(c)
	}
	if r := d.begin(c); r.status != http.StatusNoContent {
		return r
	}
	d.emit(c.w, c.event("restart", nil))
	return done(http.StatusNoContent)
}

func (d *Daemon) pause(x *exchange) reply {
	c, no := x.target()
	switch {
	case no != nil:
		return *no
	case !c.running:
		return notRunning(c)
	case c.paused:
		return refusal(http.StatusConflict, "Container %s is already paused", c.id)
	}
	d.freeze(c)
	return done(http.StatusNoContent)
}

func (d *Daemon) freeze(c *container) {
	c.paused = true
	c.run.thaw = make(chan struct{})
	d.emit(c.w, c.event("pause", nil))
}

func (d *Daemon) unpause(x *exchange) reply {
	c, no := x.target()
	switch {
	case no != nil:
		return *no
	case !c.paused:
		return refusal(http.StatusInternalServerError, "Container %s is not paused", c.id)
	}
	d.thaw(c)
	return done(http.StatusNoContent)
}

func (d *Daemon) thaw(c *container) {
	c.paused = false
	close(c.run.thaw)
	c.run.thaw = nil
	d.emit(c.w, c.event("unpause", nil))
}
