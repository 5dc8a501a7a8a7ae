package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

// req R1, req R4
func testAppend(t *testing.T, l ledger.Ledger, _ Backend) {
	first := mustAppend(t, l, "a", ledger.NoStream, prepare("First", "one"))
	second := mustAppend(t, l, "b", ledger.NoStream, prepare("First", "two"), prepare("Second", "three"))
	third := mustAppend(t, l, "a", 0, prepare("Second", "four"))

	require.Equal(t, ledger.Index(0), first.Last().Index)
	require.Equal(t, ledger.Index(1), second.Events[0].Index)
	require.Equal(t, ledger.Index(2), second.Last().Index)
	require.Equal(t, ledger.Index(3), third.Last().Index)
	require.Equal(t, ledger.Version(1), third.Last().Version)
	require.Empty(t, first.Last().Prev)
	leaf := first.Last().Leaf()
	require.Equal(t, leaf[:], third.Last().Prev)

	requireSame(t, []ledger.Event{first.Last(), third.Last()}, collect(t, l.ReadStream(t.Context(), "a", 0)))
	requireSame(t, []ledger.Event{first.Last(), second.Events[0], second.Events[1], third.Last()},
		collect(t, l.ReadAll(t.Context(), 0)))
	requireSound(t, l)
}

// req R1
func testConflicts(t *testing.T, l ledger.Ledger, _ Backend) {
	ctx := t.Context()
	_, err := l.Append(ctx, "a", 0, prepare("X", "no stream yet"))
	requireConflict(t, err, "a", 0, ledger.NoStream)
	mustAppend(t, l, "a", ledger.NoStream, batch("a", 3)...)
	for _, expected := range []ledger.Version{ledger.NoStream, 0, 1, 3, 99, 1<<63 - 1} {
		_, err := l.Append(ctx, "a", expected, prepare("X", "other"))
		requireConflict(t, err, "a", expected, 2)
	}
	require.Len(t, collect(t, l.ReadAll(ctx, 0)), 3)
	mustAppend(t, l, "a", 2, prepare("X", "now it fits"))
}

// req R1
func testRetry(t *testing.T, l ledger.Ledger, _ Backend) {
	p := prepare("First", "one")
	first := mustAppend(t, l, "a", ledger.NoStream, p)
	requireSame(t, first.Events, mustAppend(t, l, "a", ledger.NoStream, p).Events)
	mustAppend(t, l, "a", 0, prepare("Second", "two"))
	requireSame(t, first.Events, mustAppend(t, l, "a", ledger.NoStream, p).Events)

	for _, change := range []func(*ledger.Prepared){
		func(p *ledger.Prepared) { p.Type = "Other" },
		func(p *ledger.Prepared) { p.Time++ },
		func(p *ledger.Prepared) { p.Media = "text/html" },
		func(p *ledger.Prepared) { p.Meta = []byte("other") },
		func(p *ledger.Prepared) { p.Data = []byte("other") },
	} {
		other := p
		change(&other)
		_, err := l.Append(t.Context(), "a", ledger.NoStream, other)
		requireConflict(t, err, "a", ledger.NoStream, 1)
	}
	require.Len(t, collect(t, l.ReadAll(t.Context(), 0)), 2)
}

// req R1
func testRetryBatch(t *testing.T, l ledger.Ledger, _ Backend) {
	ctx := t.Context()
	events := batch("b", 4)
	first := mustAppend(t, l, "a", ledger.NoStream, events...)
	mustAppend(t, l, "a", 3, prepare("Later", "later"))
	requireSame(t, first.Events, mustAppend(t, l, "a", ledger.NoStream, events...).Events)
	requireSame(t, first.Events[1:3], mustAppend(t, l, "a", 0, events[1:3]...).Events)

	for name, try := range map[string]struct {
		expected ledger.Version
		events   []ledger.Prepared
	}{
		"more than there is":        {ledger.NoStream, append(batch("b", 4), batch("c", 2)...)},
		"the tail, and one more":    {2, []ledger.Prepared{events[3], prepare("Later", "later"), prepare("X", "new")}},
		"one in the middle differs": {ledger.NoStream, []ledger.Prepared{events[0], prepare("X", "new"), events[2]}},
		"in another order":          {ledger.NoStream, []ledger.Prepared{events[1], events[0]}},
		"one place off":             {0, events[:2]},
	} {
		_, err := l.Append(ctx, "a", try.expected, try.events...)
		var conflict *ledger.ConflictError
		require.ErrorAs(t, err, &conflict, name)
		require.Equal(t, ledger.Version(4), conflict.Actual, name)
	}
	require.Len(t, collect(t, l.ReadAll(ctx, 0)), 5)
}

