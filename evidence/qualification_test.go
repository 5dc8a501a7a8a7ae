package evidence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// watch is a runtime whose canaries were observed, event by event.
type watch struct {
	t     *testing.T
	next  evidence.EventIndex
	bound evidence.Bound
	trail evidence.RuntimeTrail
	runs  map[evidence.AttemptID]*evidence.CanaryRun
}

// observed is a runtime on which the corpus passed, from an index on.
func observed(t *testing.T, from evidence.EventIndex) *watch {
	h := evidencetest.Success()
	w := &watch{t: t, next: from, runs: map[evidence.AttemptID]*evidence.CanaryRun{},
		bound: evidence.Bound{Runtime: h.BeforeCreate.Identity.Digest(), Table: h.Registered.Table, Corpus: evidencetest.Corpus()}}
	w.trail.Runtime = w.bound.Runtime
	for _, c := range w.bound.Corpus.Canaries {
		w.observe(c, nil)
	}
	return w
}

// observe runs a canary's attempt and observes it, bent.
func (w *watch) observe(c evidence.Canary, bend func(*evidencetest.History, *evidence.CanaryObserved)) {
	h, e := evidencetest.Canary(w.bound.Corpus, c)
	if bend != nil {
		bend(h, &e)
	}
	var t evidence.AttemptTrail
	for _, p := range h.Finished() {
		require.NoError(w.t, t.Apply(w.next, p))
		w.next++
	}
	w.runs[h.Registered.Attempt] = t.CanaryRun()
	w.say(e)
}

func (w *watch) say(e evidence.CanaryObserved) {
	require.NoError(w.t, w.trail.Follow(w.next, uint64(len(w.trail.Canaries)), e))
	w.next++
}

func (w *watch) qualify() evidence.Qualification {
	return evidence.Qualify(w.bound, w.trail.Canaries, func(id evidence.AttemptID) *evidence.CanaryRun { return w.runs[id] })
}

// req H7
func TestQualifiedIsComputed(t *testing.T) {
	w := observed(t, 100)
	q := w.qualify()
	require.Equal(t, evidence.Qualified, q.Standing, "%v", q.Reasons)
	require.Empty(t, q.Reasons)
	require.Len(t, q.Carried, 3)
	for i, c := range w.trail.Canaries {
		require.Equal(t, c.At, q.Carried[i])
	}
	require.Equal(t, w.next-1, q.Last())
	require.Contains(t, q.Says(), "qualified on "+w.bound.Runtime.String()+", for this profile only")
	require.Equal(t, q, w.qualify(), "the same events give the same")

	w.trail.Canaries = nil
	q = w.qualify()
	require.Equal(t, evidence.NotQualified, q.Standing)
	require.Len(t, q.Reasons, 3)
	require.Contains(t, q.Says(), "never observed")
	require.Empty(t, q.Carried)
}

// What a qualification is bound to makes it stale, each fact alone.
//
// req H7
func TestWhateverItIsBoundToMakesItStale(t *testing.T) {
	identity := func(bend func(*evidence.RuntimeIdentity)) func(*watch) {
		return func(w *watch) {
			id := *evidencetest.Success().BeforeCreate.Identity
			bend(&id)
			w.bound.Runtime = id.Digest()
			for i := range w.trail.Canaries { // as if the events of the other runtime lay before us too
				w.trail.Canaries[i].Observed.Runtime = evidencetest.Success().BeforeCreate.Identity.Digest()
			}
		}
	}
	changes := map[string]func(*watch){
		"engine":  identity(func(id *evidence.RuntimeIdentity) { id.Daemon.Engine = "OTHER" }),
		"machine": identity(func(id *evidence.RuntimeIdentity) { id.Daemon.Machine = &evidence.MachineID{9} }),
		"build":   identity(func(id *evidence.RuntimeIdentity) { id.Build.Version = "28.5.2" }),
		"kernel":  identity(func(id *evidence.RuntimeIdentity) { id.Build.Kernel = "6.2" }),
		"profile": func(w *watch) { w.bound.Table[0]++ },
		"corpus":  func(w *watch) { w.bound.Corpus.Definition[0]++ },
		"one more canary": func(w *watch) {
			w.bound.Corpus.Canaries = append(slices.Clone(w.bound.Corpus.Canaries), evidence.Canary{Name: "z", Outcome: evidence.OutcomeSuccess})
		},
		"image": func(w *watch) {
			w.observe(w.bound.Corpus.Canaries[0], func(_ *evidencetest.History, e *evidence.CanaryObserved) { e.Image[0]++ })
		},
	}
	require.Len(t, changes, 8)
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w := observed(t, 1)
			change(w)
			q := w.qualify()
			require.Equal(t, evidence.Stale, q.Standing, "%v", q.Reasons)
			require.Contains(t, q.Says(), "stale")
			require.True(t, slices.ContainsFunc(q.Reasons, func(r evidence.CanaryReason) bool { return r.Stale && r.Index != nil }))
		})
	}
}

