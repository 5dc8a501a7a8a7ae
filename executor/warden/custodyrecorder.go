package warden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// CustodyRecorder keeps custody events in files and hands everything on.
type CustodyRecorder struct {
	files *CustodyFiles
	next  executor.Recorder // may be nil

	turn chan struct{} // holds one token while something is recorded
	mu   sync.Mutex    // never held over a write
	held map[evidence.HandleKey]*heldCustody
}

// heldCustody is an open custody of this process.
type heldCustody struct {
	lock *Lock
	keptCustody
}

var _ executor.Recorder = (*CustodyRecorder)(nil)

// Recorder makes a recorder of one process. With a nil next it takes custody events only, and keeps no
// words for people.
func (f *CustodyFiles) Recorder(next executor.Recorder) *CustodyRecorder {
	return &CustodyRecorder{files: f, next: next, turn: make(chan struct{}, 1), held: map[evidence.HandleKey]*heldCustody{}}
}

// Record stores the events' custody durably and hands all of them on. Events that close a custody
// remove its file last, once next took them: until then it is open. Events of one custody are stored
// whole or not at all; it fails, with nothing stored, where one can't follow.
func (r *CustodyRecorder) Record(ctx context.Context, events ...evidence.Payload) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return fmt.Errorf("record custody: an earlier record is still under way: %w", ctx.Err())
	}
	after, err := r.fold(events)
	if err != nil {
		return err
	}
	for h, k := range after {
		if k.custody().Open() {
			if err := r.store(h, k); err != nil {
				return err
			}
		}
	}
	if r.next != nil {
		if err := r.next.Record(ctx, events...); err != nil {
			return err
		}
	}
	var errs []error
	for h, k := range after {
		if !k.custody().Open() {
			errs = append(errs, r.close(h))
		}
	}
	return errors.Join(errs...)
}

// Keep hands bytes on; without a next nobody will ask for them.
func (r *CustodyRecorder) Keep(ctx context.Context, ws ...evidence.Withholdable) error {
	if r.next == nil {
		return nil
	}
	return r.next.Keep(ctx, ws...)
}

// Open lists the custodies that this recorder took and that are still open.
func (r *CustodyRecorder) Open() []evidence.Custody {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []evidence.Custody
	for _, h := range r.held {
		out = append(out, h.custody())
	}
	return out
}

// Close lets go of what is still open: its files stay, for a supervisor. A record that doesn't come to its
// end, on a disk that hangs, is waited for no longer than its caller would: the locks then stay until this
// process ends, because what is being written must not meet a supervisor's writing.
func (r *CustodyRecorder) Close() error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-time.After(closeBound):
		return fmt.Errorf("custody is still being written after %v, as on a disk that hangs: its locks are held until this process ends", closeBound)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for h, held := range r.held {
		errs = append(errs, held.lock.Close())
		delete(r.held, h)
	}
	return errors.Join(errs...)
}

// adopt takes over a custody whose lock the caller took.
func (r *CustodyRecorder) adopt(h evidence.HandleKey, lock *Lock, k keptCustody) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[h] = &heldCustody{lock: lock, keptCustody: k}
}

// of is what this process holds of a custody; nil if nothing.
func (r *CustodyRecorder) of(h evidence.HandleKey) *heldCustody {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[h]
}

// fold is each custody that the events touch as it is after them.
func (r *CustodyRecorder) fold(events []evidence.Payload) (map[evidence.HandleKey]keptCustody, error) {
	after := map[evidence.HandleKey]keptCustody{}
	for _, e := range events {
		h, ok := custodyHandle(e)
		if !ok {
			if r.next == nil {
				return nil, fmt.Errorf("a custody file holds no %s, and nobody else takes it", e.EventType())
			}
			continue
		}
		k, touched := after[h]
		if held := r.of(h); !touched && held != nil {
			k = held.keptCustody
		}
		k, err := k.with(e)
		if err != nil {
			return nil, err
		}
		after[h] = k
	}
	return after, nil
}

// store writes a custody, taking its lock first where this process doesn't hold it yet.
func (r *CustodyRecorder) store(h evidence.HandleKey, k keptCustody) error {
	held := r.of(h)
	if held == nil {
		if err := r.files.make(); err != nil {
			return err
		}
		lock, err := r.files.lock(h)
		if err != nil {
			return err
		}
		// A file that is there is another object's: the handle was drawn twice.
		if _, err := r.files.read(h); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(fmt.Errorf("custody %s has a file already", h), err, lock.Close())
		}
		if err := r.files.write(h, k); err != nil {
			return errors.Join(err, r.files.remove(h), lock.Delete())
		}
		r.adopt(h, lock, k)
		return nil
	}
	if err := r.files.write(h, k); err != nil {
		return err
	}
	r.adopt(h, held.lock, k)
	return nil
}

// close removes the file of a custody that is closed, then its lock.
func (r *CustodyRecorder) close(h evidence.HandleKey) error {
	held := r.of(h)
	if held == nil {
		return nil // taken and closed at once: it never had a file
	}
	if err := r.files.remove(h); err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.held, h)
	r.mu.Unlock()
	return held.lock.Delete()
}
