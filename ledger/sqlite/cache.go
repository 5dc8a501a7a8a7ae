package sqlite

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/ledger"
)

// cachedHeads bounds each of the two halves of the head cache.
const cachedHeads = 4096

// headCache remembers stream heads. It forgets those not used for a while: a full half becomes
// the old one, and what is used again moves back.
type headCache struct {
	fresh, old map[ledger.StreamID]ledger.Head
}

func (c *headCache) get(stream ledger.StreamID) (ledger.Head, bool) {
	h, ok := c.fresh[stream]
	if !ok {
		if h, ok = c.old[stream]; ok {
			c.put(stream, h)
		}
	}
	return h, ok
}

func (c *headCache) put(stream ledger.StreamID, h ledger.Head) {
	if c.fresh == nil || len(c.fresh) >= cachedHeads {
		c.fresh, c.old = make(map[ledger.StreamID]ledger.Head), c.fresh
	}
	c.fresh[stream] = h
}

// forget drops all that was cached.
func (w *writer) forget() {
	w.known = false
	w.heads = headCache{}
}

// refresh compares the cached tree with the file's, inside the transaction, and reads it again if
// another process wrote since.
func (w *writer) refresh() error {
	size, err := w.conn.size()
	if err != nil {
		return err
	}
	if w.known && w.tree.Size() == size {
		return nil
	}
	w.forget()
	if w.tree, err = ledger.FrontierFrom(size, w.conn.readNodes); err != nil {
		return err
	}
	w.known = true
	return nil
}

// head returns the stream's head as the open transaction sees it.
func (w *writer) head(stream ledger.StreamID) (ledger.Head, error) {
	if h, ok := w.heads.get(stream); ok {
		return h, nil
	}
	h := ledger.EmptyHead
	_, err := w.conn.one(func(s *sqlite3.Stmt) error {
		leaf := s.ColumnRawBlob(1)
		if len(leaf) < len(h.Leaf) {
			return fmt.Errorf("the last event of stream %s has no leaf hash; the file is damaged", stream)
		}
		h = ledger.Head{Version: ledger.Version(s.ColumnInt64(0)), Leaf: ledger.Hash(leaf[:len(h.Leaf)])}
		return s.Err()
	}, "SELECT version, nodes FROM events WHERE stream = ? ORDER BY version DESC LIMIT 1", string(stream))
	if err != nil {
		return h, err
	}
	w.heads.put(stream, h)
	return h, nil
}
