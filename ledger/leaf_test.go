package ledger

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"
)

func randomEvent(r *rand.Rand) Event {
	bin := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	sizes := []int{0, 1, 23, 24, 255, 256, 300, 65535, 65536}
	e := Event{
		Stream:  StreamID("s" + strings.Repeat("x", r.IntN(MaxStream))),
		Version: Version(r.Uint64() >> (1 + r.IntN(63))),
		Type:    "T" + strings.Repeat("y", r.IntN(MaxType)),
		Time:    int64(r.Uint64()) >> r.IntN(64),
		Media:   "a/" + strings.Repeat("z", 1+r.IntN(MaxMedia-2)),
		Meta:    bin(r.IntN(300)),
		Data:    bin(sizes[r.IntN(len(sizes))]),
		Prev:    []byte{},
	}
	if e.Version > 0 {
		e.Prev = bin(32)
	}
	return e
}

// The hand-written encoder writes what a CBOR library writes, for every size and sign.
func TestLeafAgreesWithLibrary(t *testing.T) {
	mode, err := cbor.CoreDetEncOptions().EncMode()
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		e := randomEvent(r)
		want, err := mode.Marshal([]any{1, string(e.Stream), uint64(e.Version), e.Type, e.Time, e.Prev, e.Media, e.Meta, e.Data})
		require.NoError(t, err)
		got := MarshalLeaf(e)
		require.True(t, bytes.Equal(want, got), "%+v", e)
		require.LessOrEqual(t, len(got), leafRoom(&e))
		back, err := UnmarshalLeaf(got)
		require.NoError(t, err)
		require.Equal(t, e, back)
	}
	for _, time := range []int64{0, 23, 24, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64, -1, -24, -25, math.MinInt64} {
		want, err := mode.Marshal(time)
		require.NoError(t, err)
		e := Event{Stream: "a", Type: "T", Media: "a/b", Time: time}
		require.Contains(t, hex.EncodeToString(MarshalLeaf(e)), hex.EncodeToString(want))
	}
}

// req R4: flipping any one field changes the leaf; nothing else is in it.
func TestLeafCoversEveryField(t *testing.T) {
	base := Event{Stream: "a", Version: 1, Type: "T", Time: 1, Prev: make([]byte, 32), Media: "a/b", Meta: []byte{1}, Data: []byte{2}}
	seen := map[Hash]string{base.Leaf(): "base"}
	for name, change := range map[string]func(*Event){
		"stream":  func(e *Event) { e.Stream = "b" },
		"version": func(e *Event) { e.Version++ },
		"type":    func(e *Event) { e.Type = "U" },
		"time":    func(e *Event) { e.Time++ },
		"prev":    func(e *Event) { e.Prev = append(make([]byte, 31), 1) },
		"media":   func(e *Event) { e.Media = "a/c" },
		"meta":    func(e *Event) { e.Meta = []byte{3} },
		"data":    func(e *Event) { e.Data = []byte{3} },
		"moved":   func(e *Event) { e.Meta, e.Data = nil, []byte{1, 2} },
	} {
		e := base
		change(&e)
		require.NotContains(t, seen, e.Leaf(), name)
		seen[e.Leaf()] = name
	}
	moved := base
	moved.Index = 77
	require.Equal(t, base.Leaf(), moved.Leaf(), "the index is no part of the leaf")
}

