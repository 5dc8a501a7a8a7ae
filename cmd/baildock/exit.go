package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/projections"
)

// Exit codes: a contract with scripts.
const (
	exitOK           = 0 // success, admitted, verified; other verbs: done as asked
	exitFailed       = 1 // the contained command or a policy check failed; below the required level
	exitUsage        = 2 // usage, configuration, refused input: nothing recorded
	exitConflict     = 3 // version conflict
	exitRefused      = 4 // refused before start
	exitNoVerdict    = 5 // no verdict after start
	exitCleanup      = 6 // cleanup unconfirmed or abandoned
	exitBadEvidence  = 7 // verification found bad evidence; an unparsable bundle
	exitNotChecked   = 8 // not checked
	exitInternal     = 9 // internal or I/O error
	maxPropagated    = 255
	codeUsage        = "usage"
	codeInternal     = "internal"
	codeConflict     = "version_conflict"
	codeUnknown      = "append_unknown"
	codeInterrupted  = "interrupted"
	codeOutputClosed = "output_closed"
)

// failure is an error as a person and a script see it: what, why, a likely fix, a stable code and
// the exit code.
type failure struct {
	Exit int    `json:"exit"`
	Code string `json:"code"`
	What string `json:"what"`
	Fix  string `json:"hint,omitempty"`

	// Of a version conflict.
	Expected string `json:"expected,omitempty"`
	Actual   string `json:"actual,omitempty"`

	err error
}

func (f *failure) Error() string { return f.What }
func (f *failure) Unwrap() error { return f.err }

// hint adds the likely fix.
func (f *failure) hint(format string, args ...any) *failure {
	f.Fix = fmt.Sprintf(format, args...)
	return f
}

// usage is refused input, decided from the arguments alone.
func usage(format string, args ...any) *failure {
	return fail(exitUsage, codeUsage, format, args...)
}

// fail is an error with its exit code and stable code; %w keeps a cause.
func fail(exit int, code, format string, args ...any) *failure {
	err := fmt.Errorf(format, args...)
	return &failure{Exit: exit, Code: code, What: err.Error(), err: errors.Unwrap(err)}
}

// verdict ends the program with an exit code after everything was printed: not an error.
type verdict int

func (v verdict) Error() string { return fmt.Sprintf("exit %d", int(v)) }

// exitWith is nil for 0, so that verbs can return it.
func exitWith(code int) error {
	if code == exitOK {
		return nil
	}
	return verdict(code)
}

// classify is the one place where an error's type decides the exit code.
func classify(err error) *failure {
	var (
		f        *failure
		conflict *ledger.ConflictError
		refused  *source.RefusedError
		image    *docker.ArchiveRefusedError
		absent   *journal.NotFoundError
		taken    *journal.TakenError
		stale    *journal.NotCurrentError
		pending  *journal.NotPendingError
		damaged  *journal.BadEventError
		held     *warden.HeldError
		unknown  *projections.UnknownAttemptError
		several  *projections.AmbiguousError
		full     *warden.NoSpaceError
		asked    *projections.QueryError
		question *projections.QuestionError
	)
	if f := classifyRecovery(err); f != nil {
		return f
	}
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &conflict):
		f := fail(exitConflict, codeConflict, "%v", err).hint("read the stream again, then append after its last version")
		f.Expected, f.Actual = conflict.Expected.String(), conflict.Actual.String()
		return f
	case errors.Is(err, ledger.ErrUnknownOutcome):
		return fail(exitInternal, codeUnknown, "%v", err).
			hint("it may or may not be stored: read the stream before trying again")
	case errors.As(err, &refused):
		return fail(exitUsage, string(refused.Code), "%v", err)
	case errors.As(err, &image):
		return fail(exitUsage, string(image.Code), "%v", err)
	case errors.As(err, &absent):
		return notFound(absent, err)
	case errors.As(err, &taken):
		return fail(exitConflict, "attempt_taken", "%v", err).hint("choose another attempt ID")
	case errors.As(err, &stale):
		return fail(exitConflict, "not_current", "%v", err).hint("register a new attempt for what is current")
	case errors.As(err, &pending):
		return fail(exitConflict, "not_pending", "%v", err).hint("baildock why %s says where it stands", pending.Attempt)
	case errors.As(err, &unknown):
		return fail(exitUsage, "attempt_not_found", "%v", err).hint("baildock query attempts lists what is here")
	case errors.As(err, &several):
		return fail(exitUsage, "attempt_ambiguous", "%v", err)
	case errors.As(err, &asked):
		return fail(exitUsage, "query_refused", "%v", err).hint("baildock query sql --schema lists views and columns; only SELECT is answered")
	case errors.As(err, &question):
		return fail(exitUsage, codeUsage, "%v", err)
	case errors.As(err, &held):
		return fail(exitConflict, "attempt_held", "%v", err)
	case errors.Is(err, journal.ErrFenced):
		return fail(exitConflict, "attempt_fenced", "%v", err).hint("another process took it over; baildock why says how it ends")
	case errors.As(err, &full):
		return fail(exitRefused, "disk_full", "%v", err)
	case errors.As(err, &damaged):
		return fail(exitBadEvidence, "bad_event", "%v", err)
	case errors.Is(err, syscall.EPIPE):
		return fail(exitInternal, codeOutputClosed, "the reader of the output went away")
	case errors.Is(err, context.Canceled):
		return fail(exitInternal, codeInterrupted, "interrupted before it was done")
	case errors.Is(err, fs.ErrPermission):
		return fail(exitInternal, codeInternal, "%v", err).hint("check the owner and mode of that file")
	}
	return fail(exitInternal, codeInternal, "%v", err)
}

// notFound points to the verb that lists the kind of thing that isn't there, or makes it where none does.
func notFound(absent *journal.NotFoundError, err error) *failure {
	f := fail(exitUsage, string(absent.Kind)+"_not_found", "%v", err)
	switch absent.Kind {
	case journal.KindAttempt:
		return f.hint("baildock query attempts lists what is here")
	case journal.KindChange:
		return f.hint("baildock change list lists what is here")
	case journal.KindPolicy:
		return f.hint("baildock policy advance %s opens it", absent.ID)
	}
	return f
}

// exit prints what there is to say about the end and returns the exit code.
func (u *ui) exit(err error) int {
	u.progressDone()
	if err == nil {
		return exitOK
	}
	var v verdict
	if errors.As(err, &v) {
		return int(v)
	}
	f := classify(err)
	if u.json {
		b, jsonErr := json.Marshal(map[string]any{"error": f})
		if jsonErr == nil {
			fmt.Fprintf(u.err, "%s\n", b)
			return f.Exit
		}
	}
	fmt.Fprintf(u.err, "baildock: %s [%s]\n", visible(f.What), f.Code)
	if f.Fix != "" {
		fmt.Fprintf(u.err, "  hint: %s\n", visible(f.Fix))
	}
	return f.Exit
}
