package executor

import (
	"encoding/json"
	"strings"
)

// Place is a path of this host that evidence names by its role: where it lies is nobody else's
// business.
type Place struct {
	Path string // absolute and clean
	Role string // such as ${SNAPSHOT}
}

// Roles of the directory that a container sees.
const (
	SnapshotRole  = "${SNAPSHOT}"  // the source snapshot
	WorkspaceRole = "${WORKSPACE}" // the writable copy
)

// Portable takes places out of a text, as they stand and as JSON spells them. A place inside
// another must come before it.
func Portable(text string, places ...Place) string {
	for _, p := range places {
		if p.Path == "" || p.Path == "/" {
			continue
		}
		text = replacePath(text, p.Path, p.Role)
		if spelled, err := json.Marshal(p.Path); err == nil {
			text = replacePath(text, string(spelled[1:len(spelled)-1]), p.Role)
		}
	}
	return text
}

// replacePath replaces a path where it isn't the beginning or the end of a longer name.
func replacePath(text, path, role string) string {
	var out strings.Builder
	for at := 0; ; {
		i := strings.Index(text[at:], path)
		if i < 0 {
			out.WriteString(text[at:])
			return out.String()
		}
		start, end := at+i, at+i+len(path)
		out.WriteString(text[at:start])
		// A full stop behind a path ends a sentence unless a name goes on after it.
		rest := strings.TrimLeft(text[end:], ".")
		if start > 0 && inName(text[start-1]) || rest != "" && inName(rest[0]) {
			out.WriteString(path)
		} else {
			out.WriteString(role)
		}
		at = end
	}
}

func inName(c byte) bool {
	return c == '_' || c == '-' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}
