package source

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"

	"github.com/baildock/baildock/evidence"
)

// Skipped is something in a directory that didn't enter the snapshot.
type Skipped struct {
	Path string // inside the source
	Why  SkipReason
}

// SkipReason says why something was skipped.
type SkipReason string

const (
	SkippedReservedName SkipReason = "reserved_name" // `.git`, `.baildock*`
	SkippedSocket       SkipReason = "docker_socket" // the socket in use, by device and inode
)

// tree is a source that can be read: listed once, then copied in the order of its manifest.
type tree interface {
	// list returns every file (without digest) and link, in any order, and counts each before
	// anything of it is read.
	list(ctx context.Context, limits Limits) ([]evidence.ManifestEntry, error)
	// copyFile writes exactly the file's bytes, or fails.
	copyFile(ctx context.Context, w io.Writer, e evidence.ManifestEntry) error
	// finish fails if the tree changed since it was listed. Call it after the last file.
	finish() error
	// skippedPaths is complete once the tree was listed.
	skippedPaths() []Skipped
	close()
}

// sink takes a tree in the order of its manifest.
type sink interface {
	file(e evidence.ManifestEntry) (io.WriteCloser, error)
	link(e evidence.ManifestEntry) error
	finish() error
}

// transfer lists a tree, checks its form, copies every file into out and hashes it on the way.
func transfer(ctx context.Context, t tree, limits Limits, out sink) (evidence.Manifest, error) {
	entries, err := t.list(ctx, limits)
	if err != nil {
		return evidence.Manifest{}, err
	}
	m, err := evidence.NewManifest(entries)
	if err != nil {
		return evidence.Manifest{}, refuse(CodePath, "", "%v", err)
	}
	if err := checkLinks(m); err != nil {
		return evidence.Manifest{}, err
	}
	h := sha256.New()
	for i := range m.Entries {
		if err := ctx.Err(); err != nil {
			return evidence.Manifest{}, err
		}
		e := &m.Entries[i]
		if e.Mode == evidence.ModeLink {
			err = out.link(*e)
		} else {
			err = transferFile(ctx, t, out, h, e)
		}
		if err != nil {
			return evidence.Manifest{}, err
		}
	}
	if err := t.finish(); err != nil {
		return evidence.Manifest{}, err
	}
	return m, out.finish()
}

func transferFile(ctx context.Context, t tree, out sink, h hash.Hash, e *evidence.ManifestEntry) error {
	w, err := out.file(*e)
	if err != nil {
		return err
	}
	h.Reset()
	err = t.copyFile(ctx, io.MultiWriter(h, w), *e)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	h.Sum(e.SHA256[:0])
	return err
}

// discard is a sink for measuring without a copy.
type discard struct{}

func (discard) file(evidence.ManifestEntry) (io.WriteCloser, error) { return nowhere{}, nil }
func (discard) link(evidence.ManifestEntry) error                   { return nil }
func (discard) finish() error                                       { return nil }

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close() error                { return nil }

// copyExactly copies size bytes and proves that no more follow. It returns the number of bytes
// seen, size+1 meaning more, and the first error.
func copyExactly(ctx context.Context, w io.Writer, r io.Reader, size uint64, buf []byte) (uint64, error) {
	var done uint64
	for {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		n, err := r.Read(buf)
		if done+uint64(n) > size {
			return size + 1, nil
		}
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return done, werr
			}
			done += uint64(n)
		}
		if err == io.EOF {
			return done, nil
		}
		if err != nil {
			return done, err
		}
	}
}
