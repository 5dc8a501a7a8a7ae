package evidence

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// WholeWorkspace is the writable path that stands for all of it.
const WholeWorkspace = "."

// WritablePaths are the trees of a workspace its agent may write to (req O2): paths inside the
// workspace, sorted, none in another, or WholeWorkspace alone.
type WritablePaths []string

// Validate refuses a list that isn't normal: none or more than MaxWritable, unsorted or repeated,
// one path equal to or inside another in any case, `.` beside others, a reserved component, a path
// that isn't clean, or one a mount can't name (a comma, colon, control character, bad UTF-8).
func (w WritablePaths) Validate() error {
	if len(w) == 0 || len(w) > MaxWritable {
		return fmt.Errorf("%d writable paths; 1 to %d are allowed", len(w), MaxWritable)
	}
	if len(w) == 1 && w[0] == WholeWorkspace {
		return nil
	}
	for i, p := range w {
		if p == WholeWorkspace {
			return errors.New(`writable path "." must stand alone: it holds every other`)
		}
		if err := checkWorkspacePath(p); err != nil {
			return fmt.Errorf("writable path %q: %w", p, err)
		}
		if !utf8.ValidString(p) || strings.ContainsFunc(p, func(c rune) bool { return c == ',' || c == ':' || c < ' ' || c == 0x7f }) {
			return fmt.Errorf("writable path %q holds a character that can't be named in a mount (comma, colon, control character, bad UTF-8)", p)
		}
		if i > 0 && w[i-1] >= p {
			return fmt.Errorf("writable path %q is repeated or not after %q", p, w[i-1])
		}
		for _, other := range w[:i] {
			if overlaps(other, p) {
				return fmt.Errorf("writable paths %q and %q overlap: name the outer one alone", other, p)
			}
		}
	}
	return nil
}

// overlaps reports whether one path is the other or lies inside it where case doesn't count: what is
// two trees here may be one elsewhere.
func overlaps(a, b string) bool {
	a, b = strings.ToLower(a)+"/", strings.ToLower(b)+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// Covers reports whether a path of the workspace lies in a writable tree. The tree's own root does not:
// it is a mount, which its agent can't replace, but may change the mode of (see Outside).
func (w WritablePaths) Covers(path string) bool {
	for _, p := range w {
		if p == WholeWorkspace || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

// Outside lists the paths of mutations no writable tree covers. None is expected: the mounts forbid it.
func (w WritablePaths) Outside(l Mutations) PathList {
	var out PathList
	for _, m := range l {
		for _, p := range m.paths() {
			root := m.Kind == MutationModified && m.Before.Type == m.After.Type && m.After.Type == EntryDirectory
			covered := w.Covers(p)
			for _, tree := range w {
				covered = covered || root && p == tree
			}
			if !covered {
				out = append(out, p)
			}
		}
	}
	return out
}
