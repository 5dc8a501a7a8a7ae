package fakedaemon

import (
	"net/http"
	"time"
)

// Program is what a container's process does: its steps in order, then exit 0 unless a step exited.
type Program struct {
	Steps      []Step
	StartError *StartError // the start fails instead

	PID           int           // 0 = Options.PID
	IgnoreSignals bool          // every signal but SIGKILL does nothing
	IgnoreKill    bool          // SIGKILL is accepted and does nothing, so a forced removal fails
	KillDelay     time.Duration // from a deadly signal to the exit
	HoldOutput    time.Duration // attached streams stay open after the exit; Forever = until they are cut
}

// Forever as Program.HoldOutput has no end.
const Forever time.Duration = -1

// StartError is a start that the runtime refuses; the container stays created.
type StartError struct {
	Status   int    // 0 = 400, as for an executable that isn't there
	Message  string // "" = such a text
	ExitCode int    // shown by inspect; 0 = 127
}

func (f *StartError) status() int {
	if f.Status == 0 {
		return http.StatusBadRequest
	}
	return f.Status
}

func (f *StartError) message() string {
	if f.Message == "" {
		return "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: \"/nope\": stat /nope: no such file or directory: unknown"
	}
	return f.Message
}

func (f *StartError) exitCode() int {
	if f.ExitCode == 0 {
		return 127
	}
	return f.ExitCode
}

// Step is one thing a program does.
type Step struct{ do func(*process) bool } // false = the program has ended

// Stdout writes to standard output, in frames of at most 32 KiB.
func Stdout(text string) Step { return output(1, []byte(text)) }

// Stderr writes to standard error.
func Stderr(text string) Step { return output(2, []byte(text)) }

// Write writes bytes to standard output, or standard error.
func Write(stderr bool, p []byte) Step {
	if stderr {
		return output(2, p)
	}
	return output(1, p)
}

// WriteOf writes what a function of the test's own makes, without the daemon's lock, to standard output.
func WriteOf(f func() []byte) Step {
	return Step{func(pr *process) bool { return pr.write(1, f()) }}
}

func output(stream byte, p []byte) Step {
	return Step{func(pr *process) bool { return pr.write(stream, p) }}
}

// Sleep waits.
func Sleep(t time.Duration) Step { return Step{func(pr *process) bool { return pr.sleep(t) }} }

// Until waits for a channel to be closed.
func Until(c <-chan struct{}) Step {
	return Step{func(pr *process) bool {
		select {
		case <-c:
			return true
		case <-pr.run.dead:
			return false
		case <-pr.d.stop.Done():
			return false
		}
	}}
}

// Never waits for ever: only a signal ends the program.
func Never() Step { return Until(nil) }

// Exit ends the program.
func Exit(code int) Step {
	return Step{func(pr *process) bool {
		pr.locked(func() { pr.d.exit(pr.c, code) })
		return false
	}}
}

// ChildOOM lets a child process be killed for memory: the event comes and the flag is set, the
// program goes on.
func ChildOOM() Step { return oom(true, true) }

// QuietOOM sets the flag of a memory kill without an event.
func QuietOOM() Step { return oom(false, true) }

// UnflaggedOOM emits the event of a memory kill and leaves the flag unset, as a busy daemon does.
func UnflaggedOOM() Step { return oom(true, false) }

// OOM kills the program itself for memory.
func OOM() Step {
	return Step{func(pr *process) bool { return oom(true, true).do(pr) && Exit(137).do(pr) }}
}

func oom(event, flag bool) Step {
	return Step{func(pr *process) bool {
		return pr.locked(func() {
			pr.c.oom = pr.c.oom || flag
			if event {
				pr.d.emit(pr.c.w, pr.c.event("oom", nil))
			}
		})
	}}
}

// Suffer makes somebody outside act on the container.
func Suffer(a Action) Step {
	return Step{func(pr *process) bool { return pr.locked(func() { pr.d.interfere(a, pr.c) }) }}
}

// Func runs a function of the test's own, without the daemon's lock.
func Func(f func()) Step {
	return Step{func(*process) bool { f(); return true }}
}

// Invocation is what chose a program.
type Invocation struct {
	Image  string // ID
	Names  []string
	Argv   []string
	Env    []string
	Labels map[string]string
}

// Script sets the program of the containers that match: a whole command line (entrypoint and
// arguments, joined by spaces), an executable, a name or ID of an image, or "" for all others.
func (d *Daemon) Script(match string, p Program) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.programs[match] = p
}

func (d *Daemon) programOf(c *container) Program {
	for _, match := range append([]string{c.command(), c.path, c.image.id}, c.image.names...) {
		if p, ok := d.programs[match]; ok {
			return p
		}
	}
	if d.opts.Program != nil {
		p, ok := d.opts.Program(Invocation{Image: c.image.id, Names: c.image.names, Argv: append([]string{c.path}, c.args...), Env: c.config.Env, Labels: c.config.Labels})
		if ok {
			return p
		}
	}
	return d.programs[""]
}

// process is a program being run.
type process struct {
	d   *Daemon
	c   *container
	run *run
}

// run is one run of a container. dead is closed when it ends, thaw (while paused) when it goes on.
type run struct {
	dead chan struct{}
	thaw chan struct{}
}

func (d *Daemon) execute(c *container, r *run, p Program) {
	defer d.work.Done()
	pr := &process{d, c, r}
	for _, s := range append(p.Steps[:len(p.Steps):len(p.Steps)], Exit(0)) {
		if !pr.awake() || !s.do(pr) {
			return
		}
	}
}

// awake waits while the container is paused; false = this run is over.
func (pr *process) awake() bool {
	for {
		pr.d.mu.Lock()
		thaw, over := pr.run.thaw, pr.c.run != pr.run
		pr.d.mu.Unlock()
		if over || pr.d.stop.Err() != nil {
			return false
		}
		if thaw == nil {
			return true
		}
		select {
		case <-thaw:
		case <-pr.run.dead:
		case <-pr.d.stop.Done():
		}
	}
}

// locked runs f under the daemon's lock if this run isn't over and not paused.
func (pr *process) locked(f func()) bool {
	for pr.awake() {
		pr.d.mu.Lock()
		if pr.c.run == pr.run && !pr.c.paused {
			f()
			over := pr.c.run != pr.run
			pr.d.mu.Unlock()
			return !over
		}
		pr.d.mu.Unlock()
	}
	return false
}

func (pr *process) sleep(t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-pr.run.dead:
	case <-pr.d.stop.Done():
	}
	return false
}
