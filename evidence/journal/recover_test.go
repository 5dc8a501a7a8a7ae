package journal_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

// req G4: a fence is at exactly the generation named, and says where to retry otherwise.
func TestFence(t *testing.T) {
	led, j := begin(t)
	_, err := j.Fence(t.Context(), "one", 0, evidence.FencedByCancel, nil)
	var none *journal.NotFoundError
	require.ErrorAs(t, err, &none)
	p := claimed(t, j, "one")
	before := size(t, led)
	var moved *journal.GenerationError
	for _, g := range []uint64{0, 2, 1 << 63} {
		_, err = j.Fence(t.Context(), "one", g, evidence.FencedByRecover, nil)
		require.ErrorAs(t, err, &moved)
		require.EqualValues(t, 1, moved.Generation)
		require.Equal(t, g, moved.Asked)
	}
	require.Equal(t, before, size(t, led))

	q, err := j.Fence(t.Context(), "one", 1, evidence.FencedByRecover, nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, q.Attempt().Generation)
	_, err = p.Append(t.Context(), afterClaim()[0])
	require.ErrorIs(t, err, journal.ErrFenced)
	_, _, err = p.Finish(t.Context())
	require.ErrorIs(t, err, journal.ErrFenced, "a late finisher's append fails")
	record, end, err := q.Finish(t.Context())
	require.NoError(t, err)
	require.Equal(t, "recovered", record.Detail)
	late, at, err := p.Finish(t.Context())
	require.NoError(t, err)
	require.Equal(t, record, late, "and returns the attempt as it ended")
	require.Equal(t, end.Index, at.Index)
	_, err = j.Fence(t.Context(), "one", 2, evidence.FencedByCancel, nil)
	require.ErrorAs(t, err, &moved)
	require.Equal(t, evidence.StateFinished, moved.State)
	requireSound(t, led)
}

// req G4: a pending attempt is cancelled in one commit; a claim that comes in between wins or loses whole.
func TestCancelPendingAgainstClaim(t *testing.T) {
	led, j := begin(t)
	wins := map[bool]int{}
	for i := range 40 {
		id := evidence.AttemptID([]byte{'a', byte('a' + i/26), byte('a' + i%26)})
		_, err := j.Register(t.Context(), registration(id))
		require.NoError(t, err)
		var claimErr, cancelErr error
		var both sync.WaitGroup
		both.Go(func() { _, claimErr = open(led, "runner").Claim(t.Context(), id, 0, runner) })
		both.Go(func() { _, cancelErr = open(led, "operator").Fence(t.Context(), id, 0, evidence.FencedByCancel, nil) })
		both.Wait()
		a, err := j.Attempt(t.Context(), id)
		require.NoError(t, err)
		require.NotEqual(t, claimErr == nil, cancelErr == nil, "%v, %v", claimErr, cancelErr)
		require.EqualValues(t, 1, a.Fold.Generation)
		wins[cancelErr == nil]++
		if cancelErr == nil {
			require.Equal(t, evidence.StateFinished, a.Fold.State)
			require.Len(t, a.Events, 3)
			var lost *journal.NotPendingError
			require.ErrorAs(t, claimErr, &lost)
			continue
		}
		var moved *journal.GenerationError
		require.ErrorAs(t, cancelErr, &moved)
		require.EqualValues(t, 1, moved.Generation)
	}
	t.Log(wins)
	_, err := j.Register(t.Context(), registration("idle"))
	require.NoError(t, err)
	_, err = j.Fence(t.Context(), "idle", 0, evidence.FencedBySupervise, nil)
	var idle *journal.NotRunningError
	require.ErrorAs(t, err, &idle)
	requireSound(t, led)
}

// A runner that comes in before the fence with an append of its own is fenced all the same; one that
// finishes first has finished.
func TestFenceAgainstARunner(t *testing.T) {
	for name, c := range map[string]struct {
		first func(t *testing.T, p *journal.Appender)
		ended bool
	}{
		"another event": {func(t *testing.T, p *journal.Appender) {
			_, err := p.Append(t.Context(), afterClaim()[0])
			require.NoError(t, err)
		}, false},
		"its finish": {func(t *testing.T, p *journal.Appender) {
			_, _, err := p.Finish(t.Context())
			require.NoError(t, err)
		}, true},
		"another fence": {func(t *testing.T, p *journal.Appender) {
			_, err := p.Append(t.Context(), evidence.AttemptFenced{Generation: 2, By: evidence.FencedByCancel})
			require.NoError(t, err)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			led, j := begin(t)
			p := claimed(t, j, "one")
			h := open(&hooked{Ledger: led, Before: once("attempt-one", func() { c.first(t, p) })}, "operator")
			q, err := h.Fence(t.Context(), "one", 1, evidence.FencedByCancel, nil)
			if c.ended {
				var moved *journal.GenerationError
				require.ErrorAs(t, err, &moved)
				return
			}
			require.NoError(t, err)
			require.NotNil(t, q.Attempt().Materialized)
			requireSound(t, led)
		})
	}
}

