package workspace

import (
	"context"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// Measure is the manifest of the copy that Prepare would make of a directory, without making it (req J5).
// It fails with *source.RefusedError as Prepare does.
func Measure(ctx context.Context, path string, reserved []source.Reserved) (evidence.WorkspaceManifest, error) {
	var none evidence.WorkspaceManifest
	subject, err := source.Resolve(ctx, source.Locator{Path: path})
	if err != nil {
		return none, err
	}
	root, err := openSource(subject.Path)
	if err != nil {
		return none, err
	}
	defer root.Close() //nolint:errcheck // a read-only handle
	listing, err := source.List(ctx, source.ListRequest{Root: root, Path: subject.Path, Limits: sourceLimits, Reserved: reserved})
	if err != nil {
		return none, err
	}
	defer listing.Close()
	if _, err := judgeTree(listing); err != nil {
		return none, err
	}
	entries := entriesOf(listing)
	if err := hashFiles(ctx, listing, entries, nil); err != nil {
		return none, err
	}
	return evidence.NewWorkspaceManifest(entries)
}

// entriesOf are the entries of a copy, without digests.
func entriesOf(l *source.Listing) []evidence.WorkspaceEntry {
	entries := make([]evidence.WorkspaceEntry, len(l.Entries))
	for i, e := range l.Entries {
		entries[i] = evidence.WorkspaceEntry{Path: e.Path, EntryState: stateOf(e)}
	}
	return entries
}

// hashFiles fills in the digests of a listing's files, whose entries are at the same places.
func hashFiles(ctx context.Context, l *source.Listing, entries []evidence.WorkspaceEntry, opened func(path string)) error {
	return eachJob(ctx, jobsOf(l), func(ctx context.Context, w *worker, j job) error {
		dir, err := l.Open(j.dir)
		if err != nil {
			return err
		}
		for _, i := range j.files {
			_, name := evidence.SplitPath(entries[i].Path)
			w.sum.Reset()
			if opened != nil {
				opened(entries[i].Path)
			}
			if err := dir.Read(ctx, w.sum, name, w.buf); err != nil {
				dir.Abandon()
				return err
			}
			w.sum.Sum(entries[i].SHA256[:0])
		}
		return dir.Close()
	})
}
