package fakedaemon

import (
	"io"
	"net"
	"net/http"
	"time"
)

// stream is a reply under way that ends when the daemon says so. Its payload passes through the
// effects that hit the request.
type stream struct {
	x     *exchange
	conn  net.Conn // when taken over
	flush func() error

	left    int    // bytes of payload that may still pass; -1 = all
	silent  bool   // say nothing more once left is used up, instead of closing
	instead []byte // sent in place of the first payload
	before  []byte // sent before the first payload
	lose    []string
}

// framed reports whether the call's stream is made of output frames.
func (x *exchange) framed() bool { return x.route.call == CallAttach || x.route.call == CallExecStart }

// Cut lets some bytes of a stream pass and then closes the connection. In a frame or an event it
// leaves a torn one; between two it looks like an end.
type Cut struct {
	Bytes int // 0 = close as soon as the stream is open
}

// Kind is KindCut.
func (Cut) Kind() FaultKind { return KindCut }

func (f Cut) stream(s *stream) { s.left = f.Bytes }

// Silent lets some bytes of a stream pass and then says nothing more, not even that it ends.
type Silent struct {
	Bytes int
}

// Kind is KindSilent.
func (Silent) Kind() FaultKind { return KindSilent }

func (f Silent) stream(s *stream) { s.left, s.silent = f.Bytes, true }

// Lost keeps events from a subscriber.
type Lost struct {
	Actions []string // none = every one
}

// Kind is KindLost.
func (Lost) Kind() FaultKind { return KindLost }

func (f Lost) stream(s *stream) {
	if s.lose = f.Actions; len(s.lose) == 0 {
		s.lose = []string{"*"}
	}
}

// open sends the header of a chunked stream.
func (s *stream) open(rep reply) {
	s.x.head(rep)
	s.flush = http.NewResponseController(s.x.w).Flush
	s.opened()
}

// upgrade takes the connection over and sends the header of a raw stream, exactly as the daemon
// writes it.
func (s *stream) upgrade(extra string) bool {
	conn, err := s.x.takeover()
	if err != nil {
		return false
	}
	s.conn = conn
	head := "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
	if s.x.r.Header.Get("Upgrade") != "" {
		head = "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
	}
	if _, err := io.WriteString(conn, head+extra+"\r\n"); err != nil {
		s.x.release(conn)
		return false
	}
	s.opened()
	return true
}

func (s *stream) opened() {
	if s.flush != nil {
		s.flush()
	}
	if s.left == 0 && !s.silent {
		s.close()
	}
}

// send lets payload through as far as it may go. It fails once the client has left.
func (s *stream) send(p []byte) error {
	if s.before != nil {
		p = append(s.before, p...)
		s.before = nil
	}
	if s.instead != nil {
		p = s.instead
		s.instead = []byte{}
	}
	if s.left >= 0 {
		if len(p) >= s.left {
			p = p[:s.left]
		}
		s.left -= len(p)
	}
	var err error
	switch {
	case len(p) == 0:
	case s.conn != nil:
		_, err = s.conn.Write(p)
	default:
		if _, err = s.x.w.Write(p); err == nil {
			err = s.flush()
		}
	}
	if err == nil && s.left == 0 && !s.silent {
		s.close()
	}
	return err
}

// close breaks the connection off.
func (s *stream) close() {
	if s.conn == nil {
		s.x.abort()
	}
	s.conn.Close()
}

// end finishes the stream properly, unless it was told to stay silent: then it waits for the client.
func (s *stream) end() {
	if s.before != nil || len(s.instead) > 0 {
		s.send(nil) // a stream that had nothing to say still goes wrong
	}
	if s.silent {
		s.linger()
	}
	if s.conn != nil {
		s.x.release(s.conn)
	}
}

// linger waits until the client has left or the daemon ends.
func (s *stream) linger() {
	if s.conn == nil {
		select {
		case <-s.x.r.Context().Done():
		case <-s.x.d.stop.Done():
		}
		return
	}
	s.conn.SetReadDeadline(time.Time{}) // fails only on a closed connection, as the read then does
	io.Copy(io.Discard, s.conn)
}
