package evidence_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

func verdict(t *testing.T, h *evidencetest.History) evidence.Verdict {
	t.Helper()
	a, err := evidence.Fold(h.Events()...)
	require.NoError(t, err)
	return evidence.VerdictOf(&a)
}

// req F1 req F2
func TestSuccessNeedsEverything(t *testing.T) {
	require.Equal(t, evidence.Verdict{Outcome: evidence.OutcomeSuccess, Detail: "ok"}, verdict(t, evidencetest.Success()))
}

// Each bend of a successful history takes exactly one thing that success needs away.
//
// req F2 req F3 req F5 req D2 req D3 req E6 req C9
func TestEachThingMissingIsItsOwnDetail(t *testing.T) {
	cases := []struct {
		name    string
		bend    func(*evidencetest.History)
		outcome evidence.Outcome
		detail  string
	}{
		{"exit 3", func(h *evidencetest.History) { h.Exited.ExitCode = 3 }, evidence.OutcomeFailed, "exit_nonzero"},
		{"exit 125 is the command's own", func(h *evidencetest.History) { h.Exited.ExitCode = 125 }, evidence.OutcomeFailed, "exit_nonzero"},
		{"exit 137", func(h *evidencetest.History) { h.Exited.ExitCode = 137 }, evidence.OutcomeIncomplete, "exit_137"},
		{"oom flag, exit 0", func(h *evidencetest.History) { h.Exited.OOMFlag = true }, evidence.OutcomeIncomplete, "oom"},
		{"oom event, exit 0", func(h *evidencetest.History) { h.Exited.OOMEvent = evidence.OOMSeen }, evidence.OutcomeIncomplete, "oom"},
		{"oom counted by the kernel", func(h *evidencetest.History) { h.Exited.OOMKills = 1 }, evidence.OutcomeIncomplete, "oom"},
		{"no die event", func(h *evidencetest.History) { h.Exited.OOMEvent = evidence.OOMUnknown }, evidence.OutcomeIncomplete, "oom_unknown"},
		{"state dead", func(h *evidencetest.History) { h.Exited.Status = "dead" }, evidence.OutcomeIncomplete, "invalid_state"},
		{"interference", func(h *evidencetest.History) { h.Exited.Interference = []string{"exec"} }, evidence.OutcomeIncomplete, "interfered"},
		{"daemon call failed", func(h *evidencetest.History) { h.Exited.Faults = []string{"wait"} }, evidence.OutcomeIncomplete, "transport_fault"},
		{"kill without a stored cause", func(h *evidencetest.History) { h.Exited.Unrecorded = evidence.StopTimeout }, evidence.OutcomeIncomplete, "stop_unrecorded"},
		{"no end of stdout", func(h *evidencetest.History) { h.Output.Stdout.EndOfStream = false }, evidence.OutcomeIncomplete, "capture_incomplete"},
		{"no end of stderr", func(h *evidencetest.History) { h.Output.Stderr.EndOfStream = false }, evidence.OutcomeIncomplete, "capture_incomplete"},
		{"capture says incomplete", func(h *evidencetest.History) { h.Output.Incomplete = true }, evidence.OutcomeIncomplete, "capture_incomplete"},
		{"no output event", func(h *evidencetest.History) { h.Output = nil }, evidence.OutcomeIncomplete, "capture_incomplete"},
		{"no runtime after exit", func(h *evidencetest.History) { h.AfterExit = nil }, evidence.OutcomeIncomplete, "runtime_changed"},
		{"other boot after exit", func(h *evidencetest.History) { h.AfterExit.Identity.Daemon.Boot[3]++ }, evidence.OutcomeIncomplete, "runtime_changed"},
		{"other build after exit", func(h *evidencetest.History) { h.AfterExit.Identity.Build.Version = "21" }, evidence.OutcomeIncomplete, "runtime_changed"},
		{"timeout", func(h *evidencetest.History) { h.Stop = stop(evidence.StopTimeout); h.Exited.ExitCode = 137 }, evidence.OutcomeTimedOut, "timeout"},
		{"cancelled", func(h *evidencetest.History) { h.Stop = stop(evidence.StopCancelled); h.Exited.ExitCode = 137 }, evidence.OutcomeCancelled, "cancelled"},
		{"output limit", func(h *evidencetest.History) {
			h.Stop = stop(evidence.StopOutput)
			h.Exited.ExitCode, h.Output.Stdout.Truncated, h.Output.Incomplete = 137, true, true
		}, evidence.OutcomeOutputLimit, "output_limit"},
		{"stopped on a fault", func(h *evidencetest.History) { h.Stop = stop(evidence.StopFault) }, evidence.OutcomeIncomplete, "transport_fault"},
		{"timeout beside an incomplete capture", func(h *evidencetest.History) {
			h.Stop, h.Output.Incomplete = stop(evidence.StopTimeout), true
		}, evidence.OutcomeTimedOut, "timeout"},
		{"cleanup missing", func(h *evidencetest.History) { h.Removal, h.Removed, h.Snapshot = nil, nil, nil }, evidence.OutcomeIndeterminate, "cleanup_unconfirmed"},
		{"kernel shows another value", func(h *evidencetest.History) {
			h.Kernel.Controls = []evidence.Control{{ID: 1, Kind: evidence.Kernel}}
		}, evidence.OutcomeIncomplete, "kernel_unequal"},
		{"the start failed", func(h *evidencetest.History) { noStart(h); h.Removed.State = evidence.CleanupRemoved }, evidence.OutcomeIncomplete, "not_started"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := evidencetest.Success()
			c.bend(h)
			v := verdict(t, h)
			require.Equal(t, c.outcome, v.Outcome)
			require.Equal(t, c.detail, v.Detail)
		})
	}
}

