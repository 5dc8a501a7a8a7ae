package source

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// resolve finds the commit a revision names (gitrevisions(7), the forms listed at Resolve).
func (r *repository) resolve(ctx context.Context, rev string) (plumbing.Hash, error) {
	base, suffix := rev, ""
	if i := strings.IndexAny(rev, "~^"); i >= 0 {
		base, suffix = rev[:i], rev[i:]
	}
	h, err := r.base(base)
	if err != nil {
		return h, err
	}
	c, err := r.commit(ctx, h)
	if err != nil {
		return h, err
	}
	steps := 0
	for suffix != "" {
		if rest, found := cutAny(suffix, "^{commit}", "^{}"); found {
			suffix = rest
			continue
		}
		op := suffix[0]
		digits := suffix[1 : 1+countDigits(suffix[1:])]
		suffix = suffix[1+len(digits):]
		n := uint64(1)
		if digits != "" {
			if n, err = strconv.ParseUint(digits, 10, 31); err != nil {
				return h, unknownRevision(rev)
			}
		}
		switch {
		case op == '~':
			for range n {
				if steps++; steps > maxAncestors {
					return h, refuse(CodeRevision, "", "revision %q goes back more than %d commits; name the commit by its hash", rev, maxAncestors)
				}
				if c, err = r.parent(ctx, c, 1, rev); err != nil {
					return h, err
				}
			}
		case op == '^' && n > 0:
			if c, err = r.parent(ctx, c, n, rev); err != nil {
				return h, err
			}
		case op != '^':
			return h, unknownRevision(rev)
		}
	}
	return c.hash, nil
}

func unknownRevision(rev string) error {
	return refuse(CodeRevision, "", "revision %q names no commit here; give a hash, branch or tag, with ~N or ^N if needed", rev)
}

func cutAny(s string, prefixes ...string) (string, bool) {
	for _, p := range prefixes {
		if rest, found := strings.CutPrefix(s, p); found {
			return rest, true
		}
	}
	return s, false
}

func countDigits(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}

// base finds the object the first part of a revision names: a full hash, then a reference, then
// an abbreviated hash, as git does.
func (r *repository) base(name string) (plumbing.Hash, error) {
	if name == "@" {
		name = "HEAD"
	}
	if len(name) == 2*len(plumbing.ZeroHash) {
		if b, err := hex.DecodeString(name); err == nil {
			return plumbing.Hash(b), nil
		}
	}
	if !plainReference(name) {
		return plumbing.ZeroHash, unknownRevision(name)
	}
	for _, full := range candidates(name) {
		if h, found, err := r.reference(full); err != nil || found {
			return h, err
		}
	}
	if len(name) < minAbbreviated || strings.Trim(name, "0123456789abcdef") != "" {
		return plumbing.ZeroHash, unknownRevision(name)
	}
	return r.abbreviated(name)
}

// plainReference refuses what git-check-ref-format(1) forbids, so that a name never leaves the
// repository's references.
func plainReference(name string) bool {
	if name == "" || name[0] == '/' || name[0] == '-' || strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".lock") {
		return false
	}
	for _, bad := range []string{"..", "//", "@{", "/.", ".lock/"} {
		if strings.Contains(name, bad) {
			return false
		}
	}
	return name[0] != '.' && !strings.ContainsAny(name, "~^:?*[\\ \x7f") && strings.IndexFunc(name, func(c rune) bool { return c < ' ' }) < 0
}

func candidates(name string) []string {
	var full []string
	if strings.HasPrefix(name, "refs/") || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" {
		full = append(full, name)
	}
	return append(full, "refs/"+name, "refs/tags/"+name, "refs/heads/"+name, "refs/remotes/"+name, "refs/remotes/"+name+"/HEAD")
}

// abbreviated finds the one commit or tag whose name starts so.
func (r *repository) abbreviated(prefix string) (plumbing.Hash, error) {
	hashes, err := r.objects.withPrefix(prefix)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	var found []plumbing.Hash
	for _, h := range hashes {
		kind, err := r.objects.kind(h)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if kind == plumbing.CommitObject || kind == plumbing.TagObject {
			found = append(found, h)
		}
	}
	switch len(found) {
	case 0:
		return plumbing.ZeroHash, unknownRevision(prefix)
	case 1:
		return found[0], nil
	}
	return plumbing.ZeroHash, refuse(CodeAmbiguousRevision, "", "%q abbreviates %d commits or tags; give more digits", prefix, len(found))
}

// commit is what following a revision needs of one.
type commit struct {
	hash, tree plumbing.Hash
	parents    []plumbing.Hash
}

func (r *repository) parent(ctx context.Context, c commit, n uint64, rev string) (commit, error) {
	if n > uint64(len(c.parents)) {
		return commit{}, refuse(CodeRevision, "", "revision %q: commit %s has %d parents", rev, c.hash, len(c.parents))
	}
	return r.commit(ctx, c.parents[n-1])
}

// commit reads the commit h names, through annotated tags.
func (r *repository) commit(ctx context.Context, h plumbing.Hash) (commit, error) {
	for range maxPeel {
		kind, err := r.objects.kind(h)
		if err != nil {
			return commit{}, err
		}
		if kind != plumbing.CommitObject && kind != plumbing.TagObject {
			return commit{}, refuse(CodeRevision, "", "%s is a %s, not a commit", h, kind)
		}
		b, err := r.objects.read(ctx, h, kind, maxCommit)
		if err != nil {
			return commit{}, err
		}
		if kind == plumbing.CommitObject {
			return parseCommit(h, b)
		}
		if h, err = parseTag(h, b); err != nil {
			return commit{}, err
		}
	}
	return commit{}, refuse(CodeRevision, "", "the tag leads through more than %d others", maxPeel)
}

// parseCommit reads the header lines git writes first: one tree, then parents.
func parseCommit(h plumbing.Hash, b []byte) (commit, error) {
	c := commit{hash: h}
	tree, b, err := headerHash(b, "tree")
	if err != nil {
		return c, corrupt(h, err)
	}
	c.tree = tree
	for bytes.HasPrefix(b, []byte("parent ")) {
		var p plumbing.Hash
		if p, b, err = headerHash(b, "parent"); err != nil {
			return c, corrupt(h, err)
		}
		c.parents = append(c.parents, p)
	}
	return c, nil
}

func parseTag(h plumbing.Hash, b []byte) (plumbing.Hash, error) {
	to, _, err := headerHash(b, "object")
	if err != nil {
		return h, corrupt(h, err)
	}
	return to, nil
}

func headerHash(b []byte, name string) (plumbing.Hash, []byte, error) {
	line, rest, _ := bytes.Cut(b, []byte("\n"))
	value, found := bytes.CutPrefix(line, []byte(name+" "))
	var h plumbing.Hash
	if !found || len(value) != 2*len(h) {
		return h, nil, errors.New("no " + name + " line where it belongs")
	}
	if _, err := hex.Decode(h[:], value); err != nil {
		return h, nil, errors.New("the " + name + " line names no object")
	}
	return h, rest, nil
}
