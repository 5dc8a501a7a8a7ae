package faults

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/warden"
)

// wreck is an attempt whose runner left it with something open, as a death at that place does.
type wreck struct {
	name   string
	scene  string
	faults []fakedaemon.Fault
	sickAt string // the ledger takes nothing from the append of this type on; "" = it works
	closes bool   // an undisturbed recovery finishes it
}

func always(c fakedaemon.Call, e fakedaemon.Effect) fakedaemon.Fault {
	return fakedaemon.Fault{Call: c, Times: fakedaemon.Always, Effect: e}
}

var wrecks = []wreck{
	{name: "source in place", scene: "good", sickAt: "RuntimeObserved", closes: true},
	{name: "create not sent", scene: "good", faults: []fakedaemon.Fault{always(fakedaemon.CallCreate, fakedaemon.DropBefore{})}},
	{name: "create late", scene: "good", faults: []fakedaemon.Fault{always(fakedaemon.CallCreate, fakedaemon.Late{})}, closes: true},
	{name: "create unheard", scene: "good", closes: true, faults: []fakedaemon.Fault{
		always(fakedaemon.CallCreate, fakedaemon.DropReply{}), always(fakedaemon.CallList, fakedaemon.Refuse{})}},
	{name: "ID not stored", scene: "good", sickAt: "ContainerCreated", closes: true},
	{name: "created", scene: "good", sickAt: "IsolationObserved", closes: true, faults: []fakedaemon.Fault{always(fakedaemon.CallRemove, fakedaemon.Refuse{})}},
	{name: "running", scene: "hangs", closes: true, faults: []fakedaemon.Fault{
		always(fakedaemon.CallKill, fakedaemon.Refuse{}), always(fakedaemon.CallRemove, fakedaemon.Refuse{})}},
	{name: "exited", scene: "good", closes: true, faults: []fakedaemon.Fault{always(fakedaemon.CallRemove, fakedaemon.Refuse{})}},
	{name: "exit not stored", scene: "good", sickAt: "ContainerExited", closes: true, faults: []fakedaemon.Fault{always(fakedaemon.CallRemove, fakedaemon.Ignored{})}},
	{name: "removed but not seen", scene: "good", sickAt: "RemovalObserved", closes: true},
	{name: "another daemon", scene: "good", closes: true, faults: []fakedaemon.Fault{{Call: fakedaemon.CallRemove, Effect: fakedaemon.Swapped{}}}},
}

func (w wreck) of() scene {
	for _, c := range scenes {
		if c.name == w.scene {
			return c
		}
	}
	panic("no scene " + w.scene)
}

// wrecked makes a site with the wreck on it, and nothing broken any more.
func wrecked(t testing.TB, w wreck) *site {
	c := w.of()
	s := begin(t, c)
	s.daemon.Fault(w.faults...)
	if w.sickAt != "" {
		s.watched.Ledger = &dead{Ledger: s.memory, from: w.sickAt}
	}
	res, err := s.run(t, c)
	a := s.check(t, c, res, err)
	require.Equal(t, evidence.StateRunning, a.Fold.State, types(a))
	s.watched.Ledger, s.taken = s.memory, len(s.daemon.Requests())
	return s
}

// recoverCell is a wreck whose recovery meets one broken thing.
type recoverCell struct {
	wreck
	by    evidence.FencedBy
	fault *fakedaemon.Fault
	ail   ail
	nth   int
	lasts bool
}

func (c recoverCell) String() string {
	name := c.wreck.name + "/"
	if c.fault != nil {
		return name + cell{fault: *c.fault}.String() + " " + string(c.by)
	}
	return name + ledgerCell{ail: c.ail, nth: c.nth, lasts: c.lasts}.String() + " " + string(c.by)
}

var fencers = []evidence.FencedBy{evidence.FencedByCancel, evidence.FencedByRecover, evidence.FencedBySupervise}

// recoverCells is everything that can break in a recovery of a wreck. want is its number, counted apart.
func recoverCells(t *testing.T, w wreck) (all []recoverCell, want int) {
	calls := map[fakedaemon.Call]int{}
	var well sick
	synctest.Test(t, func(t *testing.T) {
		s := wrecked(t, w)
		well.Ledger = s.memory
		s.watched.Ledger = &well
		seen := len(s.daemon.Requests())
		res, err := s.recover(t, evidence.FencedByRecover)
		require.Equal(t, w.closes, err == nil, "%v", err)
		require.Equal(t, w.closes, res.Finished)
		for _, r := range s.daemon.Requests()[seen:] {
			calls[r.Call]++
		}
		settle()
	})
	by := func() evidence.FencedBy { return fencers[len(all)%len(fencers)] }
	if len(calls) > 0 {
		for _, led := range []fakedaemon.Call{fakedaemon.CallInspect, fakedaemon.CallRemove} {
			calls[led]++
		}
	}
	for _, call := range fakedaemon.Calls() {
		for _, f := range fakedaemon.Cells(call) {
			for n := range calls[call] {
				f.Nth = n + 1
				for _, times := range []int{1, fakedaemon.Always} {
					one := f
					if f.Effect.Kind() == fakedaemon.KindFlip && times == fakedaemon.Always {
						break
					} else if f.Effect.Kind() != fakedaemon.KindFlip {
						one.Times = times
					}
					all = append(all, recoverCell{wreck: w, by: by(), fault: &one})
				}
			}
		}
	}
	for _, a := range ails {
		for n := range well.appends + 1 {
			if a == noBlob {
				break // a recovery keeps words only; TestLedgerTable breaks blobs
			}
			all = append(all, recoverCell{wreck: w, by: by(), ail: a, nth: n + 1})
			if a != conflict && a != fenced {
				all = append(all, recoverCell{wreck: w, by: by(), ail: a, nth: n + 1, lasts: true})
			}
		}
	}
	return all, ways(calls) + ailing(well.appends)
}