// Evidence that the kernel could not be read is no failure of a control.
//
// req C4 req C6
func TestUnavailableKernelEvidenceFailsNothing(t *testing.T) {
	h := evidencetest.Success()
	h.Kernel.Controls = []evidence.Control{{ID: 1, Kind: evidence.Unavailable, Reason: "gone"}}
	require.Equal(t, evidence.OutcomeSuccess, verdict(t, h).Outcome)
	h.Kernel = nil
	require.Equal(t, evidence.OutcomeSuccess, verdict(t, h).Outcome)
}

func stop(c evidence.StopCause) *evidence.StopOrdered {
	h := evidencetest.Handle
	return &evidence.StopOrdered{Handle: &h, Cause: c}
}

func noStart(h *evidencetest.History) {
	h.Ordered, h.Started, h.Kernel, h.Exited, h.Output, h.AfterExit = nil, nil, nil, nil, nil, nil
}

// req C5 req C8 req E1 law 2: the fold itself refuses what must never happen.
func TestIllegalHistories(t *testing.T) {
	cases := []struct {
		name string
		bend func(*evidencetest.History)
		typ  string
	}{
		{"custody without a claim", func(h *evidencetest.History) { h.Claimed = nil }, "SourceMaterialized"},
		{"create without a source", func(h *evidencetest.History) { h.Materialized, h.BeforeCreate = nil, nil }, "CustodyTaken"},
		{"create under a refused runtime", func(h *evidencetest.History) { h.BeforeCreate.Refusals = []string{"no_seccomp"} }, "CustodyTaken"},
		{"create under a reduction nobody accepted", func(h *evidencetest.History) { h.Claimed.Accepted = nil }, "CustodyTaken"},
		{"created without custody", func(h *evidencetest.History) { h.Custody = nil }, "ContainerCreated"},
		{"start after warnings", func(h *evidencetest.History) { h.Created.Warnings = 1 }, "StartOrdered"},
		{"start without isolation", func(h *evidencetest.History) { h.Isolation = nil }, "StartOrdered"},
		{"start with an unknown field", func(h *evidencetest.History) { h.Isolation.Unknown = 1 }, "StartOrdered"},
		{"start under another daemon", func(h *evidencetest.History) { h.BeforeStart.Identity.Daemon.Engine = "OTHER" }, "StartOrdered"},
		{"start without a second look at the daemon", func(h *evidencetest.History) { h.BeforeStart = nil }, "StartOrdered"},
		{"exit without a start order", func(h *evidencetest.History) { h.Ordered, h.Started, h.Kernel = nil, nil, nil }, "ContainerExited"},
		{"removal of another container", func(h *evidencetest.History) { h.Removal.Container[0]++ }, "RemovalOrdered"},
		{"absence before the removal order", func(h *evidencetest.History) { h.Removal = nil }, "RemovalObserved"},
		{"absence that isn't confirmed", func(h *evidencetest.History) { h.Removed.State = evidence.CleanupUnverifiable }, "RemovalObserved"},
		{"snapshot gone while a container may mount it", func(h *evidencetest.History) { h.Removed = nil }, "SnapshotRemoved"},
		{"stop after the exit", func(h *evidencetest.History) { h.Stop = nil; h.Exited = nil }, "OutputCaptured"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := evidencetest.Success()
			c.bend(h)
			_, err := evidence.Fold(h.Events()...)
			var illegal *evidence.IllegalEventError
			require.ErrorAs(t, err, &illegal)
			require.Equal(t, c.typ, illegal.Type, "%v", err)
		})
	}
}

