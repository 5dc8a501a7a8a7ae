package journal

import (
	"context"
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Listing is an attempt that a change lists.
type Listing struct {
	Change  evidence.ChangeID
	Attempt evidence.AttemptID
	Time    int64 // of the listing: the writer's wall clock, ns since the epoch
}

// Unfinished is what a whole ledger holds that isn't at its end.
type Unfinished struct {
	Attempts []evidence.AttemptID // registered and not finished, in order of registration
	Listed   []Listing            // listed by a change, their own stream not open (req G1)
	Unread   int                  // listings that can't be read: nobody knows yet whose they are (req E10)
}

// Unfinished reads the whole ledger. It reads no more of an event than it needs, so that events of
// newer versions hide nothing.
func (j *Journal) Unfinished(ctx context.Context) (Unfinished, error) {
	var registered []evidence.AttemptID
	var listed []Listing
	unread := 0
	finished := map[evidence.AttemptID]bool{} // false: registered only
	for e, err := range j.ledger.ReadAll(ctx, 0) {
		if err != nil {
			return Unfinished{}, fmt.Errorf("read the ledger: %w", err)
		}
		kind, id := KindOf(e.Stream)
		switch {
		case kind == KindAttempt && e.Type == (evidence.AttemptRegistered{}).EventType():
			finished[evidence.AttemptID(id)] = false
			registered = append(registered, evidence.AttemptID(id))
		case kind == KindAttempt && e.Type == (evidence.AttemptFinished{}).EventType():
			finished[evidence.AttemptID(id)] = true
		case kind == KindChange && e.Type == (evidence.AttemptOpened{}).EventType():
			if l, err := listingOf(e, id); err == nil {
				listed = append(listed, l)
			} else {
				unread++ // whether it is newer or broken is an audit's to say
			}
		}
	}
	return Unfinished{
		Unread:   unread,
		Attempts: slices.DeleteFunc(registered, func(id evidence.AttemptID) bool { return finished[id] }),
		Listed: slices.DeleteFunc(listed, func(l Listing) bool {
			_, opened := finished[l.Attempt]
			return opened
		}),
	}, nil
}

func listingOf(e ledger.Event, change string) (Listing, error) {
	p, _, err := Decode(e)
	if err != nil {
		return Listing{}, err
	}
	o, ok := p.(evidence.AttemptOpened)
	if !ok {
		return Listing{}, bad(e, "type", "AttemptOpened", p.EventType())
	}
	return Listing{Change: evidence.ChangeID(change), Attempt: o.Attempt, Time: e.Time}, nil
}
