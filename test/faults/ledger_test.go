package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

// ail is what happens to the runner's nth write, and to those after it if it lasts.
type ail string

const (
	notStored  ail = "not stored"    // refused, nothing is kept
	replyLost  ail = "reply lost"    // kept, and the runner can't know
	commitLost ail = "commit lost"   // not kept, and the runner can't know
	conflict   ail = "conflict"      // somebody else's event, which changes nothing, came first
	fenced     ail = "fenced"        // another process took the attempt
	slow       ail = "slow"          // kept, in time
	stalled    ail = "stalled"       // kept, long after the runner's patience
	hung       ail = "hung"          // not kept, and no answer for an hour
	noBlob     ail = "blob not kept" // of blobs instead of events
)

var ails = []ail{notStored, replyLost, commitLost, conflict, fenced, slow, stalled, hung, noBlob}

var errDisk = errors.New("no space left on device")

// sick is a ledger whose writes fail as planned.
type sick struct {
	ledger.Ledger
	ail   ail
	nth   int // from 1
	lasts bool

	mu      sync.Mutex
	appends int
	puts    int
}

func (l *sick) hits(n int) bool { return n == l.nth || l.lasts && n > l.nth }

func (l *sick) count(n *int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	*n++
	return *n
}

func (l *sick) Append(ctx context.Context, id ledger.StreamID, v ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	if !l.hits(l.count(&l.appends)) {
		return l.Ledger.Append(ctx, id, v, events...)
	}
	unknown := fmt.Errorf("append to %s: %w", id, ledger.ErrUnknownOutcome)
	switch l.ail {
	case notStored:
		return ledger.Appended{}, errDisk
	case replyLost:
		if _, err := l.Ledger.Append(ctx, id, v, events...); err != nil {
			return ledger.Appended{}, err
		}
		return ledger.Appended{}, unknown
	case commitLost:
		return ledger.Appended{}, unknown
	case conflict:
		if err := journal.New(journal.Config{Ledger: l.Ledger, Actor: "auditor"}).Seal(ctx, 1<<62, id); err != nil {
			return ledger.Appended{}, err
		}
	case fenced:
		if err := fence(l.Ledger, "one"); err != nil {
			return ledger.Appended{}, err
		}
	case slow:
		time.Sleep(900 * time.Millisecond)
	case stalled:
		time.Sleep(3 * time.Minute)
	case hung:
		// Decision 0063: a runner whose ledger never answers waits; others take its attempt.
		select {
		case <-ctx.Done():
			return ledger.Appended{}, ctx.Err()
		case <-time.After(time.Hour):
			return ledger.Appended{}, errDisk
		}
	}
	return l.Ledger.Append(ctx, id, v, events...)
}

func (l *sick) Put(ctx context.Context, blobs ...ledger.Blob) error {
	if n := l.count(&l.puts); l.ail == noBlob && l.hits(n) {
		return errDisk
	}
	return l.Ledger.Put(ctx, blobs...)
}

// dead is a ledger that takes nothing any more from the append of a type on.
type dead struct {
	ledger.Ledger
	from string

	mu   sync.Mutex
	gone bool
}

func (l *dead) Append(ctx context.Context, id ledger.StreamID, v ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	l.mu.Lock()
	l.gone = l.gone || slices.ContainsFunc(events, func(e ledger.Prepared) bool { return e.Type == l.from })
	gone := l.gone
	l.mu.Unlock()
	if gone {
		return ledger.Appended{}, errDisk
	}
	return l.Ledger.Append(ctx, id, v, events...)
}

// fence takes the attempt away, as the first step of a cancel does.
func fence(l ledger.Ledger, id evidence.AttemptID) error {
	j := journal.New(journal.Config{Ledger: l, Actor: "operator"})
	ctx := context.Background()
	a, err := j.Attempt(ctx, id)
	if err != nil || a.Fold.State != evidence.StateRunning {
		return err
	}
	_, err = j.Fence(ctx, id, a.Fold.Generation, evidence.FencedByCancel, nil)
	return err
}

// ledgerCell is one sick write in a scene.
type ledgerCell struct {
	scene
	ail   ail
	nth   int
	lasts bool
}

func (c ledgerCell) String() string {
	name := fmt.Sprintf("%s/%s %d", c.name, c.ail, c.nth)
	if c.lasts {
		name += " on"
	}
	return name
}

// ledgerCells is every sick write of a scene. want is their number, counted apart.
func ledgerCells(t *testing.T, c scene) (all []ledgerCell, want int) {
	var well sick
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, c)
		well.Ledger = s.memory
		s.watched.Ledger = &well
		_, err := s.run(t, c)
		require.NoError(t, err)
		settle()
	})
	require.Positive(t, well.appends)
	require.Positive(t, well.puts)
	for _, a := range ails {
		of := well.appends
		if a == noBlob {
			of = well.puts
		}
		for n := range of + 1 { // one more: the fault may lead to it
			all = append(all, ledgerCell{c, a, n + 1, false})
			if a != conflict && a != fenced {
				all = append(all, ledgerCell{c, a, n + 1, true})
			}
		}
	}
	return all, ailing(well.appends) + 2*(well.puts+1) // each blob, and one more
}

// TestLedgerTable makes every write of every scene fail in every way.
//
// req E1, req E9, req D5, req F2, req G3, req G4, req G5, req G6
func TestLedgerTable(t *testing.T) {
	var sum tally
	var all []ledgerCell
	want := 0
	for _, c := range scenes {
		some, n := ledgerCells(t, c)
		all, want = append(all, some...), want+n
	}
	counted(t, all, want, 2_900)
	all = sample(all, 5, func(c ledgerCell) bool { return c.name == "good" })
	t.Run("cells", func(t *testing.T) {
		for _, c := range all {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := begin(t, c.scene)
					s.patient = c.ail == hung || c.ail == stalled
					s.watched.Ledger = &sick{Ledger: s.memory, ail: c.ail, nth: c.nth, lasts: c.lasts}
					res, err := s.run(t, c.scene)
					a := s.check(t, c.scene, res, err)
					sum.add(string(a.Fold.State) + ", " + s.recovered(t))
					settle()
				})
			})
		}
	})
	t.Logf("count: %d cells; %s", len(all), &sum)
	require.Equal(t, len(all), sum.n)
}
