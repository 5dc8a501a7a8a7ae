package warden

import (
	"context"
	"slices"
	"sync"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// trial is one run of a preflight's probe, from which it is judged.
type trial struct {
	job    executor.Job
	marker []byte
	driver *onlooker
	rec    *memo
	err    error // what could not be recorded, or broke
	open   int   // custodies left open
	left   error // why the private directory is not gone
}

// memo keeps what a run records in memory: a preflight's findings are its only evidence. Both are
// bounded by the executor's own bounds.
type memo struct {
	mu     sync.Mutex
	events []evidence.Payload
	blobs  map[evidence.SaltedDigest][]byte
}

var _ executor.Recorder = (*memo)(nil)

// Record keeps events.
func (m *memo) Record(_ context.Context, events ...evidence.Payload) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, events...)
	return nil
}

// Keep keeps bytes.
func (m *memo) Keep(_ context.Context, ws ...evidence.Withholdable) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blobs == nil {
		m.blobs = map[evidence.SaltedDigest][]byte{}
	}
	for _, w := range ws {
		m.blobs[w.Ref.Salted] = slices.Clone(w.Bytes)
	}
	return nil
}

// kept is what was kept under a reference.
func (m *memo) kept(ref evidence.BlobRef) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.blobs[ref.Salted]
}

// text is what was kept under a reference; empty without one.
func (m *memo) text(ref *evidence.BlobRef) string {
	if ref == nil {
		return ""
	}
	return string(m.kept(*ref))
}

// recorded is a copy of the events: a recorder that stalled may still be given one.
func (m *memo) recorded() []evidence.Payload {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

// last is the newest event of a type; false: there is none.
func last[T evidence.Payload](m *memo) (T, bool) {
	for _, e := range slices.Backward(m.recorded()) {
		if t, ok := e.(T); ok {
			return t, true
		}
	}
	var none T
	return none, false
}

// observed is the observation of the daemon at one point; false: there is none.
func (m *memo) observed(at evidence.ObservationPoint) (evidence.RuntimeObserved, bool) {
	for _, e := range m.recorded() {
		if o, ok := e.(evidence.RuntimeObserved); ok && o.Point == at {
			return o, true
		}
	}
	return evidence.RuntimeObserved{}, false
}

// onlooker remembers what a driver compared.
type onlooker struct {
	executor.Driver
	mu       sync.Mutex
	compared *comparison
}

// comparison is one comparison: what went in, and what came out.
type comparison struct {
	plan  executor.Plan
	image executor.Image
	rt    executor.Runtime
	in    executor.Inspection
	out   executor.Isolation
}

// Compare compares and remembers the comparison.
func (o *onlooker) Compare(p executor.Plan, img executor.Image, rt executor.Runtime, in executor.Inspection) executor.Isolation {
	out := o.Driver.Compare(p, img, rt, in)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.compared = &comparison{p, img, rt, in, out}
	return out
}

func (o *onlooker) seen() *comparison {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.compared
}
