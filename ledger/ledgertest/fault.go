package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/baildock/baildock/ledger"
)

// Fault is what happens to one append.
type Fault int

const (
	NoFault    Fault = iota
	NotStored        // refused: ErrInjected, nothing stored
	ReplyLost        // stored, but the writer gets ErrUnknownOutcome
	CommitLost       // not stored, but the writer gets ErrUnknownOutcome: it can't tell from ReplyLost
)

// ErrInjected is wrapped by every error a Faulty makes up.
var ErrInjected = errors.New("injected fault")

// Plan decides the fault of the n-th append, counted from 0.
type Plan func(n int, stream ledger.StreamID, events []ledger.Prepared) Fault

// FaultAt faults the n-th append, counted from 0, and no other.
func FaultAt(n int, f Fault) Plan {
	return func(i int, _ ledger.StreamID, _ []ledger.Prepared) Fault {
		if i == n {
			return f
		}
		return NoFault
	}
}

// Faulty is a ledger whose appends fail as planned. Everything else passes through.
type Faulty struct {
	ledger.Ledger
	mu   sync.Mutex
	plan Plan
	n    int
}

// NewFaulty wraps a ledger. The plan runs once for every append, in the order they come.
func NewFaulty(inner ledger.Ledger, plan Plan) *Faulty { return &Faulty{Ledger: inner, plan: plan} }

// Appends returns how many appends were tried so far.
func (f *Faulty) Appends() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

func (f *Faulty) Append(ctx context.Context, stream ledger.StreamID, expected ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	f.mu.Lock()
	fault := f.plan(f.n, stream, events)
	f.n++
	f.mu.Unlock()
	switch fault {
	case NoFault:
		return f.Ledger.Append(ctx, stream, expected, events...)
	case NotStored:
		return ledger.Appended{}, fmt.Errorf("append to %s: %w", stream, ErrInjected)
	case ReplyLost:
		if _, err := f.Ledger.Append(ctx, stream, expected, events...); err != nil {
			return ledger.Appended{}, err
		}
		return ledger.Appended{}, fmt.Errorf("append to %s: %w: %w", stream, ledger.ErrUnknownOutcome, ErrInjected)
	case CommitLost:
		return ledger.Appended{}, fmt.Errorf("append to %s: %w: %w", stream, ledger.ErrUnknownOutcome, ErrInjected)
	default:
		panic(fmt.Sprintf("ledgertest: unknown fault %d", fault))
	}
}
