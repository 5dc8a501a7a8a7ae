package journal_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
)

// fence takes an attempt from its runner, as another process would.
func fence(t testing.TB, j *journal.Journal, id evidence.AttemptID, by evidence.FencedBy) *journal.Appender {
	t.Helper()
	a, err := j.Attempt(t.Context(), id)
	require.NoError(t, err)
	p := j.Appender(a)
	_, err = p.Append(t.Context(), evidence.AttemptFenced{Generation: a.Fold.Generation + 1, By: by})
	require.NoError(t, err)
	return p
}

// req G3 req F1
func TestARunIsItsEvents(t *testing.T) {
	led, j := begin(t)
	p := claimed(t, j, "one")
	for _, e := range afterClaim() {
		before := size(t, led)
		stored, err := p.Append(t.Context(), e)
		require.NoError(t, err)
		require.Len(t, stored, 1)
		require.Equal(t, before+1, size(t, led), "durable when made")
		_, m, err := journal.Decode(stored[0])
		require.NoError(t, err)
		require.Equal(t, "test", m.Actor)
		require.NotEmpty(t, m.Cause)
		require.NotEqual(t, evidence.Nonce{}, m.Nonce)
	}
	record, last, err := p.Finish(t.Context())
	require.NoError(t, err)
	require.Equal(t, evidence.OutcomeSuccess, record.Outcome)

	read, err := open(led, "reader").Attempt(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, p.Attempt(), read.Fold)
	require.Equal(t, read.Events[len(read.Events)-1], last)
	require.Equal(t, record.Digest(), read.Fold.Finished.Record)
	require.Equal(t, record, evidence.RecordOf(&read.Fold))
	requireSound(t, led)
}

// req G3
func TestABatchIsOneCommitAndIllegalEventsNeverReachTheLedger(t *testing.T) {
	led, j := begin(t)
	p := claimed(t, j, "one")
	events := afterClaim()
	before, fold := size(t, led), p.Attempt()

	_, err := p.Append(t.Context(), events[0], events[2]) // custody before the runtime was seen
	var illegal *evidence.IllegalEventError
	require.ErrorAs(t, err, &illegal)
	require.Equal(t, before, size(t, led))
	require.Equal(t, fold, p.Attempt())

	stored, err := p.Append(t.Context(), events...)
	require.NoError(t, err)
	require.Len(t, stored, len(events))
	for i, e := range stored {
		require.Equal(t, stored[0].Index+ledger.Index(i), e.Index)
	}
	requireSound(t, led)
}

// Toward G5: the recovery that removes a start in flight comes with its own rows.
func TestAFenceIsAChangedGeneration(t *testing.T) {
	for _, by := range []evidence.FencedBy{evidence.FencedByCancel, evidence.FencedByRecover} {
		t.Run(string(by), func(t *testing.T) {
			led, j := begin(t)
			p := claimed(t, j, "one")
			_, err := p.Append(t.Context(), afterClaim()[:2]...)
			require.NoError(t, err)
			other := fence(t, open(led, "operator"), "one", by)
			before := size(t, led)

			_, err = p.Append(t.Context(), afterClaim()[2]) // the stale runner takes custody: refused
			require.ErrorIs(t, err, journal.ErrFenced)
			var fenced *journal.FencedError
			require.ErrorAs(t, err, &fenced)
			require.EqualValues(t, 2, fenced.Generation)
			_, _, err = p.Finish(t.Context())
			require.ErrorIs(t, err, journal.ErrFenced)
			_, err = p.Append(t.Context(), evidence.StreamSealed{})
			require.ErrorIs(t, err, journal.ErrFenced, "a fenced appender stays fenced")
			require.Equal(t, before, size(t, led))

			_, err = other.Append(t.Context(), evidence.SnapshotRemoved{})
			require.NoError(t, err)
			want, last, err := other.Finish(t.Context())
			require.NoError(t, err)
			got, event, err := p.Finish(t.Context())
			require.NoError(t, err, "its own finish returns the finished attempt")
			require.Equal(t, want, got)
			require.Equal(t, last, event)
			requireSound(t, led)
		})
	}
}

// A conflict is not yet a fence.
//
// req E1
func TestASealInBetweenIsNoFence(t *testing.T) {
	led, j := begin(t)
	p := claimed(t, j, "one")
	for _, e := range afterClaim() {
		require.NoError(t, j.Seal(t.Context(), ledger.Index(size(t, led)-1), journal.AttemptStream("one")))
		_, err := p.Append(t.Context(), e)
		require.NoError(t, err)
	}
	require.NoError(t, j.Seal(t.Context(), ledger.Index(size(t, led)-1), journal.AttemptStream("one")))
	record, _, err := p.Finish(t.Context())
	require.NoError(t, err)
	require.Equal(t, evidence.OutcomeSuccess, record.Outcome)
	requireSound(t, led)
}

// Every append of a run is faulted once, in both ways that look alike to the writer.
//
// req R1 req G3
func TestUnknownOutcomesAreResolved(t *testing.T) {
	steps := len(afterClaim()) + 1
	for _, fault := range []ledgertest.Fault{ledgertest.ReplyLost, ledgertest.CommitLost} {
		for n := range steps + 1 { // the claim too
			led, j := begin(t)
			_, err := j.Register(t.Context(), registration("one"))
			require.NoError(t, err)
			faulty := open(ledgertest.NewFaulty(led, ledgertest.FaultAt(n, fault)), "test")
			before := size(t, led)
			p, err := faulty.Claim(t.Context(), "one", 0, runner)
			require.NoError(t, err)
			for _, e := range afterClaim() {
				_, err := p.Append(t.Context(), e)
				require.NoError(t, err)
			}
			_, _, err = p.Finish(t.Context())
			require.NoError(t, err)
			require.Equal(t, before+uint64(steps)+1, size(t, led), "each event exactly once")
			requireSound(t, led)
		}
	}
}

