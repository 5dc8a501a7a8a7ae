package evidence

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// CheckPath refuses a path that isn't clean and relative: empty, `.`, `..` and empty components,
// NUL, or longer or deeper than the limits. Bytes need not be UTF-8.
func CheckPath(path string) error {
	if path == "" {
		return errors.New("empty path")
	}
	if len(path) > MaxPath {
		return fmt.Errorf("path of %d bytes exceeds %d", len(path), MaxPath)
	}
	depth := 0
	for component := range strings.SplitSeq(path, "/") {
		if err := CheckComponent(component); err != nil {
			return fmt.Errorf("path %q: %w", path, err)
		}
		if depth++; depth > MaxPathDepth {
			return fmt.Errorf("path has more than %d components", MaxPathDepth)
		}
	}
	return nil
}

// CheckComponent refuses what can't be one name in a directory.
func CheckComponent(name string) error {
	switch {
	case name == "":
		return errors.New("empty component")
	case name == "." || name == "..":
		return fmt.Errorf("component %q", name)
	case len(name) > MaxPathComponent:
		return fmt.Errorf("component of %d bytes exceeds %d", len(name), MaxPathComponent)
	case strings.ContainsAny(name, "/\x00"):
		return errors.New("component with a slash or NUL")
	}
	return nil
}

// JoinPath is a name in a directory, "" being the root.
func JoinPath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// SplitPath returns the directory and the name of a clean relative path.
func SplitPath(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(0, i)], path[i+1:]
}

// ReservedName reports whether a path component names a tree that never enters a snapshot or a
// workspace (req B7): `.git` and `.baildock*`, in any case and in every spelling that some
// filesystem takes for them (the short names `git~1` and `baildo~1`, trailing dots and spaces, a
// stream after a colon, ignorable code points, a backslash as separator).
func ReservedName(name string) bool {
	for part := range strings.SplitSeq(name, `\`) {
		if reservedPart(part) {
			return true
		}
	}
	return false
}

func reservedPart(part string) bool {
	part, _, _ = strings.Cut(part, ":")
	part = strings.TrimRight(strings.ToLower(dropIgnorable(part)), ". ")
	if part == ".git" || part == "git~1" || strings.HasPrefix(part, ".baildock") {
		return true
	}
	rest, short := strings.CutPrefix(part, "baildo~")
	return short && rest != "" && strings.Trim(rest, "0123456789") == ""
}

// SubmoduleName reports whether a component names git's list of submodules, in any case and in every
// spelling that some filesystem takes for it (gitmodules(5); the short names of NTFS among them).
func SubmoduleName(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(strings.ToLower(dropIgnorable(name)), ". ")
	if name == ".gitmodules" {
		return true
	}
	for _, short := range []string{"gitmod~", "gi7eba~", "gi7eb~", "gi7e~", "gi7~", "gi~"} {
		if rest, ok := strings.CutPrefix(name, short); ok && rest != "" && strings.Trim(rest, "0123456789") == "" {
			return true
		}
	}
	return false
}

// dropIgnorable removes the code points HFS+ ignores when it compares names.
func dropIgnorable(s string) string {
	if !utf8.ValidString(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, s)
}
