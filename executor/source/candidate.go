package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/candidate"
)

// Origin is what a candidate was derived from: it alone decides the commit beside the changes.
type Origin struct {
	Attempt evidence.AttemptID
	Record  evidence.RecordDigest
}

// The one identity and time of every candidate's commit, so that the same record gives the same
// commit wherever it is derived.
const candidateSignature = "Baildock candidate <candidate@baildock.invalid> 0 +0000"

// DeriveCommit writes a candidate as a commit whose parent is exactly the subject, into the
// subject's repository, and returns its full hash. Nothing is checked out and no reference is
// moved; the objects are unreachable until somebody names the commit. The result is held to what
// a snapshot accepts, links and bounds included. It fails with *candidate.RefusedError or
// *RefusedError; objects that were written by then stay, unreachable.
func DeriveCommit(ctx context.Context, subject Subject, c candidate.Candidate, from Origin) (string, error) {
	t, err := openCommit(ctx, subject.Path, subject.Revision)
	if err != nil {
		return "", err
	}
	defer t.close()
	entries, err := t.list(ctx, DefaultLimits)
	if err != nil {
		return "", err
	}
	if _, err := c.Apply(entries); err != nil {
		return "", err
	}
	e := treeEditor{ctx: ctx, repo: t.repo}
	changes := map[string]candidate.Change{}
	for _, x := range c.Changes {
		changes[x.Path] = x
	}
	root, err := e.edit(t.root, changes)
	if err != nil {
		return "", err
	}
	if root == t.root {
		return "", candidate.Refuse(candidate.CodeUnchanged, "", "the changes leave the tree as it is")
	}
	if root == plumbing.ZeroHash { // git's empty tree is an object too
		if root, err = e.write(plumbing.TreeObject, nil); err != nil {
			return "", err
		}
	}
	text := fmt.Sprintf("tree %s\nparent %s\nauthor %s\ncommitter %s\n\nCandidate of attempt %s\n\nBaildock-Record: %s\n",
		root, subject.Revision, candidateSignature, candidateSignature, from.Attempt, from.Record)
	h, err := e.write(plumbing.CommitObject, []byte(text))
	if err != nil {
		return "", err
	}
	made, err := openCommit(ctx, subject.Path, h.String())
	if err != nil {
		return "", err
	}
	defer made.close()
	_, err = transfer(ctx, made, DefaultLimits, discard{})
	return h.String(), err
}

// treeEditor writes the trees that changes touch; everything else is taken over as it is.
type treeEditor struct {
	ctx  context.Context
	repo *repository
}

// edit returns a tree with changes made, whose paths are relative to it. The zero hash is a tree
// without entries: git keeps none inside another. Whether the changes fit was checked.
func (e *treeEditor) edit(h plumbing.Hash, changes map[string]candidate.Change) (plumbing.Hash, error) {
	d := differ{ctx: e.ctx, repo: e.repo}
	entries, err := d.entries(h)
	if err != nil {
		return h, err
	}
	below := map[string]map[string]candidate.Change{}
	for path, x := range changes {
		name, rest, nested := strings.Cut(path, "/")
		switch {
		case nested:
			if below[name] == nil {
				below[name] = map[string]candidate.Change{}
			}
			below[name][rest] = x
		case x.Delete:
			delete(entries, name)
		default:
			was, there := entries[name]
			if !there {
				was = treeEntry{name: name, mode: gitFile}
			}
			if was.hash, err = e.write(plumbing.BlobObject, x.Content); err != nil {
				return h, err
			}
			entries[name] = was
		}
	}
	for name, inside := range below {
		sub, err := e.edit(entries[name].hash, inside)
		if err != nil {
			return h, err
		}
		if sub == plumbing.ZeroHash {
			delete(entries, name)
		} else {
			entries[name] = treeEntry{name: name, mode: gitTree, hash: sub}
		}
	}
	if len(entries) == 0 {
		return plumbing.ZeroHash, nil
	}
	sorted := make([]treeEntry, 0, len(entries))
	for _, x := range entries {
		sorted = append(sorted, x)
	}
	slices.SortFunc(sorted, func(a, b treeEntry) int { return strings.Compare(a.order(), b.order()) })
	var b bytes.Buffer
	for _, x := range sorted {
		fmt.Fprintf(&b, "%s %s\x00%s", x.mode, x.name, x.hash[:])
	}
	return e.write(plumbing.TreeObject, b.Bytes())
}

