package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"
)

// bounded is the only way to the daemon: a fresh connection a request, bounded replies, a
// deadline for the reply's header. A connection a request costs 0.1 ms and rules out that a
// later call goes to a daemon that has been replaced since.
type bounded struct {
	base *http.Transport
}

func newBounded(dial func(ctx context.Context) (net.Conn, error)) *bounded {
	return &bounded{base: &http.Transport{
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxReplyHeader,
	}}
}

var errSlowHeader = errors.New("no answer in time")

func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	c := callOf(req.Context())
	if c == nil {
		return nil, errors.New("docker request without bounds")
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	var timer *time.Timer
	if c.headerBy > 0 {
		timer = time.AfterFunc(c.headerBy, func() { cancel(errSlowHeader) })
	}
	resp, err := b.base.RoundTrip(req.WithContext(ctx))
	if timer != nil && !timer.Stop() && err == nil {
		resp.Body.Close()
		err = errSlowHeader
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errSlowHeader) {
			err = fmt.Errorf("%w (%v)", errSlowHeader, c.headerBy)
		}
		cancel(nil)
		return nil, err
	}
	c.status = resp.StatusCode
	resp.Body = &boundedBody{body: resp.Body, call: c, left: c.limit, cancel: cancel}
	if resp.StatusCode >= http.StatusBadRequest {
		c.readMessage(resp)
	} else if c.once {
		c.readOnce(resp)
	}
	return resp, nil
}

// readOnce reads a document whole and refuses one that names a key twice: what the client takes from it
// need not be what another reader would. Whatever else is wrong with it the client finds.
func (c *call) readOnce(resp *http.Response) {
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err == nil {
		if _, tree := parseTree(text); errors.Is(tree, errRepeated) {
			text, err = nil, tree // a client that stops at the document's end would never come to an error behind it
			c.breaks(err)
		}
	}
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), failing{err}))
}

// failing is a reader at its end, for a reason.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

// readMessage reads an error reply whole, so that its text is known whatever the client makes of it.
func (c *call) readMessage(resp *http.Response) {
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		c.breaks(err)
		text = nil
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case err != nil:
	case media == "application/json":
		var e struct{ Message string }
		if json.Unmarshal(text, &e) == nil {
			c.message = clip(e.Message, maxMessage)
		}
	case media == rawStream: // how an attach is refused
		c.message = clip(strings.TrimSpace(string(text)), maxMessage)
	}
}

// rawStream is the media type of attached output. Docker Engine API, ContainerAttach.
const rawStream = "application/vnd.docker.raw-stream"

// boundedBody fails reading beyond its bound and remembers that the reply broke.
type boundedBody struct {
	body   io.ReadCloser
	call   *call
	left   int64
	cancel context.CancelCauseFunc
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), fmt.Errorf("%w of %d bytes", errTooLarge, b.call.limit)
	}
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		b.call.breaks(err)
	}
	return n, err
}

func (b *boundedBody) Close() error {
	err := b.body.Close()
	b.cancel(nil)
	return err
}
