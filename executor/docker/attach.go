package docker

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/docker/docker/client"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// Attach opens stdout and stderr. ctx bounds the handshake only; Close ends the stream.
//
// The handshake is made here rather than by the client, whose own has no deadline and loses the
// status of a refusal.
func (d *Driver) Attach(ctx context.Context, id evidence.ContainerID) (executor.Output, error) {
	version, err := d.pin(ctx)
	if err != nil {
		return nil, err
	}
	c := &call{name: "attach", limit: maxReply}
	out, err := d.attach(ctx, c, version, id)
	if err != nil {
		return nil, orAbsent(c, c.fault(err), id)
	}
	return out, nil
}

func (d *Driver) attach(ctx context.Context, c *call, version string, id evidence.ContainerID) (_ *output, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.by.control)
	defer cancel()
	conn, err := d.via(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if err != nil {
			conn.Close()
			err = late(ctx, d.by.control, err)
		}
	}()
	url := fmt.Sprintf("http://%s/v%s/containers/%s/attach?stream=1&stdout=1&stderr=1", client.DummyHost, version, id.Hex())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "tcp")
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	// A header longer than the buffer can grow only to the bound: the reader ends there.
	bound := &io.LimitedReader{R: conn, N: maxReplyHeader}
	r := bufio.NewReaderSize(bound, frameBuffer)
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, err
	}
	c.status = resp.StatusCode
	if resp.StatusCode != http.StatusSwitchingProtocols {
		bound.N = maxReply
		resp.Body = &boundedBody{body: resp.Body, call: c, left: maxReply, cancel: func(error) {}}
		c.readMessage(resp)
		return nil, fmt.Errorf("status %d instead of an open stream", resp.StatusCode)
	}
	bound.N = 1<<63 - 1
	if !stop() {
		return nil, ctx.Err()
	}
	return &output{conn: conn, r: r, buf: make([]byte, frameBuffer)}, nil
}

// output reads the daemon's multiplexed stream: frames of an 8-byte header {stream, 0, 0, 0, big-endian
// uint32 length} and that many bytes. Docker Engine API, ContainerAttach.
type output struct {
	conn   net.Conn
	r      *bufio.Reader
	buf    []byte
	stderr bool
	left   uint32 // bytes of the current frame still to come
	err    error  // sticky
}

// Stream numbers of a frame. Stdin (0) and the daemon's own errors (3) never belong to output.
const (
	frameStdout      = 1
	frameStderr      = 2
	frameSystemError = 3
)

// Next returns the next piece of a frame. io.EOF comes only between frames: the daemon closes the
// connection when both streams of the container have reached their end.
func (o *output) Next() (executor.Chunk, error) {
	for o.err == nil && o.left == 0 {
		o.err = o.header()
	}
	if o.err != nil {
		return executor.Chunk{}, o.err
	}
	n, err := o.r.Read(o.buf[:min(uint32(len(o.buf)), o.left)])
	if n == 0 && err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		o.err = fmt.Errorf("output ended inside a frame: %w", err)
		return executor.Chunk{}, o.err
	}
	o.left -= uint32(n)
	return executor.Chunk{Stderr: o.stderr, Bytes: o.buf[:n]}, nil
}

func (o *output) header() error {
	var h [8]byte
	switch _, err := io.ReadFull(o.r, h[:]); {
	case err == io.EOF:
		return io.EOF
	case err != nil:
		return fmt.Errorf("output ended inside a frame header: %w", err)
	}
	o.left = binary.BigEndian.Uint32(h[4:])
	switch {
	case h[1] != 0 || h[2] != 0 || h[3] != 0:
		return fmt.Errorf("malformed output frame header %x", h)
	case o.left > maxFrame:
		return fmt.Errorf("%w: output frame of %d bytes, at most %d", errTooLarge, o.left, maxFrame)
	case h[0] == frameSystemError:
		return errors.New("the daemon reported an error in the output stream")
	case h[0] != frameStdout && h[0] != frameStderr:
		return fmt.Errorf("output frame of unknown stream %d", h[0])
	}
	o.stderr = h[0] == frameStderr
	return nil
}

// Close ends the stream. It may be called while Next waits, which then fails.
func (o *output) Close() error { return o.conn.Close() }