// recover ends attempt one in place of its runner.
func (s *site) recover(t testing.TB, by evidence.FencedBy) (warden.Result, error) {
	a := s.stored(t, "one")
	return s.wardenOf(s.journal, s.open(t)).Recover(t.Context(), warden.RecoverRequest{
		Attempt: "one", Generation: a.Fold.Generation, By: by, Reason: "because\n",
	}, nil)
}

// TestRecoveryTable breaks every call and every write of a recovery in every way, over every place
// that a runner may have died at, and recovers again.
//
// req G4, req G6, req G7, req E3, req E4, req E5, req F2
func TestRecoveryTable(t *testing.T) {
	var sum tally
	var all []recoverCell
	want := 0
	for _, w := range wrecks {
		some, n := recoverCells(t, w)
		all, want = append(all, some...), want+n
	}
	counted(t, all, want, 4_500)
	all = sample(all, 9, func(recoverCell) bool { return false })
	t.Run("cells", func(t *testing.T) {
		for _, c := range all {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := wrecked(t, c.wreck)
					if c.fault != nil {
						s.daemon.Fault(*c.fault)
					} else {
						s.watched.Ledger = &sick{Ledger: s.memory, ail: c.ail, nth: c.nth, lasts: c.lasts}
					}
					res, err := s.recover(t, c.by)
					s.audit(t)
					a := s.stored(t, "one")
					s.intents(t, a)
					s.calm()
					s.left(t, a)
					v := evidence.VerdictOf(&a.Fold)
					require.NotEqual(t, evidence.OutcomeSuccess, v.Outcome)
					var open *warden.UnconfirmedError
					switch {
					case err == nil:
						require.True(t, res.Finished)
						require.Equal(t, evidence.StateFinished, a.Fold.State)
						want := evidence.OutcomeIncomplete
						if a.Fold.Fences[len(a.Fold.Fences)-1].By == evidence.FencedByCancel {
							want = evidence.OutcomeCancelled
						}
						require.Equal(t, want, v.Outcome)
					case errors.As(err, &open): // req G6: it names where to retry
						require.Equal(t, a.Fold.Generation, open.Generation)
						require.NotEmpty(t, a.Fold.Custodies.Open())
						require.Equal(t, 6, res.Verdict.Exit)
					default:
						require.Nil(t, c.fault, "no daemon makes a recovery fail: %v", err)
					}
					sum.add(string(a.Fold.State) + ", " + s.recovered(t))
					settle()
				})
			})
		}
	})
	t.Logf("count: %d cells; %s", len(all), &sum)
	require.Equal(t, len(all), sum.n)
}

// req E5, req G7: custody that stayed open after a recovery may be given up: the attempt ends
// indeterminate, its handle in the record and its snapshot in place, and what comes late is shown.
func TestAbandonedWrecks(t *testing.T) {
	n := 0
	for _, w := range wrecks {
		if w.closes && w.name != "exited" {
			continue
		}
		n++
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := wrecked(t, w)
				s.daemon.Fault(w.faults...)
				_, err := s.recover(t, evidence.FencedByRecover)
				var open *warden.UnconfirmedError
				require.ErrorAs(t, err, &open)
				res, err := s.wardenOf(s.journal, s.driver).Recover(t.Context(), warden.RecoverRequest{
					Attempt: "one", Generation: open.Generation, By: evidence.FencedByRecover, Abandon: true,
				}, nil)
				require.NoError(t, err)
				require.True(t, res.Finished)
				require.Equal(t, evidence.OutcomeIndeterminate, res.Verdict.Outcome)
				require.Equal(t, 6, res.Verdict.Exit)
				require.Len(t, res.Record.Cleanup, 1)
				require.True(t, res.Record.Cleanup[0].Abandoned)
				require.Len(t, s.snapshots(t), 1)
				s.audit(t)
				s.calm()
				s.supervise(t)
				require.Len(t, s.snapshots(t), 1, "a container that was given up may mount it")
				settle()
			})
		})
	}
	require.Positive(t, n)
}
