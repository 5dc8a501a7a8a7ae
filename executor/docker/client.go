package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"time"

	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"github.com/baildock/baildock/executor"
)

// Driver drives the daemon behind one Unix socket. It is safe for concurrent use.
type Driver struct {
	path string
	via  func(context.Context) (net.Conn, error) // makes the connection of each request
	http *http.Client
	api  *client.Client
	host string // root of the host's own file system
	by   deadlines

	turn   chan struct{} // holds a token while somebody looks at pinned or negotiates
	pinned string        // API version, negotiated by the first call that reached the daemon
}

// deadlines are the ones of limits.go; tests shorten them.
type deadlines struct{ control, create, load time.Duration }

var _ executor.Driver = (*Driver)(nil)

var apiPattern = regexp.MustCompile(`^[0-9]{1,3}\.[0-9]{1,3}$`)

// DefaultSocket is where Docker Engine listens.
const DefaultSocket = "/var/run/docker.sock"

// Open prepares a driver for the daemon at socket: an absolute path, or unix:// and one. It
// refuses anything else, reads neither environment nor configuration, and makes no call: a
// daemon that isn't there is found by the first one.
func Open(socket string) (*Driver, error) { return OpenVia(socket, nil) }

// OpenVia is Open whose requests travel over connections that via makes, nil = to the socket. It is
// for tests: with a fake daemon at the other end and all connections in memory, a test's clock may
// be a fake one, and every deadline, which stays as it is, costs no time. The socket is still looked
// at where it lies: what it says of the daemon can't come from elsewhere.
func OpenVia(socket string, via func(context.Context) (net.Conn, error)) (*Driver, error) {
	path, err := socketPath(socket)
	if err != nil {
		return nil, err
	}
	d := &Driver{path: path, via: via, host: "/", turn: make(chan struct{}, 1), by: deadlines{control: controlDeadline, create: createDeadline, load: loadDeadline}}
	if via == nil {
		d.via = d.dial
	}
	d.http = &http.Client{
		Transport:     newBounded(d.via),
		CheckRedirect: client.CheckRedirect,
	}
	// The order matters: the host option wants the client's own transport, which is replaced next.
	d.api, err = client.NewClientWithOpts(client.WithHost("unix://"+path), client.WithHTTPClient(d.http),
		client.WithUserAgent("baildock"))
	if err != nil {
		return nil, fmt.Errorf("docker client: %w", err)
	}
	return d, nil
}

// Close drops what the driver holds. Open streams end with their own contexts.
func (d *Driver) Close() error { return d.api.Close() }

func (d *Driver) dial(ctx context.Context) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", d.path)
}

// pin negotiates the API version once: the newest that both sides speak. Later calls keep it, so
// that the shape of every reply of one run is one version's.
func (d *Driver) pin(ctx context.Context) (string, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done(): // a caller that gives up needn't wait for another's negotiation
		return "", &executor.Fault{Call: "ping", Err: ctx.Err()}
	}
	if d.pinned != "" {
		return d.pinned, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.by.control)
	defer cancel()
	c := &call{name: "ping", limit: maxReply}
	ping, err := d.api.Ping(withCall(ctx, c))
	if err != nil {
		return "", c.fault(late(ctx, d.by.control, err))
	}
	if !apiPattern.MatchString(ping.APIVersion) {
		return "", &executor.Fault{Call: "ping", Err: fmt.Errorf("the daemon names no API version")}
	}
	if versions.LessThan(ping.APIVersion, minAPI) {
		return "", &executor.Fault{Call: "ping", Answered: true, Status: http.StatusOK,
			Err: fmt.Errorf("the daemon speaks API %s; at least %s is needed: update Docker Engine", ping.APIVersion, minAPI)}
	}
	d.api.NegotiateAPIVersionPing(ping)
	d.pinned = d.api.ClientVersion()
	return d.pinned, nil
}

// control makes one bounded call.
func (d *Driver) control(ctx context.Context, name string, deadline time.Duration, fn func(context.Context) error) (*call, error) {
	// An inspection is kept as it came and judged by Compare, which refuses the same.
	c := &call{name: name, limit: maxReply, once: name != "inspect"}
	if _, err := d.pin(ctx); err != nil {
		return c, err
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	return c, c.fault(late(ctx, deadline, fn(withCall(ctx, c))))
}

// late says by which deadline an answer should have come.
func late(ctx context.Context, deadline time.Duration, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no complete answer within %v: %w", deadline, context.DeadlineExceeded)
	}
	return err
}
