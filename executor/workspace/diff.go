package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/baildock/baildock/evidence"
)

// DiffRequest says how much of a diff is wanted, and in what form.
type DiffRequest struct {
	Bound int // most bytes; a change that doesn't fit whole is left out and counted
	// Redact, if set, takes each file's bytes before they are compared, so that a secret of several lines
	// is still in one piece. The caller redacts the finished text as well: a name may hold one.
	Redact func([]byte) []byte
}

// Diff is what changed, as text.
type Diff struct {
	Text    []byte // unified, as git writes it; files that are no text are only named
	Omitted int    // changes that didn't fit
	Unshown int    // changes named without their content: no text, too large, or not kept as it was
}

// Diff shows what the last Capture found, by path. The same workspace always gives the same text.
func (w *Workspace) Diff(ctx context.Context, r DiffRequest) (Diff, error) {
	var d Diff
	err := w.eachChange(ctx, r.Redact, func(c change) error {
		text := c.render(false)
		if len(d.Text)+len(text) > r.Bound {
			d.Omitted++
			return nil
		}
		if c.hidden() {
			d.Unshown++
		}
		d.Text = append(d.Text, text...)
		return nil
	})
	return d, err
}

// Patch is what WritePatch left out.
type Patch struct {
	Written int
	Left    []string // paths whose change no text patch can carry, sorted; the tree after it differs there
}

// ErrPatchTooLarge says that a patch would be larger than any that is written.
var ErrPatchTooLarge = fmt.Errorf("the patch would exceed %d bytes", maxPatchFile)

// WritePatch writes what the last Capture found as a patch for `git apply`: whole, or an error. Files that
// are no text are left out and named. Of permissions it carries the owner's execute bit, as git does; of
// directories what lies in them.
func (w *Workspace) WritePatch(ctx context.Context, out io.Writer, redact func([]byte) []byte) (Patch, error) {
	var p Patch
	var text bytes.Buffer
	err := w.eachChange(ctx, redact, func(c change) error {
		if c.hidden() {
			p.Left = append(p.Left, c.Path)
			return nil
		}
		b := c.render(true)
		if text.Len()+len(b) > maxPatchFile {
			return ErrPatchTooLarge
		}
		if len(b) > 0 {
			p.Written++
		}
		text.Write(b)
		return nil
	})
	if err != nil {
		return Patch{}, err
	}
	_, err = out.Write(text.Bytes())
	slices.Sort(p.Left)
	return p, err
}

// change is a mutation of files or links with the bytes of both sides.
type change struct {
	evidence.Mutation
	before, after []byte
	opaque        string // why bytes that changed aren't shown; empty: they are
}

func (c change) hidden() bool { return c.opaque != "" }

// eachChange calls do for every captured mutation that touches a file or link.
func (w *Workspace) eachChange(ctx context.Context, redact func([]byte) []byte, do func(change) error) error {
	if w.captured == nil {
		return errors.New("nothing was captured of this workspace yet")
	}
	for _, m := range w.captured.mutations {
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.OnlyDirectories() {
			continue
		}
		c := change{Mutation: m}
		if err := w.load(ctx, &c); err != nil {
			return err
		}
		if redact != nil && !c.hidden() {
			c.before, c.after = redact(c.before), redact(c.after)
		}
		if err := do(c); err != nil {
			return err
		}
	}
	return nil
}

// load reads both sides of a change whose content differs.
func (w *Workspace) load(ctx context.Context, c *change) error {
	gone := c.Kind == evidence.MutationDeleted && c.Before.Type != evidence.EntryDirectory
	replaced := c.Kind == evidence.MutationModified && c.After.Type == evidence.EntryDirectory
	if !c.Content() && !gone && !replaced {
		return nil
	}
	var err error
	if c.before, c.opaque, err = w.was(c.Path, c.Before); err != nil || c.hidden() {
		return err
	}
	c.after, c.opaque, err = w.is(ctx, c.Path, c.After)
	return err
}

// was returns the bytes of the baseline.
func (w *Workspace) was(path string, s *evidence.EntryState) (b []byte, opaque string, err error) {
	if s == nil || s.Type == evidence.EntryDirectory || s.Size == 0 {
		return nil, "", nil
	}
	if s.Type == evidence.EntryLink {
		return []byte(s.Target), "", nil
	}
	if s.Size > maxDiffFile {
		return nil, "too large to show", nil
	}
	entries := w.Baseline.Manifest.Entries
	i, found := slices.BinarySearchFunc(entries, path, func(e evidence.WorkspaceEntry, p string) int { return strings.Compare(e.Path, p) })
	if !found || w.texts.at[i] < 0 {
		return nil, "no text before", nil
	}
	b = make([]byte, s.Size)
	if _, err := w.texts.file.ReadAt(b, w.texts.at[i]); err != nil {
		return nil, "", fmt.Errorf("read %q as it was: %w", path, err)
	}
	if evidence.SumContent(b) != s.SHA256 {
		return nil, "", fmt.Errorf("read %q as it was: what was kept isn't what was there", path)
	}
	return b, "", nil
}

// is returns the bytes of the workspace as it was captured.
func (w *Workspace) is(ctx context.Context, path string, s *evidence.EntryState) (b []byte, opaque string, err error) {
	if s == nil || s.Type == evidence.EntryDirectory || s.Size == 0 {
		return nil, "", nil
	}
	if s.Type == evidence.EntryLink {
		return []byte(s.Target), "", nil
	}
	if s.Size > maxDiffFile {
		return nil, "too large to show", nil
	}
	dir, name := evidence.SplitPath(path)
	opened, err := w.captured.listing.Open(dir)
	if err != nil {
		return nil, "", asCapture(err)
	}
	var buf bytes.Buffer
	if err := opened.Read(ctx, &buf, name, make([]byte, copyBuffer)); err != nil {
		opened.Abandon()
		return nil, "", asCapture(err)
	}
	if err := opened.Close(); err != nil {
		return nil, "", asCapture(err)
	}
	if evidence.SumContent(buf.Bytes()) != s.SHA256 {
		return nil, "", &CaptureError{Code: CaptureChanged, Path: path, Detail: captureDetails[CaptureChanged]}
	}
	if !isText(buf.Bytes()) {
		return nil, "no text", nil
	}
	return buf.Bytes(), "", nil
}

// hunks compares two texts; equal ones give nothing.
func hunks(before, after []byte) []byte {
	b := diff.Diff("a", before, "b", after)
	// Its own three lines of names go: ours are quoted as git does.
	for range 3 {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return b
}
