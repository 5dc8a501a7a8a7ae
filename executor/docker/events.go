package docker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/client"

	"github.com/baildock/baildock/executor"
)

// Events subscribes to container and network events. The daemon sends its header shortly before
// it subscribes, so the subscription also asks for what it kept since now: nothing that happens
// after this call is missed, unless 256 events come in between.
//
// The stream is read by a goroutine of its own into a bounded queue: a daemon drops events for a
// slow reader without a word, so a queue that runs over ends the subscription with an error.
func (d *Driver) Events(ctx context.Context) (executor.EventStream, error) {
	version, err := d.pin(ctx)
	if err != nil {
		return executor.EventStream{}, err
	}
	c := &call{name: "events", limit: 1<<63 - 2, headerBy: d.by.control}
	now := time.Now()
	query := url.Values{
		"since":   {fmt.Sprintf("%d.%09d", now.Unix(), now.Nanosecond())},
		"filters": {`{"type":{"container":true,"network":true}}`},
	}
	target := fmt.Sprintf("http://%s/v%s/events?%s", client.DummyHost, version, query.Encode())
	req, err := http.NewRequestWithContext(withCall(ctx, c), http.MethodGet, target, nil)
	if err != nil {
		return executor.EventStream{}, err
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return executor.EventStream{}, c.fault(err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return executor.EventStream{}, c.fault(fmt.Errorf("status %d", resp.StatusCode))
	}
	s := &subscription{c: make(chan executor.Event, eventQueue)}
	go s.read(ctx, resp.Body)
	return executor.EventStream{C: s.c, Err: s.why}, nil
}

type subscription struct {
	c   chan executor.Event
	mu  sync.Mutex
	err error
}

func (s *subscription) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *subscription) read(ctx context.Context, body io.ReadCloser) {
	defer close(s.c)
	defer body.Close()
	err := s.pump(body)
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the daemon ended the event stream")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = &executor.Fault{Call: "events", Err: err}
}

// pump hands on one JSON document a line until the stream breaks.
func (s *subscription) pump(body io.Reader) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 8<<10), maxEvent)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var m events.Message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return fmt.Errorf("malformed event: %w", err)
		}
		if m.Type == "" || m.Action == "" || m.Actor.ID == "" {
			return errors.New("event without type, action or actor")
		}
		select {
		case s.c <- event(m):
		default:
			return fmt.Errorf("%w: %d events wait to be read", errTooLarge, eventQueue)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.EOF
}

func event(m events.Message) executor.Event {
	e := executor.Event{
		Type:     string(m.Type),
		Action:   string(m.Action),
		Actor:    m.Actor.ID,
		ExitCode: m.Actor.Attributes["exitCode"],
		TimeNano: m.TimeNano,
	}
	if m.Type == events.NetworkEventType {
		e.Container = m.Actor.Attributes["container"]
		e.Network = m.Actor.Attributes["name"]
	}
	return e
}
