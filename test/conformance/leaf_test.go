package conformance

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence/evidencetest/spelltest"
	"github.com/baildock/baildock/ledger"
)

func leaves() family {
	return family{
		name: "leaves", least: 55,
		about: "Leaves (ledger/FORMAT.md). Input: cbor, the bytes that a leaf hash covers. Accepted: leaf is SHA-256(0x00, cbor), id its first 16 bytes, the other members are what the nine items hold.",
		make: func(t *testing.T) []vector {
			var out []vector
			add := func(class, name, kind string, b []byte, o values) {
				out = append(out, vector{Name: name, Class: class, Kind: kind, Input: values{"cbor": hexOf(b)}, Output: o})
			}
			long := make([]byte, 300)
			events := map[string]ledger.Event{
				"smallest":                {Stream: "a", Type: "T", Media: "a/b"},
				"negative time":           {Stream: "a", Type: "T", Media: "a/b", Time: -1},
				"earliest time":           {Stream: "a", Type: "T", Media: "a/b", Time: -1 << 63},
				"latest time":             {Stream: "a", Type: "T", Media: "a/b", Time: 1<<63 - 1},
				"later version":           {Stream: "notes", Version: 1, Type: "NoteTaken", Prev: make([]byte, 32), Media: "text/plain", Meta: []byte{1}, Data: []byte("two")},
				"version of one byte":     {Stream: "notes", Version: 24, Type: "NoteTaken", Prev: make([]byte, 32), Media: "text/plain"},
				"version of two bytes":    {Stream: "notes", Version: 256, Type: "NoteTaken", Prev: make([]byte, 32), Media: "text/plain"},
				"version of eight bytes":  {Stream: "notes", Version: 1 << 33, Type: "NoteTaken", Prev: make([]byte, 32), Media: "text/plain"},
				"data of 23 bytes":        {Stream: "a", Type: "T", Media: "a/b", Data: long[:23]},
				"data of 24 bytes":        {Stream: "a", Type: "T", Media: "a/b", Data: long[:24]},
				"data of 255 bytes":       {Stream: "a", Type: "T", Media: "a/b", Data: long[:255]},
				"data of 256 bytes":       {Stream: "a", Type: "T", Media: "a/b", Data: long[:256]},
				"a product's stream":      {Stream: "attempt-one", Type: "AttemptRegistered", Media: "application/cbor", Time: 1_764_432_000_000_000_000, Meta: []byte{0xa0}, Data: []byte{0xa0}},
				"dots and dashes in name": {Stream: "a.b-c_d", Type: "T.u-v_w", Media: "a/b"},
			}
			for _, name := range sorted(events) {
				e := events[name]
				b := ledger.MarshalLeaf(e)
				h := e.Leaf()
				add(accept, name, "", b, leafValues(e, h))
			}
			base := ledger.MarshalLeaf(events["later version"])
			spelltest.Respelled(base, func(name string, bent []byte) { add(refuse, "spelling: "+name, "spelling", bent, nil) })
			root := func(bend func(*spelltest.Item)) []byte {
				it := spelltest.Parse(base)
				bend(it)
				return it.Bytes()
			}
			bends := map[string]func(*spelltest.Item){
				"eight items":          func(it *spelltest.Item) { it.Kids = it.Kids[:8] },
				"ten items":            func(it *spelltest.Item) { it.Kids = append(it.Kids, &spelltest.Item{Width: -1}) },
				"format 0":             func(it *spelltest.Item) { it.Kids[0].N = 0 },
				"format 2":             func(it *spelltest.Item) { it.Kids[0].N = 2 },
				"empty stream name":    func(it *spelltest.Item) { set(it.Kids[1], "") },
				"upper-case stream":    func(it *spelltest.Item) { set(it.Kids[1], "Notes") },
				"stream with a slash":  func(it *spelltest.Item) { set(it.Kids[1], "a/b") },
				"stream of 129 bytes":  func(it *spelltest.Item) { set(it.Kids[1], string(bytes.Repeat([]byte("a"), 129))) },
				"version 2^63":         func(it *spelltest.Item) { it.Kids[2].N = 1 << 63 },
				"empty type":           func(it *spelltest.Item) { set(it.Kids[3], "") },
				"type with a space":    func(it *spelltest.Item) { set(it.Kids[3], "Note Taken") },
				"time 2^63":            func(it *spelltest.Item) { it.Kids[4].N = 1 << 63 },
				"prev of 31 bytes":     func(it *spelltest.Item) { set(it.Kids[5], string(make([]byte, 31))) },
				"no prev":              func(it *spelltest.Item) { set(it.Kids[5], "") },
				"prev at version 0":    func(it *spelltest.Item) { it.Kids[2].N = 0 },
				"empty media type":     func(it *spelltest.Item) { set(it.Kids[6], "") },
				"media type with LF":   func(it *spelltest.Item) { set(it.Kids[6], "a/b\n") },
				"meta beyond its size": func(it *spelltest.Item) { set(it.Kids[7], string(make([]byte, 4097))) },
			}
			for _, name := range sorted(bends) {
				add(refuse, name, "shape", root(bends[name]), nil)
			}
			return sortedVectors(out)
		},
		run: func(t *testing.T, in values) (string, values, error) {
			e, err := ledger.UnmarshalLeaf(in.bytes(t, "cbor"))
			if err != nil {
				return refuse, nil, err
			}
			return accept, leafValues(e, e.Leaf()), nil
		},
	}
}

