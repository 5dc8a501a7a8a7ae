package sqlite

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/ledger"
)

// pageSize bounds the events read in one go. Between pages no connection and no snapshot is held,
// so a slow reader never keeps the log from being folded back.
type pageSize struct{ events, bytes int }

var (
	readPage  = pageSize{events: 512, bytes: 1 << 20}
	wholePage = pageSize{events: math.MaxInt, bytes: math.MaxInt}
)

// pollEvery is how often a subscription looks for what other processes appended.
const pollEvery = 200 * time.Millisecond

const (
	eventColumns = "SELECT idx, stream, version, type, time, media, prev, meta, data FROM events "
	selectAll    = eventColumns + "WHERE idx >= ? ORDER BY idx"
	selectStream = eventColumns + "WHERE stream = ? AND version BETWEEN ? AND ? ORDER BY version"
)

// size returns the number of events.
func (c *conn) size() (size uint64, err error) {
	_, err = c.one(func(s *sqlite3.Stmt) error {
		size = uint64(s.ColumnInt64(0)) + 1
		return s.Err()
	}, "SELECT idx FROM events ORDER BY idx DESC LIMIT 1")
	return size, err
}

// reader turns rows into events. It keeps one copy of the texts that come again and again.
type reader struct{ texts map[string]string }

// maxTexts bounds the texts kept.
const maxTexts = 4096

func (r *reader) text(raw []byte) string {
	if s, ok := r.texts[string(raw)]; ok {
		return s
	}
	if r.texts == nil || len(r.texts) >= maxTexts {
		r.texts = make(map[string]string)
	}
	s := string(raw)
	r.texts[s] = s
	return s
}

// event reads the row of eventColumns. Its bytes are one allocation.
func (r *reader) event(s *sqlite3.Stmt) (ledger.Event, error) {
	e := ledger.Event{
		Index:   ledger.Index(s.ColumnInt64(0)),
		Stream:  ledger.StreamID(r.text(s.ColumnRawText(1))),
		Version: ledger.Version(s.ColumnInt64(2)),
		Type:    r.text(s.ColumnRawText(3)),
		Time:    s.ColumnInt64(4),
		Media:   r.text(s.ColumnRawText(5)),
	}
	prev, meta, data := s.ColumnRawBlob(6), s.ColumnRawBlob(7), s.ColumnRawBlob(8)
	buf := make([]byte, 0, len(prev)+len(meta)+len(data))
	buf = append(append(append(buf, prev...), meta...), data...)
	p, m := len(prev), len(prev)+len(meta)
	e.Prev, e.Meta, e.Data = buf[:p:p], buf[p:m:m], buf[m:]
	return e, s.Err()
}

func eventBytes(e *ledger.Event) int { return len(e.Prev) + len(e.Meta) + len(e.Data) }

// allPage appends to page the events from `from`, as many as fit. They are dense.
func (c *conn) allPage(r *reader, page []ledger.Event, from ledger.Index, limit pageSize) ([]ledger.Event, error) {
	bytes := 0
	err := c.each(func(s *sqlite3.Stmt) (bool, error) {
		e, err := r.event(s)
		if err != nil {
			return false, err
		}
		if want := from + ledger.Index(len(page)); e.Index != want {
			return false, fmt.Errorf("the event at index %d is missing; the next is %d", want, e.Index)
		}
		page = append(page, e)
		bytes += eventBytes(&e)
		return len(page) < limit.events && bytes < limit.bytes, nil
	}, selectAll, int64(from))
	return page, err
}

// streamPage appends to page the stream's events of versions from..to, as many as fit. They are
// dense; it is an error if one is missing.
func (c *conn) streamPage(page []ledger.Event, stream ledger.StreamID, from, to ledger.Version, limit pageSize) ([]ledger.Event, error) {
	var r reader
	bytes, next, full := 0, from, false
	err := c.each(func(s *sqlite3.Stmt) (bool, error) {
		e, err := r.event(s)
		if err != nil {
			return false, err
		}
		if e.Version != next {
			return false, missing(stream, next)
		}
		page = append(page, e)
		next++
		bytes += eventBytes(&e)
		full = len(page) == limit.events || bytes >= limit.bytes
		return !full, nil
	}, selectStream, string(stream), int64(from), int64(to))
	if err == nil && !full && next <= to {
		err = missing(stream, next)
	}
	return page, err
}

func missing(stream ledger.StreamID, v ledger.Version) error {
	return fmt.Errorf("version %s of stream %s is missing; the file is damaged", v, stream)
}

