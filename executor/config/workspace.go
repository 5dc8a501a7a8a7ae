package config

import (
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/baildock/baildock/evidence"
)

// writable reads the trees the agent may write to. The rules are evidence.WritablePaths's; each is
// held to one path, or to a path and those before it, so that the one at fault is named.
func (r *reader) writable(n *yaml.Node, path string) evidence.WritablePaths {
	var paths evidence.WritablePaths
	r.list(n, path, 1, evidence.MaxWritable, func(n *yaml.Node, path string) {
		p, ok := r.text(n, path)
		if !ok {
			return
		}
		if err := (evidence.WritablePaths{p}).Validate(); err != nil {
			r.refuse(n, path, "%v", err)
			return
		}
		for _, other := range paths {
			if p == other {
				r.refuse(n, path, "the path is given twice")
				return
			}
			two := evidence.WritablePaths{min(p, other), max(p, other)}
			if err := two.Validate(); err != nil {
				r.refuse(n, path, "%v", err)
				return
			}
		}
		paths = append(paths, p)
	})
	slices.Sort(paths)
	return paths
}

// policy reads what the run may leave changed (req N7).
func (r *reader) policy(n *yaml.Node, path string) *evidence.WorkspacePolicy {
	var p evidence.WorkspacePolicy
	globs := func(to *[]string) func(n *yaml.Node, path string) {
		return func(n *yaml.Node, path string) { *to = r.globs(n, path) }
	}
	flag := func(to *bool) func(n *yaml.Node, path string) {
		return func(n *yaml.Node, path string) { *to, _ = r.boolean(n, path) }
	}
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		r.refuse(n, path, "the policy asks for nothing; leave it out")
		return nil
	}
	r.mapping(n, path, []field{
		{"allowed", false, globs(&p.Allowed)},
		{"forbidden", false, globs(&p.Forbidden)},
		{"protected_tests", false, globs(&p.Protected)},
		{"max_files", false, func(n *yaml.Node, path string) {
			if v, ok := r.integer(n, path, 0, evidence.MaxMutations); ok {
				p.MaxFiles = &v
			}
		}},
		{"max_bytes", false, func(n *yaml.Node, path string) {
			if v, ok := r.integer(n, path, 0, evidence.MaxWorkspaceBytes); ok {
				p.MaxBytes = &v
			}
		}},
		{"no_executable_changes", false, flag(&p.NoExecutableChanges)},
		{"no_new_links", false, flag(&p.NoNewLinks)},
	})
	p = p.Normal()
	return &p
}

// globs reads a list of path patterns. An empty list is refused: it could be read as "none may" or
// as "all may".
func (r *reader) globs(n *yaml.Node, path string) []string {
	var globs []string
	r.list(n, path, 1, evidence.MaxGlobs, func(n *yaml.Node, path string) {
		g, ok := r.text(n, path)
		if !ok {
			return
		}
		switch err := evidence.CheckGlob(g); {
		case err != nil:
			r.refuse(n, path, "%v", err)
		case strings.ContainsFunc(g, unicode.IsControl):
			r.refuse(n, path, "the pattern holds a control character")
		case slices.Contains(globs, g):
			r.refuse(n, path, "the pattern is given twice")
		default:
			globs = append(globs, g)
		}
	})
	return globs
}
