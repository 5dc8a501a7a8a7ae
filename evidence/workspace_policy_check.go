package evidence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PolicyCheck names one check of a workspace policy.
type PolicyCheck string

const (
	CheckAllowedPaths   PolicyCheck = "allowed_paths"
	CheckForbiddenPaths PolicyCheck = "forbidden_paths"
	CheckProtectedTests PolicyCheck = "protected_tests"
	CheckMaxFiles       PolicyCheck = "max_files"
	CheckMaxBytes       PolicyCheck = "max_bytes"
	CheckExecutableBits PolicyCheck = "executable_bits"
	CheckNewLinks       PolicyCheck = "new_links"
)

// PolicyResult is what one check came to.
type PolicyResult struct {
	Name   PolicyCheck
	Held   bool
	Detail string // what was counted or which paths break it; bounded, and paths quoted: for people, and withheld with them
}

// Check decides each thing a valid policy asks for over a valid list of mutations, in a fixed order
// (req N7). What a policy doesn't ask for has no result.
//
// A rename is judged at both of its paths and adds no bytes. A directory is judged by itself only where
// nothing in it was touched: otherwise what it holds is.
func (p WorkspacePolicy) Check(l Mutations) []PolicyResult {
	var out []PolicyResult
	touched := l.parents()
	paths := func(name PolicyCheck, breaks func(path string) bool) {
		out = append(out, pathResult(name, l, func(m Mutation) []string {
			return slices.DeleteFunc(m.judged(touched), func(s string) bool { return !breaks(s) })
		}))
	}
	if len(p.Allowed) > 0 {
		paths(CheckAllowedPaths, func(s string) bool { return !matchesAny(p.Allowed, s) })
	}
	if len(p.Forbidden) > 0 {
		paths(CheckForbiddenPaths, func(s string) bool { return matchesAny(p.Forbidden, s) })
	}
	if len(p.Protected) > 0 {
		paths(CheckProtectedTests, func(s string) bool { return matchesAny(p.Protected, s) })
	}
	if p.MaxFiles != nil {
		out = append(out, countResult(CheckMaxFiles, l.files(), *p.MaxFiles, "files and links changed"))
	}
	if p.MaxBytes != nil {
		out = append(out, countResult(CheckMaxBytes, l.newBytes(), *p.MaxBytes, "bytes of new content"))
	}
	if p.NoExecutableChanges {
		out = append(out, pathResult(CheckExecutableBits, l, only(changesExecutable)))
	}
	if p.NoNewLinks {
		out = append(out, pathResult(CheckNewLinks, l, only(makesLink)))
	}
	return out
}

func matchesAny(globs []string, path string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return MatchGlob(g, path) })
}

// judged are the paths of a mutation that path checks look at.
func (m Mutation) judged(touched map[string]bool) []string {
	if m.OnlyDirectories() && m.Kind != MutationModified && touched[m.Path] {
		return nil
	}
	return m.paths()
}

// parents is the set of directories in which anything was touched.
func (l Mutations) parents() map[string]bool {
	set := map[string]bool{"": true}
	for _, m := range l {
		for _, p := range m.paths() {
			for d := parentOf(p); !set[d]; d = parentOf(d) {
				set[d] = true
			}
		}
	}
	return set
}

// files counts the mutations that touch a file or link.
func (l Mutations) files() uint64 {
	var n uint64
	for _, m := range l {
		if !m.OnlyDirectories() {
			n++
		}
	}
	return n
}

// newBytes is the size of all files and links whose content is new.
func (l Mutations) newBytes() uint64 {
	var n uint64
	for _, m := range l {
		if m.Content() {
			n += m.After.Size
		}
	}
	return n
}

// changesExecutable reports whether a file gained or lost an execute bit; one that appears with any has
// gained them. Deleting an executable changes no bit.
func changesExecutable(m Mutation) bool {
	if m.After == nil || m.After.Type != EntryFile {
		return false
	}
	var before uint32
	if m.Before != nil && m.Before.Type == EntryFile {
		before = m.Before.Mode
	}
	return (before^m.After.Mode)&PermExecute != 0
}

// makesLink reports whether a link is there that wasn't, or points elsewhere.
func makesLink(m Mutation) bool {
	return m.After != nil && m.After.Type == EntryLink && m.Content()
}

func only(breaks func(Mutation) bool) func(Mutation) []string {
	return func(m Mutation) []string {
		if breaks(m) {
			return []string{m.Path}
		}
		return nil
	}
}

func countResult(name PolicyCheck, n, most uint64, what string) PolicyResult {
	return PolicyResult{Name: name, Held: n <= most, Detail: fmt.Sprintf("%d %s; at most %d", n, what, most)}
}

// pathResult holds if no mutation has a path that breaks the check.
func pathResult(name PolicyCheck, l Mutations, broken func(Mutation) []string) PolicyResult {
	var shown []string
	n := 0
	for _, m := range l {
		for _, p := range broken(m) {
			if n++; len(shown) < MaxPolicyDetailPaths {
				shown = append(shown, quoteBounded(p))
			}
		}
	}
	if n == 0 {
		return PolicyResult{Name: name, Held: true, Detail: "no changed path breaks it"}
	}
	detail := strings.Join(shown, ", ")
	if n > len(shown) {
		detail += fmt.Sprintf(" and %d more", n-len(shown))
	}
	return PolicyResult{Name: name, Detail: detail}
}

// quoteBounded makes a path of any bytes one printable line.
func quoteBounded(path string) string {
	q := strconv.QuoteToASCII(path)
	if len(q) > MaxPolicyDetailQuoted {
		q = q[:MaxPolicyDetailQuoted-len(`…"`)] + `…"`
	}
	return q
}
