package source

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/baildock/baildock/evidence"
)

const ignoreName = ".gitignore"

// untracked are the listed files and links that neither the index knows nor an ignore rule covers.
func (c *statusComparer) untracked(tracked map[string]bool, gitDir string) ([]string, error) {
	var candidates []string
	for _, e := range c.listing.Entries {
		if e.Type != evidence.EntryDirectory && !tracked[e.Path] {
			candidates = append(candidates, e.Path)
		}
	}
	if len(candidates) == 0 {
		return nil, nil
	}
	rules, err := c.ignoreRules(gitDir)
	if err != nil {
		return nil, err
	}
	m := ignoring{matcher: gitignore.NewMatcher(rules), dirs: map[string]bool{"": false}}
	var out []string
	for _, path := range candidates {
		dir, _ := evidence.SplitPath(path)
		if !m.directory(dir) && !m.matcher.Match(strings.Split(path, "/"), false) {
			out = append(out, path)
		}
	}
	return out, nil
}

// ignoring remembers which directories are ignored: nothing inside of one comes back.
type ignoring struct {
	matcher gitignore.Matcher
	dirs    map[string]bool
}

func (m ignoring) directory(dir string) bool {
	if known, ok := m.dirs[dir]; ok {
		return known
	}
	parent, _ := evidence.SplitPath(dir)
	ignored := m.directory(parent) || m.matcher.Match(strings.Split(dir, "/"), true)
	m.dirs[dir] = ignored
	return ignored
}

// ignoreRules are those of the repository itself, weakest first.
func (c *statusComparer) ignoreRules(gitDir string) ([]gitignore.Pattern, error) {
	common, err := commonDir(gitDir)
	if err != nil {
		return nil, err
	}
	var rules []gitignore.Pattern
	text, err := readBounded(filepath.Join(common, "info", "exclude"))
	if err != nil {
		return nil, err
	}
	rules = append(rules, parseIgnore(text, nil)...)
	var files []Listed
	for _, e := range c.listing.Entries {
		if _, name := evidence.SplitPath(e.Path); name == ignoreName && e.Type == evidence.EntryFile {
			files = append(files, e)
		}
	}
	// A directory's rules come before those of what it holds.
	slices.SortStableFunc(files, func(a, b Listed) int { return strings.Count(a.Path, "/") - strings.Count(b.Path, "/") })
	for _, e := range files {
		dir, name := evidence.SplitPath(e.Path)
		if e.Size > maxIgnoreFile {
			return nil, refuse(CodeTooLarge, "", "a %s of %d bytes, at most %d", ignoreName, e.Size, maxIgnoreFile)
		}
		var b bytes.Buffer
		if err := c.copyInto(&b, dir, name); err != nil {
			return nil, err
		}
		var domain []string
		if dir != "" {
			domain = strings.Split(dir, "/")
		}
		if rules = append(rules, parseIgnore(b.Bytes(), domain)...); len(rules) > maxIgnoreRules {
			return nil, refuse(CodeTooLarge, "", "more than %d ignore rules", maxIgnoreRules)
		}
	}
	return rules, nil
}

func parseIgnore(text []byte, domain []string) []gitignore.Pattern {
	var rules []gitignore.Pattern
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			rules = append(rules, gitignore.ParsePattern(line, domain))
		}
	}
	return rules
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxIgnoreFile) {
		return nil, refuse(CodeRepository, "", "%s is no file of at most %d bytes", filepath.Base(path), maxIgnoreFile)
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, refuse(CodeRepository, "", "%s can't be read: %v", filepath.Base(path), errors.Unwrap(err))
	}
	return b, nil
}