// Everything but the one canonical spelling is refused.
func TestUnmarshalLeafIsStrict(t *testing.T) {
	e := Event{Stream: "s", Version: 1, Type: "T", Time: 5, Prev: make([]byte, 32), Media: "a/b", Meta: []byte{0xaa}, Data: []byte{0xbb}}
	good := MarshalLeaf(e)
	_, err := UnmarshalLeaf(good)
	require.NoError(t, err)
	text := hex.EncodeToString(good) // 89 01 6173 01 6154 05 5820.. 63612f62 41aa 41bb
	prev := "5820" + strings.Repeat("00", 32)
	require.Equal(t, "8901617301615405"+prev+"63612f6241aa41bb", text)

	for name, bad := range map[string]string{
		"nothing":                 "",
		"another format":          "8902617301615405" + prev + "63612f6241aa41bb",
		"a longer array head":     "9809" + text[2:],
		"an indefinite array":     "9f01617301615405" + prev + "63612f6241aa41bbff",
		"eight items":             "8801617301615405" + prev + "63612f6241aa",
		"ten items":               "8a01617301615405" + prev + "63612f6241aa41bb00",
		"trailing bytes":          text + "00",
		"cut":                     text[:len(text)-2],
		"a wide format":           "891801617301615405" + prev + "63612f6241aa41bb",
		"a wide version":          "890161731801615405" + prev + "63612f6241aa41bb",
		"a wide length":           "890178017301615405" + prev + "63612f6241aa41bb",
		"an indefinite text":      "89017f6173ff01615405" + prev + "63612f6241aa41bb",
		"a byte string as text":   "8901417301615405" + prev + "63612f6241aa41bb",
		"a text as byte string":   "8901617301615405" + prev + "63612f62616141bb",
		"a float as time":         "89016173016154f94500" + prev + "63612f6241aa41bb",
		"a bignum as time":        "89016173016154c24105" + prev + "63612f6241aa41bb",
		"a tagged item":           "89c001617301615405" + prev + "63612f6241aa41bb",
		"null data":               "8901617301615405" + prev + "63612f6241aaf6",
		"null meta":               "8901617301615405" + prev + "63612f62f641bb",
		"an array as data":        "8901617301615405" + prev + "63612f6241aa8118bb",
		"a negative version":      "8901617320615405" + prev + "63612f6241aa41bb",
		"a version beyond int64":  "890161731b8000000000000000615405" + prev + "63612f6241aa41bb",
		"a time beyond int64":     "890161730161541b8000000000000000" + prev + "63612f6241aa41bb",
		"bad UTF-8":               "8901617301615405" + prev + "6361ff6241aa41bb",
		"a prev of 31 bytes":      "8901617301615405581f" + strings.Repeat("00", 31) + "63612f6241aa41bb",
		"no prev above version 0": "89016173016154054063612f6241aa41bb",
		"a prev at version 0":     "8901617300615405" + prev + "63612f6241aa41bb",
		"an upper case stream":    "8901615301615405" + prev + "63612f6241aa41bb",
		"no type":                 "89016173016005" + prev + "63612f6241aa41bb",
		"a map":                   "a0",
	} {
		b, err := hex.DecodeString(bad)
		require.NoError(t, err, name)
		_, err = UnmarshalLeaf(b)
		require.Error(t, err, name)
	}
	for i := range good { // any other byte gives another event, or none
		for bit := range 8 {
			b := bytes.Clone(good)
			b[i] ^= 1 << bit
			if other, err := UnmarshalLeaf(b); err == nil {
				require.NotEqual(t, e, other)
				require.NotEqual(t, e.Leaf(), other.Leaf())
			}
		}
	}
	_, err = UnmarshalLeaf(make([]byte, MaxLeaf+1))
	require.ErrorContains(t, err, "at most")
}

func TestMaxLeafHoldsTheLargestEvent(t *testing.T) {
	e := Event{
		Stream: StreamID(strings.Repeat("s", MaxStream)), Version: math.MaxInt64, Type: strings.Repeat("T", MaxType),
		Time: math.MinInt64, Prev: make([]byte, 32), Media: "a/" + strings.Repeat("b", MaxMedia-2),
		Meta: make([]byte, MaxMeta), Data: make([]byte, MaxData),
	}
	require.NoError(t, CheckEvent(e))
	_, err := UnmarshalLeaf(MarshalLeaf(e))
	require.NoError(t, err)
}

// seeds returns the checked-in inputs of a fuzz target, and fails if there are too few.
func seeds(t testing.TB, target string, atLeast int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "fuzz", target, "*"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), atLeast)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(b, []byte("go test fuzz v1\n")), f)
	}
}

func FuzzUnmarshalLeaf(f *testing.F) {
	seeds(f, "FuzzUnmarshalLeaf", 12)
	for _, b := range readVectors(f).cbor {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := UnmarshalLeaf(b)
		if err != nil {
			return
		}
		if !bytes.Equal(MarshalLeaf(e), b) {
			t.Fatalf("accepted a spelling that isn't its own: %x", b)
		}
		if err := CheckEvent(e); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkLeaf(b *testing.B) {
	e := randomEvent(rand.New(rand.NewPCG(1, 1)))
	e.Data = make([]byte, 200)
	var h leafHasher
	b.ReportAllocs()
	for b.Loop() {
		h.sum(&e)
	}
}

func ExampleChain() {
	events, _ := Chain("notes", EmptyHead,
		Prepared{Type: "NoteTaken", Media: "text/plain", Data: []byte("one")},
		Prepared{Type: "NoteTaken", Media: "text/plain", Data: []byte("two")})
	for _, e := range events {
		fmt.Println(e.Stream, e.Version, e.ID(), len(e.Prev))
	}
	// Output:
	// notes 0 31c56c4376e7ee2c80ddfd1b16b5cc20 0
	// notes 1 9484807902a4ef7bb187bf85260ef0ff 32
}
