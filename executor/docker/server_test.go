package docker

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// daemon answers on a Unix socket as a test says. Paths come without their version prefix.
type daemon struct {
	socket string
	mu     sync.Mutex
	on     map[string]http.HandlerFunc // "GET /info"
}

// answer sets what a call gets from now on.
func (d *daemon) answer(call string, h http.HandlerFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on[call] = h
}

// newDaemon starts a server that answers pings with an API version and everything else with 500.
func newDaemon(t *testing.T) *daemon {
	dir, err := os.MkdirTemp("", "bd") // a test's own directory can be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	d := &daemon{socket: filepath.Join(dir, "s"), on: map[string]http.HandlerFunc{}}
	d.answer("HEAD /_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.41") })
	l, err := net.Listen("unix", d.socket)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s := &http.Server{BaseContext: func(net.Listener) context.Context { return ctx }, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if len(path) > 6 && path[:3] == "/v1" {
			path = path[6:]
		}
		d.mu.Lock()
		h, ok := d.on[r.Method+" "+path]
		d.mu.Unlock()
		if !ok {
			http.Error(w, "unexpected call", http.StatusInternalServerError)
			return
		}
		h(w, r)
	})}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return d
}

// open returns a driver with short deadlines.
func (d *daemon) open(t *testing.T) *Driver {
	drv, err := Open("unix://" + d.socket)
	require.NoError(t, err)
	drv.by = deadlines{control: 300 * time.Millisecond, create: 600 * time.Millisecond, load: 10 * time.Second}
	t.Cleanup(func() { require.NoError(t, drv.Close()) })
	return drv
}

// reply answers with a status, a media type and a text.
func reply(status int, media, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

func replyJSON(status int, text string) http.HandlerFunc {
	return reply(status, "application/json", text)
}

// raw takes the connection over, writes bytes and closes, or waits for the client to give up.
func raw(text string, hold bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		rw.WriteString(text)
		rw.Flush()
		if hold {
			io.Copy(io.Discard, rw)
		}
	}
}
