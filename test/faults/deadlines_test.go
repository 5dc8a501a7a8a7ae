package faults

import (
	"context"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
)

// mute is a store that doesn't answer some of what it is asked: until the caller gives up, or at all.
type mute struct {
	ledger.Ledger
	minds   bool          // it answers a caller that gave up
	finish  bool          // appends of AttemptFinished to the stream of attempt one
	reads   bool          // reads of that stream
	scan    bool          // reads of the whole ledger
	answers chan struct{} // closed: from now on it answers all, and what was asked before fails
}

func (m *mute) wait(ctx context.Context) error {
	var given <-chan struct{}
	if m.minds {
		given = ctx.Done()
	}
	select {
	case <-given:
		return ctx.Err()
	case <-m.answers:
		return errDisk
	}
}

func (m *mute) silent() bool {
	select {
	case <-m.answers:
		return false
	default:
		return true
	}
}

func (m *mute) Append(ctx context.Context, id ledger.StreamID, v ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	ends := slices.ContainsFunc(events, func(e ledger.Prepared) bool { return e.Type == "AttemptFinished" })
	if m.finish && ends && id == journal.AttemptStream("one") && m.silent() {
		return ledger.Appended{}, m.wait(ctx)
	}
	return m.Ledger.Append(ctx, id, v, events...)
}

func (m *mute) ReadStream(ctx context.Context, id ledger.StreamID, from ledger.Version) iter.Seq2[ledger.Event, error] {
	if m.reads && id == journal.AttemptStream("one") && m.silent() {
		return func(yield func(ledger.Event, error) bool) { yield(ledger.Event{}, m.wait(ctx)) }
	}
	return m.Ledger.ReadStream(ctx, id, from)
}

func (m *mute) ReadAll(ctx context.Context, from ledger.Index) iter.Seq2[ledger.Event, error] {
	if m.scan && m.silent() {
		return func(yield func(ledger.Event, error) bool) { yield(ledger.Event{}, m.wait(ctx)) }
	}
	return m.Ledger.ReadAll(ctx, from)
}

// req G8: an attempt whose store never answers, minding its deadline or not, takes a pass no longer than
// that deadline and holds up no other attempt; the next pass doesn't begin it beside itself, and ends
// it once the store answers.
func TestSuperviseDeadlines(t *testing.T) {
	const leave = time.Minute // beyond the deadline, for what minds none
	cells := 0
	for name, m := range map[string]mute{
		"a finish minding its deadline":   {finish: true, minds: true},
		"a finish":                        {finish: true},
		"a read minding its deadline":     {reads: true, minds: true},
		"a read":                          {reads: true},
		"the ledger minding its deadline": {scan: true, minds: true},
		"the ledger":                      {scan: true},
	} {
		cells++
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := wrecked(t, wrecks[0])
				s.register(t, s.registration("two"))
				s.watched.Ledger = &dead{Ledger: s.memory, from: wrecks[0].sickAt}
				_, err := s.warden().Run(t.Context(), warden.RunRequest{Attempt: "two", Path: s.source, Accepted: accepted}, nil)
				require.Error(t, err)
				require.Equal(t, evidence.StateRunning, s.stored(t, "two").Fold.State)

				m.Ledger, m.answers = s.memory, make(chan struct{})
				w := s.wardenOf(journal.New(journal.Config{Ledger: &m, Actor: "supervisor"}), s.driver)
				pass := func() map[evidence.AttemptID]warden.Supervised {
					met, err := w.Supervise(t.Context(), warden.Pass{Audit: true}, nil)
					require.NoError(t, err)
					out := map[evidence.AttemptID]warden.Supervised{}
					for _, one := range met {
						out[one.Attempt] = one
					}
					return out
				}
				begun := time.Now()
				met := pass()
				require.LessOrEqual(t, time.Since(begun), warden.RecoverBound+leave)
				require.Equal(t, warden.ActionRecovered, met["two"].Action, "%v", met)
				require.Equal(t, evidence.StateFinished, s.stored(t, "two").Fold.State)
				failing := evidence.AttemptID("one")
				if m.scan { // the home's locks name both
					failing = ""
					require.Equal(t, warden.ActionRecovered, met["one"].Action, "%v", met)
				}
				require.Equal(t, warden.ActionFailed, met[failing].Action, "%v", met)
				require.Error(t, met[failing].Err)

				begun = time.Now()
				met = pass()
				require.Equal(t, warden.ActionFailed, met[failing].Action, "%v", met)
				if !m.minds {
					require.Less(t, time.Since(begun), warden.RecoverBound, "what hangs is not begun again")
					require.Contains(t, met[failing].Detail, "an earlier pass began it")
				}
				close(m.answers)
				synctest.Wait()
				met = pass()
				require.NotContains(t, met, evidence.AttemptID(""))
				require.Equal(t, evidence.StateFinished, s.stored(t, "one").Fold.State, "%v", met)
				settle()
			})
		})
	}
	require.Equal(t, 6, cells)
}