// Every control of the table must be there, equal, and better than requested.
//
// req C5 req C6
func TestStartNeedsEveryControl(t *testing.T) {
	n := len(evidencetest.Success().Isolation.Controls)
	require.Positive(t, n)
	bends := []func(*evidence.IsolationObserved, int){
		func(o *evidence.IsolationObserved, i int) { o.Controls = slices.Delete(o.Controls, i, i+1) },
		func(o *evidence.IsolationObserved, i int) { o.Controls[i].Equal = false },
		func(o *evidence.IsolationObserved, i int) { o.Controls[i].Kind = evidence.Unavailable },
		func(o *evidence.IsolationObserved, i int) { o.Controls[i].Kind = evidence.Requested },
	}
	for i := range n {
		for b, bend := range bends {
			h := evidencetest.Success()
			bend(h.Isolation, i)
			_, err := evidence.Fold(h.Events()...)
			require.Error(t, err, "control %d bend %d", i, b)
			noStart(h)
			h.Removed.State = evidence.CleanupRemoved
			require.Equal(t, evidence.OutcomeUnavailable, verdict(t, h).Outcome)
		}
	}
}

// A full claim needs each control known as the table wants it; a reduced one doesn't. Only the
// seccomp profile may rest on a probe.
//
// req C4 req C6
func TestFullClaimNeedsItsKinds(t *testing.T) {
	table, err := evidence.ProfileByName(evidence.ProfileCommand)
	require.NoError(t, err)
	probe := &evidence.Basis{Stream: "runtime-x"}
	claim := func(i int, k evidence.EvidenceKind, p *evidence.Basis, reductions ...evidence.Reduction) (evidence.Claim, error) {
		h := evidencetest.Success()
		h.Isolation.Controls[evidence.CtlMountSpace-1].Kind = evidence.Accepted // no field of the API shows it
		h.Isolation.Controls[i].Kind = k
		for _, o := range []*evidence.RuntimeObserved{h.BeforeCreate, h.BeforeStart, h.AfterExit} {
			o.Reductions, o.Probe = reductions, p
		}
		a, err := evidence.Fold(h.Events()...)
		return evidence.RecordOf(&a).Claim, err
	}
	for i, spec := range table.Controls {
		for _, k := range []evidence.EvidenceKind{evidence.Accepted, evidence.Observed, evidence.Kernel} {
			_, err := claim(i, k, nil)
			require.Equal(t, slices.Contains(spec.Full, k), err == nil, "%s known as %s: %v", spec.Name, k, err)
			_, err = claim(i, k, probe)
			require.Equal(t, slices.Contains(spec.Full, k), err == nil, "%s known as %s beside a probe: %v", spec.Name, k, err)
			got, err := claim(i, k, nil, evidence.ReducedCgroupV1)
			require.NoError(t, err)
			require.Equal(t, evidence.ClaimReduced, got)
		}
		_, err := claim(i, evidence.Probed, nil, evidence.ReducedCgroupV1)
		require.ErrorContains(t, err, "no probe", spec.Name)
		got, err := claim(i, evidence.Probed, probe)
		if spec.ID == evidence.CtlSeccomp {
			require.NoError(t, err)
			require.Equal(t, evidence.ClaimFull, got)
		} else {
			require.ErrorContains(t, err, "no probe", spec.Name)
		}
	}
}