// A reply that stays lost is reported; the next call learns from the stream what became of it.
//
// req R1
func TestAnOutcomeThatStaysUnknownIsReported(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  ledgertest.Fault
		stored bool
	}{{"stored", ledgertest.ReplyLost, true}, {"lost", ledgertest.CommitLost, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the patience of several seconds passes at once
				led, j := begin(t)
				_, err := j.Register(t.Context(), registration("one"))
				require.NoError(t, err)
				broken := false
				faulty := ledgertest.NewFaulty(led, func(int, ledger.StreamID, []ledger.Prepared) ledgertest.Fault {
					if broken {
						return c.fault
					}
					return ledgertest.NoFault
				})
				p, err := open(faulty, "test").Claim(t.Context(), "one", 0, runner)
				require.NoError(t, err)
				before, tries := size(t, led), faulty.Appends()

				broken = true
				_, err = p.Append(t.Context(), afterClaim()[0])
				require.ErrorIs(t, err, ledger.ErrUnknownOutcome)
				require.Greater(t, faulty.Appends()-tries, 3)
				broken = false
				require.Equal(t, c.stored, size(t, led) > before)

				if !c.stored {
					_, err = p.Append(t.Context(), afterClaim()[0])
					require.NoError(t, err)
				}
				_, err = p.Append(t.Context(), afterClaim()[1:]...)
				require.NoError(t, err)
				_, _, err = p.Finish(t.Context())
				require.NoError(t, err)
				requireSound(t, led)
			})
		})
	}
}

// A refused retry says nothing about the try before it.
func TestARefusedRetryStaysUnknown(t *testing.T) {
	led, j := begin(t)
	n := 0
	faulty := ledgertest.NewFaulty(led, func(int, ledger.StreamID, []ledger.Prepared) ledgertest.Fault {
		n++
		return []ledgertest.Fault{ledgertest.ReplyLost, ledgertest.NotStored, ledgertest.NoFault}[min(n-1, 2)]
	})
	a, err := open(faulty, "test").Register(t.Context(), registration("one"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	again, err := j.Attempt(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, again, a)
}

func TestPatienceEndsWithTheContext(t *testing.T) {
	led, _ := begin(t)
	ctx, cancel := context.WithCancel(t.Context())
	faulty := ledgertest.NewFaulty(led, func(int, ledger.StreamID, []ledger.Prepared) ledgertest.Fault {
		cancel()
		return ledgertest.CommitLost
	})
	_, err := open(faulty, "test").Register(ctx, registration("one"))
	require.ErrorIs(t, err, ledger.ErrUnknownOutcome)
	require.ErrorIs(t, err, context.Canceled)
}

// req R6
func TestBlobsAreKeptUnderTheNamesEventsGiveThem(t *testing.T) {
	led, j := begin(t)
	h := evidencetest.Success()
	require.NotEmpty(t, h.Blobs)
	require.NoError(t, j.Keep(t.Context(), h.Blobs...))
	for _, w := range h.Blobs {
		got, err := j.Kept(t.Context(), w.Ref)
		require.NoError(t, err)
		require.Equal(t, w, got)
	}
	w := h.Blobs[0]
	w.Ref.Salted[0]++
	require.Error(t, j.Keep(t.Context(), w), "a reference that names something else")

	var absent *ledger.BlobAbsentError
	require.NoError(t, led.Forget(t.Context(), ledger.BlobKey(h.Blobs[0].Ref.Salted)))
	_, err := j.Kept(t.Context(), h.Blobs[0].Ref)
	require.ErrorAs(t, err, &absent)
	require.True(t, absent.Forgotten)
	_, err = j.Kept(t.Context(), w.Ref)
	require.ErrorAs(t, err, &absent)
	require.False(t, absent.Forgotten)

	// The bytes of one blob under the descriptor of another are not what the event names.
	mixed := evidence.BlobRef{Salted: h.Blobs[1].Ref.Salted, Descriptor: h.Blobs[2].Ref.Descriptor}
	_, err = j.Kept(t.Context(), mixed)
	require.ErrorContains(t, err, "does not fit")

	names, err := j.KeepPlain(t.Context(), []byte("plain"))
	require.NoError(t, err)
	b, err := led.Get(t.Context(), ledger.BlobKey(names[0]))
	require.NoError(t, err)
	require.Equal(t, "plain", string(b.Data))
}

// req D5: a ledger that doesn't answer one append keeps nobody waiting beyond what they allow.
func TestAStalledAppendHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		led, j := begin(t)
		claimed(t, j, "one")
		answer := make(chan struct{})
		slow := journal.New(journal.Config{Ledger: &hooked{Ledger: led, Before: func(ledger.StreamID) { <-answer }}, Actor: "test"})
		a, err := slow.Attempt(t.Context(), "one")
		require.NoError(t, err)
		p := slow.Appender(a)
		done := make(chan error)
		go func() {
			_, err := p.Append(t.Context(), afterClaim()[0])
			done <- err
		}()
		synctest.Wait()
		known := p.Attempt()
		require.Nil(t, known.Materialized, "what is under way is not known")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = p.Append(ctx, afterClaim()[0])
		require.ErrorIs(t, err, context.Canceled)
		_, _, err = p.Finish(ctx)
		require.ErrorIs(t, err, context.Canceled)
		close(answer)
		require.NoError(t, <-done)
		known = p.Attempt()
		require.NotNil(t, known.Materialized)
	})
}
