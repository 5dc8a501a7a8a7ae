package evidence

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// CheckGlob refuses a text that is no allowed-path pattern. A pattern is a clean relative path
// whose components may hold `*` (any bytes of one component) and `?` (one byte); a component `**`
// stands for any number of components, and for one or more at the end. Nothing else is special,
// and nothing escapes: brackets and backslashes are refused, because other tools read them
// differently.
func CheckGlob(g string) error {
	if g == "" || len(g) > MaxGlob {
		return fmt.Errorf("allowed path %q is empty or longer than %d bytes", g, MaxGlob)
	}
	if strings.ContainsAny(g, `[]\`) {
		return fmt.Errorf("allowed path %q holds a bracket or a backslash; only *, ? and ** are special", g)
	}
	for c := range strings.SplitSeq(g, "/") {
		if err := CheckComponent(c); err != nil {
			return fmt.Errorf("allowed path %q: %w", g, err)
		}
		if c != "**" && strings.Contains(c, "**") {
			return fmt.Errorf("allowed path %q: ** stands only for whole components", g)
		}
	}
	return nil
}

// MatchGlob reports whether a pattern that passes CheckGlob allows a path.
func MatchGlob(glob, path string) bool {
	return matchComponents(strings.Split(glob, "/"), strings.Split(path, "/"))
}

// matchComponents is a table over both lists, so that no pattern takes long.
func matchComponents(globs, names []string) bool {
	// can[j] says whether the globs so far can match the first j names.
	can := make([]bool, len(names)+1)
	can[0] = true
	for i, g := range globs {
		next := make([]bool, len(names)+1)
		for j := range next {
			switch {
			case g == "**" && i == len(globs)-1:
				next[j] = j > 0 && (can[j-1] || next[j-1])
			case g == "**":
				next[j] = can[j] || j > 0 && next[j-1]
			default:
				next[j] = j > 0 && can[j-1] && matchComponent(g, names[j-1])
			}
		}
		can = next
	}
	return can[len(names)]
}

// matchComponent goes back only to the last star, so its time is bounded by the product of the
// lengths.
func matchComponent(g, name string) bool {
	star, from := -1, 0
	i, j := 0, 0
	for j < len(name) {
		switch {
		case i < len(g) && g[i] == '*':
			star, from = i, j
			i++
		case i < len(g) && (g[i] == '?' || g[i] == name[j]):
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(g[i:], "*") == ""
}

// PathList is a set of paths as a blob holds it: byte strings, sorted, each once. Paths need not be
// UTF-8.
type PathList []string

// Marshal returns the canonical encoding, or says why the list has none.
func (l PathList) Marshal() ([]byte, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	raw := make([]cbor.ByteString, len(l))
	for i, p := range l {
		raw[i] = cbor.ByteString(p)
	}
	return Marshal(raw), nil
}

// ParsePathList reads the canonical encoding.
func ParsePathList(b []byte) (PathList, error) {
	var raw []cbor.ByteString
	if err := Unmarshal(b, &raw); err != nil {
		return nil, fmt.Errorf("path list: %w", err)
	}
	l := make(PathList, len(raw))
	for i, p := range raw {
		l[i] = string(p)
	}
	return l, l.check()
}

func (l PathList) check() error {
	if len(l) > MaxTouched {
		return fmt.Errorf("%d paths are touched; at most %d are checked", len(l), MaxTouched)
	}
	if !sortedUnique(l, func(p string) string { return p }) {
		return errors.New("the paths are not sorted or repeat")
	}
	for _, p := range l {
		if err := CheckPath(p); err != nil {
			return err
		}
	}
	return nil
}

// Outside lists the paths that no glob allows.
func (l PathList) Outside(globs []string) PathList {
	var out PathList
	for _, p := range l {
		if !slices.ContainsFunc(globs, func(g string) bool { return MatchGlob(g, p) }) {
			out = append(out, p)
		}
	}
	return out
}

// CheckPaths makes the evidence of source-paths/v1 for a revision. The list's bytes are to be kept
// under a salt; the reference goes in Paths.
func CheckPaths(parent, revision string, globs []string, touched PathList) (PathsChecked, []byte, error) {
	b, err := touched.Marshal()
	if err != nil {
		return PathsChecked{}, nil, err
	}
	e := PathsChecked{
		Parent: parent, Revision: revision, Globs: globs,
		Touched: uint64(len(touched)), Outside: uint64(len(touched.Outside(globs))),
	}
	return e, b, nil
}

// Redecide checks the counts of an event against the list it names.
func (e PathsChecked) Redecide(list []byte) error {
	l, err := ParsePathList(list)
	if err != nil {
		return err
	}
	if n := uint64(len(l)); n != e.Touched {
		return fmt.Errorf("the list holds %d paths; the event says %d", n, e.Touched)
	}
	if n := uint64(len(l.Outside(e.Globs))); n != e.Outside {
		return fmt.Errorf("%d paths lie outside the allowed set; the event says %d", n, e.Outside)
	}
	return nil
}
