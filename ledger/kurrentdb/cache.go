package kurrentdb

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
)

//go:embed cache.sql
var cacheSchema string

const (
	cacheID   = 0x4261696b // application_id: "Baik"
	cacheForm = 1
)

// cache holds the tree and the place of every event, numbered as they came in $all. Nothing in it
// needs to be durable: what a crash takes comes again.
type cache struct {
	mu    sync.Mutex
	c     *conn
	path  string // empty: in memory
	tree  ledger.Frontier
	known bool
	heads map[ledger.StreamID]ledger.Head // of streams written lately; valid while known
	nodes []ledger.Hash                   // scratch of insert

	// What arrived lately is written together, a moment later: see pending.go.
	pending []pendingLeaf
	recent  map[spot]place
	timer   *time.Timer
	failed  error // of a write that nobody waited for
	closed  bool
}

// maxHeads bounds the heads remembered.
const maxHeads = 8192

// place is where an event stands.
type place struct {
	index    ledger.Index
	leaf     ledger.Hash
	position esdb.Position
}

// arrival is something that came in the ledger's part of $all: an event, or metadata.
type arrival struct {
	position esdb.Position
	event    ledger.Event
	leaf     ledger.Hash

	metaOf string // the stream whose metadata this is; "" for an event
	why    string // how it hides events; "" when it doesn't
}

func openCache(path, ledgerName string) (*cache, error) {
	db, err := openCacheFile(path)
	if err != nil {
		return nil, fmt.Errorf("open the ledger's cache: %w", err)
	}
	c := &cache{c: &conn{db: db, stmts: map[string]*sqlite3.Stmt{}}, path: path}
	if err := c.prepare(ledgerName); err != nil {
		return nil, errors.Join(fmt.Errorf("open the ledger's cache: %w", err), c.c.close())
	}
	return c, nil
}

func openCacheFile(path string) (*sqlite3.Conn, error) {
	if path == "" {
		return sqlite3.Open(":memory:")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	query := strings.ReplaceAll(url.Values{"modeof": {path}}.Encode(), "+", "%20")
	name := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query}
	return sqlite3.OpenFlags(name.String(), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
}

func (c *cache) prepare(ledgerName string) error {
	if err := c.c.db.BusyTimeout(10 * time.Second); err != nil {
		return err
	}
	const pragmas = "PRAGMA synchronous=OFF; PRAGMA cache_size=-8000; PRAGMA trusted_schema=OFF"
	if err := c.c.db.Exec(pragmas); err != nil {
		return err
	}
	if c.path != "" {
		if err := c.c.db.Exec("PRAGMA journal_mode=WAL"); err != nil {
			return err
		}
	}
	return c.transact(func() error {
		var app, form int64
		for sql, to := range map[string]*int64{"PRAGMA application_id": &app, "PRAGMA user_version": &form} {
			if _, err := c.c.one(func(s *sqlite3.Stmt) error { *to = s.ColumnInt64(0); return nil }, sql); err != nil {
				return err
			}
		}
		if app == 0 && form == 0 {
			if err := c.c.db.Exec(fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d; %s", cacheID, cacheForm, cacheSchema)); err != nil {
				return err
			}
			return c.c.run("INSERT INTO about (ledger) VALUES (?)", ledgerName)
		}
		if app != cacheID || form != cacheForm {
			return fmt.Errorf("%s is no cache that this version knows; delete it, and it is made again", c.path)
		}
		var of string
		if _, err := c.c.one(func(s *sqlite3.Stmt) error { of = s.ColumnText(0); return nil }, "SELECT ledger FROM about"); err != nil {
			return err
		}
		if of != ledgerName {
			return fmt.Errorf("%s is the cache of ledger %q, not of %q; name another, or delete it", c.path, of, ledgerName)
		}
		return nil
	})
}

// transact runs f in a transaction that may write. The caller holds the lock, or is alone.
func (c *cache) transact(f func() error) error {
	if err := c.c.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = c.c.run("COMMIT")
	}
	if err != nil && !c.c.db.GetAutocommit() {
		c.known = false
		err = errors.Join(err, c.c.run("ROLLBACK"))
	}
	return err
}

