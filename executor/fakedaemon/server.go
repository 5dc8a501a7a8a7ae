package fakedaemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

const (
	maxBody    = 4 << 20   // bytes of a JSON request
	maxArchive = 512 << 20 // bytes of an image archive
)

// exchange is one request under way.
type exchange struct {
	d      *Daemon
	w      http.ResponseWriter
	r      *http.Request
	route  *route
	object string // the path's name or ID
	body   []byte
	loaded *archive // image load: what the body held
	rec    *Request
	hits   []Effect
}

// reply is an answer about to be sent.
type reply struct {
	status int
	media  string // "" = no body
	header http.Header
	body   []byte
	flow   func(*stream) // a stream in place of the body
}

func jsonReply(status int, v any) reply {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("fake daemon's own reply: %v", err)) // only our own types get here
	}
	return reply{status: status, media: "application/json", body: b.Bytes()}
}

func refusal(status int, format string, a ...any) reply {
	return jsonReply(status, map[string]string{"message": fmt.Sprintf(format, a...)})
}

func done(status int) reply { return reply{status: status} }

var versioned = regexp.MustCompile(`^/v([0-9]+\.[0-9]+)(/.*)$`)

// parseAPI reads "1.41".
func parseAPI(s string) (major, minor int, ok bool) {
	a, b, ok := strings.Cut(s, ".")
	major, errA := strconv.Atoi(a)
	minor, errB := strconv.Atoi(b)
	return major, minor, ok && errA == nil && errB == nil
}

func olderAPI(a, b string) bool {
	a1, a2, _ := parseAPI(a)
	b1, b2, _ := parseAPI(b)
	return a1 < b1 || a1 == b1 && a2 < b2
}

// enter counts a request among the daemon's work, unless the daemon has ended.
func (d *Daemon) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop.Err() != nil {
		return false
	}
	d.work.Add(1)
	return true
}

func (d *Daemon) handle(w http.ResponseWriter, r *http.Request) {
	if !d.enter() {
		panic(http.ErrAbortHandler)
	}
	defer d.work.Done()
	x := &exchange{d: d, w: w, r: r}
	path := r.URL.Path
	asked := ""
	if m := versioned.FindStringSubmatch(path); m != nil {
		asked, path = m[1], m[2]
	}
	x.route, x.object = findRoute(r, path)
	if x.route == nil {
		x.write(refusal(http.StatusNotFound, "page not found"))
		return
	}
	if err := x.read(); err != nil {
		x.write(refusal(http.StatusBadRequest, "%v", err))
		return
	}
	d.mu.Lock()
	d.record(x)
	x.hits = d.hit(x.rec)
	e := d.engine
	d.mu.Unlock()
	x.standardHeader(&e)
	switch {
	case asked == "":
	case olderAPI(e.API, asked):
		x.write(refusal(http.StatusBadRequest, "client version %s is too new. Maximum supported API version is %s", asked, e.API))
		return
	case olderAPI(asked, e.MinAPI):
		x.write(refusal(http.StatusBadRequest, "client version %s is too old. Minimum supported API version is %s, please upgrade your client to a newer version", asked, e.MinAPI))
		return
	}
	x.answer()
}

func (x *exchange) standardHeader(e *Engine) {
	h := x.w.Header()
	h.Set("Api-Version", e.API)
	h.Set("Docker-Experimental", "false")
	h.Set("Ostype", e.OSType)
	h.Set("Server", "Docker/"+e.Version+" ("+e.OSType+")")
}

// read takes the request's body in, before the daemon's lock is taken.
func (x *exchange) read() error {
	var err error
	switch x.route.call {
	case CallImageLoad:
		x.loaded, err = readArchive(io.LimitReader(x.r.Body, maxArchive))
		if err != nil {
			// The daemon reports a bad archive inside its stream.
			x.loaded = &archive{err: err}
		}
		_, err = io.Copy(io.Discard, x.r.Body)
	case CallCopyTo:
		_, err = io.Copy(io.Discard, x.r.Body)
	default:
		x.body, err = io.ReadAll(io.LimitReader(x.r.Body, maxBody))
	}
	return err
}

// answer takes the request through its effects: before, doing, after, sending.
func (x *exchange) answer() {
	for _, e := range x.hits {
		if g, ok := e.(gate); ok {
			if rep, stop := g.gate(x); stop {
				if rep != nil {
					x.send(*rep)
				}
				return
			}
		}
	}
	x.send(x.perform())
}

// perform does what was asked, under the daemon's lock.
func (x *exchange) perform() reply {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	rep, instead := reply{}, false
	for _, e := range x.hits {
		if i, ok := e.(enterer); ok {
			i.enter(x)
		}
		if i, ok := e.(replacer); ok && !instead {
			rep, instead = i.instead(x)
		}
	}
	if !instead {
		rep = x.route.do(x.d, x)
	}
	for _, e := range x.hits {
		if l, ok := e.(leaver); ok {
			l.leave(x, &rep)
		}
	}
	x.rec.Status = rep.status
	x.d.releaseLate(x)
	return rep
}

// send writes the reply as its effects want it.
func (x *exchange) send(rep reply) {
	for _, e := range x.hits {
		if s, ok := e.(sender); ok && s.send(x, &rep) {
			return
		}
	}
	if rep.flow != nil {
		s := &stream{x: x, left: -1}
		for _, e := range x.hits {
			if f, ok := e.(streamer); ok {
				f.stream(s)
			}
		}
		rep.flow(s)
		return
	}
	x.write(rep)
}

func (x *exchange) head(rep reply) {
	h := x.w.Header()
	for k, v := range rep.header {
		h[k] = v
	}
	if rep.media != "" {
		h.Set("Content-Type", rep.media)
	}
	x.w.WriteHeader(rep.status)
}

func (x *exchange) write(rep reply) {
	x.head(rep)
	x.w.Write(rep.body) // a client that has left is no concern of the daemon's
}

// abort closes the connection without another byte.
func (x *exchange) abort() { panic(http.ErrAbortHandler) }

// takeover takes the connection from the HTTP server. The caller must give it to release.
func (x *exchange) takeover() (net.Conn, error) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return nil, err
	}
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	if x.d.stop.Err() != nil {
		conn.Close()
		return nil, net.ErrClosed
	}
	x.d.conns[conn] = struct{}{}
	return conn, nil
}

func (x *exchange) release(conn net.Conn) {
	conn.Close()
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	delete(x.d.conns, conn)
}

// query reads a flag of the request's query as the daemon does.
func (x *exchange) flag(name string) bool {
	switch strings.ToLower(strings.TrimSpace(x.r.URL.Query().Get(name))) {
	case "", "0", "no", "false", "none":
		return false
	}
	return true
}
