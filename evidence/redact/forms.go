package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"slices"
)

// form is one way of reading text, with what to find in it.
type form struct {
	read reading
	find *automaton
	// start tells which two bytes can begin a pattern: those of its first symbols, or of escapes.
	start [1 << 16]bool
	// special begins what doesn't stand for itself.
	special string
	// before holds every byte that may go with a pattern it stands before.
	before class
}

func newForm(read reading, special string) *form {
	f := &form{read: read, find: newAutomaton(), special: special}
	for _, b := range []byte(special) {
		for second := range 256 {
			f.start[pair(b, byte(second))] = true
		}
	}
	return f
}

func pair(a, b byte) int { return int(a)<<8 | int(b) }

func (f *form) add(pattern []byte, left *class) {
	f.find.add(pattern, left)
	f.start[pair(pattern[0], pattern[1])] = true
	for _, b := range []byte(f.special) {
		f.start[pair(pattern[0], b)] = true
	}
	if left != nil {
		for b, in := range left {
			f.before[b] = f.before[b] || in
		}
	}
}

// formsOf builds every form of the secrets.
func formsOf(secrets [][]byte) []*form {
	plain := newForm(readPlain, "")
	printed := newForm(readPrinted, "\r\n")
	percent := newForm(readPercent, "%")
	json := newForm(readJSON, `\`)
	single := newForm(readSingle, `\`)
	forms := []*form{plain, printed, percent, json}
	for _, s := range secrets {
		plain.add(s, nil)
		percent.add(s, nil)
		if bytes.ContainsRune(s, ' ') {
			percent.add(bytes.ReplaceAll(s, []byte(" "), []byte("+")), nil)
		}
		json.add(s, nil)
		if slices.ContainsFunc(s, func(b byte) bool { return b >= 0x80 }) {
			single.add(s, nil)
		}
		digits := []byte(hex.EncodeToString(s))
		printed.add(digits, nil)
		printed.add(bytes.ToUpper(digits), nil)
		for offset := range 3 {
			addBase64(printed, s, offset, stdAlphabet, base64.RawStdEncoding)
			addBase64(printed, s, offset, urlAlphabet, base64.RawURLEncoding)
		}
	}
	if single.find.longest > 0 {
		forms = append(forms, single)
	}
	for _, f := range forms {
		f.find.link()
	}
	return forms
}

const (
	letters     = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	stdAlphabet = letters + "+/"
	urlAlphabet = letters + "-_"
)

// addBase64 adds what a secret looks like inside longer data that it begins in at a byte which is
// offset modulo 3. The characters that only the secret decides must be there. The one before them
// and the one after hold some of its bits too, and go with it where they have those bits, as does
// the padding.
func addBase64(f *form, s []byte, offset int, alphabet string, enc *base64.Encoding) {
	text := []byte(enc.EncodeToString(append(make([]byte, offset), s...)))
	var left *class
	if offset > 0 {
		text = text[offset:]
		left = sharing(alphabet, text[0], 1<<(6-2*offset)-1)
		text = text[1:]
	}
	switch (offset + len(s)) % 3 {
	case 0:
		f.add(text, left)
	case 1: // two bits are in the last character
		addEnd(f, text, left, sharing(alphabet, text[len(text)-1], 0b110000), "==")
	case 2: // four bits are
		addEnd(f, text, left, sharing(alphabet, text[len(text)-1], 0b111100), "=")
	}
}

// addEnd adds a text whose last character may be any of a class; the padding may follow that
// character when the data ends with the secret.
func addEnd(f *form, text []byte, left, ends *class, padding string) {
	core := text[:len(text)-1]
	f.add(core, left)
	for b, in := range ends {
		if in {
			f.add(append(slices.Clone(core), byte(b)), left)
		}
	}
	for i := range len(padding) {
		f.add(append(slices.Clone(text), padding[:i+1]...), left)
	}
}

// sharing is the set of characters whose value has the same bits under a mask as c's.
func sharing(alphabet string, c byte, mask int) *class {
	value := func(c byte) int { return bytes.IndexByte([]byte(alphabet), c) }
	var in class
	for _, o := range []byte(alphabet) {
		in[o] = value(o)&mask == value(c)&mask
	}
	return &in
}
