package export

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

// held is a stream as the bundle will hold it.
type held struct {
	role   bundle.Role
	events []bundle.Placed
}

// collection is what a bundle about some attempts and changes must hold, whatever the index.
type collection struct {
	streams   []held            // sorted by name
	smallest  ledger.Index      // where it all has been appended
	latest    string            // what was appended there
	unsealed  []ledger.StreamID // basis streams with no event after the judgement
	judgement ledger.Index      // the last that an unsealed stream doesn't reach
	finished  map[string]bundle.Placed
}

// collect reads the attempts and changes, as they stand with the event at `at`, and everything they rest on.
// Approvals and integrations of the attempts' contexts count up to the index that was asked for; without
// one, all of them.
func collect(ctx context.Context, led ledger.Store, r Request, at ledger.Index) (*collection, error) {
	ids := slices.Compact(slices.Sorted(slices.Values(r.Attempts)))
	changes := slices.Compact(slices.Sorted(slices.Values(r.Changes)))
	if n := len(ids) + len(changes); n == 0 || n > bundle.MaxJudged {
		return nil, fmt.Errorf("export %d attempts and changes; 1 to %d are allowed", n, bundle.MaxJudged)
	}
	c := &collection{finished: map[string]bundle.Placed{}}
	var judged [][]bundle.Placed
	for _, id := range changes {
		events, err := c.change(ctx, led, id, at)
		if err != nil {
			return nil, err
		}
		judged = append(judged, events)
		c.streams = append(c.streams, held{bundle.Judged, events})
	}
	for _, id := range ids {
		events, err := c.attempt(ctx, led, id)
		if err != nil {
			return nil, err
		}
		judged = append(judged, events)
		c.streams = append(c.streams, held{bundle.Judged, events})
	}
	streams, err := admissions(ctx, led, judged, r.At)
	if err != nil {
		return nil, err
	}
	if err := runtimes(ctx, led, streams); err != nil {
		return nil, err
	}
	if err := relied(ctx, led, streams); err != nil {
		return nil, err
	}
	for _, n := range bundle.Needs(judged, streams) {
		if err := c.need(ctx, led, n); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(c.streams, func(a, b held) int {
		return strings.Compare(string(a.events[0].Stream), string(b.events[0].Stream))
	})
	return c, nil
}

// change reads a change's stream as it stands with the event at an index.
func (c *collection) change(ctx context.Context, led ledger.Store, id evidence.ChangeID, at ledger.Index) ([]bundle.Placed, error) {
	events, err := read(ctx, led, evidence.ChangePrefix+string(id), func(ledger.Event) bool { return false })
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, &AbsentError{Change: id}
	}
	c.reach(events[0].Index, "change "+string(id)+" was opened")
	return slices.DeleteFunc(events, func(e bundle.Placed) bool { return e.Index > at && e.Version > 0 }), nil
}

// attempt reads a finished attempt's stream up to its end, or to what follows its record.
func (c *collection) attempt(ctx context.Context, led ledger.Store, id evidence.AttemptID) ([]bundle.Placed, error) {
	stream := evidence.AttemptPrefix + string(id)
	events, err := read(ctx, led, stream, func(ledger.Event) bool { return false })
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, &AbsentError{Attempt: id}
	}
	for _, e := range events {
		if _, ok := e.Payload.(evidence.AttemptFinished); ok {
			c.finished[stream] = e
			c.reach(e.Index, "attempt "+string(id)+" finished")
			return events, nil
		}
	}
	return nil, &UnfinishedError{Attempt: id}
}

// admissions returns the streams of judged changes as they are, and reads those of the attempts' changes, each up to the last approval or
// integration of their contexts that the bundle is to hold: the last one up to the limit, and any
// that directly follow what the bundle must hold anyway.
func admissions(ctx context.Context, led ledger.Store, judged [][]bundle.Placed, limit *ledger.Index) (map[string][]bundle.Placed, error) {
	changes := map[string][]bundle.Placed{}
	for _, s := range judged {
		if _, ok := bundle.ChangeOf(s); ok {
			changes[string(s[0].Stream)] = s
		}
	}
	bindings := bundle.Bindings(judged)
	for _, b := range bindings {
		stream := evidence.ChangePrefix + string(b.Change)
		if _, done := changes[stream]; done {
			continue
		}
		events, err := read(ctx, led, stream, func(ledger.Event) bool { return false })
		if err != nil {
			return nil, err
		}
		relevant := func(e bundle.Placed) bool {
			a, ok := bundle.AdmissionOf(e)
			return ok && slices.ContainsFunc(bindings, func(b evidence.Binding) bool {
				return evidence.ChangePrefix+string(b.Change) == stream && a.About(b)
			})
		}
		var rests ledger.Index // the last judgement that rests on the stream
		for _, a := range judged {
			if own := bundle.BindingOf(a); own != nil && own.Change == b.Change {
				at, _ := bundle.Judgement(a)
				rests = max(rests, at)
			}
		}
		held := 0
		for i, e := range events {
			switch {
			case relevant(e) && (limit == nil || e.Index <= *limit || held == i && e.Index > rests):
				held = i + 1
			case e.Index <= rests:
				held = i + 1
			}
		}
		changes[stream] = events[:held]
	}
	return changes, nil
}

