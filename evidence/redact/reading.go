package redact

import (
	"unicode/utf16"
	"unicode/utf8"
)

// reading decodes what stands at the beginning of b: how many bytes it takes and how many symbols
// it put in into. Length zero means that more bytes are needed to tell; not so at the end. What is
// no escape stands for itself.
type reading func(b []byte, end bool, into *[utf8.UTFMax]byte) (length, symbols int)

func readPlain(b []byte, _ bool, into *[utf8.UTFMax]byte) (int, int) {
	into[0] = b[0]
	return 1, 1
}

// readPrinted passes over the ends of lines.
func readPrinted(b []byte, end bool, into *[utf8.UTFMax]byte) (int, int) {
	switch {
	case b[0] == '\n':
		return 1, 0
	case b[0] == '\r' && len(b) == 1 && !end:
		return 0, 0
	case b[0] == '\r' && len(b) > 1 && b[1] == '\n':
		return 2, 0
	}
	return readPlain(b, end, into)
}

func readPercent(b []byte, end bool, into *[utf8.UTFMax]byte) (int, int) {
	if b[0] == '%' {
		switch v, have := digits(b[1:], 2); {
		case have == 2:
			into[0] = byte(v)
			return 3, 1
		case 1+have == len(b) && !end:
			return 0, 0
		}
	}
	return readPlain(b, end, into)
}

// readJSON reads the escapes of a string; code points become UTF-8.
func readJSON(b []byte, end bool, into *[utf8.UTFMax]byte) (int, int) {
	return readEscape(b, end, utf8.RuneSelf, into)
}

// readSingle reads the same escapes; code points below 256 become one byte.
func readSingle(b []byte, end bool, into *[utf8.UTFMax]byte) (int, int) {
	return readEscape(b, end, 0x100, into)
}

var shortEscapes = map[byte]byte{
	'"': '"', '\'': '\'', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

func readEscape(b []byte, end bool, single rune, into *[utf8.UTFMax]byte) (int, int) {
	if b[0] != '\\' {
		return readPlain(b, end, into)
	}
	if len(b) == 1 {
		if end {
			return readPlain(b, end, into)
		}
		return 0, 0
	}
	if c, ok := shortEscapes[b[1]]; ok {
		into[0] = c
		return 2, 1
	}
	want := map[byte]int{'x': 2, 'u': 4, 'U': 8}[b[1]]
	if want == 0 {
		return readPlain(b, end, into)
	}
	v, have := digits(b[2:], want)
	switch {
	case have < want && 2+have == len(b) && !end:
		return 0, 0
	case have < want:
		return readPlain(b, end, into)
	case b[1] == 'U' && (v <= 0xffff || v > utf8.MaxRune): // what needs no more digits is written with less
		return readPlain(b, end, into)
	case b[1] == 'U':
		return 10, utf8.EncodeRune(into[:], v)
	case b[1] == 'x' || v < single:
		into[0] = byte(v)
		return 2 + want, 1
	case !utf16.IsSurrogate(v):
		return 6, utf8.EncodeRune(into[:], v)
	}
	for i, c := range []byte(`\u`) { // the other half must follow
		if len(b) == 6+i {
			if !end {
				return 0, 0
			}
			return readPlain(b, end, into)
		}
		if b[6+i] != c {
			return readPlain(b, end, into)
		}
	}
	low, have := digits(b[8:], 4)
	if have < 4 && 8+have == len(b) && !end {
		return 0, 0
	}
	r := utf16.DecodeRune(v, low)
	if have < 4 || r == utf8.RuneError {
		return readPlain(b, end, into)
	}
	return 12, utf8.EncodeRune(into[:], r)
}

// digits reads up to n hexadecimal digits: their value, and how many there are.
func digits(b []byte, n int) (v rune, have int) {
	for have < n && have < len(b) {
		c := b[have]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return v, have
		}
		v = v<<4 | rune(c)
		have++
	}
	return v, have
}
