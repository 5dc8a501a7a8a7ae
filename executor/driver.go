package executor

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/baildock/baildock/evidence"
)

// Driver drives one local Docker daemon over one Unix socket. Every control call has the
// deadline and reply bound of req C7 and fails with a *Fault. Implementations hold no state
// about attempts, and never retry: what an unanswered call means is the caller's to decide.
type Driver interface {
	// Probe reads the daemon's identity and facts and names each missing requirement (req C2, C3).
	// It fails only when the daemon can't be reached or its replies can't be read.
	Probe(ctx context.Context) (Runtime, error)

	// DaemonEnded reports whether a process that Probe named as the daemon's is gone for good. It is
	// false whenever that can't be told, and says nothing of another boot.
	DaemonEnded(p evidence.DaemonProcess) (bool, error)

	// ImageInspect resolves a local image by name or ID; ErrAbsent when there is none.
	ImageInspect(ctx context.Context, ref string) (Image, error)
	// ImageList lists the local images.
	ImageList(ctx context.Context) ([]Image, error)
	// ImageLoad loads a docker-archive and returns the ID the daemon gave it. Nothing is ever pulled.
	ImageLoad(ctx context.Context, archive io.Reader, name string) (evidence.ImageID, error)

	// Create renders the plan into one create request and sends it. An error that wraps ErrNotSent
	// proves that the daemon never got it.
	Create(ctx context.Context, p Plan) (Created, error)
	// Inspect reads a container by full ID; ErrAbsent when the daemon says that there is none.
	Inspect(ctx context.Context, id evidence.ContainerID) (Inspection, error)
	// FindOwned lists containers that carry both ownership labels, running or not.
	FindOwned(ctx context.Context, request evidence.RequestDigest, handle evidence.HandleKey) ([]evidence.ContainerID, error)
	// FindLabelled lists the objects of one kind that carry an ownership label with any value, running
	// or not, in the order of their IDs. It is for showing: nothing it lists may be acted on.
	FindLabelled(ctx context.Context, kind evidence.CustodyKind) ([]Labelled, error)
	// Compare holds an inspection of the created container against the plan's profile, closed
	// world (req C5). It is pure.
	Compare(p Plan, img Image, rt Runtime, in Inspection) Isolation
	// Kernel reads the host's /proc and cgroup files of the container's process, which must belong
	// to the container's cgroup. Controls it can't read are unavailable, never zero; PID 0 stands
	// for a process that is gone already.
	Kernel(p Plan, id evidence.ContainerID, pid int) KernelSight

	// Attach opens the container's output before it starts. Close of the output ends a waiting Next.
	Attach(ctx context.Context, id evidence.ContainerID) (Output, error)
	// Wait registers for the container's next exit and returns once the daemon took the
	// registration. The channel delivers one Exit and is closed.
	Wait(ctx context.Context, id evidence.ContainerID) (<-chan Exit, error)
	// Start starts a container that doesn't run. One that runs already is a *Fault, answered with
	// status 304: it was somebody else who started it.
	Start(ctx context.Context, id evidence.ContainerID) error
	Kill(ctx context.Context, id evidence.ContainerID) error // ErrAbsent, or nil also when it isn't running any more
	// Remove removes by full ID, killing it if need be. A nil error or ErrAbsent still wants an
	// Inspect to confirm.
	Remove(ctx context.Context, id evidence.ContainerID) error
	// InspectNetwork reads a network by full ID; ErrAbsent when the daemon says that there is none.
	InspectNetwork(ctx context.Context, id evidence.ContainerID) (Network, error)
	// RemoveNetwork removes by full ID. A nil error or ErrAbsent still wants an InspectNetwork to confirm.
	RemoveNetwork(ctx context.Context, id evidence.ContainerID) error
	// Events subscribes to the daemon's events from now on and returns once the daemon took the
	// subscription. The channel is closed when ctx ends or the stream breaks; Err then says which.
	Events(ctx context.Context) (EventStream, error)

	Close() error
}

// ErrAbsent means that the daemon itself answered that there is no such object.
var ErrAbsent = errors.New("no such object")

// ErrNotSent means that a call never left this process.
var ErrNotSent = errors.New("the call was not sent")

// Fault is a failed daemon call.
type Fault struct {
	Call     string // create, inspect, …
	Answered bool   // the daemon answered with an error; otherwise nothing is known of what it did
	Status   int    // HTTP status when answered
	Err      error
}

