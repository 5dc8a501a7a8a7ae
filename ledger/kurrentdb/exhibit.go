package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
)

// Exhibit shows an audit what the cluster keeps. It opens what the store itself refuses: a ledger
// whose events are hidden, lost, changed or mixed with foreign ones.
func (s *Store) Exhibit() ledger.Exhibit { return exhibit{s} }

type exhibit struct{ *Store }

// Size implements ledger.Exhibit. Where the follower ended at a bad event, that one counts too, so
// that the audit comes to it.
func (x exhibit) Size(ctx context.Context) (uint64, error) {
	if err := x.enter(); err != nil {
		return 0, err
	}
	defer x.leave()
	ctx, cancel := x.limit(ctx)
	defer cancel()
	err := x.catchUp(ctx)
	var damaged *ledger.DamagedError
	if err != nil && !errors.As(err, &damaged) {
		return 0, x.explain(err)
	}
	size, err := x.cache.size()
	if x.follow.ended() {
		size++
	}
	return size, err
}

// Stored implements ledger.Exhibit. It reads all of the ledger's part of $all anew, numbers events
// as they come, and compares them with what was seen before. What isn't one of the ledger's events
// is a *ledger.Finding.
func (x exhibit) Stored(ctx context.Context, end ledger.Index) iter.Seq2[ledger.StoredEvent, error] {
	return func(yield func(ledger.StoredEvent, error) bool) {
		if err := x.enter(); err != nil {
			yield(ledger.StoredEvent{}, err)
			return
		}
		defer x.leave()
		if err := x.stored(ctx, end, yield); err != nil {
			yield(ledger.StoredEvent{}, x.explain(err))
		}
	}
}

func (x exhibit) stored(ctx context.Context, end ledger.Index, yield func(ledger.StoredEvent, error) bool) error {
	seen, err := x.cache.size()
	if err != nil {
		return err
	}
	last, ok, err := x.lastOfOurs(ctx)
	if err != nil {
		return err
	}
	next := ledger.Index(0)
	if ok && end > 0 {
		if next, err = x.walk(ctx, last, end, yield); err != nil || next == math.MaxUint64 {
			return err
		}
	}
	if known := min(seen, uint64(end)); uint64(next) < known {
		return &ledger.Finding{
			Index: next, Version: ledger.NoStream, Field: "log",
			Expected: fmt.Sprintf("at least %d events, which were seen here", known),
			Found:    fmt.Sprintf("%d events: the log was restored from a backup, cut or replaced", next),
		}
	}
	return nil
}

// lastOfOurs is the position of the last event of the ledger's part of $all.
func (x exhibit) lastOfOurs(ctx context.Context) (esdb.Position, bool, error) {
	var from esdb.AllPosition = esdb.End{}
	for {
		page, err := x.readAll(ctx, esdb.Backwards, from, pageEvents)
		if err != nil || len(page) == 0 {
			return esdb.Position{}, false, err
		}
		for _, e := range page {
			if x.ours(e.StreamID) {
				return e.Position, true, nil
			}
			from = e.Position
		}
	}
}

// walk yields events up to index `end` or position `last`, and returns the next index, or the
// largest number there is when the reader has had enough.
func (x exhibit) walk(ctx context.Context, last esdb.Position, end ledger.Index, yield func(ledger.StoredEvent, error) bool) (next ledger.Index, err error) {
	var after *esdb.Position
	var places []place
	for failed := 0; ; failed++ {
		sub, err := x.all(ctx, after)
		if err == nil {
			dog := watch(x.link.timeout, sub.stop)
			for {
				var m *esdb.SubscriptionEvent
				if m, err = sub.next(); err != nil {
					sub.drop(err)
					break
				}
				if m.EventAppeared == nil {
					continue
				}
				dog.end()
				failed = 0
				r := m.EventAppeared.OriginalEvent()
				after = &r.Position
				if !strings.HasPrefix(r.StreamID, "$$") {
					if len(places) == 0 {
						if places, err = x.cache.from(nil, next, pageEvents); err != nil {
							break
						}
					}
					var known *place
					if len(places) > 0 {
						known, places = &places[0], places[1:]
					}
					e, found, bad := x.show(ctx, r, next, known)
					if bad != nil {
						err = bad
						break
					}
					if found != nil {
						sub.close()
						return next, found
					}
					next++
					if !yield(e, nil) {
						sub.close()
						return math.MaxUint64, nil
					}
				}
				if next == end || r.Position.Commit >= last.Commit && r.Position.Prepare >= last.Prepare {
					sub.close()
					return next, nil
				}
				dog.alive()
			}
			dog.end()
			sub.close()
		}
		if ctx.Err() != nil {
			return next, ctx.Err()
		}
		if kindOf(err) == refused || failed > maxSubscriptions {
			return next, err
		}
		if err := pause(ctx, lastBackoff); err != nil {
			return next, err
		}
	}
}

// show is one event as it is stored, or what is wrong with it.
func (x exhibit) show(ctx context.Context, r *esdb.RecordedEvent, at ledger.Index, known *place) (ledger.StoredEvent, *ledger.Finding, error) {
	e, leaf, err := x.decode(ctx, r)
	var foreign *misplaced
	if errors.As(err, &foreign) {
		stream, _ := x.names.stream(r.StreamID)
		f := &ledger.Finding{Index: at, Stream: stream, Version: ledger.Version(min(r.EventNumber, math.MaxInt64)), Field: "event",
			Expected: "one that the ledger wrote there", Found: foreign.what}
		return ledger.StoredEvent{}, f, nil
	}
	if err != nil {
		return ledger.StoredEvent{}, nil, err
	}
	e.Index = at
	if known != nil && known.leaf != leaf {
		return ledger.StoredEvent{}, e.Found(at, "leaf hash", known.leaf.String()+", as it was seen before", leaf.String()), nil
	}
	return ledger.StoredEvent{Event: e}, nil, nil
}

// CheckStorage implements ledger.Exhibit: no stream's metadata hides events, nothing else was found
// wrong while following the cluster, and its access lists protect the ledger.
func (x exhibit) CheckStorage(ctx context.Context) error {
	if err := x.enter(); err != nil {
		return err
	}
	defer x.leave()
	if bad, err := x.hidden(ctx); err != nil || bad != nil {
		return errors.Join(bad, x.explain(err))
	}
	if err := x.follow.damage(); err != nil {
		return err
	}
	return x.checkProtection(ctx)
}