// req G8: a full scan names what isn't finished, and what was listed and never opened.
func TestUnfinished(t *testing.T) {
	led, j := begin(t)
	u, err := j.Unfinished(t.Context())
	require.NoError(t, err)
	require.Empty(t, u.Attempts)
	for _, id := range []evidence.AttemptID{"one", "two", "three"} {
		claimed(t, j, id)
	}
	p, err := j.Fence(t.Context(), "two", 1, evidence.FencedByRecover, nil)
	require.NoError(t, err)
	_, _, err = p.Finish(t.Context())
	require.NoError(t, err)
	change(t, j, "c")
	_, err = j.Register(t.Context(), forChange("listed", "c"))
	require.NoError(t, err)
	func() {
		defer func() { require.NotNil(t, recover()) }()
		_, err := open(&hooked{Ledger: led, Before: func(s ledger.StreamID) {
			if s == "attempt-lost" {
				panic("crash")
			}
		}}, "operator").Register(t.Context(), forChange("lost", "c"))
		require.NoError(t, err)
	}()
	u, err = j.Unfinished(t.Context())
	require.NoError(t, err)
	require.Equal(t, []evidence.AttemptID{"one", "three", "listed"}, u.Attempts)
	require.Equal(t, []journal.Listing{{Change: "c", Attempt: "lost", Time: frozen().UnixNano()}}, u.Listed)
	_, err = j.Complete(t.Context(), "c", "lost")
	require.NoError(t, err)
	u, err = j.Unfinished(t.Context())
	require.NoError(t, err)
	require.Equal(t, []evidence.AttemptID{"one", "three", "listed", "lost"}, u.Attempts)
	require.Empty(t, u.Listed)
	require.Zero(t, u.Unread)

	// req E10: what newer versions list, in types or fields of theirs, hides nobody else.
	last, _, err := led.Head(t.Context(), "change-c")
	require.NoError(t, err)
	_, err = led.Append(t.Context(), last.Stream, last.Version,
		ledger.Prepared{Type: "AttemptOpened", Time: 1, Media: evidence.Media, Meta: last.Meta, Data: evidence.Marshal(map[int]int{1: 2, 99: 1})})
	require.NoError(t, err)
	newer, err := j.Unfinished(t.Context())
	require.NoError(t, err)
	require.Equal(t, journal.Unfinished{Attempts: u.Attempts, Listed: u.Listed, Unread: 1}, newer)
}

// req E10: custody events with later fields, and events of later types, hide no container; nothing but
// the frozen types can be appended without reading all.
func TestKeeper(t *testing.T) {
	led, j := begin(t)
	p := claimed(t, j, "one")
	h := evidencetest.Success()
	_, err := p.Append(t.Context(), afterClaim()[:3]...) // up to custody
	require.NoError(t, err)
	last, _, err := led.Head(t.Context(), "attempt-one")
	require.NoError(t, err)
	_, err = led.Append(t.Context(), last.Stream, last.Version,
		ledger.Prepared{Type: "SomethingNewer", Time: 1, Media: evidence.Media, Meta: last.Meta, Data: evidence.Marshal(map[int]int{1: 2})},
		ledger.Prepared{Type: "ContainerCreated", Time: 1, Media: evidence.Media, Meta: last.Meta, Data: evidence.Marshal(map[int]any{
			1: evidencetest.Handle, 2: evidencetest.Container, 99: "later",
		})})
	require.NoError(t, err)

	k, err := j.Keeper(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, 2, k.Unread())
	require.EqualValues(t, 1, k.Generation())
	require.Equal(t, runner.Home, k.Claimed().Home)
	require.Equal(t, evidencetest.Container, *k.Custodies().Open()[0].Container)
	for _, refused := range []evidence.Payload{*h.Snapshot, evidence.AttemptFinished{}, *h.Custody, evidence.CustodyAbandoned{Handle: evidencetest.Handle}} {
		_, err := k.Append(t.Context(), refused)
		require.ErrorContains(t, err, "newer version")
	}
	_, err = k.Append(t.Context(), *h.Removed)
	require.ErrorContains(t, err, "before it was ordered")
	_, err = k.Append(t.Context(), evidence.AttemptFenced{Generation: 3, By: evidence.FencedBySupervise})
	require.ErrorContains(t, err, "makes generation 3 out of 1")

	other, err := j.Keeper(t.Context(), "one")
	require.NoError(t, err)
	_, err = k.Append(t.Context(), evidence.AttemptFenced{Generation: 2, By: evidence.FencedBySupervise})
	require.NoError(t, err)
	_, err = other.Append(t.Context(), *h.Removal)
	require.ErrorIs(t, err, journal.ErrFenced)
	_, err = k.Append(t.Context(), *h.Removal, *h.Removed)
	require.NoError(t, err)
	require.Empty(t, k.Custodies().Open())
	again, err := j.Keeper(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, k.Custodies(), again.Custodies())
	require.EqualValues(t, 2, again.Generation())
	_, err = j.Keeper(t.Context(), "none")
	var none *journal.NotFoundError
	require.ErrorAs(t, err, &none)
}
