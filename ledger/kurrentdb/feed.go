package kurrentdb

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

// subscription is a filtered subscription to $all: the ledger's events and the metadata of its
// streams. It isn't resubscribed by itself.
type subscription struct {
	link   *link
	client *client
	sub    *esdb.Subscription
	stop   context.CancelFunc
}

// all subscribes to the ledger's part of $all behind a position, nil for its start. The
// subscription ends with ctx, or when its client is given up.
func (s *Store) all(ctx context.Context, after *esdb.Position) (*subscription, error) {
	var from esdb.AllPosition = esdb.Start{}
	if after != nil {
		from = *after
	}
	out := &subscription{link: s.link}
	opts := esdb.SubscribeToAllOptions{From: from, Filter: &esdb.SubscriptionFilter{
		Type: esdb.StreamFilterType, Prefixes: []string{s.names.events, s.names.metadata},
	}}
	wait, cancel := context.WithTimeout(ctx, s.link.timeout)
	defer cancel()
	c, err := s.link.acquire(wait)
	if err != nil {
		return nil, err
	}
	own, stop := context.WithCancel(s.link.outgoing(ctx))
	release := context.AfterFunc(c.ctx, stop)
	type result struct {
		sub *esdb.Subscription
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer c.calls.Done()
		var r result
		r.err = guarded(func() (err error) { r.sub, err = c.db.SubscribeToAll(own, opts); return err })
		done <- r
	}()
	var r result
	select {
	case r = <-done:
	case <-wait.Done():
		r.err = fmt.Errorf("%w: %w", errHung, wait.Err())
	}
	if r.err != nil {
		stop()
		release()
		if breaks(r.err) {
			s.link.retire(c)
		}
		return nil, r.err
	}
	out.client, out.sub = c, r.sub
	out.stop = func() { release(); stop() }
	return out, nil
}

// close ends the subscription.
func (u *subscription) close() {
	u.stop()
	_ = u.sub.Close() // it only cancels
}

// drop is close after an error of the subscription.
func (u *subscription) drop(err error) {
	u.close()
	if breaks(err) {
		u.link.retire(u.client)
	}
}

// next waits for the next message. It fails when the subscription was dropped.
func (u *subscription) next() (e *esdb.SubscriptionEvent, err error) {
	err = guarded(func() error {
		e = u.sub.Recv()
		return nil
	})
	if err == nil && e.SubscriptionDropped != nil {
		err = e.SubscriptionDropped.Error
	}
	return e, err
}

// arrivalOf reads what a subscription delivered. It fails with *misplaced for an event that is none
// of the ledger's.
func (s *Store) arrivalOf(ctx context.Context, r *esdb.ResolvedEvent) (arrival, error) {
	e := r.OriginalEvent()
	a := arrival{position: e.Position}
	if owner, ok := strings.CutPrefix(e.StreamID, "$$"); ok {
		a.metaOf, a.why = owner, hides(e)
		return a, nil
	}
	var err error
	a.event, a.leaf, err = s.decode(ctx, e)
	return a, err
}

// hides says how a stream's metadata hides events of it.
func hides(e *esdb.RecordedEvent) string {
	if e.EventType == "$streamDeleted" {
		return "its metadata was deleted for ever (tombstone)"
	}
	var m map[string]any
	if err := json.Unmarshal(e.Data, &m); err != nil {
		return "" // the server doesn't read it either
	}
	for _, key := range []string{"$tb", "$maxCount", "$maxAge"} {
		if v, ok := m[key]; ok {
			return fmt.Sprintf("its metadata hides events: %s is %v", key, v)
		}
	}
	return ""
}

// watchdog cancels something that made no progress for a while.
type watchdog struct {
	timer *time.Timer
	limit time.Duration
}

func watch(limit time.Duration, f func()) *watchdog {
	return &watchdog{timer: time.AfterFunc(limit, f), limit: limit}
}

func (w *watchdog) alive() { w.timer.Reset(w.limit) }
func (w *watchdog) end()   { w.timer.Stop() }