// take adds what arrived, in order. What another process added before is compared instead. It
// fails with *ledger.DamagedError where something can't follow; what came before that is kept.
func (c *cache) take(arrivals []arrival) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.failed; err != nil {
		c.failed = nil
		return err
	}
	if len(c.pending) == 0 {
		if err := c.refresh(); err != nil {
			return err
		}
	}
	for i := range arrivals {
		a := &arrivals[i]
		var err error
		switch {
		case a.metaOf == "":
			err = c.event(a)
		case a.why == "":
			err = c.c.run("DELETE FROM hidden WHERE stream = ?", a.metaOf)
		default:
			err = c.c.run("INSERT OR REPLACE INTO hidden (stream, why) VALUES (?, ?)", a.metaOf, a.why)
		}
		if err != nil {
			return err
		}
	}
	if len(c.pending) >= maxPending {
		return c.flush()
	}
	return nil
}

// refresh reads the tree's edge again if another process added events.
func (c *cache) refresh() error {
	size, err := c.sizeNow()
	if err != nil {
		return err
	}
	if c.known && c.tree.Size() == size {
		return nil
	}
	c.heads = nil
	if c.tree, err = ledger.FrontierFrom(size, c.readNodes); err != nil {
		return err
	}
	c.known = true
	return nil
}

func (c *cache) event(a *arrival) error {
	e := &a.event
	head, err := c.head(e.Stream)
	if err != nil {
		return err
	}
	bad := func(what string) error {
		return &ledger.DamagedError{What: fmt.Sprintf("index %d, stream %s, version %s: %s", c.tree.Size(), e.Stream, e.Version, what)}
	}
	if e.Version <= head.Version {
		p, ok, err := c.placeNow(e.Stream, e.Version)
		if err == nil && ok && uint64(p.index) >= c.tree.Size() { // another process is ahead
			if err = c.flush(); err == nil {
				err = c.refresh()
			}
		}
		if err != nil {
			return err
		}
		if !ok || p.leaf != a.leaf || p.position != a.position {
			return bad("the cluster shows another event here than before: its log was replaced")
		}
		return nil
	}
	if e.Version != head.Version+1 {
		return bad(fmt.Sprintf("expected version %s next: events are hidden or lost", head.Version+1))
	}
	if chained, _ := ledger.Chain(e.Stream, head, e.Prepared()); string(chained[0].Prev) != string(e.Prev) {
		return bad("it doesn't name its predecessor: one of the two was changed")
	}
	if a.position.Commit > math.MaxInt64 || a.position.Prepare > math.MaxInt64 {
		return bad(fmt.Sprintf("the server gives no position in $all (%d)", a.position.Commit))
	}
	return c.insert(a)
}

// head is the stream's last event, as far as the cache goes.
func (c *cache) head(stream ledger.StreamID) (ledger.Head, error) {
	if h, ok := c.heads[stream]; ok {
		return h, nil
	}
	h := ledger.EmptyHead
	_, err := c.c.one(func(s *sqlite3.Stmt) (err error) {
		h.Version = ledger.Version(s.ColumnInt64(0))
		h.Leaf, err = leafAt(s, 1)
		return err
	}, "SELECT version, nodes FROM leaves WHERE stream = ? ORDER BY version DESC LIMIT 1", string(stream))
	return h, err
}

func leafAt(s *sqlite3.Stmt, column int) (h ledger.Hash, err error) {
	raw := s.ColumnRawBlob(column)
	if len(raw) < len(h) {
		return h, errors.New("the ledger's cache is damaged; delete it, and it is made again")
	}
	return ledger.Hash(raw[:len(h)]), s.Err()
}

// close closes the file.
func (c *cache) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	err := c.flush()
	c.closed = true
	return errors.Join(err, c.c.close())
}
