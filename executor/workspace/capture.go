package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// capture is the workspace as it was found.
type capture struct {
	listing   *source.Listing
	manifest  evidence.WorkspaceManifest
	mutations evidence.Mutations
}

// Capture says how the workspace differs from its stored baseline (req O5). Call it once the container is
// proved gone: what still changes fails. It fails with *CaptureError if the agent left what may not lie
// there, or more than the limits (req O3, O6).
func (w *Workspace) Capture(ctx context.Context) (evidence.Mutations, error) {
	before, err := w.storedBaseline()
	if err != nil {
		return nil, err
	}
	listing, err := source.List(ctx, source.ListRequest{Root: w.tree, Limits: sourceLimits, Strict: true})
	if err != nil {
		return nil, asCapture(err)
	}
	c := &capture{listing: listing}
	if err := c.read(ctx, w.hooks.opened); err != nil {
		listing.Close()
		return nil, asCapture(err)
	}
	c.mutations = evidence.CompareWorkspaces(before, c.manifest)
	if err := w.judgeMutations(c.mutations); err != nil {
		listing.Close()
		return nil, err
	}
	if w.captured != nil {
		w.captured.listing.Close()
	}
	w.captured = c
	return c.mutations, nil
}

// storedBaseline reads back what Prepare wrote.
func (w *Workspace) storedBaseline() (evidence.WorkspaceManifest, error) {
	fail := func(err error) (evidence.WorkspaceManifest, error) {
		return evidence.WorkspaceManifest{}, &CaptureError{Code: CaptureBaseline, Detail: fmt.Sprintf("the stored baseline can't be used: %v", err)}
	}
	b, err := readIn(w, baselineName)
	if err != nil {
		return fail(err)
	}
	m, err := evidence.ParseWorkspaceManifest(b)
	if err != nil {
		return fail(err)
	}
	digest, err := m.Digest()
	if err == nil && digest != w.Baseline.Digest {
		err = fmt.Errorf("its digest is %s, stored was %s", digest, w.Baseline.Digest)
	}
	if err != nil {
		return fail(err)
	}
	return m, nil
}

func readIn(w *Workspace, name string) ([]byte, error) {
	fd, err := unix.Openat(int(w.evidenceTree.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	b, err := io.ReadAll(io.LimitReader(f, evidence.MaxValue+1))
	return b, errors.Join(err, f.Close())
}

// read judges what was listed and hashes it.
func (c *capture) read(ctx context.Context, opened func(path string)) error {
	entries := make([]evidence.WorkspaceEntry, len(c.listing.Entries))
	for i, e := range c.listing.Entries {
		if e.Type == evidence.EntryFile && e.Mode&evidence.PermSetID != 0 {
			return &CaptureError{Code: CaptureSetID, Path: e.Path, Detail: fmt.Sprintf("the file has mode %04o: whoever runs it would act as its owner", e.Mode)}
		}
		entries[i] = evidence.WorkspaceEntry{Path: e.Path, EntryState: evidence.EntryState{Type: e.Type, Mode: e.Mode, Size: e.Size, Target: e.Target}}
	}
	if len(entries) > evidence.MaxWorkspaceEntries {
		return &CaptureError{Code: CaptureTooLarge, Detail: fmt.Sprintf("more than %d files, links and directories", evidence.MaxWorkspaceEntries)}
	}
	if err := hashFiles(ctx, c.listing, entries, opened); err != nil {
		return err
	}
	m, err := evidence.NewWorkspaceManifest(entries)
	if err != nil {
		return &CaptureError{Code: CapturePath, Detail: err.Error()}
	}
	if err := checkLinks(m); err != nil {
		return err
	}
	c.manifest = m
	return nil
}

func (w *Workspace) judgeMutations(l evidence.Mutations) error {
	if err := l.Validate(); err != nil {
		return &CaptureError{Code: CaptureTooMany, Detail: err.Error()}
	}
	if outside := w.Ownership.Writable.Outside(l); len(outside) > 0 {
		return &CaptureError{Code: CaptureOutside, Path: outside[0], Detail: "it changed and lies outside the writable paths"}
	}
	return nil
}

// Mutations is what the last Capture found; nil if there was none.
func (w *Workspace) Mutations() evidence.Mutations {
	if w.captured == nil {
		return nil
	}
	return w.captured.mutations
}
