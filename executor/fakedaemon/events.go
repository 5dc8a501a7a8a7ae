package fakedaemon

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const keptEvents = 256 // a daemon keeps no more for those who ask for earlier ones

// event is one event as it is sent.
type event struct {
	Status   string `json:"status,omitempty"`
	ID       string `json:"id,omitempty"`
	From     string `json:"from,omitempty"`
	Type     string
	Action   string
	Actor    eventActor
	Scope    string `json:"scope"`
	Time     int64  `json:"time"`
	TimeNano int64  `json:"timeNano"`
}

type eventActor struct {
	ID         string
	Attributes map[string]string
}

// event makes one about the container: its labels, image and name, and what belongs to the action.
func (c *container) event(action string, more map[string]string) event {
	a := maps.Clone(c.config.Labels)
	a["image"], a["name"] = c.imageAsked, c.name
	maps.Copy(a, more)
	return event{Status: action, ID: c.id, From: c.imageAsked, Type: "container", Action: action, Actor: eventActor{c.id, a}}
}

func (n *netw) event(action, containerID string) event {
	a := map[string]string{"name": n.reply.Name, "type": n.reply.Driver}
	if containerID != "" {
		a["container"] = containerID
	}
	return event{Type: "network", Action: action, Actor: eventActor{n.reply.Id, a}}
}

// emit dates an event, keeps it, and hands it to every subscriber of that world.
func (d *Daemon) emit(w *world, e event) {
	t := d.now()
	e.Scope, e.Time, e.TimeNano = "local", t.Unix(), t.UnixNano()
	w.log = append(w.log, e)
	if len(w.log) > keptEvents {
		w.log = slices.Clone(w.log[len(w.log)-keptEvents:])
	}
	for sub := range w.subscribers {
		if sub.wants(e) {
			sub.push(e)
		}
	}
}

// subscriber is a client that follows events. Its queue has no bound: unlike the daemon, the fake
// loses none unless told to.
type subscriber struct {
	filter filters
	queue  []event
	wake   chan struct{} // one token: look at the queue
	over   chan struct{}
	ended  bool
}

func (sub *subscriber) push(e event) {
	sub.queue = append(sub.queue, e)
	select {
	case sub.wake <- struct{}{}:
	default:
	}
}

func (sub *subscriber) end() {
	if !sub.ended {
		sub.ended = true
		close(sub.over)
	}
}

func (sub *subscriber) wants(e event) bool {
	f := sub.filter
	actor := e.Actor.Attributes
	return f.any("type", func(v string) bool { return v == e.Type }) &&
		f.any("event", func(v string) bool { return v == e.Action || strings.HasPrefix(e.Action, v+":") }) &&
		f.any("container", func(v string) bool {
			return e.Type == "container" && (strings.HasPrefix(e.Actor.ID, v) || actor["name"] == v)
		}) &&
		f.any("network", func(v string) bool { return e.Type == "network" && (e.Actor.ID == v || actor["name"] == v) }) &&
		f.any("image", func(v string) bool { return actor["image"] == v }) &&
		f.labels(actor)
}

func (d *Daemon) events(x *exchange) reply {
	f, no := x.filters()
	if no != nil {
		return *no
	}
	since, errSince := moment(x.r.URL.Query().Get("since"))
	until, errUntil := moment(x.r.URL.Query().Get("until"))
	if errSince != nil || errUntil != nil {
		return refusal(http.StatusBadRequest, "invalid value for since or until")
	}
	sub := &subscriber{filter: f, wake: make(chan struct{}, 1), over: make(chan struct{})}
	if !since.IsZero() {
		for _, e := range d.log {
			if t := time.Unix(0, e.TimeNano); !t.Before(since) && (until.IsZero() || !t.After(until)) && sub.wants(e) {
				sub.push(e)
			}
		}
	}
	w := d.world
	w.subscribers[sub] = struct{}{}
	return reply{status: http.StatusOK, media: "application/json", flow: func(s *stream) {
		defer func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(w.subscribers, sub)
		}()
		s.follow(sub, until)
	}}
}

// follow sends events until the client leaves, the time is over, or the subscription ends.
func (s *stream) follow(sub *subscriber, until time.Time) {
	s.open(reply{status: http.StatusOK, media: "application/json"})
	var deadline <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		deadline = t.C
	}
	for {
		if s.deliver(sub) != nil {
			return
		}
		select {
		case <-sub.wake:
		case <-deadline:
			if s.deliver(sub) == nil {
				s.end()
			}
			return
		case <-s.x.r.Context().Done():
			return
		case <-sub.over:
			s.x.abort()
		case <-s.x.d.stop.Done():
			s.x.abort()
		}
	}
}

func (s *stream) deliver(sub *subscriber) error {
	s.x.d.mu.Lock()
	queue := sub.queue
	sub.queue = nil
	s.x.d.mu.Unlock()
	for _, e := range queue {
		action, _, _ := strings.Cut(e.Action, ":")
		if slices.Contains(s.lose, action) || slices.Contains(s.lose, "*") {
			continue
		}
		line, err := json.Marshal(e)
		if err != nil {
			panic(fmt.Sprintf("fake daemon's own event: %v", err)) // texts and numbers
		}
		if err := s.send(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// moment reads seconds since the epoch with a fraction, as the client sends them, or RFC 3339.
func moment(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if s, err := strconv.ParseInt(whole, 10, 64); err == nil {
		n, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
		return time.Unix(s, n), err
	}
	return time.Parse(time.RFC3339Nano, text)
}
