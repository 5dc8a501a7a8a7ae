package redact

import (
	"cmp"
	"slices"
)

// Stream redacts one text that arrives in chunks. It isn't safe for concurrent use.
type Stream struct {
	scanners []*scanner
	buf      []byte // what was pushed and not yet handed out
	base     int64  // the place of its first byte
	covered  int64  // where the last run of redacted bytes ends; -1 before the first
	pending  []interval
	out      []byte
	redacted bool
	closed   bool
}

// Push takes the next chunk and returns what is certain by now. The result is valid until the next
// call and may share the chunk's bytes. Nothing may be pushed after Close.
func (s *Stream) Push(chunk []byte) []byte {
	if s.closed {
		panic("redact: push after close")
	}
	if len(s.scanners) == 0 {
		return chunk
	}
	s.out = s.out[:0]
	for len(chunk) > 0 {
		n := min(len(chunk), block)
		s.buf = append(s.buf, chunk[:n]...)
		chunk = chunk[n:]
		s.work(false)
	}
	return s.out
}

// Close ends the text and returns the rest of it.
func (s *Stream) Close() []byte {
	if s.closed {
		return nil
	}
	s.closed = true
	s.out = s.out[:0]
	s.work(true)
	return s.out
}

// Redacted reports whether anything was taken out of what was returned so far.
func (s *Stream) Redacted() bool { return s.redacted }

// Held is how many bytes are held back.
func (s *Stream) Held() int { return len(s.buf) }

func (s *Stream) work(end bool) {
	settled := s.base + int64(len(s.buf))
	for _, sc := range s.scanners {
		sc.scan(s.buf, s.base, end)
		s.pending = append(s.pending, sc.found...)
		sc.found = sc.found[:0]
		if !end {
			settled = min(settled, sc.settled(s.buf, s.base))
		}
	}
	slices.SortFunc(s.pending, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	done := 0
	for _, i := range s.pending {
		if i.from >= settled {
			break
		}
		done++
		if i.from > s.covered {
			s.hand(i.from)
			s.out = append(s.out, Marker...)
			s.redacted = true
		}
		s.covered = max(s.covered, i.to)
	}
	s.pending = slices.Delete(s.pending, 0, done)
	s.hand(settled)
	s.buf = slices.Delete(s.buf, 0, int(settled-s.base))
	s.base = settled
}

// hand appends the bytes before a place that no run covers.
func (s *Stream) hand(to int64) {
	from := max(s.base, s.covered)
	if from < to {
		s.out = append(s.out, s.buf[from-s.base:to-s.base]...)
	}
}
