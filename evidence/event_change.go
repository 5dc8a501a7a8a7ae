package evidence

// ChangeOpened opens a change on one repository.
type ChangeOpened struct {
	Change     ChangeID     `cbor:"1,keyasint" json:"change"`
	Repository RepositoryID `cbor:"2,keyasint" json:"repository"`
}

// VersionAdded proposes a new version of a change.
type VersionAdded struct {
	Version  uint64 `cbor:"1,keyasint" json:"version"`  // from 1, by one
	Revision string `cbor:"2,keyasint" json:"revision"` // full git object name
}

// ContextSet says what the present version must show. A later one replaces it.
type ContextSet struct {
	Version uint64  `cbor:"1,keyasint" json:"version"` // of the change
	Context Context `cbor:"2,keyasint" json:"context"`
}

// AttemptOpened lists an attempt in its change's stream before the attempt's own stream opens,
// so that none can be hidden (req G1). Anyone may complete it.
type AttemptOpened struct {
	Attempt      AttemptID `cbor:"1,keyasint" json:"attempt"`
	Registration []byte    `cbor:"2,keyasint" json:"registration"` // the exact data of its AttemptRegistered
}

func (ChangeOpened) EventType() string  { return "ChangeOpened" }
func (VersionAdded) EventType() string  { return "VersionAdded" }
func (ContextSet) EventType() string    { return "ContextSet" }
func (AttemptOpened) EventType() string { return "AttemptOpened" }
