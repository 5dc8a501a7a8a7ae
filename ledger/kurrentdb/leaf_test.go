package kurrentdb

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

// agree holds the short reader to the ledger's own.
func agree(t *testing.T, b []byte) (accepted bool) {
	t.Helper()
	want, err := ledger.UnmarshalLeaf(b)
	got, ok := parseLeaf(b)
	require.Equal(t, err == nil, ok, "%x: %v", b, err)
	if ok {
		require.Equal(t, want.Leaf(), got.Leaf())
		require.Equal(t, want.Version, got.Version)
	}
	return ok
}

func someLeaf(random *rand.Rand) []byte {
	e := ledger.Event{Stream: "s", Type: "T", Media: "a/b", Version: ledger.Version(random.Uint64N(1 << random.UintN(63))), Time: int64(random.Uint64()) >> random.UintN(63)}
	if e.Version > 0 {
		e.Prev = make([]byte, 32)
	}
	for _, p := range []*[]byte{&e.Meta, &e.Data} {
		*p = make([]byte, []int{0, 1, 23, 24, 255, 256, 300}[random.IntN(7)])
	}
	return ledger.MarshalLeaf(e)
}

func TestParseLeaf(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	accepted := 0
	for range 20_000 {
		b := someLeaf(random)
		require.True(t, agree(t, b))
		switch random.IntN(4) {
		case 0:
			b[random.IntN(len(b))] ^= 1 << random.UintN(8)
		case 1:
			b = b[:random.IntN(len(b))]
		case 2:
			b = slices.Insert(b, random.IntN(len(b)+1), byte(random.Uint32()))
		case 3:
			b[random.IntN(min(len(b), 20))] = byte(random.Uint32())
		}
		if agree(t, b) {
			accepted++
		}
	}
	require.Positive(t, accepted, "changes inside data are leaves too")
	for _, at := range []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, math.MaxInt64} {
		require.True(t, agree(t, ledger.MarshalLeaf(ledger.Event{Stream: "s", Type: "T", Media: "a/b", Time: at})))
	}
}

func FuzzParseLeaf(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		f.Add(someLeaf(random))
	}
	f.Fuzz(func(t *testing.T, b []byte) { agree(t, b) })
}
