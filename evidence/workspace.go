package evidence

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// WorkspaceDomain opens every encoded workspace manifest.
const WorkspaceDomain = "baildock.workspace.v1"

// EntryType says what lies at a path of a workspace. Nothing else may lie there (req O3).
type EntryType uint8

const (
	EntryFile      EntryType = 1
	EntryDirectory EntryType = 2
	EntryLink      EntryType = 3
)

var entryTypeNames = map[EntryType]string{EntryFile: "file", EntryDirectory: "directory", EntryLink: "link"}

func (t EntryType) String() string {
	if name, ok := entryTypeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Permission bits as chmod(2) counts them.
const (
	PermAll     = 0o7777 // all that are kept
	PermExecute = 0o111
	PermSetID   = 0o6000 // set-user-ID and set-group-ID
)

// EntryState is what lies at one path.
type EntryState struct {
	Type   EntryType
	Mode   uint32        // permission bits, at most PermAll; 0 for a link
	Size   uint64        // bytes of a file or of a link's target; 0 for a directory
	SHA256 ContentDigest // of a file's bytes; zero otherwise
	Target string        // where a link points; empty otherwise
}

func (s EntryState) validate() error {
	switch s.Type {
	case EntryFile:
		if s.Target != "" {
			return errors.New("a file has no link target")
		}
		if s.Size > MaxWorkspaceFile {
			return fmt.Errorf("file of %d bytes exceeds %d", s.Size, MaxWorkspaceFile)
		}
		if s.Mode&PermSetID != 0 {
			return fmt.Errorf("file with mode %04o: set-ID bits never enter a workspace", s.Mode)
		}
	case EntryDirectory:
		if s.Target != "" || s.Size != 0 || !s.SHA256.IsZero() {
			return errors.New("a directory holds its mode only")
		}
	case EntryLink:
		if s.Mode != 0 || !s.SHA256.IsZero() || s.Size != uint64(len(s.Target)) {
			return errors.New("a link holds its target and its length only")
		}
		if s.Target == "" || len(s.Target) > MaxLinkTarget || strings.ContainsRune(s.Target, 0) {
			return fmt.Errorf("a link target is 1 to %d bytes without NUL", MaxLinkTarget)
		}
	default:
		return fmt.Errorf("unknown entry type %d", uint8(s.Type))
	}
	if s.Mode > PermAll {
		return fmt.Errorf("mode %o exceeds %o", s.Mode, PermAll)
	}
	return nil
}

// WorkspaceEntry is one file, directory or link of a workspace.
type WorkspaceEntry struct {
	Path string // slash-separated bytes relative to the root; need not be UTF-8
	EntryState
}

// WorkspaceManifest is a workspace at one moment: all of its entries apart from the root, sorted by
// the bytes of their paths, each path once, every parent an entry of its own (req O1).
type WorkspaceManifest struct {
	Entries []WorkspaceEntry
}

// NewWorkspaceManifest sorts entries and checks what Validate checks. It keeps the slice.
func NewWorkspaceManifest(entries []WorkspaceEntry) (WorkspaceManifest, error) {
	slices.SortFunc(entries, func(a, b WorkspaceEntry) int { return strings.Compare(a.Path, b.Path) })
	m := WorkspaceManifest{Entries: entries}
	return m, m.Validate()
}

// Bytes is the total size of the files.
func (m WorkspaceManifest) Bytes() uint64 {
	var n uint64
	for _, e := range m.Entries {
		if e.Type == EntryFile {
			n += e.Size
		}
	}
	return n
}

// Validate checks the form: paths clean, sorted, unique and not reserved, each in a directory that is
// an entry, states well formed, sizes and counts within limits. Whether links stay inside is CheckLinks.
func (m WorkspaceManifest) Validate() error {
	if len(m.Entries) > MaxWorkspaceEntries {
		return fmt.Errorf("workspace of %d entries exceeds %d", len(m.Entries), MaxWorkspaceEntries)
	}
	text := 0
	directories := map[string]bool{"": true}
	for i, e := range m.Entries {
		err := checkWorkspacePath(e.Path)
		if err == nil {
			err = e.validate()
		}
		switch {
		case err != nil:
		case i > 0 && m.Entries[i-1].Path >= e.Path:
			err = fmt.Errorf("the path is not after %q", m.Entries[i-1].Path)
		case !directories[parentOf(e.Path)]:
			err = fmt.Errorf("%q is no directory of the workspace", parentOf(e.Path))
		}
		if err != nil {
			return fmt.Errorf("workspace entry %d: %q: %w", i, e.Path, err)
		}
		if e.Type == EntryDirectory {
			directories[e.Path] = true
		}
		if text += len(e.Path) + len(e.Target); text > MaxWorkspaceText {
			return fmt.Errorf("workspace paths and link targets exceed %d bytes", MaxWorkspaceText)
		}
	}
	if n := m.Bytes(); n > MaxWorkspaceBytes {
		return fmt.Errorf("workspace of %d bytes exceeds %d", n, MaxWorkspaceBytes)
	}
	return nil
}

// checkWorkspacePath refuses a path that isn't clean or names a reserved tree (req B7).
func checkWorkspacePath(path string) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	for name := range strings.SplitSeq(path, "/") {
		if ReservedName(name) {
			return fmt.Errorf("%q is reserved", name)
		}
	}
	return nil
}

