package source

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/baildock/baildock/evidence"
)

// Locator is what a person typed: a directory as it lies, or a commit of a git repository.
type Locator struct {
	Path string // as typed
	Rev  string // empty for a directory
}

// String is the text it was parsed from.
func (l Locator) String() string {
	if l.Rev == "" {
		return l.Path
	}
	return l.Path + "@" + l.Rev
}

// ParseLocator reads `PATH` or `PATH@REV`. Both may contain `@`, so the filesystem decides: a
// path that exists as a whole is a directory; otherwise the longest part before an `@` that
// exists is the repository.
func ParseLocator(s string) (Locator, error) {
	if s == "" || strings.ContainsRune(s, 0) {
		return Locator{}, refuse(CodeLocator, "", "source %q is no path; give PATH or PATH@REV", s)
	}
	if _, err := os.Stat(s); err == nil {
		return Locator{Path: s}, nil
	}
	for i := len(s) - 1; i > 0; i-- {
		if s[i] != '@' {
			continue
		}
		if _, err := os.Stat(s[:i]); err != nil {
			continue
		}
		if i+1 == len(s) {
			return Locator{}, refuse(CodeLocator, "", "source %q ends in @ without a revision", s)
		}
		return Locator{Path: s[:i], Rev: s[i+1:]}, nil
	}
	return Locator{}, refuse(CodeNotFound, "", "source %q: no such directory; give PATH, or PATH@REV with an existing repository", s)
}

// Subject is what a locator means now.
type Subject struct {
	evidence.Subject
	Path string // absolute, without links: the directory, or the repository of the commit
}

// Resolve finds the directory or the commit a locator names. A revision becomes the full hash
// of a commit. Forms of git understood: a full or abbreviated hash, HEAD or `@`, a branch, tag,
// remote-tracking branch or full reference, each with any of `~N`, `^N`, `^0`, `^{commit}`, `^{}`.
// It fails with *RefusedError.
func Resolve(ctx context.Context, l Locator) (Subject, error) {
	abs, err := filepath.Abs(l.Path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return Subject{}, refuse(CodeNotFound, "", "source %q can't be found: %v", l, err)
	}
	info, err := os.Stat(abs)
	if err != nil || !info.IsDir() {
		return Subject{}, refuse(CodeNotFound, "", "source %q is not a directory", l)
	}
	if l.Rev == "" {
		return Subject{Subject: evidence.Subject{Kind: evidence.SubjectDirectory}, Path: abs}, nil
	}
	repo, err := openRepository(abs)
	if err != nil {
		return Subject{}, err
	}
	defer repo.close()
	hash, err := repo.resolve(ctx, l.Rev)
	if err != nil {
		return Subject{}, err
	}
	return Subject{
		Subject: evidence.Subject{Kind: evidence.SubjectCommit, Revision: hash.String()},
		Path:    abs,
	}, nil
}