// req R1
func testEqualBytesElsewhere(t *testing.T, l ledger.Ledger, _ Backend) {
	p := prepare("Same", "same")
	places := []ledger.Event{
		mustAppend(t, l, "a", ledger.NoStream, p).Last(),
		mustAppend(t, l, "a", 0, p).Last(),
		mustAppend(t, l, "b", ledger.NoStream, p).Last(),
	}
	ids := map[ledger.EventID]bool{}
	for _, e := range places {
		ids[e.ID()] = true
	}
	require.Len(t, ids, 3)
	requireSame(t, places, collect(t, l.ReadAll(t.Context(), 0)))
	// A batch of equal events is no retry of itself.
	twice := mustAppend(t, l, "c", ledger.NoStream, p, p)
	require.NotEqual(t, twice.Events[0].Leaf(), twice.Events[1].Leaf())
	requireSound(t, l)
}

// req R1
func testBatchAtomic(t *testing.T, l ledger.Ledger, _ Backend) {
	ctx := t.Context()
	mustAppend(t, l, "a", ledger.NoStream, batch("a", 2)...)
	bad := batch("bad", 5)
	bad[3].Type = "not a type"
	_, err := l.Append(ctx, "a", 1, bad...)
	require.Error(t, err)
	require.NotErrorIs(t, err, ledger.ErrUnknownOutcome)
	_, err = l.Append(ctx, "a", 0, batch("conflict", 5)...)
	requireConflict(t, err, "a", 0, 1)
	require.Len(t, collect(t, l.ReadAll(ctx, 0)), 2)
	done := mustAppend(t, l, "a", 1, batch("whole", ledger.MaxBatch)...)
	for i, e := range done.Events {
		require.Equal(t, ledger.Index(2+i), e.Index)
		require.Equal(t, ledger.Version(2+i), e.Version)
	}
	requireSound(t, l)
}

func testRefused(t *testing.T, l ledger.Ledger, _ Backend) {
	ctx := t.Context()
	long := strings.Repeat("x", 2000)
	with := func(change func(*ledger.Prepared)) []ledger.Prepared {
		p := prepare("Fine", "fine")
		change(&p)
		return []ledger.Prepared{p}
	}
	fine := []ledger.Prepared{prepare("Fine", "fine")}
	huge := make([]ledger.Prepared, 5)
	for i := range huge {
		huge[i] = with(func(p *ledger.Prepared) { p.Data = make([]byte, ledger.MaxData) })[0]
	}
	for name, try := range map[string]struct {
		stream   ledger.StreamID
		expected ledger.Version
		events   []ledger.Prepared
	}{
		"no stream name":      {"", ledger.NoStream, fine},
		"upper case":          {"Attempt", ledger.NoStream, fine},
		"a slash":             {"a/b", ledger.NoStream, fine},
		"a leading dot":       {".a", ledger.NoStream, fine},
		"a long name":         {ledger.StreamID(long[:ledger.MaxStream+1]), ledger.NoStream, fine},
		"an impossible place": {"a", -2, fine},
		"nothing":             {"a", ledger.NoStream, nil},
		"too many":            {"a", ledger.NoStream, batch("many", ledger.MaxBatch+1)},
		"too much":            {"a", ledger.NoStream, huge},
		"no type":             {"a", ledger.NoStream, with(func(p *ledger.Prepared) { p.Type = "" })},
		"a type with a space": {"a", ledger.NoStream, with(func(p *ledger.Prepared) { p.Type = "A b" })},
		"a long type":         {"a", ledger.NoStream, with(func(p *ledger.Prepared) { p.Type = long[:ledger.MaxType+1] })},
		"no media type":       {"a", ledger.NoStream, with(func(p *ledger.Prepared) { p.Media = "" })},
		"half a media type":   {"a", ledger.NoStream, with(func(p *ledger.Prepared) { p.Media = "text/" })},
		"a long media type":   {"a", ledger.NoStream, with(func(p *ledger.Prepared) { p.Media = "text/" + long[:ledger.MaxMedia] })},
		"a control character": {"a", ledger.NoStream, with(func(p *ledger.Prepared) { p.Media = "text/\x1bplain" })},
		"large meta":          {"a", ledger.NoStream, with(func(p *ledger.Prepared) { p.Meta = make([]byte, ledger.MaxMeta+1) })},
		"large data":          {"a", ledger.NoStream, with(func(p *ledger.Prepared) { p.Data = make([]byte, ledger.MaxData+1) })},
	} {
		_, err := l.Append(ctx, try.stream, try.expected, try.events...)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, ledger.ErrUnknownOutcome, name)
		var conflict *ledger.ConflictError
		require.False(t, errors.As(err, &conflict), name)
	}
	require.Empty(t, collect(t, l.ReadAll(ctx, 0)))
	for _, err := range l.ReadStream(ctx, "Not/A/Stream", 0) {
		require.Error(t, err)
	}
	_, _, err := l.Head(ctx, "")
	require.Error(t, err)
}

