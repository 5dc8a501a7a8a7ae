package kurrentdb

import (
	"fmt"
	"time"

	"github.com/baildock/baildock/ledger"
)

// A transaction for each event would cost more than the event's way over the network. So what
// arrives is known at once, from memory, and written in one go a moment later, or when somebody asks
// what only the file can answer. A crash in between loses nothing that doesn't come again.
const (
	maxPending = 512
	flushAfter = 50 * time.Millisecond
)

// pendingLeaf is a row that isn't written yet.
type pendingLeaf struct {
	place
	spot
	nodes []byte
}

// spot is an event's place in its stream.
type spot struct {
	stream  ledger.StreamID
	version ledger.Version
}

// insert gives an event its index. The caller holds the lock and has judged it.
func (c *cache) insert(a *arrival) error {
	if len(c.heads) >= maxHeads { // those of pending rows are needed
		if err := c.flush(); err != nil {
			return err
		}
		c.heads = nil
	}
	e := &a.event
	p := pendingLeaf{
		place: place{index: ledger.Index(c.tree.Size()), leaf: a.leaf, position: a.position},
		spot:  spot{e.Stream, e.Version},
	}
	c.nodes = c.tree.AppendNodes(c.nodes[:0], a.leaf)
	p.nodes = make([]byte, 0, len(c.nodes)*len(a.leaf))
	for i := range c.nodes {
		p.nodes = append(p.nodes, c.nodes[i][:]...)
	}
	if c.heads == nil {
		c.heads = make(map[ledger.StreamID]ledger.Head)
	}
	if c.recent == nil {
		c.recent = make(map[spot]place)
	}
	c.heads[e.Stream] = ledger.Head{Version: e.Version, Leaf: a.leaf}
	c.recent[p.spot] = p.place
	c.pending = append(c.pending, p)
	if len(c.pending) == 1 {
		c.timer = time.AfterFunc(flushAfter, c.flushLate)
	}
	return nil
}

func (c *cache) flushLate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.flush(); err != nil {
		c.failed = err // the next take tells
	}
}

// flush writes what is pending. Rows that another process wrote meanwhile are compared. The caller
// holds the lock.
func (c *cache) flush() error {
	if len(c.pending) == 0 || c.closed {
		return nil
	}
	err := c.transact(func() error {
		size, err := c.sizeNow()
		if err != nil {
			return err
		}
		for i := range c.pending {
			p := &c.pending[i]
			if uint64(p.index) < size {
				err = c.compare(p)
			} else {
				err = c.c.run("INSERT INTO leaves (idx, stream, version, commits, prepares, nodes) VALUES (?, ?, ?, ?, ?, ?)",
					int64(p.index), string(p.stream), int64(p.version), int64(p.position.Commit), int64(p.position.Prepare), p.nodes)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		c.known = true // what is in memory still is what arrived
		return err
	}
	clear(c.pending)
	c.pending = c.pending[:0]
	if len(c.recent) > 4*maxPending {
		c.recent = nil
	}
	return nil
}

func (c *cache) compare(p *pendingLeaf) error {
	at, ok, err := c.stored(p.stream, p.version)
	if err == nil && (!ok || at != p.place) {
		err = &ledger.DamagedError{What: fmt.Sprintf("index %d: another process saw something else there: the cluster shows two histories", p.index)}
	}
	return err
}
