package journal

import (
	"context"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Seal makes sure that each stream has an event after a judgement: it appends StreamSealed where
// none follows index `judgement`, also to a stream without events. A bundle that holds the first
// such event of a stream has left nothing out before it (req T3).
func (j *Journal) Seal(ctx context.Context, judgement ledger.Index, streams ...ledger.StreamID) error {
	if err := j.requireGenesis(ctx); err != nil {
		return err
	}
	for _, s := range streams {
		if !IsProductStream(s) {
			return fmt.Errorf("seal %s: only baildock's own streams are sealed", s)
		}
		if err := j.seal(ctx, judgement, s); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) seal(ctx context.Context, judgement ledger.Index, s ledger.StreamID) error {
	prepared, err := j.prepare(nil, evidence.StreamSealed{})
	if err != nil {
		return err
	}
	for range maxRaces {
		last, ok, err := j.ledger.Head(ctx, s)
		if err != nil {
			return fmt.Errorf("seal %s: %w", s, err)
		}
		version := ledger.NoStream
		if ok {
			version = last.Version
		}
		if ok && last.Index > judgement {
			return nil
		}
		if _, err = j.append(ctx, s, version, prepared); !isConflict(err) {
			return err
		}
	}
	return tooManyRaces(s)
}
