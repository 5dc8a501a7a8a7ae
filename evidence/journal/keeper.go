package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Keeper appends custody events to an attempt's stream that may hold events this version can't read
// (req E10). It can take the attempt from its runner and close its custody, and never finishes it:
// the record follows from all events. It is safe for concurrent use; appends go one after the other.
type Keeper struct {
	mu         sync.Mutex
	j          *Journal
	attempt    evidence.AttemptID
	stream     ledger.StreamID
	version    ledger.Version
	custodies  evidence.Custodies
	state      evidence.State
	generation uint64
	claimed    *evidence.AttemptClaimed // nil: nobody claimed it, or the claim can't be read
	unread     int
	fences     int
	tried      map[evidence.HandleKey]bool // custodies that a recovery could not close
	last       int64                       // when the last event was written: its writer's wall clock, ns since the epoch
}

// keeperTypes are the frozen types that a Keeper appends.
var keeperTypes = []string{"AttemptFenced", "CreateRuledOut", "ContainerCreated", "RemovalOrdered", "RemovalObserved", "CleanupUnconfirmed"}

// Keeper reads an attempt as far as custody goes. It fails with *NotFoundError when there is none.
func (j *Journal) Keeper(ctx context.Context, id evidence.AttemptID) (*Keeper, error) {
	if _, err := evidence.ParseAttemptID(string(id)); err != nil {
		return nil, err
	}
	k := &Keeper{j: j, attempt: id, stream: AttemptStream(id), version: ledger.NoStream, tried: map[evidence.HandleKey]bool{}}
	if err := k.readOn(ctx); err != nil {
		return nil, err
	}
	if k.state == evidence.StateNone {
		return nil, &NotFoundError{Kind: KindAttempt, ID: string(id)}
	}
	return k, nil
}

// Custodies is the fold of the custody events.
func (k *Keeper) Custodies() evidence.Custodies {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.custodies)
}

// State says where the attempt stands.
func (k *Keeper) State() evidence.State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

// Generation says at which generation it stands.
func (k *Keeper) Generation() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.generation
}

// Claimed is the attempt's claim, nil when there is none that this version can read.
func (k *Keeper) Claimed() *evidence.AttemptClaimed {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.claimed
}

// Unread is how many events this version can't read.
func (k *Keeper) Unread() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unread
}

// Fences is how often the attempt was taken from whoever had it.
func (k *Keeper) Fences() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fences
}

// LastTime is when the last event was written, by its writer's wall clock: ns since the epoch, a hint.
func (k *Keeper) LastTime() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// Tried reports whether a recovery tried to close a custody, in vain.
func (k *Keeper) Tried(h evidence.HandleKey) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tried[h]
}

func (k *Keeper) readOn(ctx context.Context) error {
	for e, err := range k.j.ledger.ReadStream(ctx, k.stream, k.version+1) {
		if err != nil {
			return fmt.Errorf("read %s: %w", k.stream, err)
		}
		if err := k.apply(e); err != nil {
			return err
		}
		k.version = e.Version
	}
	return nil
}

func (k *Keeper) apply(e ledger.Event) error {
	// The types that move an attempt on are known by name, whatever their fields are now.
	switch e.Type {
	case "AttemptRegistered":
		k.state = evidence.StatePending
	case "AttemptClaimed":
		k.state, k.generation = evidence.StateRunning, 1
	case "AttemptFinished":
		k.state = evidence.StateFinished
	case "AttemptFenced":
		g, err := evidence.FencedGeneration(e.Data)
		if err != nil {
			return badHistory(e, err)
		}
		k.state, k.generation = evidence.StateRunning, g
		k.fences++
	case "CleanupUnconfirmed":
		h, err := evidence.UnconfirmedHandle(e.Data)
		if err != nil {
			return badHistory(e, err)
		}
		k.tried[h] = k.fences > 0
	}
	k.last = e.Time
	p, _, err := Decode(e)
	switch {
	case IsUnknown(err):
		k.unread++
	case err != nil && !slices.Contains(keeperTypes, e.Type) && e.Type != "CustodyTaken" && e.Type != "CustodyAbandoned":
		return err
	case err != nil: // a frozen type with fields of a newer version
		k.unread++
	}
	if c, ok := p.(evidence.AttemptClaimed); ok {
		k.claimed = &c
	}
	if err := k.custodies.ApplyEncoded(e.Type, e.Data); err != nil {
		return badHistory(e, err)
	}
	return nil
}

// Append appends frozen custody events in one commit, at the generation the keeper has. It fails
// with ErrFenced when the generation moved on or the attempt was finished.
func (k *Keeper) Append(ctx context.Context, payloads ...evidence.Payload) ([]ledger.Event, error) {
	for _, p := range payloads {
		if !slices.Contains(keeperTypes, p.EventType()) {
			return nil, fmt.Errorf("attempt %s holds events of a newer version; %s can't be appended by this one", k.attempt, p.EventType())
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	prepared, err := k.j.prepare(nil, payloads...)
	if err != nil {
		return nil, err
	}
	at := k.generation
	for range maxRaces {
		if err := k.mayAppend(at, payloads); err != nil {
			return nil, fmt.Errorf("attempt %s: %w", k.attempt, err)
		}
		done, err := k.j.append(ctx, k.stream, k.version, prepared)
		if err == nil {
			for _, e := range done {
				if err := k.apply(e); err != nil {
					return nil, err
				}
				k.version = e.Version
			}
			return done, nil
		}
		var conflict *ledger.ConflictError
		if !errors.As(err, &conflict) {
			return nil, err
		}
		if err := k.readOn(ctx); err != nil {
			return nil, err
		}
	}
	return nil, tooManyRaces(k.stream)
}

func (k *Keeper) mayAppend(at uint64, payloads []evidence.Payload) error {
	if k.generation != at || k.state != evidence.StateRunning {
		return &FencedError{Attempt: k.attempt, Generation: k.generation, State: k.state}
	}
	next, generation := slices.Clone(k.custodies), at
	for _, p := range payloads {
		if f, ok := p.(evidence.AttemptFenced); ok {
			if f.Generation != generation+1 {
				return fmt.Errorf("a fence makes generation %d out of %d", f.Generation, generation)
			}
			generation = f.Generation
		}
		if err := next.Apply(p); err != nil {
			return err
		}
	}
	return nil
}
