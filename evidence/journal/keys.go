package journal

import (
	"context"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Keys folds the stream `ledger` as far as its events stand before an index: which keys are live
// for a checkpoint of that size. It fails with ErrNoLedger when there is no genesis event, and with
// *BadEventError; one that IsUnknown says that a newer version added or retired keys.
func (j *Journal) Keys(ctx context.Context, before ledger.Index) (*evidence.Keyring, error) {
	keys := &evidence.Keyring{}
	for e, err := range j.ledger.ReadStream(ctx, GenesisStream, 0) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", GenesisStream, err)
		}
		if e.Index >= before {
			break
		}
		p, _, err := Decode(e)
		if err != nil {
			return nil, err
		}
		if err := keys.Apply(p); err != nil {
			return nil, badHistory(e, err)
		}
	}
	if keys.Opened == nil {
		return nil, ErrNoLedger
	}
	return keys, nil
}
