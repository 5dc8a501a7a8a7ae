package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns text that is safe to print: one line of printable characters. A backslash is
// doubled, so that no text can look like an escape of another.
func Escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\\':
			b.WriteString(`\\`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case shows(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += n
	}
	return b.String()
}

// shows reports whether a character shows as itself. Format characters (bidirectional controls,
// zero-width joiners, tags), private use, and every space but the plain one don't. Nor do
// combining marks and the fillers that some fonts leave empty: they change or hide their
// neighbours.
func shows(r rune) bool {
	if !unicode.IsPrint(r) || unicode.Is(unicode.M, r) {
		return false
	}
	switch r {
	case '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800':
		return false
	}
	return true
}

// field is Escape, cut to a length.
func field(s string) Shown { return cut(Escape(s), maxField) }

// cut shortens escaped text and says by how much.
func cut(s string, most int) Shown {
	if utf8.RuneCountInString(s) <= most {
		return Shown(s)
	}
	runes := []rune(s)
	return Shown(fmt.Sprintf("%s… (%d more characters)", string(runes[:most]), len(runes)-most))
}