// lastVersion returns the version of the stream's last event, or NoStream.
func (c *conn) lastVersion(stream ledger.StreamID) (ledger.Version, error) {
	last := ledger.NoStream
	_, err := c.one(func(s *sqlite3.Stmt) error {
		last = ledger.Version(s.ColumnInt64(0))
		return s.Err()
	}, "SELECT version FROM events WHERE stream = ? ORDER BY version DESC LIMIT 1", string(stream))
	return last, err
}

// ReadStream implements ledger.Store. It ends with the event that was last when it began.
func (s *Store) ReadStream(ctx context.Context, stream ledger.StreamID, from ledger.Version) iter.Seq2[ledger.Event, error] {
	return func(yield func(ledger.Event, error) bool) {
		if _, err := ledger.ParseStreamID(string(stream)); err != nil {
			yield(ledger.Event{}, err)
			return
		}
		var page []ledger.Event
		next, last := max(from, 0), ledger.NoStream
		for first := true; first || next <= last; first = false {
			page = page[:0] // also when the read doesn't come to pass
			err := s.read(ctx, func(c *conn) (err error) {
				if first {
					if last, err = c.lastVersion(stream); err != nil || next > last {
						return err
					}
				}
				page, err = c.streamPage(page, stream, next, last, readPage)
				return err
			})
			if !yieldPage(page, err, yield) {
				return
			}
			next += ledger.Version(len(page))
		}
	}
}

// ReadAll implements ledger.Store. It ends with the event that was last when it began.
func (s *Store) ReadAll(ctx context.Context, from ledger.Index) iter.Seq2[ledger.Event, error] {
	return func(yield func(ledger.Event, error) bool) {
		size, err := s.Size(ctx)
		if err != nil {
			yield(ledger.Event{}, err)
			return
		}
		p := pages{s: s, next: from}
		for uint64(p.next) < size {
			page, err := p.read(ctx)
			if reached := uint64(p.next); reached > size { // others were appended meanwhile
				page = page[:uint64(len(page))-(reached-size)]
			}
			if !yieldPage(page, err, yield) {
				return
			}
		}
	}
}

// Subscribe implements ledger.Store.
func (s *Store) Subscribe(ctx context.Context, from ledger.Index) iter.Seq2[ledger.Event, error] {
	return func(yield func(ledger.Event, error) bool) {
		poll := time.NewTicker(pollEvery)
		defer poll.Stop()
		p := pages{s: s, next: from}
		for {
			grown := s.growth.next() // before reading, so that nothing falls between
			page, err := p.read(ctx)
			if !yieldPage(page, err, yield) {
				return
			}
			if len(page) > 0 {
				continue
			}
			select {
			case <-ctx.Done():
				yield(ledger.Event{}, ctx.Err())
				return
			case <-s.closing:
				yield(ledger.Event{}, ErrClosed)
				return
			case <-grown:
			case <-poll.C:
			}
		}
	}
}

// pages reads all events, a page at a time.
type pages struct {
	s      *Store
	next   ledger.Index
	reader reader
	buf    []ledger.Event
}

// read returns the next page, empty at the end. It is valid until the next read.
func (p *pages) read(ctx context.Context) ([]ledger.Event, error) {
	if p.next > math.MaxInt64 {
		return nil, ctx.Err() // beyond any index SQLite can hold
	}
	p.buf = p.buf[:0] // also when the read doesn't come to pass
	err := p.s.read(ctx, func(c *conn) (err error) {
		p.buf, err = c.allPage(&p.reader, p.buf, p.next, readPage)
		return err
	})
	p.next += ledger.Index(len(p.buf))
	return p.buf, err
}

// yieldPage hands out what was read, then the error that ended the reading.
func yieldPage(page []ledger.Event, err error, yield func(ledger.Event, error) bool) bool {
	for _, e := range page {
		if !yield(e, nil) {
			return false
		}
	}
	if err != nil {
		yield(ledger.Event{}, err)
		return false
	}
	return true
}

// Head implements ledger.Store.
func (s *Store) Head(ctx context.Context, stream ledger.StreamID) (last ledger.Event, ok bool, err error) {
	if _, err := ledger.ParseStreamID(string(stream)); err != nil {
		return ledger.Event{}, false, err
	}
	err = s.read(ctx, func(c *conn) error {
		var r reader
		ok, err = c.one(func(s *sqlite3.Stmt) (err error) {
			last, err = r.event(s)
			return err
		}, eventColumns+"WHERE stream = ? ORDER BY version DESC LIMIT 1", string(stream))
		return err
	})
	return last, ok && err == nil, err
}
