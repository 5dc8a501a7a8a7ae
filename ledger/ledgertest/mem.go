package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/baildock/baildock/ledger"
)

// errClosed is what a closed store answers.
var errClosed = errors.New("ledger is closed")

// Mem is a whole ledger in memory. It keeps the contract except durability.
type Mem struct {
	mu          sync.RWMutex
	closed      bool
	grown       chan struct{} // closed and replaced by every append
	events      []ledger.Event
	nodes       [][]ledger.Hash // by leaf: the nodes it completes
	tree        ledger.Frontier
	streams     map[ledger.StreamID][]ledger.Index
	checkpoints []ledger.Checkpoint
	blobs       map[ledger.BlobKey]ledger.Blob
	forgotten   map[ledger.BlobKey]bool
}

var _ ledger.Ledger = (*Mem)(nil)

// NewMem returns an empty ledger in memory.
func NewMem() ledger.Ledger {
	return &Mem{
		grown:     make(chan struct{}),
		streams:   make(map[ledger.StreamID][]ledger.Index),
		blobs:     make(map[ledger.BlobKey]ledger.Blob),
		forgotten: make(map[ledger.BlobKey]bool),
	}
}

// ready is the check every method starts with.
func (m *Mem) ready(ctx context.Context) error {
	if m.closed {
		return errClosed
	}
	return ctx.Err()
}

func (m *Mem) Append(ctx context.Context, stream ledger.StreamID, expected ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	if err := ledger.CheckAppend(stream, expected, events); err != nil {
		return ledger.Appended{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return ledger.Appended{}, err
	}
	at := m.streams[stream]
	if actual := ledger.Version(len(at)) - 1; actual != expected {
		if first, ok := m.retried(at, expected, events); ok {
			return ledger.Appended{Events: first}, nil
		}
		return ledger.Appended{}, &ledger.ConflictError{Stream: stream, Expected: expected, Actual: actual}
	}
	head := ledger.EmptyHead
	if len(at) > 0 {
		last := at[len(at)-1]
		head = ledger.Head{Version: expected, Leaf: m.nodes[last][0]}
	}
	added, leaves := ledger.Chain(stream, head, copied(events)...)
	for i := range added {
		added[i].Index = ledger.Index(len(m.events))
		m.events = append(m.events, added[i])
		m.nodes = append(m.nodes, m.tree.AppendNodes(nil, leaves[i]))
		m.streams[stream] = append(m.streams[stream], added[i].Index)
	}
	close(m.grown)
	m.grown = make(chan struct{})
	return ledger.Appended{Events: clones(added)}, nil
}

// retried returns the stored events behind `expected` if they are exactly those offered.
func (m *Mem) retried(at []ledger.Index, expected ledger.Version, events []ledger.Prepared) ([]ledger.Event, bool) {
	last := ledger.Version(len(at)) - 1
	if expected > last || last-expected < ledger.Version(len(events)) {
		return nil, false
	}
	first := int(expected) + 1
	stored := make([]ledger.Event, len(events))
	for i, p := range events {
		stored[i] = m.events[at[first+i]]
		if !stored[i].Holds(p) {
			return nil, false
		}
	}
	return clones(stored), true
}

// copied keeps what the caller does to its slices later out of the store.
func copied(in []ledger.Prepared) []ledger.Prepared {
	out := slices.Clone(in)
	for i := range out {
		out[i].Meta, out[i].Data = slices.Clone(out[i].Meta), slices.Clone(out[i].Data)
	}
	return out
}

func clones(in []ledger.Event) []ledger.Event {
	out := make([]ledger.Event, len(in))
	for i := range in {
		out[i] = clone(in[i])
	}
	return out
}

func clone(e ledger.Event) ledger.Event {
	e.Prev, e.Meta, e.Data = slices.Clone(e.Prev), slices.Clone(e.Meta), slices.Clone(e.Data)
	return e
}

func (m *Mem) ReadStream(ctx context.Context, stream ledger.StreamID, from ledger.Version) iter.Seq2[ledger.Event, error] {
	return func(yield func(ledger.Event, error) bool) {
		if _, err := ledger.ParseStreamID(string(stream)); err != nil {
			yield(ledger.Event{}, err)
			return
		}
		m.mu.RLock()
		at := m.streams[stream]
		m.mu.RUnlock()
		for v := int64(max(from, 0)); v < int64(len(at)); v++ {
			if !m.yield(ctx, at[v], yield) {
				return
			}
		}
		m.yieldEnd(ctx, yield)
	}
}

func (m *Mem) ReadAll(ctx context.Context, from ledger.Index) iter.Seq2[ledger.Event, error] {
	return func(yield func(ledger.Event, error) bool) {
		m.mu.RLock()
		size := ledger.Index(len(m.events))
		m.mu.RUnlock()
		for i := from; i < size; i++ {
			if !m.yield(ctx, i, yield) {
				return
			}
		}
		m.yieldEnd(ctx, yield)
	}
}

func (m *Mem) Subscribe(ctx context.Context, from ledger.Index) iter.Seq2[ledger.Event, error] {
	return func(yield func(ledger.Event, error) bool) {
		for next := from; ; {
			m.mu.RLock()
			size, grown, closed := ledger.Index(len(m.events)), m.grown, m.closed
			m.mu.RUnlock()
			if closed {
				yield(ledger.Event{}, errClosed)
				return
			}
			for ; next < size; next++ {
				if !m.yield(ctx, next, yield) {
					return
				}
			}
			select {
			case <-ctx.Done():
				yield(ledger.Event{}, ctx.Err())
				return
			case <-grown:
			}
		}
	}
}

// yield hands out one event, without holding the lock while the caller runs.
func (m *Mem) yield(ctx context.Context, i ledger.Index, yield func(ledger.Event, error) bool) bool {
	m.mu.RLock()
	err := m.ready(ctx)
	var e ledger.Event
	if err == nil {
		e = clone(m.events[i])
	}
	m.mu.RUnlock()
	return yield(e, err) && err == nil
}

// yieldEnd ends a read that may have had nothing to yield.
func (m *Mem) yieldEnd(ctx context.Context, yield func(ledger.Event, error) bool) {
	m.mu.RLock()
	err := m.ready(ctx)
	m.mu.RUnlock()
	if err != nil {
		yield(ledger.Event{}, err)
	}
}

func (m *Mem) Head(ctx context.Context, stream ledger.StreamID) (ledger.Event, bool, error) {
	if _, err := ledger.ParseStreamID(string(stream)); err != nil {
		return ledger.Event{}, false, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.ready(ctx); err != nil {
		return ledger.Event{}, false, err
	}
	at := m.streams[stream]
	if len(at) == 0 {
		return ledger.Event{}, false, nil
	}
	return clone(m.events[at[len(at)-1]]), true, nil
}

// Close refuses everything afterwards and ends subscriptions.
func (m *Mem) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.closed = true
		close(m.grown)
	}
	return nil
}