// runtimes adds the streams of the runtimes that the changes' admissions rest on, as far as these name them:
// they say which attempts must be there too.
func runtimes(ctx context.Context, led ledger.Store, streams map[string][]bundle.Placed) error {
	cited := map[string]uint64{}
	for _, events := range streams {
		for _, e := range events {
			a, ok := bundle.AdmissionOf(e)
			if !ok {
				continue
			}
			for _, b := range a.Runtimes() {
				cited[b.Stream] = max(cited[b.Stream], b.Version)
			}
		}
	}
	for stream, version := range cited {
		events, err := read(ctx, led, stream, func(e ledger.Event) bool { return uint64(e.Version) >= version })
		if err != nil {
			return err
		}
		streams[stream] = events
	}
	return nil
}

// relied adds the streams of the attempts that the changes' admissions rely on: they say which probes must be
// there too.
func relied(ctx context.Context, led ledger.Store, streams map[string][]bundle.Placed) error {
	attempts := map[string]bool{}
	for _, events := range streams {
		for _, e := range events {
			if a, ok := bundle.AdmissionOf(e); ok {
				for _, r := range a.Relied {
					attempts[evidence.AttemptPrefix+string(r.Attempt)] = true
				}
			}
		}
	}
	for stream := range attempts {
		events, err := read(ctx, led, stream, func(ledger.Event) bool { return false })
		if err != nil {
			return err
		}
		streams[stream] = events
	}
	return nil
}

// need reads a needed stream as far as it must be held.
func (c *collection) need(ctx context.Context, led ledger.Store, n bundle.Need) error {
	whole := n.Stream == evidence.LedgerStream
	events, err := read(ctx, led, n.Stream, func(e ledger.Event) bool {
		return !whole && (n.Judgement == nil || e.Index > *n.Judgement) && e.Version >= n.Cited
	})
	if err != nil {
		return err
	}
	if len(events) == 0 && !n.Counted {
		return fmt.Errorf("an attempt rests on stream %s, which the ledger doesn't have (run: baildock audit)", n.Stream)
	}
	enough, ok := n.Length(events)
	switch {
	case ok:
		c.reach(events[enough-1].Index, "stream "+n.Stream+" was sealed behind the judgement")
		if !whole {
			events = events[:enough]
		}
	case n.Judgement == nil:
		return fmt.Errorf("an attempt cites version %s of stream %s, which the ledger doesn't have", n.Cited, n.Stream)
	default:
		c.unsealed = append(c.unsealed, ledger.StreamID(n.Stream))
		c.judgement = max(c.judgement, *n.Judgement)
		if len(events) == 0 {
			return nil
		}
	}
	if n.Judged {
		return nil // it is held already, up to the bundle's index
	}
	c.streams = append(c.streams, held{n.Role(), events})
	return nil
}

func (c *collection) reach(at ledger.Index, what string) {
	if at >= c.smallest {
		c.smallest, c.latest = at, what
	}
}

// read returns a stream's decoded events from version 0 to the first that `last` accepts.
func read(ctx context.Context, led ledger.Store, stream string, last func(ledger.Event) bool) ([]bundle.Placed, error) {
	var events []ledger.Event
	for e, err := range led.ReadStream(ctx, ledger.StreamID(stream), 0) {
		if err != nil {
			return nil, fmt.Errorf("read stream %s: %w", stream, err)
		}
		if events = append(events, e); len(events) > bundle.MaxEvents {
			return nil, fmt.Errorf("stream %s has more than %d events", stream, bundle.MaxEvents)
		}
		if last(e) {
			break
		}
	}
	return bundle.Decode(events)
}

// upTo cuts every stream after an index.
func (c *collection) upTo(at ledger.Index) {
	for i := range c.streams {
		events := c.streams[i].events
		n := len(events)
		for n > 0 && events[n-1].Index > at {
			n--
		}
		c.streams[i].events = events[:n]
	}
}

// Unsealed returns the streams that need an event after an index before a bundle about these attempts and
// changes can be built: a judgement rests on them and nothing follows it in them. The index is that
// of the last such judgement.
func Unsealed(ctx context.Context, led ledger.Store, attempts []evidence.AttemptID, changes ...evidence.ChangeID) (judgement ledger.Index, streams []ledger.StreamID, err error) {
	c, err := collect(ctx, led, Request{Attempts: attempts, Changes: changes}, math.MaxInt64)
	if err != nil {
		return 0, nil, err
	}
	return c.judgement, c.unsealed, nil
}
