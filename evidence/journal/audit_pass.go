package journal

import (
	"context"
	"fmt"
	goruntime "runtime"
	"sync"

	"github.com/baildock/baildock/ledger"
)

// A pass reads, prepares and visits events at the same time. Reading goes in order. Preparing,
// which is hashing leaves, decoding and hashing blobs, needs no order and is shared by as many
// goroutines as there are processors. Visiting goes in order again, in the pass's own goroutine.
const (
	batchEvents = 256     // amortises handing over
	batchBytes  = 1 << 20 // bounds what a batch of large events holds
	batchesPerP = 2       // waiting for each processor, so that none is idle
	reportEvery = 1 << 12 // events between two words on progress
)

// batch is some events on their way through the pass.
type batch struct {
	events   []ledger.StoredEvent
	leaves   []ledger.Hash
	decoded  []Decoded
	blobs    []*mentioned // nil where an event names none
	err      error        // what ended the reading, behind these events
	prepared chan struct{}
}

// events visits all events before `size`.
func (p *pass) events(ctx context.Context, size uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()

	workers := goruntime.GOMAXPROCS(0)
	order := make(chan *batch, batchesPerP*workers)
	work := make(chan *batch, cap(order))
	all.Go(func() { p.read(ctx, size, order, work) })
	for range workers {
		all.Go(func() {
			for b := range work {
				p.prepare(ctx, b, p.blobs)
			}
		})
	}
	for b := range order {
		select {
		case <-b.prepared:
		case <-ctx.Done():
			return ctx.Err()
		}
		for i := range b.events {
			if err := p.visit(ctx, b.events[i], b.leaves[i], b.decoded[i], b.blobs[i]); err != nil {
				return err
			}
			if done := p.bytes.Size(); p.Progress != nil && done%reportEvery == 0 {
				p.Progress(done, size)
			}
		}
		if b.err != nil {
			return b.err
		}
	}
	if p.Progress != nil {
		p.Progress(p.bytes.Size(), size)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.bytes.Size() < size {
		return &ledger.Finding{Index: ledger.Index(p.bytes.Size()), Version: ledger.NoStream,
			Field: "index", Expected: fmt.Sprintf("%d events, as there were before", size), Found: fmt.Sprintf("%d events", p.bytes.Size())}
	}
	return nil
}

// read cuts the stored events into batches. The last one carries the error, if there is one.
func (p *pass) read(ctx context.Context, size uint64, order, work chan<- *batch) {
	defer close(order)
	defer close(work)
	b, bytes := newBatch(), 0
	send := func() bool {
		for _, to := range []chan<- *batch{order, work} {
			select {
			case to <- b:
			case <-ctx.Done():
				return false
			}
		}
		b, bytes = newBatch(), 0
		return true
	}
	for e, err := range p.Exhibit.Stored(ctx, ledger.Index(size)) {
		if err != nil {
			b.err = err
			break
		}
		b.events = append(b.events, e)
		bytes += len(e.Data) + len(e.Meta)
		if (len(b.events) == batchEvents || bytes >= batchBytes) && !send() {
			return
		}
	}
	if len(b.events) > 0 || b.err != nil {
		send()
	}
}

func newBatch() *batch {
	return &batch{events: make([]ledger.StoredEvent, 0, batchEvents), prepared: make(chan struct{})}
}

// prepare does for each event what needs no other event.
func (p *pass) prepare(ctx context.Context, b *batch, blobs *blobChecker) {
	defer close(b.prepared)
	n := len(b.events)
	b.leaves, b.decoded, b.blobs = make([]ledger.Hash, n), make([]Decoded, n), make([]*mentioned, n)
	ledger.HashLeaves(b.leaves, b.events)
	for i, e := range b.events {
		b.decoded[i] = DecodeAhead(e.Event)
		if payload := b.decoded[i].Payload; payload != nil {
			if ms := p.Mentions(payload); len(ms) > 0 {
				b.blobs[i] = blobs.check(ctx, e.Event, payload, ms)
			}
		}
	}
}
