package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func smallLedger() []Event {
	var out []Event
	heads := map[StreamID]Head{}
	for i := range 12 {
		stream := StreamID(fmt.Sprintf("s%d", i%3))
		head, ok := heads[stream]
		if !ok {
			head = EmptyHead
		}
		events, leaves := Chain(stream, head, Prepared{Type: "T", Media: "a/b", Time: int64(i), Data: []byte{byte(i)}})
		events[0].Index = Index(i)
		heads[stream] = Head{Version: events[0].Version, Leaf: leaves[0]}
		out = append(out, events[0])
	}
	return out
}

// req R4: the first event that doesn't follow is named, with what was expected and found.
func TestCheckerNamesTheFirstBadEvent(t *testing.T) {
	check := NewChecker()
	good := smallLedger()
	for _, e := range good {
		leaf, err := check.Check(e)
		require.NoError(t, err)
		require.Equal(t, e.Leaf(), leaf)
		require.Equal(t, e.Head(), check.Head(e.Stream))
	}
	require.Equal(t, uint64(12), check.Size())
	require.Equal(t, EmptyHead, check.Head("nobody"))
	root := check.Root()

	for name, c := range map[string]struct {
		mangle func(e []Event) []Event
		at     Index
		field  string
	}{
		"dropped":           {func(e []Event) []Event { return append(e[:4:4], e[5:]...) }, 5, "index"},
		"dropped, renumber": {func(e []Event) []Event { return renumber(append(e[:4:4], e[5:]...)) }, 6, "version"},
		"swapped, renumber": {func(e []Event) []Event { e[3], e[6] = e[6], e[3]; return renumber(e) }, 3, "version"},
		"doubled, renumber": {func(e []Event) []Event { return renumber(append(e[:4:4], e[3:]...)) }, 4, "version"},
		"data changed":      {func(e []Event) []Event { e[3].Data = []byte{99}; return e }, 6, "prev"},
		"prev changed":      {func(e []Event) []Event { e[3].Prev = append(e[3].Prev[:31:31], e[3].Prev[31]^1); return e }, 3, "prev"},
		"prev at version 0": {func(e []Event) []Event { e[1].Prev = make([]byte, 32); return e }, 1, "prev"},
		"prev missing":      {func(e []Event) []Event { e[3].Prev = nil; return e }, 3, "prev"},
	} {
		check := NewChecker()
		var bad *ChainError
		for _, e := range c.mangle(smallLedger()) {
			size, root := check.Size(), check.Root()
			if _, err := check.Check(e); err != nil {
				require.ErrorAs(t, err, &bad, name)
				require.Equal(t, size, check.Size(), "a bad event changes nothing")
				require.Equal(t, root, check.Root())
				break
			}
		}
		require.NotNil(t, bad, name)
		require.Equal(t, c.at, bad.Index, name)
		require.Equal(t, c.field, bad.Field, name)
		require.NotEqual(t, bad.Expected, bad.Found, name)
	}

	// What no chain shows, because nothing follows, the root does.
	for name, mangle := range map[string]func(e []Event) []Event{
		"last changed":  func(e []Event) []Event { e[11].Data = []byte{99}; return e },
		"last dropped":  func(e []Event) []Event { return e[:11] },
		"last replaced": func(e []Event) []Event { e[11].Stream, e[11].Version, e[11].Prev = "new", 0, nil; return e },
	} {
		check := NewChecker()
		for _, e := range mangle(smallLedger()) {
			_, err := check.Check(e)
			require.NoError(t, err, name)
		}
		require.NotEqual(t, root, check.Root(), name)
	}
}

func renumber(e []Event) []Event {
	for i := range e {
		e[i].Index = Index(i)
	}
	return e
}

func TestChainKeepsNothingShared(t *testing.T) {
	events, leaves := Chain("s", EmptyHead, Prepared{Type: "T", Media: "a/b"}, Prepared{Type: "T", Media: "a/b"})
	clear(events[1].Prev)
	require.Equal(t, events[0].Leaf(), leaves[0])
	require.Equal(t, Version(1), events[1].Version)
	require.Empty(t, events[0].Prev)
}
