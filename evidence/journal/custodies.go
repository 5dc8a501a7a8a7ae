package journal

import (
	"context"
	"fmt"

	"github.com/baildock/baildock/evidence"
)

// Held is the custody that an attempt's stream holds of one object.
type Held struct {
	Attempt evidence.AttemptID
	Custody evidence.Custody
}

// CustodyOf reads the whole ledger for the custodies taken under these handles; one that nobody took is
// left out. Custody events are read as a supervisor reads them, so that newer versions hide nothing.
func (j *Journal) CustodyOf(ctx context.Context, handles ...evidence.HandleKey) (map[evidence.HandleKey]Held, error) {
	wanted := map[evidence.HandleKey]bool{}
	for _, h := range handles {
		wanted[h] = true
	}
	folds := map[evidence.AttemptID]*evidence.Custodies{}
	out := map[evidence.HandleKey]Held{}
	keep := func(id evidence.AttemptID) {
		for _, c := range *folds[id] {
			if wanted[c.Handle] {
				out[c.Handle] = Held{Attempt: id, Custody: c}
			}
		}
		delete(folds, id)
	}
	for e, err := range j.ledger.ReadAll(ctx, 0) {
		if err != nil {
			return nil, fmt.Errorf("read the ledger: %w", err)
		}
		kind, name := KindOf(e.Stream)
		if kind != KindAttempt {
			continue
		}
		id := evidence.AttemptID(name)
		switch e.Type {
		case (evidence.AttemptRegistered{}).EventType():
			folds[id] = &evidence.Custodies{}
		case (evidence.AttemptFinished{}).EventType():
			if folds[id] != nil {
				keep(id) // custody of a finished attempt changes no more
			}
		default:
			if folds[id] == nil {
				continue
			}
			if err := folds[id].ApplyEncoded(e.Type, e.Data); err != nil {
				return nil, badHistory(e, err)
			}
		}
	}
	for id := range folds {
		keep(id)
	}
	return out, nil
}
