package evidence

// AttemptRegistered opens an attempt at generation 0: exactly what is to run over exactly what.
type AttemptRegistered struct {
	Attempt     AttemptID         `cbor:"1,keyasint" json:"attempt"`
	Binding     *Binding          `cbor:"2,keyasint,omitempty" json:"binding,omitempty"` // none: ad hoc, never admissible
	Subject     Subject           `cbor:"3,keyasint" json:"subject"`
	Profile     ProfileName       `cbor:"4,keyasint" json:"profile"`
	Table       ProfileDigest     `cbor:"5,keyasint" json:"table"`  // of the profile
	Recipe      RecipeDigest      `cbor:"6,keyasint" json:"recipe"` // names the recipe's blob
	Toolchain   *ToolchainDigest  `cbor:"7,keyasint,omitempty" json:"toolchain,omitempty"`
	Environment EnvironmentDigest `cbor:"8,keyasint" json:"environment"` // names the environment's blob

	// Of contained/v1 alone.
	Policy *WorkspacePolicyDigest `cbor:"9,keyasint,omitempty" json:"policy,omitempty"` // names the workspace policy's blob; none: nothing is asked of the changes
	Salts  *BlobRef               `cbor:"10,keyasint,omitempty" json:"salts,omitempty"` // what opens the environment's commitments; none: it commits to nothing
}

// Basis is one stream a judgement read: its last event then.
type Basis struct {
	Stream  string     `cbor:"1,keyasint" json:"stream"`
	Version uint64     `cbor:"2,keyasint" json:"version"`
	Leaf    LeafDigest `cbor:"3,keyasint" json:"leaf"`
}

// HomeIdentity tells one home on one machine from its copies.
type HomeIdentity struct {
	Machine *MachineID `cbor:"1,keyasint,omitempty" json:"machine,omitempty"` // none: machine-id-missing
	Boot    Nonce      `cbor:"2,keyasint" json:"boot"`                        // the kernel's random boot ID
	Home    HomeID     `cbor:"3,keyasint" json:"home"`
	Inode   uint64     `cbor:"4,keyasint" json:"inode"` // of the home directory
}

// AttemptClaimed makes generation 1: one runner owns the attempt.
type AttemptClaimed struct {
	Generation uint64       `cbor:"1,keyasint" json:"generation"` // 1
	Basis      []Basis      `cbor:"2,keyasint" json:"basis"`      // every stream read, sorted by name
	Home       HomeIdentity `cbor:"3,keyasint" json:"home"`
	Deadline   uint64       `cbor:"4,keyasint" json:"deadline"` // CLOCK_BOOTTIME ns after which the runner may be fenced
	Accepted   []Reduction  `cbor:"5,keyasint" json:"accepted"` // reductions the runner accepts, sorted
}

// ClaimVoided admits that the claim lost a race: the named event came before it (req H5).
type ClaimVoided struct {
	Breaking Basis `cbor:"1,keyasint" json:"breaking"`
}

// SourceMaterialized says that the snapshot is in place.
type SourceMaterialized struct {
	Manifest ManifestDigest `cbor:"1,keyasint" json:"manifest"` // of contained/v1: the bytes of the workspace's WorkspaceDigest
	Files    uint64         `cbor:"2,keyasint" json:"files"`
	Bytes    uint64         `cbor:"3,keyasint" json:"bytes"`
	Entries  BlobRef        `cbor:"4,keyasint" json:"entries"` // the canonical manifest
	Skipped  uint64         `cbor:"5,keyasint,omitempty" json:"skipped,omitempty"`
	Detail   *BlobRef       `cbor:"6,keyasint,omitempty" json:"detail,omitempty"` // skipped paths, a text each line
}

// SourceRefused ends an attempt whose source may not be mounted.
type SourceRefused struct {
	Code   string   `cbor:"1,keyasint" json:"code"`
	Detail *BlobRef `cbor:"2,keyasint,omitempty" json:"detail,omitempty"`
}

// CustodyTaken is the stored claim on a daemon object that may exist, durable before it is
// created (req E1, E2). Frozen at v1.
type CustodyTaken struct {
	Handle  HandleKey      `cbor:"1,keyasint" json:"handle"` // also the nonce label
	Kind    CustodyKind    `cbor:"2,keyasint" json:"kind"`
	Name    string         `cbor:"3,keyasint" json:"name"` // physical name; never selects a removal target
	Request RequestDigest  `cbor:"4,keyasint" json:"request"`
	Daemon  DaemonIdentity `cbor:"5,keyasint" json:"daemon"`
}

