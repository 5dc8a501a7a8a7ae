package evidence_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// bends makes each cause hold on a folded, otherwise successful attempt. Folds are bent directly:
// the table must be total, whatever a history looks like.
var bends = map[string]func(*evidence.Attempt){
	"custody_abandoned":      func(a *evidence.Attempt) { a.Custodies[0].Abandoned = true },
	"cleanup_unconfirmed":    func(a *evidence.Attempt) { a.Custodies[0].Closed, a.Custodies[0].State = false, "" },
	"cancelled_by_operator":  func(a *evidence.Attempt) { fence(a, evidence.FencedByCancel) },
	"recovered":              func(a *evidence.Attempt) { fence(a, evidence.FencedByRecover) },
	"void_claim":             func(a *evidence.Attempt) { a.Voided = &evidence.ClaimVoided{} },
	"source_refused":         func(a *evidence.Attempt) { a.SourceRefusal = &evidence.SourceRefused{Code: "x"} },
	"cancelled_before_start": func(a *evidence.Attempt) { a.Run.Ordered = false; stops(a, evidence.StopCancelled) },
	"preflight_refused": func(a *evidence.Attempt) {
		a.Preflight = &evidence.PreflightObserved{Result: evidence.PreflightUnsafe}
	},
	"runtime_refused":        func(a *evidence.Attempt) { a.BeforeCreate.Refusals = []string{"no_seccomp"} },
	"reduction_not_accepted": func(a *evidence.Attempt) { a.Claimed.Accepted = nil },
	"create_refused": func(a *evidence.Attempt) {
		a.Custodies[0].State, a.Custodies[0].Proof = evidence.CleanupNotCreated, evidence.ProofRefused
	},
	"create_unanswered": func(a *evidence.Attempt) { a.Custodies[0].Discovered = true },
	"create_warnings":   func(a *evidence.Attempt) { a.Custodies[0].Warnings = 1 },
	"runtime_changed_before_start": func(a *evidence.Attempt) {
		a.BeforeStart.Identity.Daemon.Engine = "OTHER"
	},
	"isolation_refused":  func(a *evidence.Attempt) { a.Isolation.Unknown = 1 },
	"start_failed":       func(a *evidence.Attempt) { a.Run.StartFailed = &evidence.StartFailed{Code: "start_error"} },
	"not_started":        func(a *evidence.Attempt) { a.Run.Started = false },
	"interfered":         func(a *evidence.Attempt) { exited(a).Interference = []string{"exec"} },
	"kernel_unequal":     func(a *evidence.Attempt) { a.Run.Kernel.Controls = []evidence.Control{{ID: 1, Kind: evidence.Kernel}} },
	"timeout":            func(a *evidence.Attempt) { stops(a, evidence.StopTimeout) },
	"cancelled":          func(a *evidence.Attempt) { stops(a, evidence.StopCancelled) },
	"output_limit":       func(a *evidence.Attempt) { stops(a, evidence.StopOutput) },
	"workspace_limit":    func(a *evidence.Attempt) { stops(a, evidence.StopWorkspace) },
	"exit_not_observed":  func(a *evidence.Attempt) { a.Run.Exited = nil },
	"stop_unrecorded":    func(a *evidence.Attempt) { exited(a).Unrecorded = evidence.StopTimeout },
	"runtime_changed":    func(a *evidence.Attempt) { a.AfterExit = nil },
	"invalid_state":      func(a *evidence.Attempt) { exited(a).Status = "dead" },
	"oom":                func(a *evidence.Attempt) { exited(a).OOMFlag = true },
	"exit_137":           func(a *evidence.Attempt) { exited(a).ExitCode = 137 },
	"oom_unknown":        func(a *evidence.Attempt) { exited(a).OOMEvent = evidence.OOMUnknown },
	"transport_fault":    func(a *evidence.Attempt) { exited(a).Faults = []string{"wait"} },
	"capture_incomplete": func(a *evidence.Attempt) { a.Run.Output.Incomplete = true },
	"mutations_unknown": func(a *evidence.Attempt) {
		a.Registered.Profile, a.Mutated = evidence.ProfileContained, &evidence.WorkspaceMutated{Code: "git_made"}
	},
	"policy_unchecked": func(a *evidence.Attempt) {
		a.Registered.Policy, a.Mutated, a.Policy = &evidence.WorkspacePolicyDigest{1}, &evidence.WorkspaceMutated{}, nil
	},
	"policy_violated": func(a *evidence.Attempt) {
		a.Policy = &evidence.PolicyChecked{Checks: []evidence.CheckedRule{{Name: "max_files"}}}
	},
	"snapshot_left":   func(a *evidence.Attempt) { a.Snapshot = evidence.SnapshotKept },
	"cleanup_missing": func(a *evidence.Attempt) { a.Custodies[0].State = evidence.CleanupUnverifiable },
	"exit_nonzero":    func(a *evidence.Attempt) { exited(a).ExitCode = 3 },
}

