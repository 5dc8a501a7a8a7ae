package executor

import (
	"context"
	"errors"

	"github.com/baildock/baildock/evidence"
)

// Recorder takes what the executor does and sees, in order. The executor knows no ledger.
type Recorder interface {
	// Record stores events of one instant, all or none, durable when it returns. It fails with
	// ErrFenced when the attempt was taken away; then nothing may be created or started any more.
	// It must work after the run's own context was cancelled: callers pass their own.
	Record(ctx context.Context, events ...evidence.Payload) error
	// Keep stores bytes durably before the event that names them is recorded.
	Keep(ctx context.Context, w ...evidence.Withholdable) error
}

// ErrFenced means that another process took the attempt: its generation moved on.
var ErrFenced = errors.New("attempt was fenced")

// Watchdog starts a guard for one container before it is started. The guard lives in another
// session and kills the container by full ID if this process dies (req D5).
type Watchdog interface {
	Guard(ctx context.Context, id evidence.ContainerID) (Guard, error)
}

// Guard is one running watchdog.
type Guard interface {
	// Release ends the guard once the container is gone. Only this ends it early.
	Release() error
}
