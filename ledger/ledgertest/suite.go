package ledgertest

import (
	"crypto/ed25519"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

// Backend is one kind of store under test.
type Backend struct {
	// Open opens an empty ledger of its own at the first call, and the same one again at every
	// later call.
	Open func(t *testing.T) ledger.Ledger

	// Volatile says that what was appended is gone once the ledger is closed.
	Volatile bool
}

// Run checks that a backend keeps the ledger's contract. fresh returns a new, empty backend.
func Run(t *testing.T, fresh func(t *testing.T) Backend) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := fresh(t)
			l := b.Open(t)
			t.Cleanup(func() { require.NoError(t, l.Close()) })
			c.run(t, l, b)
		})
	}
}

// cases is everything the suite checks. Each starts with an empty ledger.
var cases = []struct {
	name string
	run  func(t *testing.T, l ledger.Ledger, b Backend)
}{
	{"append and read back", testAppend},
	{"conflicts", testConflicts},
	{"retry of one event", testRetry},
	{"retry of a batch", testRetryBatch},
	{"equal bytes at another place are another event", testEqualBytesElsewhere},
	{"a batch is stored whole or not at all", testBatchAtomic},
	{"refused input stores nothing", testRefused},
	{"sizes at the limits", testLimits},
	{"a cancelled context refuses", testCancelled},
	{"what was read or appended is the caller's own", testOwnBytes},
	{"racers for one place", testRacers},
	{"racers with equal bytes", testEqualRacers},
	{"many writers on many streams", testManyWriters},
	{"read a stream from a version", testReadStream},
	{"read all from an index", testReadAll},
	{"reading while reading and appending", testNestedReads},
	{"subscribe replays and follows", testSubscribe},
	{"subscribe from the future", testSubscribeFuture},
	{"head", testHead},
	{"roots", testRoots},
	{"proofs", testProofs},
	{"checkpoints", testCheckpoints},
	{"blobs", testBlobs},
	{"large blobs", testLargeBlob},
	{"forgotten blobs", testForget},
	{"close with appends in flight", testCloseInFlight},
	{"closed", testClosed},
	{"everything survives a reopen", testReopen},
	{"injected faults", testFaults},
}

// prepare makes an event that no other call makes: the data is unique in the test.
func prepare(typ string, data string) ledger.Prepared {
	return ledger.Prepared{
		Type: typ, Time: 1_700_000_000_000_000_000 + int64(len(data)), Media: "text/plain",
		Meta: []byte("meta of " + data), Data: []byte(data),
	}
}

// batch makes n different events.
func batch(name string, n int) []ledger.Prepared {
	out := make([]ledger.Prepared, n)
	for i := range out {
		out[i] = prepare("Batch", fmt.Sprintf("%s %d", name, i))
	}
	return out
}

func mustAppend(t *testing.T, l ledger.Ledger, stream ledger.StreamID, expected ledger.Version, events ...ledger.Prepared) ledger.Appended {
	t.Helper()
	done, err := l.Append(t.Context(), stream, expected, events...)
	require.NoError(t, err)
	require.Len(t, done.Events, len(events))
	return done
}

// fill appends n events over a few streams.
func fill(t *testing.T, l ledger.Ledger, n int) {
	t.Helper()
	next := map[ledger.StreamID]ledger.Version{}
	for i := range n {
		stream := ledger.StreamID(fmt.Sprintf("fill-%d", i%7))
		mustAppend(t, l, stream, next[stream]-1, prepare("Filled", fmt.Sprintf("event %d", i)))
		next[stream]++
	}
}

func collect(t *testing.T, events iter.Seq2[ledger.Event, error]) []ledger.Event {
	t.Helper()
	var out []ledger.Event
	for e, err := range events {
		require.NoError(t, err)
		out = append(out, e)
	}
	return out
}

// requireSame compares events by index and leaf, so that nil and empty bytes are the same.
func requireSame(t *testing.T, want, got []ledger.Event) {
	t.Helper()
	require.Equal(t, len(want), len(got), "number of events") // not Len, which prints them all
	for i := range want {
		require.Equal(t, want[i].Index, got[i].Index, "index of event %d", i)
		require.Equal(t, want[i].Leaf(), got[i].Leaf(), "leaf of event %d", i)
	}
}

// requireSound recomputes everything: chains, density and the root.
func requireSound(t *testing.T, l ledger.Ledger) *ledger.Checker {
	t.Helper()
	check := ledger.NewChecker()
	for e, err := range l.ReadAll(t.Context(), 0) {
		require.NoError(t, err)
		_, err := check.Check(e)
		require.NoError(t, err)
	}
	size, err := l.Size(t.Context())
	require.NoError(t, err)
	require.Equal(t, size, check.Size())
	root, err := l.Root(t.Context(), size)
	require.NoError(t, err)
	require.Equal(t, check.Root(), root)
	return check
}

func requireConflict(t *testing.T, err error, stream ledger.StreamID, expected, actual ledger.Version) {
	t.Helper()
	var conflict *ledger.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, ledger.ConflictError{Stream: stream, Expected: expected, Actual: actual}, *conflict)
}

// signer returns a checkpoint signer with a fixed key, and the verifier's public key.
func signer(t *testing.T, origin string) (ledger.CheckpointSigner, ed25519.PublicKey) {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	s, err := ledger.NewEd25519Signer(origin, key)
	require.NoError(t, err)
	return ledger.CheckpointSigner{Origin: origin, Signer: s}, key.Public().(ed25519.PublicKey)
}

// patience bounds what the suite waits for; a store that needs it is broken.
const patience = 30 * time.Second