// CheckLinks fails with *LinkError unless every link resolves, through other links, to an entry of the
// same manifest (req O3). Unlike in a snapshot, an empty directory is an entry.
func (m WorkspaceManifest) CheckLinks() error {
	r := linkResolver{m: m.leaves(), dirs: map[string]bool{"": true}}
	for _, e := range m.Entries {
		if e.Type == EntryDirectory {
			r.dirs[e.Path] = true
		}
	}
	for _, e := range m.Entries {
		if e.Type != EntryLink {
			continue
		}
		if fault := r.follow(parentOf(e.Path), e.Target); fault != "" {
			return &LinkError{Path: e.Path, Target: e.Target, Fault: fault}
		}
	}
	return nil
}

// leaves is the manifest without directories, in git's modes.
func (m WorkspaceManifest) leaves() Manifest {
	var out Manifest
	for _, e := range m.Entries {
		leaf := ManifestEntry{Path: e.Path, Mode: ModeFile, Size: e.Size, SHA256: e.SHA256, Target: e.Target}
		switch {
		case e.Type == EntryDirectory:
			continue
		case e.Type == EntryLink:
			leaf.Mode = ModeLink
		case e.Mode&0o100 != 0:
			leaf.Mode = ModeExecutable
		}
		out.Entries = append(out.Entries, leaf)
	}
	return out
}

// Source is the manifest of the same tree as a snapshot has it, so that a workspace and a snapshot of
// equal content have equal source digests (req B5). It fails if the tree is none for a snapshot.
func (m WorkspaceManifest) Source() (Manifest, error) {
	s := m.leaves()
	return s, s.Validate()
}

// wireWorkspace is CBOR [domain, entries]; wireWorkspaceEntry is [path, type, mode, size, content].
type (
	wireWorkspace struct {
		_       struct{} `cbor:",toarray"`
		Domain  string
		Entries []wireWorkspaceEntry
	}
	wireWorkspaceEntry struct {
		_       struct{} `cbor:",toarray"`
		Path    []byte
		Type    EntryType
		Mode    uint32
		Size    uint64
		Content []byte // a file's digest, a link's target, nothing for a directory
	}
	wireState struct {
		_       struct{} `cbor:",toarray"`
		Type    EntryType
		Mode    uint32
		Size    uint64
		Content []byte
	}
)

func (s EntryState) wire() wireState {
	w := wireState{Type: s.Type, Mode: s.Mode, Size: s.Size, Content: []byte{}}
	switch s.Type {
	case EntryFile:
		w.Content = s.SHA256[:]
	case EntryLink:
		w.Content = []byte(s.Target)
	}
	return w
}

func (w wireState) state() (EntryState, error) {
	s := EntryState{Type: w.Type, Mode: w.Mode, Size: w.Size}
	switch {
	case w.Type == EntryFile && len(w.Content) == len(s.SHA256):
		s.SHA256 = ContentDigest(w.Content)
	case w.Type == EntryLink:
		s.Target = string(w.Content)
	case w.Type != EntryDirectory || len(w.Content) != 0:
		return s, fmt.Errorf("%s with content of %d bytes", w.Type, len(w.Content))
	}
	return s, nil
}

// Marshal returns the canonical encoding of a valid manifest.
func (m WorkspaceManifest) Marshal() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	w := wireWorkspace{Domain: WorkspaceDomain, Entries: make([]wireWorkspaceEntry, len(m.Entries))}
	for i, e := range m.Entries {
		s := e.wire()
		w.Entries[i] = wireWorkspaceEntry{Path: []byte(e.Path), Type: s.Type, Mode: s.Mode, Size: s.Size, Content: s.Content}
	}
	return Marshal(w), nil
}

// Digest is the SHA-256 of the canonical encoding.
func (m WorkspaceManifest) Digest() (WorkspaceDigest, error) {
	b, err := m.Marshal()
	if err != nil {
		return WorkspaceDigest{}, err
	}
	return Sum[workspaceMeaning](b), nil
}

// ParseWorkspaceManifest reads the canonical encoding and checks the form.
func ParseWorkspaceManifest(b []byte) (WorkspaceManifest, error) {
	var w wireWorkspace
	if err := Unmarshal(b, &w); err != nil {
		return WorkspaceManifest{}, fmt.Errorf("workspace: %w", err)
	}
	if w.Domain != WorkspaceDomain {
		return WorkspaceManifest{}, fmt.Errorf("workspace: domain %q, expected %q", w.Domain, WorkspaceDomain)
	}
	m := WorkspaceManifest{Entries: make([]WorkspaceEntry, len(w.Entries))}
	for i, e := range w.Entries {
		s, err := wireState{Type: e.Type, Mode: e.Mode, Size: e.Size, Content: e.Content}.state()
		if err != nil {
			return WorkspaceManifest{}, fmt.Errorf("workspace entry %d: %w", i, err)
		}
		m.Entries[i] = WorkspaceEntry{Path: string(e.Path), EntryState: s}
	}
	return m, m.Validate()
}
