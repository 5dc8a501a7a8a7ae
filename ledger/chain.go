package ledger

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
)

// Head is the end of a stream: its last event's version and leaf hash. A stream without events
// has EmptyHead.
type Head struct {
	Version Version
	Leaf    Hash
}

// EmptyHead is the head of a stream without events.
var EmptyHead = Head{Version: NoStream}

// Head returns the head of a stream that ends with e.
func (e Event) Head() Head { return Head{Version: e.Version, Leaf: e.Leaf()} }

// prev is what the next event of the stream carries.
func (h Head) prev() []byte {
	if h.Version == NoStream {
		return []byte{}
	}
	return bytes.Clone(h.Leaf[:])
}

// Chain returns the events that appending `prepared` behind `head` makes, with their leaf hashes.
// It is pure: it doesn't know the indexes, which stay 0. Byte slices are shared with `prepared`.
func Chain(stream StreamID, head Head, prepared ...Prepared) ([]Event, []Hash) {
	events := make([]Event, len(prepared))
	leaves := make([]Hash, len(prepared))
	var hasher leafHasher
	for i, p := range prepared {
		events[i] = Event{
			Stream: stream, Version: head.Version + 1, Prev: head.prev(),
			Type: p.Type, Time: p.Time, Media: p.Media, Meta: p.Meta, Data: p.Data,
		}
		leaves[i] = hasher.sum(&events[i])
		head = Head{Version: events[i].Version, Leaf: leaves[i]}
	}
	return events, leaves
}

// Checker checks the bytes of a whole ledger in one pass: feed it every event in index order from
// 0. It checks that indexes are dense, that each stream's versions are dense and unique, and that
// each event carries the leaf hash of its predecessor; and it computes the tree's root. It keeps
// one head per stream. It isn't safe for concurrent use.
type Checker struct {
	heads  map[StreamID]*Head
	tree   Frontier
	hasher leafHasher
	nodes  []Hash // of take
}

// NewChecker returns a checker that expects index 0.
func NewChecker() *Checker { return &Checker{heads: make(map[StreamID]*Head)} }

// Check takes the next event and returns its leaf hash. It fails with *ChainError and then leaves
// the checker as it was.
func (c *Checker) Check(e Event) (Hash, error) {
	if err := c.follows(&e); err != nil {
		return Hash{}, err
	}
	leaf := c.hasher.sum(&e)
	c.take(&e, leaf)
	return leaf, nil
}

// follows checks that e may come next.
func (c *Checker) follows(e *Event) error {
	if uint64(e.Index) != c.tree.Size() {
		return chainError(*e, "index", decimal(c.tree.Size()), decimal(uint64(e.Index)))
	}
	head := EmptyHead
	if h := c.heads[e.Stream]; h != nil {
		head = *h
	}
	if e.Version != head.Version+1 {
		return chainError(*e, "version", (head.Version + 1).String(), e.Version.String())
	}
	if e.Version == 0 && len(e.Prev) != 0 || e.Version > 0 && !bytes.Equal(e.Prev, head.Leaf[:]) {
		return chainError(*e, "prev", hex.EncodeToString(head.prev()), hex.EncodeToString(e.Prev))
	}
	return nil
}

// take moves on behind e and returns the tree nodes it completes, valid until the next call.
func (c *Checker) take(e *Event, leaf Hash) []Hash {
	head := c.heads[e.Stream]
	if head == nil {
		head = new(Head)
		c.heads[e.Stream] = head
	}
	*head = Head{Version: e.Version, Leaf: leaf}
	c.nodes = c.tree.AppendNodes(c.nodes[:0], leaf)
	return c.nodes
}

// Size returns the number of events checked so far.
func (c *Checker) Size() uint64 { return c.tree.Size() }

// Root returns the root of the tree over the events checked so far.
func (c *Checker) Root() Hash { return c.tree.Root() }

// Head returns the head of a stream among the events checked so far.
func (c *Checker) Head(stream StreamID) Head {
	if h := c.heads[stream]; h != nil {
		return *h
	}
	return EmptyHead
}

// ChainError names the first event that doesn't follow from those before it.
type ChainError struct {
	Index    Index
	Stream   StreamID
	Version  Version
	Field    string // index, version or prev
	Expected string
	Found    string
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("bad event at index %d (stream %s, version %s): %s is %q, expected %q",
		e.Index, e.Stream, e.Version, e.Field, e.Found, e.Expected)
}

func chainError(e Event, field, expected, found string) *ChainError {
	return &ChainError{Index: e.Index, Stream: e.Stream, Version: e.Version, Field: field, Expected: expected, Found: found}
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
