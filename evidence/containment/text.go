package containment

import (
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shapes of every text that isn't one of ours. What has another shape reads Unreadable.
var (
	wordShape      = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,63}$`)
	variableShape  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	imageShape     = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	referenceShape = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_./:-]{0,430}@)?sha256:[0-9a-f]{64}$`)
	nameShape      = regexp.MustCompile(`^[A-Za-z0-9_.+-]{1,64}$`)
)

// word is a code, or a name out of a table.
func word(s string) string {
	if wordShape.MatchString(s) {
		return s
	}
	return Unreadable
}

// code is a word that may be missing.
func code(s string) string {
	if s == "" {
		return ""
	}
	return word(s)
}

func variable(s string) string {
	if variableShape.MatchString(s) {
		return s
	}
	return Unreadable
}

// lastName is the last name of a path, which says what was run and not where.
func lastName(p string) string {
	if name := path.Base(p); nameShape.MatchString(name) {
		return name
	}
	return Unreadable
}

// reference splits a configured reference, which is pinned, into itself and the digest that a registry
// gave.
func reference(s string) (configured, digest string) {
	if !referenceShape.MatchString(s) {
		return Unreadable, None
	}
	_, digest, found := strings.Cut(s, "@")
	if !found {
		return s, None
	}
	return s, digest
}

// boundImage takes the image's ID out of what the comparison found: a line for each field it read.
func boundImage(found string) string {
	for line := range strings.SplitSeq(found, "\n") {
		if id, ok := strings.CutPrefix(line, "Image="); ok {
			if id = strings.Trim(id, `"`); imageShape.MatchString(id) {
				return id
			}
		}
	}
	return Unreadable
}

// writable is the portable name of a tree of the copy.
func writable(p string) string {
	if p == "." {
		return "${RUN_ROOT}/workspace"
	}
	if !utf8.ValidString(p) || strings.HasPrefix(p, "/") || strings.ContainsFunc(p, func(c rune) bool { return !unicode.IsGraphic(c) }) {
		return Unreadable
	}
	if utf8.RuneCountInString(p) > maxWritable {
		p = string([]rune(p)[:maxWritable-1]) + "…"
	}
	return "${RUN_ROOT}/workspace/" + p
}