// exclusive lists the pairs that can't hold together, each because both speak of one value.
var exclusive = map[[2]string]bool{
	{"cleanup_unconfirmed", "create_refused"}:     true, // one state of one custody
	{"custody_abandoned", "cleanup_unconfirmed"}:  true, // abandoned custody is not open
	{"create_refused", "cleanup_missing"}:         true, // one state of one custody
	{"cancelled_before_start", "timeout"}:         true, // the first stop decides
	{"cancelled_before_start", "output_limit"}:    true,
	{"cancelled_before_start", "workspace_limit"}: true,
	{"timeout", "workspace_limit"}:                true,
	{"cancelled", "workspace_limit"}:              true,
	{"output_limit", "workspace_limit"}:           true,
	{"timeout", "cancelled"}:                      true,
	{"timeout", "output_limit"}:                   true,
	{"cancelled", "output_limit"}:                 true,
	{"not_started", "exit_not_observed"}:          true, // what never started lacks nothing else
	{"not_started", "runtime_changed"}:            true,
	{"not_started", "cleanup_missing"}:            true,
	{"not_started", "mutations_unknown"}:          true,
	{"not_started", "policy_unchecked"}:           true,
	{"mutations_unknown", "policy_unchecked"}:     true, // without mutations there is nothing to check
	{"policy_unchecked", "policy_violated"}:       true,
	{"interfered", "exit_not_observed"}:           true, // without an exit event none of its fields holds
	{"exit_not_observed", "stop_unrecorded"}:      true,
	{"exit_not_observed", "invalid_state"}:        true,
	{"exit_not_observed", "oom"}:                  true,
	{"exit_not_observed", "exit_137"}:             true,
	{"exit_not_observed", "oom_unknown"}:          true,
	{"exit_not_observed", "transport_fault"}:      true,
	{"exit_not_observed", "exit_nonzero"}:         true,
}

func fence(a *evidence.Attempt, by evidence.FencedBy) {
	a.Generation++
	if len(a.Fences) == 0 || by == evidence.FencedByCancel { // the last fence decides: keep the higher cause
		a.Fences = append(a.Fences, evidence.AttemptFenced{Generation: a.Generation, By: by})
	}
}

func stops(a *evidence.Attempt, c evidence.StopCause) {
	a.Run.Stops = append(a.Run.Stops, evidence.StopOrdered{Cause: c})
}

// exited keeps a bend alive beside exit_not_observed: there is nothing to bend then.
func exited(a *evidence.Attempt) *evidence.ContainerExited {
	if a.Run.Exited == nil {
		return &evidence.ContainerExited{}
	}
	return a.Run.Exited
}

// req F4: every pair of causes, and every cause alone.
func TestPrecedenceOfEveryPair(t *testing.T) {
	table := evidence.Causes()
	require.Len(t, bends, len(table))
	pairs := 0
	for i, first := range table {
		for _, second := range table[i:] {
			if exclusive[[2]string{first.Detail, second.Detail}] {
				continue
			}
			// Bending in both orders: whichever was seen first, the table decides.
			for _, order := range [][2]string{{second.Detail, first.Detail}, {first.Detail, second.Detail}} {
				a, err := evidence.Fold(evidencetest.Success().Events()...)
				require.NoError(t, err)
				bends[order[0]](&a)
				bends[order[1]](&a)
				v := evidence.VerdictOf(&a)
				if order[1] == first.Detail {
					require.Contains(t, v.Causes, first.Detail, "%v", order)
				}
				require.Equal(t, v.Causes[0], v.Detail)
				decided := find(t, table, v.Detail)
				require.Equal(t, []any{decided.Outcome, decided.Exit}, []any{v.Outcome, v.Exit}, "%v", order)
				require.LessOrEqual(t, rank(table, v.Detail), rank(table, second.Detail), "%v", order)
				pairs++
			}
		}
	}
	t.Logf("count: %d ordered pairs of %d causes", pairs, len(table))
	require.Greater(t, pairs, 900)
}