// What was seen of a start can't follow what was seen of its end.
func TestNoStartAfterTheExit(t *testing.T) {
	for _, late := range []evidence.Payload{
		evidence.ContainerStarted{Handle: evidencetest.Handle}, evidence.StartFailed{Handle: evidencetest.Handle, Code: "start_error"},
	} {
		h := evidencetest.Success()
		h.Started, h.Kernel = nil, nil
		events := h.Events()
		at := slices.IndexFunc(events, func(p evidence.Payload) bool { return p.EventType() == "ContainerExited" })
		_, err := evidence.Fold(slices.Insert(events, at+1, late)...)
		var illegal *evidence.IllegalEventError
		require.ErrorAs(t, err, &illegal)
		require.Equal(t, late.EventType(), illegal.Type)
	}
}

// req G4
func TestFencesDecideTheEnd(t *testing.T) {
	for by, want := range map[evidence.FencedBy]evidence.Outcome{
		evidence.FencedByCancel:    evidence.OutcomeCancelled,
		evidence.FencedByRecover:   evidence.OutcomeIncomplete,
		evidence.FencedBySupervise: evidence.OutcomeIncomplete,
	} {
		a, err := evidence.Fold(evidencetest.Success().Events()...)
		require.NoError(t, err)
		require.NoError(t, a.Apply(evidence.AttemptFenced{Generation: 2, By: by}))
		require.Equal(t, want, evidence.VerdictOf(&a).Outcome, "exit 0 and full output were recorded already")
		require.Error(t, a.Apply(evidence.AttemptFenced{Generation: 2, By: by}), "each fence adds one")
		require.Error(t, a.Apply(evidence.StopOrdered{Cause: evidence.StopCancelled}), "only a runner stops")
	}
	var pending evidence.Attempt
	require.NoError(t, pending.Apply(*evidencetest.Success().Registered))
	require.Error(t, pending.Apply(evidence.AttemptFenced{Generation: 1, By: evidence.FencedByRecover}))
	require.NoError(t, pending.Apply(evidence.AttemptFenced{Generation: 1, By: evidence.FencedByCancel}))
	require.Equal(t, evidence.OutcomeCancelled, evidence.VerdictOf(&pending).Outcome)
}

// req H5: a void claim creates nothing.
func TestVoidClaim(t *testing.T) {
	h := evidencetest.Success()
	a, err := evidence.Fold(*h.Registered, *h.Claimed, evidence.ClaimVoided{Breaking: evidence.Basis{Stream: "policy-main"}})
	require.NoError(t, err)
	require.Error(t, a.Apply(*h.Materialized))
	require.Error(t, a.Apply(*h.Custody))
	v := evidence.VerdictOf(&a)
	require.Equal(t, []any{evidence.OutcomeIncomplete, "void_claim", 4}, []any{v.Outcome, v.Detail, v.Exit})
	late, err := evidence.Fold(*h.Registered, *h.Claimed, *h.Materialized)
	require.NoError(t, err)
	require.Error(t, late.Apply(evidence.ClaimVoided{}))
}

// The stored digest must be the derived one, and nothing but a seal follows it.
//
// req F1 req G3
func TestFinishHoldsTheDerivedRecord(t *testing.T) {
	events := evidencetest.Success().Finished()
	a, err := evidence.Fold(events...)
	require.NoError(t, err)
	require.Equal(t, evidence.StateFinished, a.State)
	require.NoError(t, a.Apply(evidence.StreamSealed{}))
	require.Error(t, a.Apply(evidence.SnapshotRemoved{}))
	wrong := events[len(events)-1].(evidence.AttemptFinished)
	wrong.Record[0]++
	_, err = evidence.Fold(append(events[:len(events)-1], wrong)...)
	require.ErrorContains(t, err, "not the derived")
}