func (m *Mem) read(nodes []ledger.Node) ([]ledger.Hash, error) {
	out := make([]ledger.Hash, len(nodes))
	for i, n := range nodes {
		out[i] = m.nodes[n.Completed()][n.Level]
	}
	return out, nil
}

// at runs f for a size the tree has reached.
func (m *Mem) at(ctx context.Context, size uint64, f func() error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.ready(ctx); err != nil {
		return err
	}
	if size > m.tree.Size() {
		return fmt.Errorf("tree has %d leaves, not yet %d", m.tree.Size(), size)
	}
	return f()
}

func (m *Mem) Size(ctx context.Context) (size uint64, err error) {
	err = m.at(ctx, 0, func() error { size = m.tree.Size(); return nil })
	return size, err
}

func (m *Mem) Root(ctx context.Context, size uint64) (root ledger.Hash, err error) {
	err = m.at(ctx, size, func() (err error) { root, err = ledger.RootFrom(size, m.read); return err })
	return root, err
}

func (m *Mem) ProveInclusion(ctx context.Context, index ledger.Index, size uint64) (p []ledger.Hash, err error) {
	err = m.at(ctx, size, func() (err error) { p, err = ledger.InclusionFrom(index, size, m.read); return err })
	return p, err
}

func (m *Mem) ProveConsistency(ctx context.Context, old, size uint64) (p []ledger.Hash, err error) {
	err = m.at(ctx, size, func() (err error) { p, err = ledger.ConsistencyFrom(old, size, m.read); return err })
	return p, err
}

func (m *Mem) SignCheckpoint(ctx context.Context, s ledger.CheckpointSigner) (ledger.Checkpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return ledger.Checkpoint{}, err
	}
	if n := len(m.checkpoints); n > 0 {
		last := m.checkpoints[n-1]
		if last.Origin != s.Origin {
			return ledger.Checkpoint{}, &ledger.OriginError{Kept: last.Origin, Asked: s.Origin}
		}
		if last.Size == m.tree.Size() {
			return cloneCheckpoint(last), nil
		}
	}
	c, err := s.Sign(m.tree.Size(), m.tree.Root())
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	m.checkpoints = append(m.checkpoints, c)
	return cloneCheckpoint(c), nil
}

func (m *Mem) LastCheckpoint(ctx context.Context) (ledger.Checkpoint, bool, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.ready(ctx); err != nil {
		return ledger.Checkpoint{}, false, err
	}
	if len(m.checkpoints) == 0 {
		return ledger.Checkpoint{}, false, nil
	}
	return cloneCheckpoint(m.checkpoints[len(m.checkpoints)-1]), true, nil
}

func cloneCheckpoint(c ledger.Checkpoint) ledger.Checkpoint {
	c.Note = slices.Clone(c.Note)
	return c
}

func (m *Mem) Put(ctx context.Context, blobs ...ledger.Blob) error {
	for _, b := range blobs {
		if err := ledger.CheckBlob(b); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return err
	}
	for _, b := range blobs {
		key := b.Key()
		if _, ok := m.blobs[key]; !ok {
			m.blobs[key] = ledger.Blob{Salt: slices.Clone(b.Salt), Data: slices.Clone(b.Data)}
			delete(m.forgotten, key)
		}
	}
	return nil
}

func (m *Mem) Get(ctx context.Context, key ledger.BlobKey) (ledger.Blob, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.ready(ctx); err != nil {
		return ledger.Blob{}, err
	}
	b, ok := m.blobs[key]
	if !ok {
		return ledger.Blob{}, &ledger.BlobAbsentError{Key: key, Forgotten: m.forgotten[key]}
	}
	return ledger.Blob{Salt: slices.Clone(b.Salt), Data: slices.Clone(b.Data)}, nil
}

func (m *Mem) Forget(ctx context.Context, key ledger.BlobKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return err
	}
	if _, ok := m.blobs[key]; !ok {
		return &ledger.BlobAbsentError{Key: key, Forgotten: m.forgotten[key]}
	}
	delete(m.blobs, key)
	m.forgotten[key] = true
	return nil
}
