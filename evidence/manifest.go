package evidence

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ManifestDomain opens every encoded manifest, so that its digest can't stand for anything else.
const ManifestDomain = "baildock.manifest.v1"

type contentMeaning struct{}

// ContentDigest is the SHA-256 of one file's bytes.
type ContentDigest = Digest[contentMeaning]

// Mode says what an entry is, in git's numbers. No other permission bit survives, so that a
// commit and a checked-out directory of it have the same manifest.
type Mode uint32

const (
	ModeFile       Mode = 0o100644 // regular file
	ModeExecutable Mode = 0o100755 // regular file its owner may execute
	ModeLink       Mode = 0o120000 // symbolic link
)

// String is the octal spelling git prints.
func (m Mode) String() string { return fmt.Sprintf("%06o", uint32(m)) }

// ManifestEntry is one file or link of a tree.
type ManifestEntry struct {
	Path   string // slash-separated bytes relative to the root; need not be UTF-8
	Mode   Mode
	Size   uint64        // bytes of the file, or of the link's target
	SHA256 ContentDigest // of the file's bytes; zero for a link
	Target string        // where a link points; empty for a file
}

// Manifest is the identity of a source tree: its files and links, sorted by the bytes of their
// paths, each path once. Directories follow from paths, so an empty directory has no entry.
type Manifest struct {
	Entries []ManifestEntry
}

// NewManifest sorts entries and checks what Validate checks. It keeps the slice.
func NewManifest(entries []ManifestEntry) (Manifest, error) {
	slices.SortFunc(entries, func(a, b ManifestEntry) int { return strings.Compare(a.Path, b.Path) })
	m := Manifest{Entries: entries}
	return m, m.Validate()
}

// Bytes is the total size of the files.
func (m Manifest) Bytes() uint64 {
	var n uint64
	for _, e := range m.Entries {
		if e.Mode != ModeLink {
			n += e.Size
		}
	}
	return n
}

// Validate checks the form of a manifest: paths clean, sorted and unique, no path both file and
// directory, known modes, links with a target, sizes and counts within limits. Whether links
// stay inside is CheckLinks.
func (m Manifest) Validate() error {
	if len(m.Entries) > MaxManifestEntries {
		return fmt.Errorf("manifest of %d entries exceeds %d", len(m.Entries), MaxManifestEntries)
	}
	text := 0
	for i, e := range m.Entries {
		if err := CheckPath(e.Path); err != nil {
			return fmt.Errorf("manifest entry %d: %w", i, err)
		}
		if i > 0 && m.Entries[i-1].Path >= e.Path {
			return fmt.Errorf("manifest entry %d: path %q is not after %q", i, e.Path, m.Entries[i-1].Path)
		}
		if err := e.validate(); err != nil {
			return fmt.Errorf("manifest entry %d: %q: %w", i, e.Path, err)
		}
		if text += len(e.Path) + len(e.Target); text > MaxManifestText {
			return fmt.Errorf("manifest paths and link targets exceed %d bytes", MaxManifestText)
		}
	}
	return m.checkConflicts()
}

func (e ManifestEntry) validate() error {
	switch e.Mode {
	case ModeFile, ModeExecutable:
		if e.Target != "" {
			return errors.New("a file has no link target")
		}
		if e.Size > MaxManifestFile {
			return fmt.Errorf("file of %d bytes exceeds %d", e.Size, MaxManifestFile)
		}
	case ModeLink:
		if !e.SHA256.IsZero() || e.Size != uint64(len(e.Target)) {
			return errors.New("a link holds its target and its length only")
		}
		if e.Target == "" || len(e.Target) > MaxLinkTarget || strings.ContainsRune(e.Target, 0) {
			return fmt.Errorf("a link target is 1 to %d bytes without NUL", MaxLinkTarget)
		}
	default:
		return fmt.Errorf("unknown mode %s", e.Mode)
	}
	return nil
}

// checkConflicts finds a path that is a file or link here and a directory there. Comparing with
// the directory last checked keeps siblings from being looked up again.
func (m Manifest) checkConflicts() error {
	checked := ""
	for _, e := range m.Entries {
		dir := parentOf(e.Path)
		if dir == checked {
			continue
		}
		for d := dir; d != ""; d = parentOf(d) {
			if _, found := m.find(d); found {
				return fmt.Errorf("manifest: %q is a file and the directory of %q", d, e.Path)
			}
		}
		checked = dir
	}
	return nil
}

func parentOf(path string) string {
	dir, _ := SplitPath(path)
	return dir
}

func (m Manifest) find(path string) (int, bool) {
	return slices.BinarySearchFunc(m.Entries, path, func(e ManifestEntry, p string) int {
		return strings.Compare(e.Path, p)
	})
}

// wireManifest is CBOR [domain, entries]; wireEntry is [path, mode, size, content], where path is
// a byte string and content the file's 32-byte digest or the link's target.
type (
	wireManifest struct {
		_       struct{} `cbor:",toarray"`
		Domain  string
		Entries []wireEntry
	}
	wireEntry struct {
		_       struct{} `cbor:",toarray"`
		Path    []byte
		Mode    Mode
		Size    uint64
		Content []byte
	}
)

// Marshal returns the canonical encoding of a valid manifest.
func (m Manifest) Marshal() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	w := wireManifest{Domain: ManifestDomain, Entries: make([]wireEntry, len(m.Entries))}
	for i, e := range m.Entries {
		content := e.SHA256[:]
		if e.Mode == ModeLink {
			content = []byte(e.Target)
		}
		w.Entries[i] = wireEntry{Path: []byte(e.Path), Mode: e.Mode, Size: e.Size, Content: content}
	}
	return Marshal(w), nil
}

// Digest is the SHA-256 of the canonical encoding (req B5).
func (m Manifest) Digest() (ManifestDigest, error) {
	b, err := m.Marshal()
	if err != nil {
		return ManifestDigest{}, err
	}
	return Sum[manifestMeaning](b), nil
}

// UnmarshalManifest decodes a canonical manifest and checks its form. Any other spelling of the
// same value fails with ErrNotCanonical.
func UnmarshalManifest(b []byte) (Manifest, error) {
	var w wireManifest
	if err := Unmarshal(b, &w); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	if w.Domain != ManifestDomain {
		return Manifest{}, fmt.Errorf("manifest: domain %q, expected %q", w.Domain, ManifestDomain)
	}
	m := Manifest{Entries: make([]ManifestEntry, len(w.Entries))}
	for i, we := range w.Entries {
		e := ManifestEntry{Path: string(we.Path), Mode: we.Mode, Size: we.Size}
		if we.Mode == ModeLink {
			e.Target = string(we.Content)
		} else if len(we.Content) == len(e.SHA256) {
			e.SHA256 = ContentDigest(we.Content)
		} else {
			return Manifest{}, fmt.Errorf("manifest entry %d: digest of %d bytes", i, len(we.Content))
		}
		m.Entries[i] = e
	}
	return m, m.Validate()
}

// SumContent is the digest of one file's bytes.
func SumContent(b []byte) ContentDigest { return Sum[contentMeaning](b) }
