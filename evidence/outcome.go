package evidence

import "slices"

// Outcome is the verdict on an attempt (req F1).
type Outcome string

const (
	OutcomeSuccess       Outcome = "success"
	OutcomeFailed        Outcome = "failed"        // the command's own exit status
	OutcomeTimedOut      Outcome = "timed_out"     // wall time exceeded
	OutcomeCancelled     Outcome = "cancelled"     // by signal or operator
	OutcomeOutputLimit   Outcome = "output_limit"  // wrote more than the bound
	OutcomeIncomplete    Outcome = "incomplete"    // started or staged, but the evidence doesn't carry a verdict
	OutcomeUnavailable   Outcome = "unavailable"   // refused before start
	OutcomeIndeterminate Outcome = "indeterminate" // a container may still exist
)

// Outcomes lists every outcome in its documented order.
func Outcomes() []Outcome {
	return []Outcome{OutcomeSuccess, OutcomeFailed, OutcomeTimedOut, OutcomeCancelled, OutcomeOutputLimit,
		OutcomeIncomplete, OutcomeUnavailable, OutcomeIndeterminate}
}

// Cause is one row of the precedence table (req F4): why an attempt isn't a success.
type Cause struct {
	Detail  string // stable machine-readable code
	Outcome Outcome
	Exit    int    // of the command line
	Means   string // for people
	holds   func(*Attempt) bool
}