// A pass that its attempt doesn't bear out is none, whatever the event says.
//
// req H7
func TestAPassRestsOnItsAttempt(t *testing.T) {
	corpus := evidencetest.Corpus()
	first, oom, lacking := corpus.Canaries[0], corpus.Canaries[1], corpus.Canaries[2]
	forged := map[string]struct {
		says string
		do   func(*watch)
	}{
		"its attempt failed": {"came to failed", func(w *watch) {
			w.observe(first, func(h *evidencetest.History, e *evidence.CanaryObserved) {
				h.Exited.ExitCode = 1
				*e = evidencetest.Observe(h, corpus, first.Name)
			})
		}},
		"its attempt failed and another record is named": {"has record", func(w *watch) {
			w.observe(first, func(h *evidencetest.History, _ *evidence.CanaryObserved) { h.Exited.ExitCode = 1 })
		}},
		"the memory bound did not hold": {"came to success, not to incomplete", func(w *watch) {
			w.observe(oom, func(h *evidencetest.History, e *evidence.CanaryObserved) {
				h.Exited.OOMFlag, h.Exited.ExitCode = false, 0
				*e = evidencetest.Observe(h, corpus, oom.Name)
			})
		}},
		"no such attempt": {"not finished", func(w *watch) { delete(w.runs, evidencetest.CanaryAttempt(first)) }},
		"the attempt finished later": {"not finished before", func(w *watch) {
			w.runs[evidencetest.CanaryAttempt(first)].FinishedAt = w.next
		}},
		"another attempt's record": {"has record", func(w *watch) {
			other := *w.runs[evidencetest.CanaryAttempt(lacking)]
			other.FinishedAt = w.runs[evidencetest.CanaryAttempt(first)].FinishedAt
			w.runs[evidencetest.CanaryAttempt(first)] = &other
		}},
		"of a change": {"bound to a change", func(w *watch) { w.runs[evidencetest.CanaryAttempt(first)].AdHoc = false }},
		"another runtime": {"another runtime", func(w *watch) {
			w.runs[evidencetest.CanaryAttempt(first)].Runtime = &evidence.RuntimeDigest{1}
		}},
		"no runtime":      {"another runtime", func(w *watch) { w.runs[evidencetest.CanaryAttempt(first)].Runtime = nil }},
		"another profile": {"under profile", func(w *watch) { w.runs[evidencetest.CanaryAttempt(first)].Table[0]++ }},
		"not cleaned up":  {"removal", func(w *watch) { w.runs[evidencetest.CanaryAttempt(first)].Clean = false }},
		"not isolated":    {"isolation", func(w *watch) { w.runs[evidencetest.CanaryAttempt(first)].Isolated = false }},
		"failed": {"it failed (allowed)", func(w *watch) {
			w.observe(first, func(_ *evidencetest.History, e *evidence.CanaryObserved) {
				e.Verdict, e.Code = evidence.CanaryFailed, "allowed"
			})
		}},
		"not applicable": {"does not allow", func(w *watch) {
			w.observe(first, func(_ *evidencetest.History, e *evidence.CanaryObserved) {
				e.Verdict, e.Code = evidence.CanaryNotApplicable, "enosys"
			})
		}},
	}
	require.Len(t, forged, 14)
	for name, c := range forged {
		t.Run(name, func(t *testing.T) {
			w := observed(t, 1)
			c.do(w)
			q := w.qualify()
			require.Equal(t, evidence.NotQualified, q.Standing)
			require.Len(t, q.Reasons, 1)
			require.Contains(t, q.Reasons[0].Says, c.says)
			require.NotNil(t, q.Reasons[0].Index)
			require.Len(t, q.Carried, 2)
		})
	}

	w := observed(t, 1)
	w.observe(lacking, func(_ *evidencetest.History, e *evidence.CanaryObserved) {
		e.Verdict, e.Code = evidence.CanaryNotApplicable, "enosys"
	})
	require.Equal(t, evidence.Qualified, w.qualify().Standing, "the corpus allows that a kernel lacks it")
}