// CustodyKind is the kind of daemon object.
type CustodyKind string

const (
	CustodyContainer CustodyKind = "container"
	CustodyNetwork   CustodyKind = "network"
)

// CreateRuledOut is proof that the create can't complete any more, and made nothing. Frozen at v1.
type CreateRuledOut struct {
	Handle HandleKey       `cbor:"1,keyasint" json:"handle"`
	Proof  CreateProof     `cbor:"2,keyasint" json:"proof"`
	Status uint64          `cbor:"3,keyasint,omitempty" json:"status,omitempty"` // HTTP status of a refusal
	Detail *BlobRef        `cbor:"4,keyasint,omitempty" json:"detail,omitempty"`
	Daemon *DaemonIdentity `cbor:"5,keyasint,omitempty" json:"daemon,omitempty"` // that listed no such container; of rebooted and daemon_ended
}

// CreateProof is why a create can't complete any more.
type CreateProof string

const (
	ProofNotSent  CreateProof = "not_sent"     // the call never left its process
	ProofRefused  CreateProof = "refused"      // the daemon answered it with an error of the request, and lists nothing with its labels
	ProofRebooted CreateProof = "rebooted"     // the machine booted since, and the daemon lists nothing with its labels
	ProofEnded    CreateProof = "daemon_ended" // the daemon's process ended since, and the next one lists nothing with its labels
)

// ContainerCreated is custody with a known ID. Frozen at v1.
type ContainerCreated struct {
	Handle     HandleKey   `cbor:"1,keyasint" json:"handle"`
	Container  ContainerID `cbor:"2,keyasint" json:"container"`
	Warnings   uint64      `cbor:"3,keyasint,omitempty" json:"warnings,omitempty"`   // any refuses the start
	Detail     *BlobRef    `cbor:"4,keyasint,omitempty" json:"detail,omitempty"`     // the warnings, a line each
	Discovered bool        `cbor:"5,keyasint,omitempty" json:"discovered,omitempty"` // found by its labels after a create whose answer proves nothing
}

// StartOrdered precedes the start call; candidate code may run from here on.
type StartOrdered struct {
	Handle HandleKey `cbor:"1,keyasint" json:"handle"`
}

// ContainerStarted says that the daemon answered the start. Command time runs from here.
type ContainerStarted struct {
	Handle HandleKey `cbor:"1,keyasint" json:"handle"`
}

// StartFailed says that the start call failed or stayed unanswered.
type StartFailed struct {
	Handle HandleKey `cbor:"1,keyasint" json:"handle"`
	Code   string    `cbor:"2,keyasint" json:"code"` // start_error, start_unanswered, start_foreign: it ran already
	Detail *BlobRef  `cbor:"3,keyasint,omitempty" json:"detail,omitempty"`
}

// StopCause is why a running container is stopped.
type StopCause string

const (
	StopTimeout   StopCause = "timeout"
	StopCancelled StopCause = "cancelled"
	StopOutput    StopCause = "output_limit"
	StopWorkspace StopCause = "workspace_limit" // the workspace outgrew its bounds (req N10)
	StopFault     StopCause = "fault"           // a transport failure or an interference; never a verdict by itself
)

// StopOrdered is the cause of a stop. The kill never waits for it (law 2).
type StopOrdered struct {
	Handle *HandleKey `cbor:"1,keyasint,omitempty" json:"handle,omitempty"` // none: nothing was created yet
	Cause  StopCause  `cbor:"2,keyasint" json:"cause"`
	After  uint64     `cbor:"3,keyasint" json:"after_ns"` // ns since the daemon's start reply, our monotonic clock
}

// RemovalOrdered precedes the removal by full ID. Frozen at v1.
type RemovalOrdered struct {
	Handle    HandleKey   `cbor:"1,keyasint" json:"handle"`
	Container ContainerID `cbor:"2,keyasint" json:"container"`
}