// causes is the precedence table: of the causes that hold, the first decides. It is also the
// source of docs/outcomes.md.
var causes = []Cause{
	{"custody_abandoned", OutcomeIndeterminate, 6, "an operator gave up a container that may still exist", (*Attempt).abandoned},
	{"cleanup_unconfirmed", OutcomeIndeterminate, 6, "custody of a container is open", func(a *Attempt) bool { return len(a.Custodies.Open()) > 0 }},
	{"cancelled_by_operator", OutcomeCancelled, 5, "cancelled from outside; its runner was fenced", func(a *Attempt) bool { return a.fencedBy(FencedByCancel) }},
	{"recovered", OutcomeIncomplete, 5, "its runner was fenced and the attempt recovered", (*Attempt).Fenced},
	{"void_claim", OutcomeIncomplete, 4, "the claim lost a race against a change of epoch or context", func(a *Attempt) bool { return a.Voided != nil }},
	{"source_refused", OutcomeIncomplete, 4, "the source may not be mounted or could not be read", func(a *Attempt) bool { return a.SourceRefusal != nil }},
	{"cancelled_before_start", OutcomeCancelled, 5, "cancelled by signal before the command started", func(a *Attempt) bool { return !a.Run.Ordered && a.stopCause() == StopCancelled }},
	{"preflight_refused", OutcomeUnavailable, 4, "the preflight found what containment needs missing or in conflict", (*Attempt).preflightRefused},
	{"runtime_refused", OutcomeUnavailable, 4, "the daemon, runtime or image lacks a requirement", func(a *Attempt) bool { return a.BeforeCreate != nil && len(a.BeforeCreate.Refusals) > 0 }},
	{"reduction_not_accepted", OutcomeUnavailable, 4, "the runtime allows only a reduced claim that was not accepted", func(a *Attempt) bool { return len(a.unaccepted()) > 0 }},
	{"create_refused", OutcomeUnavailable, 4, "the daemon refused to create the container", (*Attempt).createRuledOut},
	{"create_unanswered", OutcomeIncomplete, 5, "the create's answer proves nothing; the container was found by its labels and removed", func(a *Attempt) bool { c, ok := a.Custodies.MainContainer(); return ok && c.Discovered }},
	{"create_warnings", OutcomeUnavailable, 4, "the daemon created the container with warnings", func(a *Attempt) bool { c, ok := a.Custodies.MainContainer(); return ok && c.Warnings > 0 }},
	{"runtime_changed_before_start", OutcomeUnavailable, 4, "the daemon before start is not the one before create", func(a *Attempt) bool { return a.BeforeStart != nil && !a.sameRuntime(a.BeforeStart) }},
	{"isolation_refused", OutcomeUnavailable, 4, "a control of the created container differs, is missing or can't be read", func(a *Attempt) bool { return a.Isolation != nil && !a.Isolation.holds(a.Registered.Table) }},
	{"start_failed", OutcomeIncomplete, 5, "the daemon could not start the command", func(a *Attempt) bool { return a.Run.StartFailed != nil }},
	{"not_started", OutcomeIncomplete, 5, "the command was not started, as far as is recorded", (*Attempt).notStarted},
	{"interfered", OutcomeIncomplete, 5, "somebody else acted on the container, or it changed after it was inspected", func(a *Attempt) bool { return a.Run.Exited != nil && len(a.Run.Exited.Interference) > 0 }},
	{"kernel_unequal", OutcomeIncomplete, 5, "the kernel showed a control other than expected", (*Attempt).kernelUnequal},
	{"timeout", OutcomeTimedOut, 5, "the command exceeded its wall time", func(a *Attempt) bool { return a.stopCause() == StopTimeout }},
	{"cancelled", OutcomeCancelled, 5, "cancelled by signal", func(a *Attempt) bool { return a.stopCause() == StopCancelled }},
	{"output_limit", OutcomeOutputLimit, 5, "the command wrote more than its output bound", func(a *Attempt) bool { return a.stopCause() == StopOutput }},
	{"workspace_limit", OutcomeOutputLimit, 5, "the workspace outgrew its bounds", func(a *Attempt) bool { return a.stopCause() == StopWorkspace }},
	{"exit_not_observed", OutcomeIncomplete, 5, "the end of the command was not observed", func(a *Attempt) bool { return a.Run.Started && a.Run.Exited == nil }},
	{"stop_unrecorded", OutcomeIncomplete, 5, "the container was killed before the cause could be stored", func(a *Attempt) bool { return a.Run.Exited != nil && a.Run.Exited.Unrecorded != "" }},
	{"runtime_changed", OutcomeIncomplete, 5, "the daemon after the exit is not the one before", func(a *Attempt) bool { return a.Run.Started && !a.sameRuntime(a.AfterExit) }},
	{"invalid_state", OutcomeIncomplete, 5, "the stopped container was not in the state exited", func(a *Attempt) bool { return a.Run.Exited != nil && a.Run.Exited.Status != "exited" }},
	{"oom", OutcomeIncomplete, 5, "memory ran out", (*Attempt).oomSeen},
	{"transport_fault", OutcomeIncomplete, 5, "a daemon call failed or stayed unanswered", (*Attempt).faulted},
	{"exit_137", OutcomeIncomplete, 5, "exit status 137: killed, whatever sent the signal", func(a *Attempt) bool { return a.exit() == 137 }},
	{"oom_unknown", OutcomeIncomplete, 5, "the event source could not rule out that memory ran out", func(a *Attempt) bool { return a.Run.Exited != nil && a.Run.Exited.OOMEvent != OOMNone }},
	{"capture_incomplete", OutcomeIncomplete, 5, "the output was not captured to its end", (*Attempt).captureIncomplete},
	{"mutations_unknown", OutcomeIncomplete, 5, "what the agent changed could not be captured", (*Attempt).mutationsUnknown},
	{"policy_unchecked", OutcomeIncomplete, 5, "the changes were not held against the workspace policy", (*Attempt).policyUnchecked},
	{"snapshot_left", OutcomeIncomplete, 5, "the source snapshot could not be removed", (*Attempt).snapshotLeft},
	{"cleanup_missing", OutcomeIncomplete, 5, "no removal of the container was observed", func(a *Attempt) bool { return a.Run.Started && !a.removed() }},
	{"exit_nonzero", OutcomeFailed, 1, "the command exited with a non-zero status", func(a *Attempt) bool { return a.exit() != 0 }},
	{"policy_violated", OutcomeSuccess, 1, "the command succeeded, and its changes break the workspace policy", (*Attempt).policyViolated},
}

