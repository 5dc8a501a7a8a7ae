package evidence

// PathsChecked is evidence of source-paths/v1 (req H4): which paths a revision touches against its
// parent, held to the context's allowed set. Paths are left out of the event; the list is a blob.
type PathsChecked struct {
	Parent   string   `cbor:"1,keyasint,omitempty" json:"parent,omitempty"` // full git object name; none: the revision has no parent
	Revision string   `cbor:"2,keyasint" json:"revision"`
	Globs    []string `cbor:"3,keyasint" json:"globs"` // the context's allowed paths, sorted
	Paths    BlobRef  `cbor:"4,keyasint" json:"paths"` // a PathList
	Touched  uint64   `cbor:"5,keyasint" json:"touched"`
	Outside  uint64   `cbor:"6,keyasint,omitempty" json:"outside,omitempty"` // of them, how many no glob allows; 0: the check passed
}

// AttemptRelied is an attempt that an approval rests on, with the digest of its record.
type AttemptRelied struct {
	Attempt AttemptID    `cbor:"1,keyasint" json:"attempt"`
	Record  RecordDigest `cbor:"2,keyasint" json:"record"`
}

// ContextApproved says that the present context was found admitted on what its basis names. It
// stands only if no event that changes an epoch or a context came between the two (req H5).
type ContextApproved struct {
	Version  uint64          `cbor:"1,keyasint" json:"version"` // of the change
	Context  ContextDigest   `cbor:"2,keyasint" json:"context"`
	Attempts []AttemptRelied `cbor:"3,keyasint" json:"attempts"` // relied on; empty where the context requires no command
	Basis    []Basis         `cbor:"4,keyasint" json:"basis"`    // every stream the decision rests on, sorted by name
	Grounds  Grounds         `cbor:"5,keyasint" json:"grounds"`
}

// ChangeIntegrated records that an approved context was integrated, decided again at its own
// index. It moves no ref, and ends the context: what comes later needs a new one.
type ChangeIntegrated struct {
	Version  uint64          `cbor:"1,keyasint" json:"version"`
	Context  ContextDigest   `cbor:"2,keyasint" json:"context"`
	Revision string          `cbor:"3,keyasint" json:"revision"`
	Approval Basis           `cbor:"4,keyasint" json:"approval"` // the ContextApproved it follows
	Attempts []AttemptRelied `cbor:"5,keyasint" json:"attempts"`
	Basis    []Basis         `cbor:"6,keyasint" json:"basis"`
	Grounds  Grounds         `cbor:"7,keyasint" json:"grounds"`
}

// CandidateDerived says which revision the attempt's output proposes (req I3). It proves nothing
// of that revision.
type CandidateDerived struct {
	Revision string          `cbor:"1,keyasint,omitempty" json:"revision,omitempty"` // of a commit subject: a commit whose parent is the subject
	Manifest *ManifestDigest `cbor:"2,keyasint,omitempty" json:"manifest,omitempty"` // of a directory subject: the new directory's
}

func (PathsChecked) EventType() string     { return "PathsChecked" }
func (ContextApproved) EventType() string  { return "ContextApproved" }
func (ChangeIntegrated) EventType() string { return "ChangeIntegrated" }
func (CandidateDerived) EventType() string { return "CandidateDerived" }