// RemovalObserved closes custody: an inspect by full ID under the same daemon says "no such
// container". Frozen at v1.
type RemovalObserved struct {
	Handle HandleKey    `cbor:"1,keyasint" json:"handle"`
	State  CleanupState `cbor:"2,keyasint" json:"state"`
}

// CleanupState tells how a daemon object ended (req E6).
type CleanupState string

const (
	CleanupNotCreated   CleanupState = "not_created"    // custody closed by CreateRuledOut
	CleanupRemoved      CleanupState = "removed"        // created, never ran, removed
	CleanupTerminated   CleanupState = "terminated"     // exited by itself, removed
	CleanupForceKilled  CleanupState = "force_killed"   // killed by us, removed
	CleanupAbsent       CleanupState = "already_absent" // gone before our removal
	CleanupIncomplete   CleanupState = "incomplete"     // known to be there still
	CleanupUnverifiable CleanupState = "unverifiable"   // can't be told
)

// CleanupUnconfirmed says that custody stays open, and why. Frozen at v1.
type CleanupUnconfirmed struct {
	Handle HandleKey    `cbor:"1,keyasint" json:"handle"`
	State  CleanupState `cbor:"2,keyasint" json:"state"` // incomplete or unverifiable
	Code   string       `cbor:"3,keyasint" json:"code"`
	Detail *BlobRef     `cbor:"4,keyasint,omitempty" json:"detail,omitempty"`
}

// SnapshotRemoved says that the source snapshot is gone.
type SnapshotRemoved struct{}

// SnapshotLeft says that the source snapshot could not be removed.
type SnapshotLeft struct {
	Code   string   `cbor:"1,keyasint" json:"code"`
	Detail *BlobRef `cbor:"2,keyasint,omitempty" json:"detail,omitempty"`
}

// FencedBy says which use case fenced an attempt; it decides how the attempt ends (req G4).
type FencedBy string

const (
	FencedByCancel    FencedBy = "cancel"
	FencedByRecover   FencedBy = "recover"
	FencedBySupervise FencedBy = "supervise"
)

// AttemptFenced takes an attempt from its runner: the next generation. Frozen at v1.
type AttemptFenced struct {
	Generation uint64   `cbor:"1,keyasint" json:"generation"` // the new one
	By         FencedBy `cbor:"2,keyasint" json:"by"`
	Reason     *BlobRef `cbor:"3,keyasint,omitempty" json:"reason,omitempty"` // the operator's words
}

// CustodyAbandoned gives custody up unconfirmed, by an operator's word. Frozen at v1.
type CustodyAbandoned struct {
	Handle HandleKey `cbor:"1,keyasint" json:"handle"`
}

// AttemptFinished ends an attempt. The record itself is re-derived from the events before it.
type AttemptFinished struct {
	Record RecordDigest `cbor:"1,keyasint" json:"record"`
}

func (AttemptRegistered) EventType() string  { return "AttemptRegistered" }
func (AttemptClaimed) EventType() string     { return "AttemptClaimed" }
func (ClaimVoided) EventType() string        { return "ClaimVoided" }
func (SourceMaterialized) EventType() string { return "SourceMaterialized" }
func (SourceRefused) EventType() string      { return "SourceRefused" }
func (CustodyTaken) EventType() string       { return "CustodyTaken" }
func (CreateRuledOut) EventType() string     { return "CreateRuledOut" }
func (ContainerCreated) EventType() string   { return "ContainerCreated" }
func (StartOrdered) EventType() string       { return "StartOrdered" }
func (ContainerStarted) EventType() string   { return "ContainerStarted" }
func (StartFailed) EventType() string        { return "StartFailed" }
func (StopOrdered) EventType() string        { return "StopOrdered" }
func (RemovalOrdered) EventType() string     { return "RemovalOrdered" }
func (RemovalObserved) EventType() string    { return "RemovalObserved" }
func (CleanupUnconfirmed) EventType() string { return "CleanupUnconfirmed" }
func (SnapshotRemoved) EventType() string    { return "SnapshotRemoved" }
func (SnapshotLeft) EventType() string       { return "SnapshotLeft" }
func (AttemptFenced) EventType() string      { return "AttemptFenced" }
func (CustodyAbandoned) EventType() string   { return "CustodyAbandoned" }
func (AttemptFinished) EventType() string    { return "AttemptFinished" }
