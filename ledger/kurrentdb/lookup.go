package kurrentdb

import (
	"fmt"
	"math"

	"github.com/ncruces/go-sqlite3"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
)

// What the cache is asked.

func (c *cache) size() (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) > 0 {
		return c.tree.Size(), nil
	}
	return c.sizeNow()
}

func (c *cache) sizeNow() (size uint64, err error) {
	_, err = c.c.one(func(s *sqlite3.Stmt) error { size = uint64(s.ColumnInt64(0)) + 1; return nil },
		"SELECT idx FROM leaves ORDER BY idx DESC LIMIT 1")
	return size, err
}

// version is the last one the cache knows of a stream.
func (c *cache) version(stream ledger.StreamID) (ledger.Version, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, ok := c.heads[stream]; ok {
		return h.Version, nil
	}
	last := ledger.NoStream
	_, err := c.c.one(func(s *sqlite3.Stmt) error { last = ledger.Version(s.ColumnInt64(0)); return nil },
		"SELECT version FROM leaves WHERE stream = ? ORDER BY version DESC LIMIT 1", string(stream))
	return last, err
}

const placeColumns = "SELECT idx, commits, prepares, nodes FROM leaves "

func placeOf(s *sqlite3.Stmt) (p place, err error) {
	p.index = ledger.Index(s.ColumnInt64(0))
	p.position = esdb.Position{Commit: uint64(s.ColumnInt64(1)), Prepare: uint64(s.ColumnInt64(2))}
	p.leaf, err = leafAt(s, 3)
	return p, err
}

func (c *cache) place(stream ledger.StreamID, v ledger.Version) (place, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.placeNow(stream, v)
}

func (c *cache) placeNow(stream ledger.StreamID, v ledger.Version) (place, bool, error) {
	if p, ok := c.recent[spot{stream, v}]; ok {
		return p, true, nil
	}
	return c.stored(stream, v)
}

// stored is a row of the file.
func (c *cache) stored(stream ledger.StreamID, v ledger.Version) (p place, ok bool, err error) {
	ok, err = c.c.one(func(s *sqlite3.Stmt) (err error) { p, err = placeOf(s); return err },
		placeColumns+"WHERE stream = ? AND version = ?", string(stream), int64(v))
	return p, ok, err
}

// places appends those of versions from..to to dst, as far as the cache goes.
func (c *cache) places(dst []place, stream ledger.StreamID, from, to ledger.Version) ([]place, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for v := from; v <= to; v++ {
		p, ok := c.recent[spot{stream, v}]
		if !ok {
			break
		}
		dst = append(dst, p)
	}
	if len(dst) == int(to-from)+1 {
		return dst, nil
	}
	if h, ok := c.heads[stream]; ok && h.Version < to {
		return dst[:0], nil // not there yet
	}
	if err := c.flush(); err != nil {
		return nil, err
	}
	dst = dst[:0]
	err := c.c.each(func(s *sqlite3.Stmt) error {
		p, err := placeOf(s)
		dst = append(dst, p)
		return err
	}, placeColumns+"WHERE stream = ? AND version BETWEEN ? AND ? ORDER BY version", string(stream), int64(from), int64(to))
	return dst, err
}

// from appends the places of n events from an index on to dst, as far as the cache goes.
func (c *cache) from(dst []place, index ledger.Index, n int) ([]place, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) > 0 && index >= c.pending[0].index {
		for i := index - c.pending[0].index; int(i) < len(c.pending) && n > 0; i, n = i+1, n-1 {
			dst = append(dst, c.pending[i].place)
		}
		return dst, nil
	}
	if index > math.MaxInt64>>1 {
		return dst, nil // beyond any tree
	}
	if err := c.flush(); err != nil {
		return nil, err
	}
	err := c.c.each(func(s *sqlite3.Stmt) error {
		p, err := placeOf(s)
		dst = append(dst, p)
		return err
	}, placeColumns+"WHERE idx >= ? AND idx < ? ORDER BY idx", int64(index), int64(index)+int64(n))
	return dst, err
}

// last is the last event's place, with its stream and version.
func (c *cache) last() (e ledger.Event, p place, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.flush(); err != nil {
		return e, p, false, err
	}
	ok, err = c.c.one(func(s *sqlite3.Stmt) (err error) {
		p, err = placeOf(s)
		e = ledger.Event{Index: p.index, Stream: ledger.StreamID(s.ColumnText(4)), Version: ledger.Version(s.ColumnInt64(5))}
		return err
	}, "SELECT idx, commits, prepares, nodes, stream, version FROM leaves ORDER BY idx DESC LIMIT 1")
	return e, p, ok, err
}

// hidden lists the streams whose metadata hid events when it last arrived.
func (c *cache) hidden() (streams []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.c.each(func(s *sqlite3.Stmt) error { streams = append(streams, s.ColumnText(0)); return nil },
		"SELECT stream FROM hidden ORDER BY stream")
	return streams, err
}

// read is a ledger.NodeReader.
func (c *cache) read(nodes []ledger.Node) ([]ledger.Hash, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.flush(); err != nil {
		return nil, err
	}
	return c.readNodes(nodes)
}

func (c *cache) readNodes(nodes []ledger.Node) ([]ledger.Hash, error) {
	out := make([]ledger.Hash, len(nodes))
	for i, n := range nodes {
		found, err := c.c.one(func(s *sqlite3.Stmt) error {
			raw, at := s.ColumnRawBlob(0), int(n.Level)*len(ledger.Hash{})
			if len(raw) < at+len(ledger.Hash{}) {
				return fmt.Errorf("the ledger's cache lacks the hash of level %d at index %d; delete it, and it is made again", n.Level, n.Completed())
			}
			out[i] = ledger.Hash(raw[at:][:len(ledger.Hash{})])
			return nil
		}, "SELECT nodes FROM leaves WHERE idx = ?", int64(n.Completed()))
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, fmt.Errorf("the ledger's cache lacks index %d; delete it, and it is made again", n.Completed())
		}
	}
	return out, nil
}
