// Package spelltest writes a CBOR value in every other way that a careless decoder would take for it: long
// heads, indefinite lengths, keys out of order, floats for numbers, tags, bytes behind. It shares no code
// with what it attacks.
//
//	spelltest.Respelled(b, func(name string, bent []byte) {
//		require.Error(t, evidence.Unmarshal(bent, &v), name)
//	})
package spelltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// Item is one CBOR item that can be written in any spelling, legal or not. It shares no code with
// what it attacks.
type Item struct {
	Major byte
	N     uint64 // value, length or count
	Str   []byte // of a string
	Kids  []*Item
	Width int    // bytes of the head's argument; -1: the shortest
	Indef bool   // written with indefinite length
	Raw   []byte // written instead of everything else
}

// Parse reads one well-formed Item of definite length.
func Parse(b []byte) *Item {
	it, rest := parseItem(b)
	if len(rest) != 0 {
		panic(fmt.Sprintf("%d bytes behind the Item", len(rest)))
	}
	return it
}

func parseItem(b []byte) (*Item, []byte) {
	it := &Item{Major: b[0] >> 5, Width: -1}
	info := b[0] & 31
	b = b[1:]
	if info < 24 {
		it.N = uint64(info)
	} else {
		var wide [8]byte
		w := 1 << (info - 24)
		copy(wide[8-w:], b[:w])
		it.N, b = binary.BigEndian.Uint64(wide[:]), b[w:]
	}
	kids := 0
	switch it.Major {
	case 2, 3:
		it.Str, b = b[:it.N], b[it.N:]
	case 4:
		kids = int(it.N)
	case 5:
		kids = 2 * int(it.N)
	}
	for range kids {
		var kid *Item
		kid, b = parseItem(b)
		it.Kids = append(it.Kids, kid)
	}
	return it, b
}

func (it *Item) head() []byte {
	if it.Width < 0 {
		for _, w := range []int{0, 1, 2, 4, 8} {
			if w == 0 && it.N < 24 || w > 0 && (w == 8 || it.N>>(8*w) == 0) {
				return headOf(it.Major, it.N, w)
			}
		}
	}
	return headOf(it.Major, it.N, it.Width)
}

func headOf(major byte, n uint64, width int) []byte {
	if width == 0 {
		return []byte{major<<5 | byte(n)}
	}
	wide := binary.BigEndian.AppendUint64(nil, n)
	info := byte(24 + slices.Index([]int{1, 2, 4, 8}, width))
	return append([]byte{major<<5 | info}, wide[8-width:]...)
}

// Bytes writes the item as its fields ask for.
func (it *Item) Bytes() []byte {
	if it.Raw != nil {
		return it.Raw
	}
	var out []byte
	switch {
	case it.Indef && (it.Major == 2 || it.Major == 3):
		half := len(it.Str) / 2
		out = append(out, it.Major<<5|31)
		out = append(out, (&Item{Major: it.Major, N: uint64(half), Str: it.Str[:half], Width: -1}).Bytes()...)
		out = append(out, (&Item{Major: it.Major, N: uint64(len(it.Str) - half), Str: it.Str[half:], Width: -1}).Bytes()...)
		return append(out, 0xff)
	case it.Indef:
		out = append(out, it.Major<<5|31)
	default:
		if it.Major == 4 {
			it.N = uint64(len(it.Kids))
		} else if it.Major == 5 {
			it.N = uint64(len(it.Kids) / 2)
		}
		out = append(out, it.head()...)
	}
	out = append(out, it.Str...)
	for _, k := range it.Kids {
		out = append(out, k.Bytes()...)
	}
	if it.Indef {
		out = append(out, 0xff)
	}
	return out
}

// At follows a path of map keys and list positions.
func (it *Item) At(path ...uint64) *Item {
	for _, step := range path {
		if it.Major == 4 {
			it = it.Kids[step]
			continue
		}
		found := false
		for i := 0; i < len(it.Kids); i += 2 {
			if it.Kids[i].Major == 0 && it.Kids[i].N == step {
				it, found = it.Kids[i+1], true
				break
			}
		}
		if !found {
			panic(fmt.Sprintf("no key %d", step))
		}
	}
	return it
}

// first returns the first Item below, in the order of the bytes, that a condition holds for.
func (it *Item) first(is func(*Item) bool) *Item {
	for _, k := range it.Kids {
		if is(k) {
			return k
		}
		if found := k.first(is); found != nil {
			return found
		}
	}
	return nil
}

func ofMajor(m byte) func(*Item) bool {
	return func(it *Item) bool { return it.Major == m && (m != 2 && m != 3 || it.N > 1) }
}

// spelling is another way to write the same value, or a value that a careless decoder takes for it.
type spelling struct {
	name string
	bend func(*Item) bool // false: there is nothing to bend here
	add  []byte           // written behind
}