func (f *Fault) Error() string {
	if f.Answered {
		return fmt.Sprintf("docker %s refused (status %d): %v", f.Call, f.Status, f.Err)
	}
	return fmt.Sprintf("docker %s unanswered: %v", f.Call, f.Err)
}

func (f *Fault) Unwrap() error { return f.Err }

// Runtime is a daemon as probed.
type Runtime struct {
	Identity   evidence.RuntimeIdentity
	Reductions []evidence.Reduction   // sorted; empty for a full claim
	Seccomp    evidence.SeccompNaming // whether the create request can name the profile
	Refusals   []Refusal              // each missing requirement; any of them refuses
	SELinux    bool                   // containers get a label of SELinux; what is bound into them must let it in
}

// Refusal is one stable code and what was found, for people.
type Refusal struct {
	Code   string
	Detail string
}

// Image is a local image as inspected.
type Image struct {
	ID          evidence.ImageID
	Names       []string
	Digests     []string // name@sha256:… given by a registry; none for a loaded image
	OS, Arch    string
	Size        int64
	Env         []string
	Labels      map[string]string
	Volumes     []string
	User        string
	Healthcheck bool
}

// Plan is everything a create request is rendered from: no field can ask for privileges, devices,
// host namespaces, other mounts or raw flags.
type Plan struct {
	Profile     evidence.Profile
	Recipe      evidence.Recipe
	Environment evidence.Environment
	Values      []evidence.EnvOpening // what the environment commits to, in memory alone; none in command/v1
	Seccomp     evidence.SeccompNaming
	Request     evidence.RequestDigest
	Handle      evidence.HandleKey
	Name        string // physical name
	Source      string // absolute host path of the snapshot, or of the workspace
}

// Labels of ownership, on every object baildock makes. Images that declare the prefix are refused.
const (
	LabelPrefix  = "dev.baildock."
	LabelRequest = LabelPrefix + "request" // request digest, sha256:<hex>
	LabelHandle  = LabelPrefix + "handle"  // random nonce of the custody, 32 hex
)

// Created is the daemon's answer to a create.
type Created struct {
	ID       evidence.ContainerID
	Warnings []string
}

// Inspection is one inspect reply.
type Inspection struct {
	ID           evidence.ContainerID
	Request      string // label, as found
	Handle       string // label, as found
	Status       string // created, running, exited, dead, …
	Running      bool
	PID          int
	ExitCode     int64
	OOMKilled    bool
	StateError   string
	StartedAt    int64 // ns since the epoch, the daemon's word; 0 = never
	FinishedAt   int64
	RestartCount int64
	Raw          []byte // the whole reply; never stored
}

// Finding is one control as found, before it becomes evidence.
type Finding struct {
	ID       evidence.ControlID
	Kind     evidence.EvidenceKind
	Equal    bool
	Expected string
	Found    string
	Reason   string // for unequal or unavailable: missing, zero, downgraded, ambiguous, malformed, mismatched, gone
}

// Isolation is the comparison of a created container with its profile.
type Isolation struct {
	Findings []Finding // every control of the profile, in ID order
	Unknown  []string  // paths outside the table that are not zero
}

// KernelSight is one look at a live container's process.
type KernelSight struct {
	Findings []Finding
	OOMKills uint64 // the cgroup's count so far; 0 when unreadable
	OOMKnown bool
}

// Output is a container's attached output. Next returns io.EOF exactly when both streams reached
// their end at a frame border; any other error means that the capture is incomplete.
type Output interface {
	Next() (Chunk, error)
	Close() error
}

// Chunk is some bytes of one stream. Bytes is valid until the next call of Next.
type Chunk struct {
	Stderr bool
	Bytes  []byte
}

// Exit is what a wait returned.
type Exit struct {
	Code int64
	Err  error // the wait broke; Code means nothing
}

// Event is one daemon event.
type Event struct {
	Type      string // container, network, …
	Action    string // start, die, oom, exec_create: …, attach, connect, …
	Actor     string // ID of the object
	Container string // for network events: the container concerned
	Network   string // for network events: the network's name
	ExitCode  string // for die
	TimeNano  int64
}

// EventStream is a subscription.
type EventStream struct {
	C   <-chan Event
	Err func() error // why C was closed; nil when ctx ended
}