// The last word of each canary counts: a later failure ends a qualification, a later pass restores it.
//
// req H7
func TestTheLastObservationCounts(t *testing.T) {
	w := observed(t, 1)
	before := w.qualify()
	c := w.bound.Corpus.Canaries[0]
	w.observe(c, func(_ *evidencetest.History, e *evidence.CanaryObserved) {
		e.Verdict, e.Code = evidence.CanaryFailed, "allowed"
	})
	require.Equal(t, evidence.NotQualified, w.qualify().Standing)
	earlier := evidence.Qualify(w.bound, w.trail.UpTo(2), func(id evidence.AttemptID) *evidence.CanaryRun { return w.runs[id] })
	require.Equal(t, evidence.NotQualified, earlier.Standing, "the attempt named has run again since, later than the observation")
	w.observe(c, nil)
	q := w.qualify()
	require.Equal(t, evidence.Qualified, q.Standing)
	require.Greater(t, q.Last(), before.Last())
}

// Legal shapes of observations, corpora and contexts that name one.
//
// req H7
func TestShapesOfQualification(t *testing.T) {
	corpus := evidencetest.Corpus()
	_, e := evidencetest.Canary(corpus, corpus.Canaries[0])
	trail := evidence.RuntimeTrail{Runtime: e.Runtime}
	bad := map[string]func(*evidence.CanaryObserved){
		"is not 1 to":    func(e *evidence.CanaryObserved) { e.Canary = "Upper" },
		"attempt":        func(e *evidence.CanaryObserved) { e.Attempt = "" },
		"gives a reason": func(e *evidence.CanaryObserved) { e.Code = "x" },
		"without a code": func(e *evidence.CanaryObserved) { e.Verdict = evidence.CanaryFailed },
		"is none of":     func(e *evidence.CanaryObserved) { e.Verdict = "qualified" },
		"in the stream":  func(e *evidence.CanaryObserved) { e.Runtime[0]++ },
	}
	for says, bend := range bad {
		x := e
		bend(&x)
		var illegal *evidence.IllegalEventError
		require.ErrorAs(t, trail.Follow(1, 0, x), &illegal, says)
		require.Contains(t, illegal.Error(), says)
	}
	require.NoError(t, trail.Follow(1, 0, e))
	require.Error(t, trail.Follow(2, 1, evidence.EpochAdvanced{Epoch: 1}))
	require.Len(t, trail.Canaries, 1)
	got, err := evidence.RuntimeOf(evidence.RuntimePrefix + e.Runtime.Hex())
	require.NoError(t, err)
	require.Equal(t, e.Runtime, got)
	for _, s := range []string{"runtime-", "change-x", "runtime-" + strings.Repeat("A", 64)} {
		_, err := evidence.RuntimeOf(s)
		require.Error(t, err, s)
	}

	many := make([]evidence.Canary, evidence.MaxCanaries+1)
	for i := range many {
		many[i] = evidence.Canary{Name: evidence.CanaryName(fmt.Sprintf("c%04d", i)), Outcome: evidence.OutcomeSuccess}
	}
	require.NoError(t, evidence.Corpus{Version: 1, Canaries: many[1:]}.Check())
	for name, c := range map[string]evidence.Corpus{
		"version": {Canaries: many[:1]}, "none": {Version: 1}, "too many": {Version: 1, Canaries: many},
		"unsorted": {Version: 1, Canaries: []evidence.Canary{many[1], many[0]}}, "twice": {Version: 1, Canaries: []evidence.Canary{many[0], many[0]}},
		"a name":  {Version: 1, Canaries: []evidence.Canary{{Name: "", Outcome: evidence.OutcomeSuccess}}},
		"nothing": {Version: 1, Canaries: []evidence.Canary{{Name: "a", Outcome: evidence.OutcomeUnavailable}}},
	} {
		require.Error(t, c.Check(), name)
		q := evidence.Qualify(evidence.Bound{Corpus: c}, nil, func(evidence.AttemptID) *evidence.CanaryRun { return nil })
		require.Equal(t, evidence.NotQualified, q.Standing, name)
	}
	ctx := contextFor(evidencetest.Success())
	ctx.Corpus = &corpus
	require.ErrorContains(t, ctx.Check(), "no qualified runtime")
	ctx.RequireQualified = true
	require.NoError(t, ctx.Check())
	ctx.Corpus = &evidence.Corpus{}
	require.ErrorContains(t, ctx.Check(), "corpus version")
}
