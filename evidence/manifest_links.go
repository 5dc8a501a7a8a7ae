package evidence

import (
	"fmt"
	"strings"
)

// LinkFault says why a link may not be in a tree.
type LinkFault string

const (
	LinkAbsolute LinkFault = "absolute" // its target starts at the root of the filesystem
	LinkEscapes  LinkFault = "escapes"  // it leaves the tree
	LinkDangling LinkFault = "dangling" // nothing in the tree is there
	LinkCycle    LinkFault = "cycle"    // it leads to itself, or takes more than MaxLinkHops or MaxLinkSteps
	LinkReserved LinkFault = "reserved" // it names a reserved tree
)

// LinkError is the first link of a manifest that may not be there.
type LinkError struct {
	Path, Target string
	Fault        LinkFault
}

func (e *LinkError) Error() string {
	return fmt.Sprintf("link %q to %q: %s", e.Path, e.Target, e.Fault)
}

// CheckLinks fails with *LinkError unless every link resolves, through other links, to a file or
// directory of the same manifest (req B4). It looks at nothing but the manifest.
func (m Manifest) CheckLinks() error {
	r := linkResolver{m: m}
	for _, e := range m.Entries {
		if e.Mode != ModeLink {
			continue
		}
		if r.dirs == nil {
			r.dirs = m.directories()
		}
		if fault := r.follow(parentOf(e.Path), e.Target); fault != "" {
			return &LinkError{Path: e.Path, Target: e.Target, Fault: fault}
		}
	}
	return nil
}

func (m Manifest) directories() map[string]bool {
	dirs := map[string]bool{"": true}
	for _, e := range m.Entries {
		for d := parentOf(e.Path); !dirs[d]; d = parentOf(d) {
			dirs[d] = true
		}
	}
	return dirs
}

// linkResolver walks like the kernel: component by component, a link replaced by its target.
type linkResolver struct {
	m     Manifest
	dirs  map[string]bool
	steps int // of all links so far
}

// follow resolves target from directory dir and returns the fault, or "".
func (r *linkResolver) follow(dir, target string) LinkFault {
	if strings.HasPrefix(target, "/") {
		return LinkAbsolute
	}
	for rest, hops, more := target, 1, true; more; {
		if r.steps++; r.steps > MaxLinkSteps {
			return LinkCycle
		}
		var name string
		name, rest, more = strings.Cut(rest, "/")
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			if dir == "" {
				return LinkEscapes
			}
			dir = parentOf(dir)
			continue
		}
		if ReservedName(name) {
			return LinkReserved
		}
		next := JoinPath(dir, name)
		if r.dirs[next] {
			dir = next
			continue
		}
		i, found := r.m.find(next)
		if !found {
			return LinkDangling
		}
		e := r.m.Entries[i]
		if e.Mode != ModeLink {
			if more { // a file used as a directory, if only by a trailing slash
				return LinkDangling
			}
			return ""
		}
		if strings.HasPrefix(e.Target, "/") {
			return LinkAbsolute
		}
		if hops++; hops > MaxLinkHops {
			return LinkCycle
		}
		if more {
			rest = e.Target + "/" + rest
		} else {
			rest, more = e.Target, true
		}
	}
	return ""
}