// write stores an object, unless the repository or one it borrows from has it.
func (e *treeEditor) write(kind plumbing.ObjectType, content []byte) (plumbing.Hash, error) {
	h := plumbing.ComputeHash(kind, content)
	if _, err := e.repo.objects.kind(h); err == nil {
		return h, nil
	}
	obj := e.repo.refs.NewEncodedObject()
	obj.SetType(kind)
	obj.SetSize(int64(len(content)))
	w, err := obj.Writer()
	if err == nil {
		_, err = w.Write(content)
		err = errors.Join(err, w.Close())
	}
	if err == nil {
		_, err = e.repo.refs.SetEncodedObject(obj)
	}
	if err != nil {
		return h, refuse(CodeRepository, "", "git object %s can't be written: %v", h, err)
	}
	return h, nil
}

// DeriveDirectory writes a candidate over a directory subject into a new directory and returns
// its manifest. The source must still be what the attempt ran on. Files are written 0644 or 0755;
// after a failure nothing is left.
func DeriveDirectory(ctx context.Context, subject Subject, reserved []Reserved, ran evidence.ManifestDigest, c candidate.Candidate, dest string) (m evidence.Manifest, err error) {
	now, err := Digest(ctx, subject, reserved)
	if err != nil {
		return m, err
	}
	if d, err := now.Manifest.Digest(); err != nil || d != ran {
		return m, errors.Join(err, refuse(CodeChanged, "", "the directory is no longer what the attempt ran on: its manifest is %s, not %s", d, ran))
	}
	g, err := newGuard(reserved)
	if err != nil {
		return m, err
	}
	t, err := openDirectoryTree(subject.Path, g)
	if err != nil {
		return m, err
	}
	defer t.close()
	if err := os.Mkdir(dest, 0o755); err != nil {
		if errors.Is(err, os.ErrExist) {
			return m, refuse(CodeExists, "", "%q exists already; name a directory that doesn't", filepath.Base(dest))
		}
		return m, fmt.Errorf("make the candidate's directory: %w", err)
	}
	root, err := os.OpenRoot(dest)
	if err != nil {
		return m, fmt.Errorf("open the candidate's directory: %w", err)
	}
	defer func() {
		err = errors.Join(err, root.Close())
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dest))
		}
	}()
	e := &edited{tree: t, candidate: c}
	m, err = transfer(ctx, e, DefaultLimits, plain{root})
	if err != nil {
		return m, err
	}
	was := map[string]evidence.ManifestEntry{}
	for _, x := range now.Manifest.Entries {
		was[x.Path] = x
	}
	for _, x := range m.Entries {
		if _, ours := e.content[x.Path]; !ours && was[x.Path] != x {
			return m, refuse(CodeChanged, x.Path, "it changed while the candidate was written")
		}
	}
	d, err := m.Digest()
	if err == nil && d == ran {
		err = candidate.Refuse(candidate.CodeUnchanged, "", "the changes leave the tree as it is")
	}
	return m, err
}

// edited is a tree with a candidate's changes.
type edited struct {
	tree
	candidate candidate.Candidate
	content   map[string][]byte
}

func (e *edited) list(ctx context.Context, limits Limits) ([]evidence.ManifestEntry, error) {
	entries, err := e.tree.list(ctx, limits)
	if err != nil {
		return nil, err
	}
	if entries, err = e.candidate.Apply(entries); err != nil {
		return nil, err
	}
	e.content = map[string][]byte{}
	for _, x := range e.candidate.Changes {
		if !x.Delete {
			e.content[x.Path] = x.Content
		}
	}
	p := pass{limits: limits}
	for _, x := range entries {
		if err := p.file(x.Path, x.Mode, x.Size); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (e *edited) copyFile(ctx context.Context, w io.Writer, x evidence.ManifestEntry) error {
	if b, ok := e.content[x.Path]; ok {
		_, err := w.Write(b)
		return err
	}
	return e.tree.copyFile(ctx, w, x)
}

// plain writes a tree into a directory, for people to work on; nothing leaves the directory.
type plain struct{ root *os.Root }

func (p plain) file(e evidence.ManifestEntry) (io.WriteCloser, error) {
	dir, _ := evidence.SplitPath(e.Path)
	if err := p.mkdir(dir); err != nil {
		return nil, err
	}
	mode := os.FileMode(0o644)
	if e.Mode == evidence.ModeExecutable {
		mode = 0o755
	}
	return p.root.OpenFile(e.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}

func (p plain) link(e evidence.ManifestEntry) error {
	dir, _ := evidence.SplitPath(e.Path)
	if err := p.mkdir(dir); err != nil {
		return err
	}
	return p.root.Symlink(e.Target, e.Path)
}

func (p plain) mkdir(dir string) error {
	if dir == "" {
		return nil
	}
	return p.root.MkdirAll(dir, 0o755)
}

func (p plain) finish() error { return nil }
