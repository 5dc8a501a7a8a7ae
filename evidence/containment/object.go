package containment

import "github.com/baildock/baildock/evidence"

// Schema names the object.
const Schema = "baildock.containment-evidence"

// Version is the only version there is.
const Version = 1

// Texts that stand in the place of one.
const (
	Withheld   = "withheld"   // the blob that holds it isn't at hand
	Unreadable = "unreadable" // it is there and hasn't the shape it must have
	None       = "none"       // there is none
)

// Evidence is the object. Lists are sorted or in the order of what they list; none is null.
type Evidence struct {
	Schema      string               `json:"schema"`
	Version     int                  `json:"version"`
	Attempt     evidence.AttemptID   `json:"attempt"`
	Profile     evidence.ProfileName `json:"profile"`
	Containment Applies              `json:"containment"`
	Claim       evidence.Claim       `json:"claim"`
	Reductions  []evidence.Reduction `json:"reductions"` // why the claim is not full

	Requested   Requested   `json:"requested"`
	Preflight   Preflight   `json:"preflight"`
	Image       Image       `json:"image"`
	Controls    Controls    `json:"controls"`
	Environment Environment `json:"environment"`
	Workspace   Workspace   `json:"workspace"`
	Execution   Execution   `json:"execution"`
	Cleanup     Cleanup     `json:"cleanup"`
}

// Applies says whether the attempt is a contained run.
type Applies string

const (
	Applicable    Applies = "contained"
	NotApplicable Applies = "not_applicable" // another profile; what is shown of it is no contained run
)

// State is what a section comes to. Each section has some of them.
type State string

const (
	StateNotApplicable State = "not_applicable" // not of this profile
	StateNotReached    State = "not_reached"    // the attempt ended before
	StateWithheld      State = "withheld"       // it rests on a blob that isn't at hand

	StateKnown      State = "known"      // requested, environment
	StateBound      State = "bound"      // image: the container has the one requested
	StateMismatched State = "mismatched" // image: it has another
	StateUnobserved State = "unobserved" // image: nothing says which it has
	StateHeld       State = "held"       // controls: all observed and equal on the container that ran, as far as inspection can show
	StateNotHeld    State = "not_held"   // controls: one differs, or one isn't known
	StateUnchanged  State = "unchanged"  // workspace
	StateChanged    State = "changed"    // workspace
	StateUnknown    State = "unknown"    // workspace: what changed could not be captured
	StateNone       State = "none"       // cleanup: nothing was created
	StateComplete   State = "complete"   // cleanup: every container is proved gone and the copy removed
	StateIncomplete State = "incomplete" // cleanup: something is left, or can't be told
)

// Requested is what was asked for. It proves nothing about what was.
type Requested struct {
	State           State    `json:"state"` // known, withheld
	Platform        string   `json:"platform"`
	Network         string   `json:"network"`
	ImageProvenance string   `json:"image_provenance"` // digest-required: the policy of every contained run; local-id
	UID             uint32   `json:"uid"`              // 0: withheld
	GID             uint32   `json:"gid"`
	Executable      string   `json:"executable"` // its last name alone
	Arguments       int      `json:"arguments"`  // after it
	Limits          *Limits  `json:"limits"`     // null: withheld
	Paths           Paths    `json:"paths"`
	Writable        []string `json:"writable"` // trees of the copy, by portable name
}

// Limits are those requested, in plain units.
type Limits struct {
	WallNS   uint64 `json:"wall_ns"`
	Output   uint64 `json:"output"` // bytes, as all below
	Memory   uint64 `json:"memory"`
	Scratch  uint64 `json:"scratch"`
	PIDs     uint64 `json:"pids"`
	NanoCPUs uint64 `json:"nano_cpus"`
}

// Paths are the places a run has, by portable name.
type Paths struct {
	Repository string `json:"repository"` // never mounted writable
	Workspace  string `json:"workspace"`  // the copy that is mounted
	Evidence   string `json:"evidence"`   // outside the copy
}

// Preflight is what was verified before anything was prepared.
type Preflight struct {
	State      State                `json:"state"` // not_applicable, not_reached, supported, experimental, unavailable, unsafe
	Reductions []evidence.Reduction `json:"reductions"`
	Checks     []PreflightCheck     `json:"checks"`
	Omitted    int                  `json:"omitted"` // checks left out to keep the object within its bounds
}

// PreflightCheck is one of its checks.
type PreflightCheck struct {
	Name   string                   `json:"name"`
	Result evidence.PreflightResult `json:"result"`
	Code   string                   `json:"code"` // empty: supported
}

// Image tells four names of the image apart.
type Image struct {
	State            State  `json:"state"`             // not_reached, withheld, bound, mismatched, unobserved
	Configured       string `json:"configured"`        // the reference as configured
	RepositoryDigest string `json:"repository_digest"` // that a registry gave, as configured; none for a local ID
	LocalID          string `json:"local_id"`          // the daemon's, as requested
	ContainerBound   string `json:"container_bound"`   // what the inspected container names
}

