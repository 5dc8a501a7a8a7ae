package fakedaemon

import (
	"encoding/json"
	"net/http"
)

// waiter is a client that waits for an exit or a removal.
type waiter struct {
	removal bool
	code    chan int // one answer
}

func (w *waiter) answer(code int) { w.code <- code }

func (d *Daemon) wait(x *exchange) reply {
	c, no := x.target()
	if no != nil {
		return *no
	}
	w := &waiter{code: make(chan int, 1)}
	switch x.r.URL.Query().Get("condition") {
	case "removed":
		w.removal = true
		c.waiters = append(c.waiters, w)
	case "next-exit":
		c.waiters = append(c.waiters, w)
	default:
		if c.running {
			c.waiters = append(c.waiters, w)
		} else {
			w.answer(c.exitCode)
		}
	}
	newer := d.engine.atLeast(42)
	return reply{status: http.StatusOK, media: "application/json", flow: func(s *stream) {
		s.open(reply{status: http.StatusOK, media: "application/json"})
		select {
		case code := <-w.code:
			s.send(waitReply(code, newer))
			s.end()
		case <-x.r.Context().Done():
		case <-d.stop.Done():
			s.x.abort()
		}
	}}
}

func waitReply(code int, newer bool) []byte {
	v := map[string]any{"StatusCode": code}
	if !newer {
		v["Error"] = nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a number
	}
	return append(b, '\n')
}
