package config

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// forbiddenTrees belong to the kernel or to the daemon: nothing is mounted over or under them.
var forbiddenTrees = []string{"/proc", "/sys", "/dev", "/run", "/var/run"}

// CheckContainerPath refuses a path inside the container that a mount or working directory may not
// have (req L2): not absolute and clean, the root, or in a tree of the kernel's or the daemon's.
func CheckContainerPath(p string) error {
	switch {
	case !path.IsAbs(p) || path.Clean(p) != p || p == "/":
		return fmt.Errorf("container path %q is not absolute, clean and below the root", shorten(p))
	case len(p) > MaxHostPath || !utf8.ValidString(p) || strings.ContainsFunc(p, unmountable):
		return fmt.Errorf("container path %q holds what a mount can't name (a comma, a colon, =, a control character, bad UTF-8) or is too long", shorten(p))
	}
	for _, tree := range forbiddenTrees {
		if p == tree || strings.HasPrefix(p, tree+"/") {
			return fmt.Errorf("container path %q lies in %s, which is never mounted over", shorten(p), tree)
		}
	}
	return nil
}

// CheckHostPath refuses a path of the host that a mount can't name exactly (req L2). Errors name the
// reason and not the path.
func CheckHostPath(p string) error {
	switch {
	case !filepath.IsAbs(p) || filepath.Clean(p) != p:
		return fmt.Errorf("the path on the host is not absolute and clean")
	case len(p) > MaxHostPath:
		return fmt.Errorf("the path on the host is longer than %d bytes", MaxHostPath)
	case !utf8.ValidString(p) || strings.ContainsFunc(p, func(c rune) bool { return c == ',' || c == '=' || unicode.IsControl(c) }):
		return fmt.Errorf("the path on the host holds a comma, =, a control character or bad UTF-8, which a mount can't name; move it")
	}
	return nil
}

func unmountable(c rune) bool { return c == ',' || c == ':' || c == '=' || unicode.IsControl(c) }