// Controls counts every control of the profile once.
type Controls struct {
	State       State     `json:"state"`       // not_reached, held, not_held
	Total       int       `json:"total"`       // of the profile
	Held        int       `json:"held"`        // observed and equal on the container that ran
	Accepted    int       `json:"accepted"`    // the daemon reported support; no observation
	Probed      int       `json:"probed"`      // seen in another container on the same runtime
	NotRun      int       `json:"not_run"`     // compared equal on a container that never ran
	Unequal     int       `json:"unequal"`     // observed, and other than expected
	Unavailable int       `json:"unavailable"` // not known
	Unknown     uint64    `json:"unknown"`     // fields outside the table that are not zero
	Interfered  bool      `json:"interfered"`  // somebody acted on the container after it was inspected
	List        []Control `json:"list"`        // in ID order
	Omitted     int       `json:"omitted"`     // of the list; they are counted
}

// ControlState is what one control comes to.
type ControlState string

const (
	ControlHeld        ControlState = "held"
	ControlAccepted    ControlState = "accepted"
	ControlProbed      ControlState = "probed"
	ControlNotRun      ControlState = "not_run"
	ControlUnequal     ControlState = "unequal"
	ControlUnavailable ControlState = "unavailable"
)

// Control is one control.
type Control struct {
	ID       evidence.ControlID    `json:"id"`
	Name     string                `json:"name"` // of the profile's table; unreadable where this version has no such table
	State    ControlState          `json:"state"`
	Evidence evidence.EvidenceKind `json:"evidence"` // what the state rests on
}

// Environment names variables; values are nowhere.
type Environment struct {
	State      State    `json:"state"` // known, withheld
	Fixed      []string `json:"fixed"` // by the profile
	Configured []string `json:"configured"`
	Values     string   `json:"values"` // not_recorded: committed to under salts; recorded: in the recipe's environment, not here
}

// Workspace is the copy the agent could write to.
type Workspace struct {
	State    State  `json:"state"`    // not_applicable, not_reached, unchanged, changed, unknown
	Baseline string `json:"baseline"` // digest of the manifest taken first
	Modified uint64 `json:"modified"`
	Added    uint64 `json:"added"`
	Deleted  uint64 `json:"deleted"`
	Renamed  uint64 `json:"renamed"`
	Code     string `json:"code"` // why it is unknown
	Policy   Policy `json:"policy"`
}

// Policy is what a workspace policy came to.
type Policy struct {
	State  PolicyState   `json:"state"`
	Checks []PolicyCheck `json:"checks"`
}

// PolicyState is the sum of its checks.
type PolicyState string

const (
	PolicyNone      PolicyState = "none"      // nothing was asked
	PolicyKept      PolicyState = "kept"      // every check held
	PolicyBroken    PolicyState = "broken"    // one didn't
	PolicyUnchecked PolicyState = "unchecked" // it was asked and never decided
)

// PolicyCheck is one of them.
type PolicyCheck struct {
	Name string `json:"name"`
	Held bool   `json:"held"`
}

// Execution is how the command ended.
type Execution struct {
	State     evidence.Outcome `json:"state"`
	Stage     Stage            `json:"stage"` // the last one that was reached
	Detail    string           `json:"detail"`
	ExitCode  *int64           `json:"exit_code"` // the command's own; null: it never ran to an end
	DurationN uint64           `json:"duration_ns"`
	TimedOut  bool             `json:"timed_out"`
	Stdout    *Stream          `json:"stdout"` // null: not captured
	Stderr    *Stream          `json:"stderr"`
}

// Stage is how far an attempt came.
type Stage string

const (
	StageRegistered Stage = "registered"
	StageClaimed    Stage = "claimed"
	StagePreflight  Stage = "preflight"
	StageSource     Stage = "source" // the copy is in place, or was refused
	StageRuntime    Stage = "runtime"
	StageCreate     Stage = "create"
	StageIsolation  Stage = "isolation"
	StageStart      Stage = "start"
	StageRun        Stage = "run"
	StageExit       Stage = "exit"
	StageMutations  Stage = "mutations"
	StagePolicy     Stage = "policy"
	StageFinished   Stage = "finished"
)

// Stream sums one captured stream up.
type Stream struct {
	Stored      uint64 `json:"stored"`
	Received    uint64 `json:"received"`
	EndOfStream bool   `json:"end_of_stream"`
	Truncated   bool   `json:"truncated"`
	Redacted    bool   `json:"redacted"`
}

// Cleanup is what became of everything the run made.
type Cleanup struct {
	State      State       `json:"state"` // none, complete, incomplete
	Containers []Container `json:"containers"`
	Omitted    int         `json:"omitted"`
	Workspace  CopyState   `json:"workspace"`
}

// Container is one daemon object.
type Container struct {
	Hash   string                `json:"hash"`   // of its ID, shortened; none: no ID was ever known
	State  evidence.CleanupState `json:"state"`  // empty: nothing was tried
	Absent bool                  `json:"absent"` // proved: an inspection by its ID, or that it was never made
}

// CopyState is what became of the copy.
type CopyState string

const (
	CopyNone    CopyState = "none" // there was none
	CopyHeld    CopyState = "held" // the attempt isn't finished
	CopyRemoved CopyState = "removed"
	CopyLeft    CopyState = "left"
)