// Dropping, repeating or swapping any events of a legal history either is refused or never
// yields success. Seals anywhere change nothing.
//
// req F2
func TestNoEditOfAHistoryMakesSuccess(t *testing.T) {
	failed := evidencetest.Success()
	failed.Stop = stop(evidence.StopTimeout)
	failed.Exited.ExitCode = 9
	failed.Exited.OOMFlag = true
	r := rand.New(rand.NewPCG(1, 2))
	refused, folded := 0, 0
	whole := failed.Events()
	for range 20_000 {
		events := slices.Clone(whole)
		for range 1 + r.IntN(3) {
			i, j := r.IntN(len(events)), r.IntN(len(events))
			switch r.IntN(4) {
			case 0:
				if len(events) > 1 {
					events = slices.Delete(events, i, i+1)
				}
			case 1:
				events = slices.Insert(events, j, events[i])
			case 2:
				events[i], events[j] = events[j], events[i]
			case 3:
				events = slices.Insert(events, i, evidence.Payload(evidence.StreamSealed{}))
			}
		}
		a, err := evidence.Fold(events...)
		if err != nil {
			refused++
			continue
		}
		folded++
		require.NotEqual(t, evidence.OutcomeSuccess, evidence.VerdictOf(&a).Outcome, "%v", events)
	}
	require.Positive(t, refused)
	require.Positive(t, folded)
}

// req E10: a supervisor that doesn't know an event type still knows what to remove.
func TestCustodyFoldIsTolerant(t *testing.T) {
	h := evidencetest.Success()
	var cs evidence.Custodies
	newer := evidence.Marshal(map[uint64]any{1: h.Custody.Handle, 2: "container", 3: h.Custody.Name, 4: h.Custody.Request,
		5: map[uint64]any{1: "ENGINE", 3: evidence.Nonce{}, 4: 1, 5: 2, 6: 0, 99: "later"}, 77: "a later field"})
	require.NoError(t, cs.ApplyEncoded("SomethingNew", []byte{0xff}))
	require.NoError(t, cs.ApplyEncoded("CustodyTaken", newer))
	require.NoError(t, cs.ApplyEncoded("ContainerCreated", evidence.Marshal(*h.Created)))
	require.Len(t, cs.Open(), 1)
	require.Equal(t, evidencetest.Container, *cs.Open()[0].Container)
	require.NoError(t, cs.ApplyEncoded("RemovalOrdered", evidence.Marshal(*h.Removal)))
	require.NoError(t, cs.ApplyEncoded("RemovalObserved", evidence.Marshal(*h.Removed)))
	require.Empty(t, cs.Open())
	require.Error(t, cs.ApplyEncoded("RemovalObserved", evidence.Marshal(*h.Removed)))
}

// req E5: custody without an ID closes only by proof that the create can't complete any more.
func TestCustodyWithoutID(t *testing.T) {
	h := evidencetest.Success()
	var cs evidence.Custodies
	require.NoError(t, cs.Apply(*h.Custody))
	require.Error(t, cs.Apply(evidence.RemovalOrdered{Handle: evidencetest.Handle, Container: evidencetest.Container}))
	require.Error(t, cs.Apply(*h.Removed))
	require.Error(t, cs.Apply(evidence.CustodyAbandoned{Handle: evidencetest.Handle}), "not before an unconfirmed cleanup")
	ruled := slices.Clone(cs)
	require.NoError(t, ruled.Apply(evidence.CreateRuledOut{Handle: evidencetest.Handle, Proof: "refused", Status: 400}))
	require.Empty(t, ruled.Open())
	require.NoError(t, cs.Apply(evidence.CleanupUnconfirmed{Handle: evidencetest.Handle, State: evidence.CleanupUnverifiable, Code: "create_unanswered"}))
	require.NoError(t, cs.Apply(evidence.CustodyAbandoned{Handle: evidencetest.Handle}))
	require.Empty(t, cs.Open())
	require.True(t, cs[0].Abandoned)
}

func ExampleVerdictOf() {
	a, _ := evidence.Fold(evidencetest.Success().Events()...)
	v := evidence.VerdictOf(&a)
	fmt.Println(v.Outcome, v.Detail, v.Exit)
	// Output: success ok 0
}
