package evidence

import "fmt"

// SubjectKind says what a revision is.
type SubjectKind string

const (
	SubjectCommit    SubjectKind = "commit"    // a git commit of a local repository
	SubjectDirectory SubjectKind = "directory" // a directory as it lay, by its manifest
)

// Subject is exactly what is checked, as registered. A directory's revision is its manifest
// digest, known once SourceMaterialized was appended.
type Subject struct {
	Kind     SubjectKind `cbor:"1,keyasint" json:"kind"`
	Revision string      `cbor:"2,keyasint,omitempty" json:"revision,omitempty"` // commit: 40 or 64 lower-case hex digits
}

// Check refuses an unknown kind or a revision that doesn't fit it.
func (s Subject) Check() error {
	switch s.Kind {
	case SubjectCommit:
		return CheckRevision(s.Revision)
	case SubjectDirectory:
		if s.Revision != "" {
			return fmt.Errorf("a directory subject carries no revision before it is materialised")
		}
		return nil
	}
	return fmt.Errorf("subject kind %q is neither commit nor directory", s.Kind)
}

// CheckRevision refuses a text that is not a full git object name.
func CheckRevision(s string) error {
	if len(s) != 40 && len(s) != 64 {
		return fmt.Errorf("revision %q is not 40 or 64 lower-case hex digits", s)
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("revision %q is not 40 or 64 lower-case hex digits", s)
		}
	}
	return nil
}

// Binding ties an attempt to one context of one change version. An ad hoc run has none and is
// never admissible.
type Binding struct {
	Repository RepositoryID  `cbor:"1,keyasint" json:"repository"`
	Change     ChangeID      `cbor:"2,keyasint" json:"change"`
	Version    uint64        `cbor:"3,keyasint" json:"version"` // of the change, from 1
	Context    ContextDigest `cbor:"4,keyasint" json:"context"`
}
