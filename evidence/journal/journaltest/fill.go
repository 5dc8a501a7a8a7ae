package journaltest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

// writers append side by side, so that they share commits.
const writers = 64

// Force appends an event at a stream's end as a forger, or a newer version, would.
func Force(t testing.TB, led ledger.Ledger, s ledger.StreamID, events ...ledger.Prepared) ledger.Event {
	t.Helper()
	v := ledger.NoStream
	last, ok, err := led.Head(t.Context(), s)
	require.NoError(t, err)
	if ok {
		v = last.Version
	}
	done, err := led.Append(t.Context(), s, v, events...)
	require.NoError(t, err)
	return done.Last()
}

// Attempt names the n-th attempt of Fill.
func Attempt(n int) evidence.AttemptID { return evidence.AttemptID(fmt.Sprintf("a-%07d", n)) }

// Fill appends finished attempts to an initialised ledger, about so many events, a day apart every
// hundred, one in three a success. It returns how many attempts that are.
func Fill(t testing.TB, led ledger.Ledger, events int) int {
	t.Helper()
	n := events / len(evidencetest.Success().Finished())
	var all sync.WaitGroup
	failed := make([]error, writers)
	for w := range writers {
		all.Go(func() {
			for i := w; i < n && failed[w] == nil; i += writers {
				failed[w] = fill(t, led, i)
			}
		})
	}
	all.Wait()
	for _, err := range failed {
		require.NoError(t, err)
	}
	return n
}

func fill(t testing.TB, led ledger.Ledger, i int) error {
	h := evidencetest.Success()
	h.Registered.Attempt = Attempt(i)
	h.Exited.ExitCode = int64(i % 3)
	var batch []ledger.Prepared
	for n, p := range h.Finished() {
		meta, data := evidence.Encode(p, evidence.Meta{Schema: evidence.SchemaVersion, Actor: "runner",
			Nonce: evidence.Nonce{byte(n), byte(i), byte(i >> 8), byte(i >> 16)}})
		at := int64(1_700_000_000_000_000_000) + int64(i/100)*86_400_000_000_000 + int64(i)
		batch = append(batch, ledger.Prepared{Type: p.EventType(), Time: at, Media: evidence.Media, Meta: meta, Data: data})
	}
	_, err := led.Append(t.Context(), journal.AttemptStream(h.Registered.Attempt), ledger.NoStream, batch...)
	return err
}