func find(t *testing.T, table []evidence.Cause, detail string) evidence.Cause {
	t.Helper()
	i := rank(table, detail)
	require.GreaterOrEqual(t, i, 0)
	return table[i]
}

func rank(table []evidence.Cause, detail string) int {
	for i, c := range table {
		if c.Detail == detail {
			return i
		}
	}
	return -1
}

// docs/outcomes.md is printed from the table; BAILDOCK_UPDATE=1 writes it.
//
// req F4
func TestDocumentedOutcomes(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Outcomes

Printed from the table in package ` + "`evidence`" + `; a test compares the two. An outcome is computed from an
attempt's events by one pure function. Of the causes that hold, the first in this table decides
the outcome, the detail and the exit status; the record lists all that hold. When none holds,
absence of evidence included, the outcome is ` + "`success`" + `, the detail ` + "`ok`" + `, the exit status 0.

| | detail | outcome | exit | holds when |
|---|---|---|---|---|
`)
	for i, c := range evidence.Causes() {
		fmt.Fprintf(&b, "| %d | `%s` | `%s` | %d | %s |\n", i+1, c.Detail, c.Outcome, c.Exit, c.Means)
	}
	exits := map[evidence.Outcome][]string{evidence.OutcomeSuccess: {"0"}}
	for _, c := range evidence.Causes() {
		if s := fmt.Sprint(c.Exit); !strings.Contains(strings.Join(exits[c.Outcome], " "), s) {
			exits[c.Outcome] = append(exits[c.Outcome], s)
		}
	}
	b.WriteString("\n| outcome | exit |\n|---|---|\n")
	for _, o := range evidence.Outcomes() {
		require.NotEmpty(t, exits[o], "%s has no cause", o)
		fmt.Fprintf(&b, "| `%s` | %s |\n", o, strings.Join(exits[o], ", "))
	}
	const path = "../docs/outcomes.md"
	if os.Getenv("BAILDOCK_UPDATE") == "1" {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(got))
}

// FORMAT.md says exactly when each cause holds, in the table's order, and when each event of an
// attempt is legal: another verifier has nothing else.
//
// req F4
func TestFormatNamesEveryCauseAndEvent(t *testing.T) {
	b, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	section := func(from, to string) string {
		_, rest, ok := strings.Cut(string(b), "\n## "+from+"\n")
		require.True(t, ok, from)
		text, _, ok := strings.Cut(rest, "\n## "+to+"\n")
		require.True(t, ok, to)
		return text
	}
	var rows []string
	for line := range strings.Lines(section("Verdict", "Record")) {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			rows = append(rows, name)
		}
	}
	var want []string
	for _, c := range evidence.Causes() {
		want = append(want, c.Detail)
	}
	require.Equal(t, want, rows)

	legal := section("Legal histories of an attempt", "Verdict")
	seen := 0
	for _, typ := range evidence.EventTypes() {
		switch typ {
		case "LedgerOpened", "KeyAdded", "KeyRetired", "EpochAdvanced", "RuntimeProbed", "CanaryObserved",
			"ChangeOpened", "VersionAdded", "ContextSet", "AttemptOpened", "PathsChecked", "ContextApproved", "ChangeIntegrated": // of other streams
			continue
		}
		require.Contains(t, legal, typ)
		seen++
	}
	require.Greater(t, seen, 20)
}

// req F3: after a failed start, an observed end means that the command may have run; an exit alone
// leaves open whether there ever was a start, and can't be a success.
func TestNotStarted(t *testing.T) {
	failed := &evidence.StartFailed{Code: "start_unanswered"}
	for _, c := range []struct {
		failed *evidence.StartFailed
		exited bool
		want   bool
	}{{nil, false, true}, {nil, true, true}, {failed, false, true}, {failed, true, false}} {
		a, err := evidence.Fold(evidencetest.Success().Events()...)
		require.NoError(t, err)
		a.Run.Started, a.Run.StartFailed = false, c.failed
		if !c.exited {
			a.Run.Exited = nil
		}
		v := evidence.VerdictOf(&a)
		require.Equal(t, evidence.OutcomeIncomplete, v.Outcome)
		require.Equal(t, c.want, slices.Contains(v.Causes, "not_started"), v.Causes)
	}
}
