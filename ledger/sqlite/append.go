package sqlite

import (
	"context"

	"github.com/baildock/baildock/ledger"
)

const insertEvent = `INSERT INTO events (idx, stream, version, nodes, prev, type, time, media, meta, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// Append implements ledger.Store. The returned events share their bytes with the prepared ones.
func (s *Store) Append(ctx context.Context, stream ledger.StreamID, expected ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	if err := ledger.CheckAppend(stream, expected, events); err != nil {
		return ledger.Appended{}, err
	}
	bytes := 0
	for _, p := range events {
		bytes += len(p.Meta) + len(p.Data)
	}
	var stored []ledger.Event
	err := s.submit(ctx, &job{bytes: bytes, do: func(w *writer) (verdict, failure error) {
		stored, verdict, failure = w.append(stream, expected, events)
		return verdict, failure
	}})
	if err != nil {
		return ledger.Appended{}, err
	}
	return ledger.Appended{Events: stored}, nil
}

// append judges one append and writes it if its stream is where the writer expected it.
func (w *writer) append(stream ledger.StreamID, expected ledger.Version, prepared []ledger.Prepared) (stored []ledger.Event, verdict, failure error) {
	head, err := w.head(stream)
	if err != nil {
		return nil, nil, err
	}
	if head.Version != expected {
		first, err := w.retried(stream, head.Version, expected, prepared)
		if err != nil || first != nil {
			return first, nil, err
		}
		return nil, &ledger.ConflictError{Stream: stream, Expected: expected, Actual: head.Version}, nil
	}
	events, leaves := ledger.Chain(stream, head, prepared...)
	for i := range events {
		if err := w.insert(&events[i], leaves[i]); err != nil {
			return nil, nil, err
		}
	}
	last := len(events) - 1
	w.heads.put(stream, ledger.Head{Version: events[last].Version, Leaf: leaves[last]})
	return events, nil, nil
}

// retried returns the stored events behind `expected` if they are exactly those offered, else nil.
func (w *writer) retried(stream ledger.StreamID, last, expected ledger.Version, prepared []ledger.Prepared) ([]ledger.Event, error) {
	if n := ledger.Version(len(prepared)); expected > last || last-expected < n {
		return nil, nil
	}
	stored, err := w.conn.streamPage(nil, stream, expected+1, expected+ledger.Version(len(prepared)), wholePage)
	if err != nil {
		return nil, err
	}
	for i, p := range prepared {
		if !stored[i].Holds(p) {
			return nil, nil
		}
	}
	return stored, nil
}

// insert gives the event its index and writes its row.
func (w *writer) insert(e *ledger.Event, leaf ledger.Hash) error {
	e.Index = ledger.Index(w.tree.Size())
	w.nodes = w.tree.AppendNodes(w.nodes[:0], leaf)
	w.row = w.row[:0]
	for i := range w.nodes {
		w.row = append(w.row, w.nodes[i][:]...)
	}
	w.grew = true
	return w.conn.run(insertEvent, int64(e.Index), string(e.Stream), int64(e.Version), w.row, e.Prev,
		e.Type, e.Time, e.Media, e.Meta, e.Data)
}
