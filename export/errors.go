package export

import (
	"fmt"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// AbsentError says that the ledger has no such attempt.
type AbsentError struct{ Attempt evidence.AttemptID }

func (e *AbsentError) Error() string {
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