// Causes returns the precedence table, first to last.
func Causes() []Cause { return slices.Clone(causes) }

// DetailOK is the detail of a success without any cause against it. Another detail beside the
// outcome success says what the run did that it may not (req N7).
const DetailOK = "ok"

// Verdict is what an attempt's events say.
type Verdict struct {
	Outcome Outcome
	Detail  string   // the deciding cause; DetailOK without any
	Causes  []string // every cause that holds, in order of precedence
	Exit    int
}

// VerdictOf computes the verdict of an attempt from its events before AttemptFinished. It is
// total: an attempt that is still running gets the verdict it would have if it ended here.
// Success is what remains when every cause, absence of evidence included, is ruled out (req F2).
func VerdictOf(a *Attempt) Verdict {
	v := Verdict{Outcome: OutcomeSuccess, Detail: DetailOK}
	for _, c := range causes {
		if !c.holds(a) {
			continue
		}
		if len(v.Causes) == 0 {
			v.Outcome, v.Detail, v.Exit = c.Outcome, c.Detail, c.Exit
		}
		v.Causes = append(v.Causes, c.Detail)
	}
	return v
}

func (a *Attempt) fencedBy(by FencedBy) bool {
	// The last fence decides: it is the use case that ended the attempt.
	return a.Fenced() && a.Fences[len(a.Fences)-1].By == by
}

// stopCause is the first recorded cause that is a verdict.
func (a *Attempt) stopCause() StopCause {
	for _, s := range a.Run.Stops {
		if s.Cause != StopFault {
			return s.Cause
		}
	}
	return ""
}

func (a *Attempt) createRuledOut() bool {
	c, ok := a.Custodies.MainContainer()
	return ok && (c.Proof == ProofRefused || c.Proof == ProofNotSent)
}

func (a *Attempt) kernelUnequal() bool {
	return a.Run.Kernel != nil && slices.ContainsFunc(a.Run.Kernel.Controls, func(c Control) bool {
		return !c.Equal && c.Kind != Unavailable
	})
}

func (a *Attempt) oomSeen() bool {
	x := a.Run.Exited
	return x != nil && (x.OOMFlag || x.OOMEvent == OOMSeen || x.OOMKills > 0)
}

func (a *Attempt) exit() int64 {
	if a.Run.Exited == nil {
		return 0
	}
	return a.Run.Exited.ExitCode
}

func (a *Attempt) faulted() bool {
	return a.Run.Exited != nil && len(a.Run.Exited.Faults) > 0 ||
		slices.ContainsFunc(a.Run.Stops, func(s StopOrdered) bool { return s.Cause == StopFault })
}

// What a run that never started doesn't have is no cause: not_started says it once.

func (a *Attempt) captureIncomplete() bool {
	if a.Run.Output == nil {
		return a.Run.Started
	}
	return a.Run.Output.incomplete()
}

// notStarted doesn't hold once a failed start was followed by an observed end: then it may have run,
// and start_failed says all that is known. An exit without any word of the start stays a cause.
func (a *Attempt) notStarted() bool {
	return !a.Run.Started && (a.Run.StartFailed == nil || a.Run.Exited == nil)
}

func (a *Attempt) snapshotLeft() bool {
	return a.Snapshot == SnapshotKept || a.Run.Started && a.Snapshot != SnapshotGone
}

func (o *OutputCaptured) incomplete() bool {
	return o.Incomplete || o.Stdout.Truncated || o.Stderr.Truncated || !o.Stdout.EndOfStream || !o.Stderr.EndOfStream
}

func (a *Attempt) removed() bool {
	c, ok := a.Custodies.MainContainer()
	return ok && c.Closed && c.State.confirmed()
}