// req R1: events of 1 MiB.
func testLimits(t *testing.T, l ledger.Ledger, _ Backend) {
	stream := ledger.StreamID(strings.Repeat("s", ledger.MaxStream))
	largest := ledger.Prepared{
		Type: strings.Repeat("T", ledger.MaxType), Time: -1 << 63,
		Media: "m/" + strings.Repeat("m", ledger.MaxMedia-2),
		Meta:  bytes.Repeat([]byte{0xee}, ledger.MaxMeta), Data: bytes.Repeat([]byte{0xdd}, ledger.MaxData),
	}
	smallest := ledger.Prepared{Type: "T", Time: 1<<63 - 1, Media: "a/b"}
	want := mustAppend(t, l, stream, ledger.NoStream, largest, smallest).Events
	require.LessOrEqual(t, len(ledger.MarshalLeaf(want[0])), ledger.MaxLeaf)
	got := collect(t, l.ReadStream(t.Context(), stream, 0))
	requireSame(t, want, got)
	require.True(t, got[0].Holds(largest))
	require.True(t, got[1].Holds(smallest))
	requireSame(t, want, mustAppend(t, l, stream, ledger.NoStream, largest, smallest).Events)
	requireSound(t, l)
}

func testCancelled(t *testing.T, l ledger.Ledger, _ Backend) {
	mustAppend(t, l, "a", ledger.NoStream, prepare("X", "one"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Append(ctx, "a", 0, prepare("X", "two"))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ledger.ErrUnknownOutcome)
	for _, events := range []func(func(ledger.Event, error) bool){
		l.ReadAll(ctx, 0), l.ReadStream(ctx, "a", 0), l.Subscribe(ctx, 0),
	} {
		var errs []error
		for _, err := range events {
			errs = append(errs, err)
		}
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], context.Canceled)
	}
	_, err = l.Size(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = l.Head(ctx, "a")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, l.Put(ctx, ledger.Blob{Data: []byte("b")}), context.Canceled)
	require.Len(t, collect(t, l.ReadAll(t.Context(), 0)), 1)
}

// A store keeps nothing of the caller's slices after Append, and hands out none of its own.
func testOwnBytes(t *testing.T, l ledger.Ledger, _ Backend) {
	p := prepare("X", "original")
	done := mustAppend(t, l, "a", ledger.NoStream, p)
	leaf := done.Last().Leaf()
	clear(p.Data)
	clear(p.Meta)
	for range 2 {
		got := collect(t, l.ReadAll(t.Context(), 0))
		require.Equal(t, leaf, got[0].Leaf())
		clear(got[0].Data)
		clear(got[0].Meta)
	}
	blob := ledger.Blob{Data: []byte("original")}
	key := blob.Key()
	require.NoError(t, l.Put(t.Context(), blob))
	clear(blob.Data)
	for range 2 {
		got, err := l.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, "original", string(got.Data))
		clear(got.Data)
	}
}

// req R1: exactly one of many racers gets the place.
func testRacers(t *testing.T, l ledger.Ledger, _ Backend) {
	const racers, rounds = 16, 20
	for round := range rounds {
		expected := ledger.Version(round) - 1
		errs := make([]error, racers)
		race(racers, func(i int) {
			_, errs[i] = l.Append(t.Context(), "a", expected, prepare("Raced", fmt.Sprintf("round %d racer %d", round, i)))
		})
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			requireConflict(t, err, "a", expected, expected+1)
		}
		require.Equal(t, 1, won)
	}
	require.Equal(t, uint64(rounds), requireSound(t, l).Size())
}

// req R1: racers with the same bytes at the same place are one writer and its retries.
func testEqualRacers(t *testing.T, l ledger.Ledger, _ Backend) {
	const racers = 16
	events := batch("same", 3)
	results := make([]ledger.Appended, racers)
	errs := make([]error, racers)
	race(racers, func(i int) {
		results[i], errs[i] = l.Append(t.Context(), "a", ledger.NoStream, events...)
	})
	for i := range racers {
		require.NoError(t, errs[i])
		requireSame(t, results[0].Events, results[i].Events)
	}
	require.Equal(t, uint64(3), requireSound(t, l).Size())
}

func testManyWriters(t *testing.T, l ledger.Ledger, _ Backend) {
	const writers, each = 24, 25
	errs := make([]error, writers)
	race(writers, func(i int) {
		stream := ledger.StreamID(fmt.Sprintf("writer-%d", i))
		for v := range each {
			// In between, lose on purpose: a neighbour's conflict must fail nobody else.
			_, err := l.Append(t.Context(), stream, 1000, prepare("Lost", "lost"))
			var conflict *ledger.ConflictError
			if !errors.As(err, &conflict) {
				errs[i] = fmt.Errorf("expected a conflict, got %w", err)
				return
			}
			if _, err := l.Append(t.Context(), stream, ledger.Version(v)-1, prepare("Won", fmt.Sprint(i, v))); err != nil {
				errs[i] = err
				return
			}
		}
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, uint64(writers*each), requireSound(t, l).Size())
}

// race starts n goroutines at once and waits for all.
func race(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}
