package export

import (
	"fmt"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// AbsentError says that the ledger has no such attempt or change.
type AbsentError struct {
	Attempt evidence.AttemptID
	Change  evidence.ChangeID // if set, it is this that is missing
}

func (e *AbsentError) Error() string {
	if e.Change != "" {
		return fmt.Sprintf("the ledger has no change %s", e.Change)
	}
	return fmt.Sprintf("the ledger has no attempt %s", e.Attempt)
}

// UnfinishedError says that an attempt has no record yet. Only finished attempts are exported.
type UnfinishedError struct{ Attempt evidence.AttemptID }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("attempt %s is not finished; a bundle shows finished attempts only (see: baildock why %s)", e.Attempt, e.Attempt)
}

// TooEarlyError says that the bundle can't be made as of an index, but can as of a later one that
// the ledger has reached.
type TooEarlyError struct {
	At       ledger.Index
	Smallest ledger.Index // that works
	Why      string
}

func (e *TooEarlyError) Error() string {
	return fmt.Sprintf("index %d is too early: %s; the smallest index that works is %d", e.At, e.Why, e.Smallest)
}

// UnsealedError says that streams have no event after the judgement that rests on them, so a bundle
// couldn't show that it is complete (req T3). A seal in each mends it.
type UnsealedError struct{ Streams []ledger.StreamID }

func (e *UnsealedError) Error() string {
	names := make([]string, len(e.Streams))
	for i, s := range e.Streams {
		names[i] = string(s)
	}
	return fmt.Sprintf("nothing follows the judgement in %s, so a bundle couldn't show that it is complete; export without --at, which seals them", strings.Join(names, ", "))
}

// ForeignError says that a kept checkpoint isn't one of this ledger's.
type ForeignError struct{ Err error }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the kept checkpoint is not this ledger's: %v", e.Err)
}

func (e *ForeignError) Unwrap() error { return e.Err }

// BehindError says that the ledger's own key signed a tree that the ledger doesn't hold: events
// that were there are gone, or others stand in their place.
type BehindError struct {
	Kept      uint64 // size of the kept checkpoint
	Size      uint64 // of the ledger
	Rewritten bool   // the size is there, with another root
}

func (e *BehindError) Error() string {
	if e.Rewritten {
		return fmt.Sprintf("the first %d events are not those of the kept checkpoint: the ledger was rewritten", e.Kept)
	}
	return fmt.Sprintf("the kept checkpoint is of %d events and the ledger holds %d: it was cut, or an old copy was restored", e.Kept, e.Size)
}
