package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
)

// Every error a script branches on has its exit code and stable code (req J4).
func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err  error
		exit int
		code string
	}{
		{usage("no"), 2, "usage"},
		{fmt.Errorf("wrapped: %w", usage("no")), 2, "usage"},
		{&ledger.ConflictError{Stream: "s"}, 3, "version_conflict"},
		{fmt.Errorf("x: %w", ledger.ErrUnknownOutcome), 9, "append_unknown"},
		{&source.RefusedError{Code: source.CodeSubmodule}, 2, "source_submodule"},
		{&docker.ArchiveRefusedError{Code: docker.ArchiveHost}, 2, "image_host"},
		{&journal.NotFoundError{Kind: journal.KindAttempt, ID: "a"}, 2, "attempt_not_found"},
		{&journal.TakenError{Attempt: "a"}, 3, "attempt_taken"},
		{&journal.NotCurrentError{}, 3, "not_current"},
		{&journal.NotPendingError{}, 3, "not_pending"},
		{&journal.BadEventError{}, 7, "bad_event"},
		{fmt.Errorf("write: %w", syscall.EPIPE), 9, "output_closed"},
		{context.Canceled, 9, "interrupted"},
		{errors.New("disk on fire"), 9, "internal"},
	} {
		f := classify(c.err)
		require.Equal(t, c.exit, f.Exit, "%v", c.err)
		require.Equal(t, c.code, f.Code, "%v", c.err)
		require.Regexp(t, regexp.MustCompile(`^[a-z][a-z0-9_]*$`), f.Code)
	}
}

func TestExit(t *testing.T) {
	u := &ui{}
	require.Equal(t, 0, u.exit(nil))
	require.Equal(t, 0, u.exit(exitWith(0)))
	require.Equal(t, 5, u.exit(exitWith(5)))
}

// "Not checked" is never exit 0.
func TestVerifyExit(t *testing.T) {
	for _, c := range []struct {
		r    verify.Report
		want int
	}{
		{verify.Report{}, 8},
		{verify.Report{Verdict: verify.Invalid, Reached: true}, 7},
		{verify.Report{Verdict: verify.NotChecked, Reached: true}, 8},
		{verify.Report{Verdict: verify.Valid}, 1},
		{verify.Report{Verdict: verify.Valid, Reached: true}, 0},
	} {
		require.Equal(t, c.want, verifyExit(c.r))
	}
}

// Every step that is printed belongs to a cause that exists.
func TestNextSteps(t *testing.T) {
	causes := map[string]bool{}
	for _, c := range evidence.Causes() {
		causes[c.Detail] = true
		v := attemptView{Attempt: "a", State: evidence.StateFinished, Outcome: &c.Outcome, Detail: c.Detail}
		require.NotEmpty(t, v.next(""))
		require.NotContains(t, v.next(""), "%!", c.Detail)
		require.Contains(t, v.why(), c.Means)
	}
	for detail := range nextSteps {
		require.True(t, causes[detail], "no cause is called %s", detail)
	}
}
