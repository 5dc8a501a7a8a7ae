package docker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/baildock/baildock/executor"
)

// errTooLarge marks a reply beyond its bound.
var errTooLarge = errors.New("reply exceeds its bound")

// call is what the transport notes of one request, so that a failure can be told apart: a daemon
// that answered no, or an answer that never came or could not be read.
type call struct {
	name     string
	limit    int64         // bytes of the reply's body
	headerBy time.Duration // until the reply's header; 0 = the context's deadline alone
	once     bool          // the reply is one document, and no object of it may name a key twice

	status  int    // of the reply; 0 = none
	message string // the daemon's own error text, with status >= 400

	mu  sync.Mutex
	cut error // the reply could not be read to its end; a stream's reader may still be draining it
}

// breaks notes the first reason why the reply could not be read.
func (c *call) breaks(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut == nil {
		c.cut = err
	}
}

// broken returns why the reply could not be read, or nil.
func (c *call) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// fault turns a failure of the call into an *executor.Fault. Only a complete reply with an error
// status is an answer; a success that can't be read leaves unknown what the daemon did.
func (c *call) fault(err error) error {
	if err == nil {
		return nil
	}
	f := &executor.Fault{Call: c.name, Err: err}
	switch {
	case c.broken() != nil:
		// Our own giving up is why the connection broke, not the other way round.
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			f.Err = c.broken()
		}
	case c.status >= http.StatusBadRequest:
		f.Answered, f.Status = true, c.status
		if c.message != "" {
			f.Err = errors.New(c.message)
		}
	case c.status != 0:
		f.Err = fmt.Errorf("status %d with an unreadable reply: %w", c.status, err)
	}
	return f
}

// absent reports whether the daemon answered that exactly this object doesn't exist. A bare 404
// can come from any HTTP server, and a create's 404 names the image.
func (c *call) absent(kind, ref string) bool {
	if c.status != http.StatusNotFound || c.broken() != nil {
		return false
	}
	m := strings.ToLower(c.message)
	return strings.Contains(m, "no such "+kind) && strings.Contains(m, strings.ToLower(ref))
}

// absentNetwork is absent for a network, of which the daemon speaks in other words.
func (c *call) absentNetwork(id string) bool {
	return c.status == http.StatusNotFound && c.broken() == nil && strings.Contains(strings.ToLower(c.message), "network "+id+" not found")
}

// clip bounds a daemon's text and leaves out control characters.
func clip(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-3], "") + "..."
}
