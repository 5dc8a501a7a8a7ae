package executor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// tee copies kept output to whoever watches, beside the capture: a watcher that is slow or gone
// neither holds the command up nor changes the evidence. It queues at most what capture keeps.
type tee struct {
	writers [2]io.Writer // stdout, stderr; nil: nobody watches

	mu     sync.Mutex
	queue  []teed
	closed bool
	wake   chan struct{}
	done   chan struct{}
	errs   [2]error // the first failure of each; its copy ended there
}

type teed struct {
	stream int
	bytes  []byte
}

func newTee(stdout, stderr io.Writer) *tee {
	t := &tee{writers: [2]io.Writer{stdout, stderr}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go t.run()
	return t
}

func (t *tee) push(stderr bool, b []byte) {
	i := 0
	if stderr {
		i = 1
	}
	if t.writers[i] == nil || len(b) == 0 {
		return
	}
	t.mu.Lock()
	t.queue = append(t.queue, teed{i, bytes.Clone(b)})
	t.mu.Unlock()
	t.nudge()
}

func (t *tee) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *tee) run() {
	defer close(t.done)
	for range t.wake {
		t.mu.Lock()
		queue, closed := t.queue, t.closed
		t.queue = nil
		t.mu.Unlock()
		for _, q := range queue {
			if t.errs[q.stream] != nil {
				continue
			}
			_, t.errs[q.stream] = guarded(func() (int, error) { return t.writers[q.stream].Write(q.bytes) })
		}
		if closed {
			return
		}
	}
}

// close waits, within a bound, until everything was copied, and says what could not be.
func (t *tee) close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.nudge()
	select {
	case <-t.done:
		if err := errors.Join(t.errs[:]...); err != nil {
			return fmt.Errorf("the output could not be copied: %w", err)
		}
		return nil
	case <-time.After(teeBound):
		return fmt.Errorf("the output could not be copied within %v", teeBound)
	}
}
