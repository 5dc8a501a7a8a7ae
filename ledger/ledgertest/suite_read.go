package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

// req R1
func testReadStream(t *testing.T, l ledger.Ledger, _ Backend) {
	ctx := t.Context()
	mustAppend(t, l, "other", ledger.NoStream, prepare("X", "other"))
	var want []ledger.Event
	for i := range 6 { // more than any page of 512
		want = append(want, mustAppend(t, l, "a", ledger.Version(i*200-1), batch(fmt.Sprint(i), 200)...).Events...)
	}
	for _, from := range []ledger.Version{0, 1, 511, 512, 513, 1199} {
		requireSame(t, want[from:], collect(t, l.ReadStream(ctx, "a", from)))
	}
	requireSame(t, want, collect(t, l.ReadStream(ctx, "a", ledger.NoStream)))
	require.Empty(t, collect(t, l.ReadStream(ctx, "a", 1200)))
	require.Empty(t, collect(t, l.ReadStream(ctx, "a", 1<<62)))
	require.Empty(t, collect(t, l.ReadStream(ctx, "empty", 0)))
	for e, err := range l.ReadStream(ctx, "a", 3) {
		require.NoError(t, err)
		require.Equal(t, ledger.Version(3), e.Version)
		break
	}
}

// req R1
func testReadAll(t *testing.T, l ledger.Ledger, _ Backend) {
	ctx := t.Context()
	require.Empty(t, collect(t, l.ReadAll(ctx, 0)))
	var want []ledger.Event
	for i := range 6 {
		stream := ledger.StreamID(fmt.Sprintf("s%d", i))
		want = append(want, mustAppend(t, l, stream, ledger.NoStream, batch(fmt.Sprint(i), 200)...).Events...)
	}
	for _, from := range []ledger.Index{0, 1, 511, 512, 513, 1199} {
		requireSame(t, want[from:], collect(t, l.ReadAll(ctx, from)))
	}
	for _, from := range []ledger.Index{1200, 1 << 62, 1<<64 - 1} {
		require.Empty(t, collect(t, l.ReadAll(ctx, from)))
	}
	for e, err := range l.ReadAll(ctx, 700) {
		require.NoError(t, err)
		require.Equal(t, ledger.Index(700), e.Index)
		break
	}
}

// A reader may use the ledger while it reads, and sees no event appended after it began.
func testNestedReads(t *testing.T, l ledger.Ledger, _ Backend) {
	fill(t, l, 40)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := 0
	var nested func(depth int)
	nested = func(depth int) {
		for e, err := range l.ReadAll(ctx, 37) {
			require.NoError(t, err)
			seen++
			if depth > 0 {
				_, ok, err := l.Head(ctx, e.Stream)
				require.NoError(t, err)
				require.True(t, ok)
				nested(depth - 1)
			}
		}
	}
	nested(5) // deeper than any pool of connections should be asked to be
	require.Equal(t, 3+9+27+81+243+729, seen)

	seen = 0
	for e, err := range l.ReadAll(ctx, 0) {
		require.NoError(t, err)
		seen++
		mustAppend(t, l, ledger.StreamID(fmt.Sprintf("new-%d", e.Index)), ledger.NoStream, prepare("X", "new"))
	}
	require.Equal(t, 40, seen)
}

// req R1
func testSubscribe(t *testing.T, l ledger.Ledger, _ Backend) {
	const before, after, from = 700, 60, 5
	mustAppend(t, l, "a", ledger.NoStream, batch("x", 200)...)
	fill(t, l, before-200)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	appended := make(chan error, 1)
	var got []ledger.Event
	var last []error
	for e, err := range l.Subscribe(ctx, from) {
		if err != nil {
			last = append(last, err)
			continue // a subscription that goes on after its error would be seen
		}
		got = append(got, e)
		switch len(got) + from {
		case before: // the replay is over; now follow
			go func() {
				for i := range after {
					if _, err := l.Append(ctx, "follow", ledger.Version(i)-1, prepare("F", fmt.Sprint(i))); err != nil {
						appended <- err
						return
					}
				}
				appended <- nil
			}()
		case before + after:
			require.NoError(t, <-appended)
			cancel()
		}
	}
	require.Len(t, last, 1)
	require.ErrorIs(t, last[0], context.Canceled)
	requireSame(t, collect(t, l.ReadAll(t.Context(), from)), got)

	for range l.Subscribe(t.Context(), 0) { // leaving early is allowed
		break
	}
}