func set(it *spelltest.Item, s string) { it.Str, it.N = []byte(s), uint64(len(s)) }

func leafValues(e ledger.Event, h ledger.Hash) values {
	return values{
		"leaf": hexOf(h[:]), "id": h.EventID().String(), "stream": string(e.Stream), "version": uint64(e.Version), "type": e.Type,
		"time": e.Time, "prev": hexOf(e.Prev), "media": e.Media, "meta": hexOf(e.Meta), "data": hexOf(e.Data),
	}
}

func chains() family {
	return family{
		name: "chains", least: 12,
		about: "Ledgers (ledger/FORMAT.md). Input: leaves, the CBOR of each event's leaf in index order from 0. Accepted: each stream's versions count from 0 and prev is the leaf hash of the event before; then size and root are the tree's.",
		make: func(t *testing.T) []vector {
			head := map[ledger.StreamID]ledger.Head{}
			var events []ledger.Event
			for i := range 11 {
				stream := ledger.StreamID([]string{"a", "b", "a", "c"}[i%4])
				h, ok := head[stream]
				if !ok {
					h = ledger.EmptyHead
				}
				made, _ := ledger.Chain(stream, h, ledger.Prepared{Type: "T", Media: "text/plain", Time: int64(i), Meta: []byte{byte(i)}, Data: fmt.Appendf(nil, "event %d", i)})
				head[stream] = made[0].Head()
				events = append(events, made[0])
			}
			leaves := func(bend func([]ledger.Event) []ledger.Event) values {
				own := append([]ledger.Event{}, events...)
				list := []string{}
				for _, e := range bend(own) {
					list = append(list, hexOf(ledger.MarshalLeaf(e)))
				}
				return values{"leaves": list}
			}
			var out []vector
			for _, n := range []int{0, 1, 2, 7, 11} {
				in := leaves(func(e []ledger.Event) []ledger.Event { return e[:n] })
				_, o, err := checkChain(t, in)
				require.NoError(t, err)
				// The root from a recursion that shares nothing with the code under test.
				var hashes [][32]byte
				for _, e := range events[:n] {
					hashes = append(hashes, e.Leaf())
				}
				root := rootOf(hashes)
				require.Equal(t, hexOf(root[:]), o["root"])
				out = append(out, vector{Name: fmt.Sprintf("%d events", n), Class: accept, Input: in, Output: o})
			}
			bends := map[string]func([]ledger.Event) []ledger.Event{
				"first dropped":   func(e []ledger.Event) []ledger.Event { return e[1:] },
				"one dropped":     func(e []ledger.Event) []ledger.Event { return append(e[:2], e[3:]...) },
				"one twice":       func(e []ledger.Event) []ledger.Event { return append(e[:3:3], e[2:]...) },
				"two exchanged":   func(e []ledger.Event) []ledger.Event { e[0], e[2] = e[2], e[0]; return e },
				"prev of another": func(e []ledger.Event) []ledger.Event { e[2].Prev = bytes.Clone(e[6].Prev); return e },
				"prev with a bit off": func(e []ledger.Event) []ledger.Event {
					e[4].Prev = bytes.Clone(e[4].Prev)
					e[4].Prev[31] ^= 1
					return e
				},
				"data changed":    func(e []ledger.Event) []ledger.Event { e[0].Data = []byte("other"); return e },
				"time changed":    func(e []ledger.Event) []ledger.Event { e[1].Time++; return e },
				"version skipped": func(e []ledger.Event) []ledger.Event { e[4].Version++; return e },
			}
			for _, name := range sorted(bends) {
				out = append(out, vector{Name: name, Class: refuse, Kind: "chain", Input: leaves(bends[name])})
			}
			return sortedVectors(out)
		},
		run: checkChain,
	}
}

func checkChain(t *testing.T, in values) (string, values, error) {
	c := ledger.NewChecker()
	for i, s := range in.list(t, "leaves") {
		b, err := hex.DecodeString(s)
		require.NoError(t, err)
		e, err := ledger.UnmarshalLeaf(b)
		if err != nil {
			return refuse, nil, err
		}
		e.Index = ledger.Index(i)
		if _, err := c.Check(e); err != nil {
			return refuse, nil, err
		}
	}
	root := c.Root()
	return accept, values{"size": c.Size(), "root": hexOf(root[:])}, nil
}
