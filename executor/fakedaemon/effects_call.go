package fakedaemon

import (
	"net/http"
	"slices"
	"time"
)

// Refuse answers with an error and does nothing.
type Refuse struct {
	Status  int    // 0 = 500
	Message string // "" = a text of its own
}

// Kind is KindRefuse.
func (Refuse) Kind() FaultKind { return KindRefuse }

func (f Refuse) gate(x *exchange) (*reply, bool) {
	status, message := f.Status, f.Message
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if message == "" {
		message = "the fake daemon was told to refuse " + string(x.route.call)
	}
	rep := refusal(status, "%s", message)
	x.d.mu.Lock()
	x.rec.Status = status
	x.d.mu.Unlock()
	return &rep, true
}

// DropBefore closes the connection and does nothing.
type DropBefore struct{}

// Kind is KindDropBefore.
func (DropBefore) Kind() FaultKind { return KindDropBefore }

func (DropBefore) gate(x *exchange) (*reply, bool) {
	x.abort()
	return nil, true
}

// DropReply does what was asked and closes the connection without a reply.
type DropReply struct{}

// Kind is KindDropReply.
func (DropReply) Kind() FaultKind { return KindDropReply }

func (DropReply) send(x *exchange, _ *reply) bool {
	x.abort()
	return true
}

// Slow waits before doing. A client that has left by then makes no difference.
type Slow struct {
	Delay time.Duration // 0 = Options.Slow
}

// Kind is KindSlow.
func (Slow) Kind() FaultKind { return KindSlow }

func (f Slow) gate(x *exchange) (*reply, bool) {
	return nil, !x.d.sleep(f.Delay)
}

// SlowReply does at once and waits before replying.
type SlowReply struct {
	Delay time.Duration // 0 = Options.Slow
}

// Kind is KindSlowReply.
func (SlowReply) Kind() FaultKind { return KindSlowReply }

func (f SlowReply) send(x *exchange, _ *reply) bool {
	return !x.d.sleep(f.Delay)
}

// sleep waits unless the daemon ends first.
func (d *Daemon) sleep(delay time.Duration) bool {
	if delay == 0 {
		delay = d.opts.Slow
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.stop.Done():
		return false
	}
}

// Late takes the request and does it only when released: by CompleteLate, After a while, or once a
// later request of Until has been done (before that one's reply is sent). The client that asked may
// be long gone; if it still waits, it gets the reply.
type Late struct {
	After  time.Duration // 0 = never by itself
	Until  Call          // "" = by no call
	HangUp bool          // close the connection at once
}

// Kind is KindLate.
func (Late) Kind() FaultKind { return KindLate }

type lateCall struct {
	until Call
	run   func() reply // under the lock
	done  chan reply
}

func (f Late) gate(x *exchange) (*reply, bool) {
	l := &lateCall{until: f.Until, done: make(chan reply, 1)}
	l.run = func() reply {
		rep := x.route.do(x.d, x)
		x.rec.Status = rep.status
		return rep
	}
	x.d.mu.Lock()
	x.d.late = append(x.d.late, l)
	x.d.mu.Unlock()
	if f.HangUp {
		if conn, err := x.takeover(); err == nil {
			x.release(conn)
		}
	}
	var timer <-chan time.Time
	if f.After > 0 {
		t := time.NewTimer(f.After)
		defer t.Stop()
		timer = t.C
	}
	for {
		select {
		case <-timer:
			x.d.mu.Lock()
			x.d.complete(func(other *lateCall) bool { return other == l })
			x.d.mu.Unlock()
			timer = nil
		case rep := <-l.done:
			if f.HangUp {
				return nil, true
			}
			return &rep, true
		case <-x.d.stop.Done():
			return nil, true
		}
	}
}

func (d *Daemon) complete(which func(*lateCall) bool) int {
	n := 0
	d.late = slices.DeleteFunc(d.late, func(l *lateCall) bool {
		if !which(l) {
			return false
		}
		n++
		l.done <- l.run()
		return true
	})
	return n
}

// releaseLate does what waited for a call like x.
func (d *Daemon) releaseLate(x *exchange) {
	d.complete(func(l *lateCall) bool { return l.until == x.route.call })
}

// CompleteLate does every late call that is still to be done, in order, and returns how many. They
// are done when it returns.
func (d *Daemon) CompleteLate() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.complete(func(*lateCall) bool { return true })
}

// Pending is how many late calls are still to be done.
func (d *Daemon) Pending() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.late)
}