func testSubscribeFuture(t *testing.T, l ledger.Ledger, _ Backend) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	first := make(chan ledger.Event, 1)
	go func() {
		for e, err := range l.Subscribe(ctx, 3) {
			if err == nil {
				first <- e
			}
			return
		}
	}()
	fill(t, l, 3)
	time.Sleep(20 * time.Millisecond)
	require.Empty(t, first)
	fourth := mustAppend(t, l, "a", ledger.NoStream, prepare("X", "fourth"))
	select {
	case e := <-first:
		requireSame(t, fourth.Events, []ledger.Event{e})
	case <-ctx.Done():
		t.Fatal("the event never came")
	}

	never, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	for _, err := range l.Subscribe(never, 1<<64-1) {
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

func testHead(t *testing.T, l ledger.Ledger, _ Backend) {
	_, ok, err := l.Head(t.Context(), "a")
	require.NoError(t, err)
	require.False(t, ok)
	done := mustAppend(t, l, "a", ledger.NoStream, batch("a", 3)...)
	mustAppend(t, l, "b", ledger.NoStream, prepare("X", "b"))
	last, ok, err := l.Head(t.Context(), "a")
	require.NoError(t, err)
	require.True(t, ok)
	requireSame(t, done.Events[2:], []ledger.Event{last})
}

func testCloseInFlight(t *testing.T, l ledger.Ledger, b Backend) {
	const writers = 16
	acknowledged := make([]int, writers)
	bad := make([]error, writers)
	done := make(chan struct{})
	started := make(chan struct{}, writers)
	go func() {
		defer close(done)
		race(writers, func(i int) {
			stream := ledger.StreamID(fmt.Sprintf("w%d", i))
			for {
				_, err := l.Append(context.Background(), stream, ledger.Version(acknowledged[i])-1, prepare("X", fmt.Sprint(acknowledged[i])))
				var conflict *ledger.ConflictError
				switch {
				case errors.As(err, &conflict) || errors.Is(err, ledger.ErrUnknownOutcome):
					bad[i] = err
					return
				case err != nil: // refused: closed
					return
				}
				if acknowledged[i]++; acknowledged[i] == 1 {
					started <- struct{}{}
				}
			}
		})
	}()
	for range writers {
		<-started
	}
	require.NoError(t, l.Close())
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("an append hangs after Close")
	}
	for i := range bad {
		require.NoError(t, bad[i])
	}
	if b.Volatile {
		return
	}
	again := b.Open(t)
	defer again.Close()
	for i, n := range acknowledged {
		require.Len(t, collect(t, again.ReadStream(t.Context(), ledger.StreamID(fmt.Sprintf("w%d", i)), 0)), n)
	}
	requireSound(t, again)
}

func testClosed(t *testing.T, l ledger.Ledger, _ Backend) {
	ctx := t.Context()
	mustAppend(t, l, "a", ledger.NoStream, prepare("X", "one"))
	ended := make(chan error, 1)
	following := make(chan struct{})
	go func() {
		for _, err := range l.Subscribe(ctx, 0) {
			if err != nil {
				ended <- err
				return
			}
			close(following)
		}
	}()
	<-following
	require.NoError(t, l.Close())
	require.NoError(t, l.Close(), "closing again")
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(patience):
		t.Fatal("the subscription outlives its ledger")
	}
	_, err := l.Append(ctx, "a", 0, prepare("X", "two"))
	require.Error(t, err)
	require.NotErrorIs(t, err, ledger.ErrUnknownOutcome)
	for _, err := range l.ReadAll(ctx, 0) {
		require.Error(t, err)
	}
	_, err = l.Root(ctx, 0)
	require.Error(t, err)
	_, _, err = l.Head(ctx, "a")
	require.Error(t, err)
	s, _ := signer(t, "test/closed")
	_, err = l.SignCheckpoint(ctx, s)
	require.Error(t, err)
	require.Error(t, l.Put(ctx, ledger.Blob{Data: []byte("x")}))
	_, err = l.Get(ctx, ledger.BlobKey{})
	require.Error(t, err)
	var absent *ledger.BlobAbsentError
	require.False(t, errors.As(err, &absent), "closed is not absent")
}

func testReopen(t *testing.T, l ledger.Ledger, b Backend) {
	if b.Volatile {
		return // nothing is promised
	}
	ctx := t.Context()
	fill(t, l, 100)
	blob := ledger.Blob{Salt: make([]byte, ledger.SaltSize), Data: []byte("kept")}
	require.NoError(t, l.Put(ctx, blob))
	s, _ := signer(t, "test/reopen")
	kept, err := l.SignCheckpoint(ctx, s)
	require.NoError(t, err)
	want := collect(t, l.ReadAll(ctx, 0))
	require.NoError(t, l.Close())

	again := b.Open(t)
	defer again.Close()
	requireSame(t, want, collect(t, again.ReadAll(ctx, 0)))
	last, ok, err := again.LastCheckpoint(ctx)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, kept, last)
	got, err := again.Get(ctx, blob.Key())
	require.NoError(t, err)
	require.Equal(t, blob, got)
	fill := mustAppend(t, again, "fill-0", 14, prepare("X", "after"))
	require.Equal(t, ledger.Index(100), fill.Last().Index)
	require.Equal(t, kept.Root, mustRoot(t, again, 100))
	requireSound(t, again)
}
