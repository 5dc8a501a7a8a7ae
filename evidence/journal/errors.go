package journal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// NotFoundError says that nothing of that name is in the ledger.
type NotFoundError struct {
	Kind Kind
	ID   string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("there is no %s %q", e.Kind, e.ID) }

// BadEventError names an event that doesn't mean what it should: the first bad one, when it
// comes from Meaning.
type BadEventError struct {
	Index    ledger.Index
	Stream   ledger.StreamID
	Version  ledger.Version
	Field    string // media, stream, meta and data, history, basis, record, …
	Expected string
	Found    string
	Err      error // the cause, where there is one
}

func (e *BadEventError) Error() string {
	return fmt.Sprintf("bad event at index %d (stream %s, version %s): %s is %s, expected %s",
		e.Index, e.Stream, e.Version, e.Field, e.Found, e.Expected)
}

func (e *BadEventError) Unwrap() error { return e.Err }

func bad(e ledger.Event, field, expected, found string) *BadEventError {
	return &BadEventError{Index: e.Index, Stream: e.Stream, Version: e.Version, Field: field, Expected: expected, Found: found}
}

func badHistory(e ledger.Event, err error) *BadEventError {
	b := bad(e, "history", "an event that may follow", e.Type+": "+err.Error())
	b.Err = err
	return b
}

// TakenError says that an attempt ID already stands for another input (req G1).
type TakenError struct {
	Attempt evidence.AttemptID
	Differs []string // what differs: binding, subject, recipe, environment, …
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("attempt %s is registered with another %s; choose another attempt ID", e.Attempt, strings.Join(e.Differs, ", "))
}

// NotCurrentError says that a change or a policy has moved on, or isn't ready yet.
type NotCurrentError struct {
	Stream   ledger.StreamID
	What     string // version, context, revision, epoch, recipe
	Expected string
	Found    string
}

func (e *NotCurrentError) Error() string {
	return fmt.Sprintf("%s of %s is %s, not %s", e.What, e.Stream, e.Found, e.Expected)
}

// NotPendingError says that an attempt can't be claimed at the generation named, and who has it.
type NotPendingError struct {
	Attempt    evidence.AttemptID
	Asked      uint64 // generation named by the caller
	Generation uint64 // where the attempt stands
	State      evidence.State
	Claimed    *evidence.AttemptClaimed // the winning claim, if there is one
	Actor      string                   // who wrote the winning claim
	Index      ledger.Index             // of the winning claim
}

func (e *NotPendingError) Error() string {
	s := fmt.Sprintf("attempt %s is %s at generation %d; it can't be claimed at generation %d", e.Attempt, e.State, e.Generation, e.Asked)
	if e.Claimed != nil {
		s += fmt.Sprintf(": %s of home %s claimed it (index %d)", e.Actor, e.Claimed.Home.Home, e.Index)
	}
	return s
}

// VoidClaimError says that a claim was stored and is void: Breaking came before it and took its
// ground away (req H5). The appender that comes with it appends ClaimVoided and finishes.
type VoidClaimError struct {
	Attempt  evidence.AttemptID
	Breaking evidence.Basis
	Index    ledger.Index // of the breaking event
	Type     string       // of the breaking event
}

func (e *VoidClaimError) Error() string {
	return fmt.Sprintf("the claim of attempt %s is void: %s in stream %s (version %d, index %d) came before it",
		e.Attempt, e.Type, e.Breaking.Stream, e.Breaking.Version, e.Index)
}

// NotAdmittedError says that a change may not be approved or integrated, with every reason. Nothing
// was appended but evidence of source-paths/v1.
type NotAdmittedError struct {
	Change   evidence.ChangeID
	What     string // approved, integrated
	Decision evidence.Decision
}

func (e *NotAdmittedError) Error() string {
	var why []string
	for _, r := range e.Decision.Broken() {
		s := r.Says
		if r.Attempt != "" {
			s = "attempt " + string(r.Attempt) + ": " + s
		}
		if r.Index != nil {
			s += fmt.Sprintf(" (index %d)", *r.Index)
		}
		why = append(why, s)
	}
	return fmt.Sprintf("change %s can't be %s: %s", e.Change, e.What, strings.Join(why, "; "))
}

// VoidJudgementError says that an approval or integration was stored and is void: Breaking came
// before it and took its ground away (req H5). It admits nothing.
type VoidJudgementError struct {
	Change   evidence.ChangeID
	Stored   ledger.Event // the judgement
	Breaking evidence.Basis
	Index    ledger.Index // of the breaking event
	Type     string       // of the breaking event
}

func (e *VoidJudgementError) Error() string {
	return fmt.Sprintf("%s at index %d of change %s is void: %s in stream %s (version %d, index %d) came before it",
		e.Stored.Type, e.Stored.Index, e.Change, e.Type, e.Breaking.Stream, e.Breaking.Version, e.Index)
}

// ErrFenced means that an attempt was taken from its runner: its generation moved on.
var ErrFenced = errors.New("attempt was fenced")

// FencedError says where a fenced attempt stands. It is ErrFenced.
type FencedError struct {
	Attempt    evidence.AttemptID
	Generation uint64 // the new one
	State      evidence.State
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("%v: attempt %s is %s at generation %d", ErrFenced, e.Attempt, e.State, e.Generation)
}

func (e *FencedError) Is(target error) bool { return target == ErrFenced }

// ErrNoLedger means that the ledger has no genesis event yet.
var ErrNoLedger = errors.New("the ledger was never initialised; run init")

// OtherLedgerError says that the ledger was opened with another genesis event.
type OtherLedgerError struct {
	Ledger evidence.LedgerID // the one it has
}

func (e *OtherLedgerError) Error() string {
	return fmt.Sprintf("the ledger is initialised already, as %s", e.Ledger)
}

// NoLiveKeyError says that no live key of that role has that ID.
type NoLiveKeyError struct {
	Role evidence.KeyRole
	Key  evidence.KeyID
}

func (e *NoLiveKeyError) Error() string {
	return fmt.Sprintf("key %s is not a live %s key of this ledger", e.Key, e.Role)
}
