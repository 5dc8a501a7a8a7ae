package warden

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/ledger"
)

// recorder writes what an executor reports into one attempt's stream.
type recorder struct {
	journal  *journal.Journal
	appender appender
	last     atomic.Uint64 // index of the last event written here
}

// appender is what appends to an attempt's stream at one generation: a *journal.Appender, or a
// *journal.Keeper where the stream holds events that can't be read.
type appender interface {
	Append(ctx context.Context, events ...evidence.Payload) ([]ledger.Event, error)
}

var _ executor.Recorder = (*recorder)(nil)

func (r *recorder) Record(ctx context.Context, events ...evidence.Payload) error {
	done, err := r.appender.Append(ctx, events...)
	if errors.Is(err, journal.ErrFenced) {
		return fmt.Errorf("%w: %w", executor.ErrFenced, err)
	}
	if err == nil {
		r.saw(done[len(done)-1])
	}
	return err
}

func (r *recorder) saw(e ledger.Event) { r.last.Store(uint64(e.Index)) }

func (r *recorder) Keep(ctx context.Context, ws ...evidence.Withholdable) error {
	return r.journal.Keep(ctx, ws...)
}
