package journaltest

import (
	"context"
	"sync"

	"github.com/baildock/baildock/ledger"
)

// Hooked is a ledger that runs a function before every append, to let somebody else come in between what
// was read and what is stored.
type Hooked struct {
	ledger.Ledger
	Before func(ledger.StreamID)
}

func (h *Hooked) Append(ctx context.Context, s ledger.StreamID, v ledger.Version, events ...ledger.Prepared) (ledger.Appended, error) {
	h.Before(s)
	return h.Ledger.Append(ctx, s, v, events...)
}

// Once runs f before the first append to a stream.
func Once(stream ledger.StreamID, f func()) func(ledger.StreamID) {
	var done sync.Once
	return func(s ledger.StreamID) {
		if s == stream {
			done.Do(f)
		}
	}
}
