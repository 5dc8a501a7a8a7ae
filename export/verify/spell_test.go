package verify_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// item is one CBOR item that can be written in any spelling, legal or not. It shares no code with
// what it attacks.
type item struct {
	major byte
	n     uint64 // value, length or count
	str   []byte // of a string
	kids  []*item
	width int    // bytes of the head's argument; -1: the shortest
	indef bool   // written with indefinite length
	raw   []byte // written instead of everything else
}

// parse reads one well-formed item of definite length.
func parse(b []byte) *item {
	it, rest := parseItem(b)
	if len(rest) != 0 {
		panic(fmt.Sprintf("%d bytes behind the item", len(rest)))
	}
	return it
}

func parseItem(b []byte) (*item, []byte) {
	it := &item{major: b[0] >> 5, width: -1}
	info := b[0] & 31
	b = b[1:]
	if info < 24 {
		it.n = uint64(info)
	} else {
		var wide [8]byte
		w := 1 << (info - 24)
		copy(wide[8-w:], b[:w])
		it.n, b = binary.BigEndian.Uint64(wide[:]), b[w:]
	}
	kids := 0
	switch it.major {
	case 2, 3:
		it.str, b = b[:it.n], b[it.n:]
	case 4:
		kids = int(it.n)
	case 5:
		kids = 2 * int(it.n)
	}
	for range kids {
		var kid *item
		kid, b = parseItem(b)
		it.kids = append(it.kids, kid)
	}
	return it, b
}

func (it *item) head() []byte {
	if it.width < 0 {
		for _, w := range []int{0, 1, 2, 4, 8} {
			if w == 0 && it.n < 24 || w > 0 && (w == 8 || it.n>>(8*w) == 0) {
				return headOf(it.major, it.n, w)
			}
		}
	}
	return headOf(it.major, it.n, it.width)
}

func headOf(major byte, n uint64, width int) []byte {
	if width == 0 {
		return []byte{major<<5 | byte(n)}
	}
	wide := binary.BigEndian.AppendUint64(nil, n)
	info := byte(24 + slices.Index([]int{1, 2, 4, 8}, width))
	return append([]byte{major<<5 | info}, wide[8-width:]...)
}

func (it *item) bytes() []byte {
	if it.raw != nil {
		return it.raw
	}
	var out []byte
	switch {
	case it.indef && (it.major == 2 || it.major == 3):
		half := len(it.str) / 2
		out = append(out, it.major<<5|31)
		out = append(out, (&item{major: it.major, n: uint64(half), str: it.str[:half], width: -1}).bytes()...)
		out = append(out, (&item{major: it.major, n: uint64(len(it.str) - half), str: it.str[half:], width: -1}).bytes()...)
		return append(out, 0xff)
	case it.indef:
		out = append(out, it.major<<5|31)
	default:
		if it.major == 4 {
			it.n = uint64(len(it.kids))
		} else if it.major == 5 {
			it.n = uint64(len(it.kids) / 2)
		}
		out = append(out, it.head()...)
	}
	out = append(out, it.str...)
	for _, k := range it.kids {
		out = append(out, k.bytes()...)
	}
	if it.indef {
		out = append(out, 0xff)
	}
	return out
}

// at follows a path of map keys and list positions.
func (it *item) at(path ...uint64) *item {
	for _, step := range path {
		if it.major == 4 {
			it = it.kids[step]
			continue
		}
		found := false
		for i := 0; i < len(it.kids); i += 2 {
			if it.kids[i].major == 0 && it.kids[i].n == step {
				it, found = it.kids[i+1], true
				break
			}
		}
		if !found {
			panic(fmt.Sprintf("no key %d", step))
		}
	}
	return it
}

// first returns the first item below, in the order of the bytes, that a condition holds for.
func (it *item) first(is func(*item) bool) *item {
	for _, k := range it.kids {
		if is(k) {
			return k
		}
		if found := k.first(is); found != nil {
			return found
		}
	}
	return nil
}

func ofMajor(m byte) func(*item) bool {
	return func(it *item) bool { return it.major == m && (m != 2 && m != 3 || it.n > 1) }
}

// spelling is another way to write the same value, or a value that a careless decoder takes for it.
type spelling struct {
	name string
	bend func(*item) bool // false: there is nothing to bend here
	add  []byte           // written behind
}

func bendFirst(is func(*item) bool, bend func(*item)) func(*item) bool {
	return func(root *item) bool {
		it := root.first(is)
		if it == nil {
			return false
		}
		bend(it)
		return true
	}
}

