package executor

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"sync"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/redact"
)

// capture takes a container's output as it arrives (req D2). Each stream passes the redactor first:
// bound, totals and digests are of what comes out of it, and nothing else ever sees what went in
// (req L5). What is kept of both streams together never exceeds the bound; what arrives beyond it is
// only counted and hashed.
type capture struct {
	limit    uint64
	tee      *tee
	exceeded chan struct{} // closed when more than the bound arrived
	done     chan struct{} // closed at the end of both streams, or when they broke

	mu      sync.Mutex
	streams [2]stream // stdout, stderr
	kept    uint64
	ended   bool  // end-of-stream on both
	err     error // why the streams broke
	frozen  bool  // nothing is taken any more
	any     bool  // a byte arrived, whatever the redactors made of it
}

// stream is one captured stream.
type stream struct {
	salt     evidence.Salt
	redact   *redact.Stream
	kept     []byte
	received uint64
	plain    hash.Hash // of everything received
	salted   hash.Hash // of the salt and everything received
}

func newCapture(limit uint64, stdout, stderr evidence.Salt, r *redact.Redactor, t *tee) *capture {
	c := &capture{limit: limit, tee: t, exceeded: make(chan struct{}), done: make(chan struct{})}
	for i, salt := range []evidence.Salt{stdout, stderr} {
		c.streams[i] = stream{salt: salt, redact: r.Stream(), plain: sha256.New(), salted: sha256.New()}
		c.streams[i].salted.Write(salt[:])
	}
	return c
}

// read takes chunks until both streams end or break. The output must be closed from elsewhere to
// end it early.
func (c *capture) read(out Output) {
	defer close(c.done)
	_, err := guarded(func() (struct{}, error) {
		for {
			chunk, err := out.Next()
			if err != nil {
				return struct{}{}, err
			}
			c.take(chunk)
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, io.EOF) {
		c.flush()
		c.ended = !c.frozen
		return
	}
	c.err = err
}

func (c *capture) take(chunk Chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen || len(chunk.Bytes) == 0 {
		return
	}
	c.any = true
	i := 0
	if chunk.Stderr {
		i = 1
	}
	c.add(i, c.streams[i].redact.Push(chunk.Bytes))
}

// flush takes what the redactors still hold back. It is called with the lock held.
func (c *capture) flush() {
	if c.frozen {
		return
	}
	for i := range c.streams {
		c.add(i, c.streams[i].redact.Close())
	}
}

// add counts, hashes and keeps bytes that left the redactor. It is called with the lock held.
func (c *capture) add(i int, b []byte) {
	s := &c.streams[i]
	s.received += uint64(len(b))
	s.plain.Write(b)
	s.salted.Write(b)
	room := min(c.limit-c.kept, uint64(len(b)))
	s.kept = append(s.kept, b[:room]...)
	c.kept += room
	c.tee.push(i == 1, b[:room])
	if room < uint64(len(b)) {
		select {
		case <-c.exceeded:
		default:
			close(c.exceeded)
		}
	}
}

// over reports whether more than the bound arrived.
func (c *capture) over() bool {
	select {
	case <-c.exceeded:
		return true
	default:
		return false
	}
}

// arrived reports whether anything arrived at all.
func (c *capture) arrived() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.any
}

// failure is why the streams broke before their end, nil while they didn't.
func (c *capture) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// result freezes the capture and returns what to keep and what to say of it. It may be called
// before the streams ended: then they have no end.
func (c *capture) result(h evidence.HandleKey) (evidence.OutputCaptured, []evidence.Withholdable) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
	c.frozen = true
	stdout, keepOut := c.streams[0].result(c.ended)
	stderr, keepErr := c.streams[1].result(c.ended)
	e := evidence.OutputCaptured{Handle: h, Stdout: stdout, Stderr: stderr}
	switch {
	case c.over():
		e.Code = "output_limit"
	case c.err != nil:
		e.Code = "stream_error"
	case !c.ended:
		e.Code = "no_end_of_stream"
	}
	e.Incomplete = e.Code != ""
	return e, []evidence.Withholdable{keepOut, keepErr}
}

func (s *stream) result(ended bool) (evidence.Stream, evidence.Withholdable) {
	truncated := uint64(len(s.kept)) < s.received
	w := evidence.WithholdCaptured(s.kept, evidence.Descriptor{
		Salt: s.salt, Length: uint64(len(s.kept)),
		Stored: sha256.Sum256(s.kept), Received: evidence.PlainDigest(s.plain.Sum(nil)), Truncated: truncated,
		Redacted: s.redact.Redacted(),
	})
	return evidence.Stream{
		Stored: uint64(len(s.kept)), Received: s.received, Bytes: w.Ref,
		ReceivedHash: evidence.SaltedDigest(s.salted.Sum(nil)), EndOfStream: ended, Truncated: truncated,
		Redacted: s.redact.Redacted(),
	}, w
}
