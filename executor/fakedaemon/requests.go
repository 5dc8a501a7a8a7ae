package fakedaemon

import (
	"net/url"
	"slices"
	"time"
)

// Request is one request as it arrived.
type Request struct {
	Seq    int // from 1, over all calls
	Nth    int // from 1, of this call
	Call   Call
	Method string
	Path   string // with the version
	Query  url.Values
	Object string    // the name or ID in the path, as sent
	Target string    // ID of the container it named on arrival; "" = none such, or not about a container
	State  string    // of that container on arrival: created, running, paused, exited
	Body   []byte    // JSON; none for archives
	Time   time.Time // in one order with the times of events
	Status int       // of the reply that was made, whatever became of it; 0 = not done (yet)
	Faults []string  // kinds of the effects that hit it
}

func (d *Daemon) record(x *exchange) {
	x.rec = &Request{
		Seq: len(d.requests) + 1, Nth: d.count(x.route.call) + 1, Call: x.route.call, Method: x.r.Method, Path: x.r.URL.Path,
		Query: x.r.URL.Query(), Object: x.object, Body: x.body, Time: d.now(),
	}
	if c, ok := d.find(x.object); ok && x.route.target {
		x.rec.Target, x.rec.State = c.id, c.status()
	}
	d.requests = append(d.requests, x.rec)
}

func (d *Daemon) count(c Call) int {
	n := 0
	for _, r := range d.requests {
		if r.Call == c {
			n++
		}
	}
	return n
}

// Requests is every request so far, in the order of arrival; with calls given, only theirs.
func (d *Daemon) Requests(calls ...Call) []Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []Request
	for _, r := range d.requests {
		if len(calls) == 0 || slices.Contains(calls, r.Call) {
			c := *r
			c.Faults = slices.Clone(r.Faults)
			all = append(all, c)
		}
	}
	return all
}

// Count is how often a call was made so far.
func (d *Daemon) Count(c Call) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count(c)
}
