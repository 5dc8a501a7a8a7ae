package fakedaemon

import (
	"encoding/binary"
	"net/http"
	"slices"
)

const (
	chunk        = 32 << 10 // bytes the daemon copies from a container's pipe at a time
	pendingParts = 4        // chunks a slow reader may be behind before the program blocks
)

// attachment is a client that reads a container's output.
type attachment struct {
	stdout, stderr bool
	frames         chan []byte
	left           chan struct{} // closed when the client has left
	over           chan struct{} // closed when no more comes
	finished       bool
}

func (a *attachment) finish() {
	if !a.finished {
		a.finished = true
		close(a.over)
	}
}

func (d *Daemon) attach(x *exchange) reply {
	c, ok := d.find(x.object)
	if !ok {
		// Written past the HTTP server: the daemon has taken the connection over by then.
		return reply{status: http.StatusNotFound, flow: func(s *stream) { s.refuse("No such container: " + x.object) }}
	}
	if c.paused {
		return refusal(http.StatusConflict, "Container %s is paused, unpause the container before attach.", c.id)
	}
	a := d.attached(c, x.flag("stdout"), x.flag("stderr"))
	return reply{status: http.StatusSwitchingProtocols, flow: func(s *stream) {
		defer close(a.left)
		if s.upgrade("") {
			defer s.end()
			s.pour(a)
		}
	}}
}

// attached adds a reader. One of a container that doesn't run gets what its next run writes.
func (d *Daemon) attached(c *container, stdout, stderr bool) *attachment {
	a := &attachment{stdout: stdout, stderr: stderr, frames: make(chan []byte, pendingParts), left: make(chan struct{}), over: make(chan struct{})}
	c.attached = append(c.attached, a)
	d.emit(c.w, c.event("attach", nil))
	return a
}

// pour copies frames to the client until the output ends or the client has left.
func (s *stream) pour(a *attachment) {
	for {
		select {
		case f := <-a.frames:
			if s.send(f) != nil {
				return
			}
		case <-a.over:
			for {
				select {
				case f := <-a.frames:
					if s.send(f) != nil {
						return
					}
				default:
					return
				}
			}
		case <-s.x.d.stop.Done():
			return
		}
	}
}

// refuse writes the answer of a daemon that has already taken the connection over.
func (s *stream) refuse(text string) {
	conn, err := s.x.takeover()
	if err != nil {
		return
	}
	defer s.x.release(conn)
	conn.Write([]byte("HTTP/1.1 404 Not Found\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n" + text + "\r\n"))
}

// write puts output in front of everyone attached; false = the run is over. A reader that is far
// behind blocks the program, as a full pipe does.
func (pr *process) write(streamNumber byte, p []byte) bool {
	for part := range slices.Chunk(p, chunk) {
		frame := make([]byte, 8, 8+len(part))
		frame[0] = streamNumber
		binary.BigEndian.PutUint32(frame[4:], uint32(len(part)))
		frame = append(frame, part...)
		var to []*attachment
		if !pr.locked(func() { to = slices.Clone(pr.c.attached) }) {
			return false
		}
		for _, a := range to {
			if streamNumber == 1 && !a.stdout || streamNumber == 2 && !a.stderr {
				continue
			}
			select {
			case a.frames <- frame:
			case <-a.left:
			case <-pr.run.dead:
				return false
			case <-pr.d.stop.Done():
				return false
			}
		}
	}
	return true
}