// number bends the first number among the values of a map or the entries of a list.
func number(bend func(*item)) func(*item) bool {
	return func(root *item) bool {
		start, step := 0, 1
		if root.major == 5 {
			start, step = 1, 2
		}
		for i := start; i < len(root.kids); i += step {
			if root.kids[i].major == 0 {
				bend(root.kids[i])
				return true
			}
		}
		return false
	}
}

func onMap(bend func(*item)) func(*item) bool {
	return func(root *item) bool {
		if root.major != 5 || len(root.kids) < 4 {
			return false
		}
		bend(root)
		return true
	}
}

func whole(bend func(*item)) func(*item) bool {
	return func(root *item) bool { bend(root); return true }
}

// spellings are all the kinds.
var spellings = []spelling{
	{name: "long head of the whole", bend: whole(func(r *item) { r.width = 8 })},
	{name: "indefinite length of the whole", bend: whole(func(r *item) { r.indef = true })},
	{name: "long number", bend: number(func(it *item) { it.width = 8 })},
	{name: "number one byte too long", bend: number(func(it *item) { it.width = map[int]int{1: 1, 2: 2, 3: 4, 5: 8}[len(it.head())] })},
	{name: "long byte string", bend: bendFirst(ofMajor(2), func(it *item) { it.width = 8 })},
	{name: "byte string in chunks", bend: bendFirst(ofMajor(2), func(it *item) { it.indef = true })},
	{name: "long text", bend: bendFirst(ofMajor(3), func(it *item) { it.width = 4 })},
	{name: "text in chunks", bend: bendFirst(ofMajor(3), func(it *item) { it.indef = true })},
	{name: "bad UTF-8", bend: bendFirst(ofMajor(3), func(it *item) { it.str = bytes.Clone(it.str); it.str[len(it.str)-1] = 0xff })},
	{name: "text as bytes", bend: bendFirst(ofMajor(3), func(it *item) { it.major = 2 })},
	{name: "bytes as text", bend: bendFirst(ofMajor(2), func(it *item) { it.major = 3 })},
	{name: "keys out of order", bend: onMap(func(r *item) {
		r.kids[0], r.kids[1], r.kids[2], r.kids[3] = r.kids[2], r.kids[3], r.kids[0], r.kids[1]
	})},
	{name: "key twice", bend: onMap(func(r *item) { r.kids = append([]*item{r.kids[0], r.kids[1]}, r.kids...) })},
	{name: "unknown key", bend: onMap(func(r *item) {
		r.kids = append(r.kids, &item{n: 23, width: -1}, &item{n: 0, width: -1})
	})},
	{name: "negative key", bend: onMap(func(r *item) {
		r.kids = append(r.kids, &item{major: 1, n: 0, width: -1}, &item{n: 0, width: -1})
	})},
	{name: "float for a number", bend: number(func(it *item) { it.raw = []byte{0xf9, 0x3c, 0x00} })},
	{name: "wide float for a number", bend: number(func(it *item) { it.raw = []byte{0xfb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0} })},
	{name: "not a number for a number", bend: number(func(it *item) { it.raw = []byte{0xf9, 0x7e, 0x00} })},
	{name: "big number tag", bend: number(func(it *item) { it.raw = []byte{0xc2, 0x41, 0x01} })},
	{name: "null for a string", bend: bendFirst(ofMajor(2), func(it *item) { it.raw = []byte{0xf6} })},
	{name: "undefined for a string", bend: bendFirst(ofMajor(2), func(it *item) { it.raw = []byte{0xf7} })},
	{name: "tagged string", bend: bendFirst(ofMajor(2), func(it *item) { it.raw = append([]byte{0xd8, 0x18}, it.bytes()...) })},
	{name: "tagged whole", bend: whole(func(r *item) { r.raw = append([]byte{0xd9, 0xd9, 0xf7}, r.bytes()...) })},
	{name: "reserved length", bend: number(func(it *item) { it.raw = []byte{0x1c} })},
	{name: "cut", bend: whole(func(r *item) { b := r.bytes(); r.raw = b[:len(b)-1] })},
	{name: "byte behind", bend: whole(func(*item) {}), add: []byte{0}},
	{name: "break behind", bend: whole(func(*item) {}), add: []byte{0xff}},
}

// respelled calls each with every spelling of b that there is.
func respelled(b []byte, each func(name string, bent []byte)) {
	for _, s := range spellings {
		root := parse(b)
		if s.bend(root) {
			each(s.name, append(root.bytes(), s.add...))
		}
	}
}