func bendFirst(is func(*Item) bool, bend func(*Item)) func(*Item) bool {
	return func(root *Item) bool {
		it := root.first(is)
		if it == nil {
			return false
		}
		bend(it)
		return true
	}
}

// number bends the first number among the values of a map or the entries of a list.
func number(bend func(*Item)) func(*Item) bool {
	return func(root *Item) bool {
		start, step := 0, 1
		if root.Major == 5 {
			start, step = 1, 2
		}
		for i := start; i < len(root.Kids); i += step {
			if root.Kids[i].Major == 0 {
				bend(root.Kids[i])
				return true
			}
		}
		return false
	}
}

func onMap(bend func(*Item)) func(*Item) bool {
	return func(root *Item) bool {
		if root.Major != 5 || len(root.Kids) < 4 {
			return false
		}
		bend(root)
		return true
	}
}

func whole(bend func(*Item)) func(*Item) bool {
	return func(root *Item) bool { bend(root); return true }
}

// spellings are all the kinds.
var spellings = []spelling{
	{name: "long head of the whole", bend: whole(func(r *Item) { r.Width = 8 })},
	{name: "indefinite length of the whole", bend: whole(func(r *Item) { r.Indef = true })},
	{name: "long number", bend: number(func(it *Item) { it.Width = 8 })},
	{name: "number one byte too long", bend: number(func(it *Item) { it.Width = map[int]int{1: 1, 2: 2, 3: 4, 5: 8}[len(it.head())] })},
	{name: "long byte string", bend: bendFirst(ofMajor(2), func(it *Item) { it.Width = 8 })},
	{name: "byte string in chunks", bend: bendFirst(ofMajor(2), func(it *Item) { it.Indef = true })},
	{name: "long text", bend: bendFirst(ofMajor(3), func(it *Item) { it.Width = 4 })},
	{name: "text in chunks", bend: bendFirst(ofMajor(3), func(it *Item) { it.Indef = true })},
	{name: "bad UTF-8", bend: bendFirst(ofMajor(3), func(it *Item) { it.Str = bytes.Clone(it.Str); it.Str[len(it.Str)-1] = 0xff })},
	{name: "text as bytes", bend: bendFirst(ofMajor(3), func(it *Item) { it.Major = 2 })},
	{name: "bytes as text", bend: bendFirst(ofMajor(2), func(it *Item) { it.Major = 3 })},
	{name: "keys out of order", bend: onMap(func(r *Item) {
		r.Kids[0], r.Kids[1], r.Kids[2], r.Kids[3] = r.Kids[2], r.Kids[3], r.Kids[0], r.Kids[1]
	})},
	{name: "key twice", bend: onMap(func(r *Item) { r.Kids = append([]*Item{r.Kids[0], r.Kids[1]}, r.Kids...) })},
	{name: "unknown key", bend: onMap(func(r *Item) {
		r.Kids = append(r.Kids, &Item{N: 23, Width: -1}, &Item{N: 0, Width: -1})
	})},
	{name: "negative key", bend: onMap(func(r *Item) {
		r.Kids = append(r.Kids, &Item{Major: 1, N: 0, Width: -1}, &Item{N: 0, Width: -1})
	})},
	{name: "float for a number", bend: number(func(it *Item) { it.Raw = []byte{0xf9, 0x3c, 0x00} })},
	{name: "wide float for a number", bend: number(func(it *Item) { it.Raw = []byte{0xfb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0} })},
	{name: "not a number for a number", bend: number(func(it *Item) { it.Raw = []byte{0xf9, 0x7e, 0x00} })},
	{name: "big number tag", bend: number(func(it *Item) { it.Raw = []byte{0xc2, 0x41, 0x01} })},
	{name: "null for a string", bend: bendFirst(ofMajor(2), func(it *Item) { it.Raw = []byte{0xf6} })},
	{name: "undefined for a string", bend: bendFirst(ofMajor(2), func(it *Item) { it.Raw = []byte{0xf7} })},
	{name: "tagged string", bend: bendFirst(ofMajor(2), func(it *Item) { it.Raw = append([]byte{0xd8, 0x18}, it.Bytes()...) })},
	{name: "tagged whole", bend: whole(func(r *Item) { r.Raw = append([]byte{0xd9, 0xd9, 0xf7}, r.Bytes()...) })},
	{name: "reserved length", bend: number(func(it *Item) { it.Raw = []byte{0x1c} })},
	{name: "cut", bend: whole(func(r *Item) { b := r.Bytes(); r.Raw = b[:len(b)-1] })},
	{name: "byte behind", bend: whole(func(*Item) {}), add: []byte{0}},
	{name: "break behind", bend: whole(func(*Item) {}), add: []byte{0xff}},
}

// Respelled calls each with every spelling of b that there is.
func Respelled(b []byte, each func(name string, bent []byte)) {
	for _, s := range spellings {
		root := Parse(b)
		if s.bend(root) {
			each(s.name, append(root.Bytes(), s.add...))
		}
	}
}
