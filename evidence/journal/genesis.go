package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Init opens an empty ledger with its genesis event at index 0, then the default policy at epoch
// 1. Doing it again with the same genesis completes what is missing and is no error; with another
// one it fails with *OtherLedgerError.
func (j *Journal) Init(ctx context.Context, g evidence.LedgerOpened) error {
	if err := g.Check(); err != nil {
		return fmt.Errorf("initialise: %w", err)
	}
	if err := j.open(ctx, g); err != nil {
		return err
	}
	fresh := func() *evidence.Policy { return &evidence.Policy{} }
	_, err := update(ctx, j, PolicyStream(evidence.DefaultPolicy), fresh, func(p *evidence.Policy) ([]evidence.Payload, error) {
		if p.Epoch > 0 {
			return nil, nil
		}
		return []evidence.Payload{evidence.EpochAdvanced{Epoch: 1}}, nil
	})
	return err
}

func (j *Journal) open(ctx context.Context, g evidence.LedgerOpened) error {
	size, err := j.ledger.Size(ctx)
	if err != nil {
		return fmt.Errorf("initialise: %w", err)
	}
	if size == 0 {
		events, err := j.prepare(nil, g)
		if err != nil {
			return err
		}
		done, err := j.append(ctx, GenesisStream, ledger.NoStream, events)
		if err == nil && done[0].Index != 0 {
			return fmt.Errorf("initialise: the genesis event came at index %d, after somebody else's; start with an empty ledger", done[0].Index)
		}
		if err != nil && !isConflict(err) {
			return err
		}
	}
	have, err := j.Genesis(ctx)
	if errors.Is(err, ErrNoLedger) {
		return fmt.Errorf("initialise: the ledger holds %d events and none of them opens it; start with an empty ledger", size)
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(evidence.Marshal(have), evidence.Marshal(g)) {
		return &OtherLedgerError{Ledger: have.Ledger}
	}
	return nil
}

// Genesis reads the event that opened the ledger. It fails with ErrNoLedger when there is none.
func (j *Journal) Genesis(ctx context.Context) (evidence.LedgerOpened, error) {
	for e, err := range j.ledger.ReadStream(ctx, GenesisStream, 0) {
		if err != nil {
			return evidence.LedgerOpened{}, fmt.Errorf("read %s: %w", GenesisStream, err)
		}
		g, err := asGenesis(e)
		if err == nil {
			j.opened.Store(true)
		}
		return g, err
	}
	return evidence.LedgerOpened{}, ErrNoLedger
}

// asGenesis reads version 0 of the stream `ledger`.
func asGenesis(e ledger.Event) (evidence.LedgerOpened, error) {
	p, _, err := Decode(e)
	if err != nil {
		return evidence.LedgerOpened{}, err
	}
	g, ok := p.(evidence.LedgerOpened)
	if !ok {
		return evidence.LedgerOpened{}, bad(e, "type", "LedgerOpened", e.Type)
	}
	if e.Index != 0 {
		return evidence.LedgerOpened{}, bad(e, "index", "0", fmt.Sprint(uint64(e.Index)))
	}
	if err := g.Check(); err != nil {
		return evidence.LedgerOpened{}, badHistory(e, err)
	}
	return g, nil
}

// requireGenesis keeps every writer out of a ledger nobody opened.
func (j *Journal) requireGenesis(ctx context.Context) error {
	if j.opened.Load() {
		return nil
	}
	_, err := j.Genesis(ctx)
	return err
}
