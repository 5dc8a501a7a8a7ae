package evidence

// ObservationPoint is when a runtime was observed (req C3).
type ObservationPoint string

const (
	BeforeCreate ObservationPoint = "before_create"
	BeforeStart  ObservationPoint = "before_start"
	AfterExit    ObservationPoint = "after_exit"
)

// RuntimeObserved is the daemon as it was at one point, or why it can't be used. With a refusal
// nothing is created or started.
type RuntimeObserved struct {
	Point      ObservationPoint `cbor:"1,keyasint" json:"point"`
	Identity   *RuntimeIdentity `cbor:"2,keyasint,omitempty" json:"identity,omitempty"` // none: it could not be read
	Reductions []Reduction      `cbor:"3,keyasint" json:"reductions"`                   // reasons for less than a full claim, sorted
	Seccomp    SeccompNaming    `cbor:"4,keyasint,omitempty" json:"seccomp,omitempty"`
	Probe      *Basis           `cbor:"5,keyasint,omitempty" json:"probe,omitempty"`    // the RuntimeProbed relied on
	Refusals   []string         `cbor:"6,keyasint,omitempty" json:"refusals,omitempty"` // codes, each one missing requirement
	Detail     *BlobRef         `cbor:"7,keyasint,omitempty" json:"detail,omitempty"`
}

// SeccompNaming says whether the create request could name the built-in profile (req C4).
type SeccompNaming string

const (
	SeccompNamed    SeccompNaming = "named"    // the API can express it
	SeccompReported SeccompNaming = "reported" // it can't; the daemon reports the built-in profile as its default
)

// IsolationObserved compares the created container with the profile. Any unequal control, or an
// unknown field that is not zero, refuses the start.
type IsolationObserved struct {
	Handle   HandleKey `cbor:"1,keyasint" json:"handle"`
	Controls []Control `cbor:"2,keyasint" json:"controls"`                     // every control of the profile, in ID order
	Unknown  uint64    `cbor:"3,keyasint,omitempty" json:"unknown,omitempty"`  // fields outside the table that are not zero
	Values   BlobRef   `cbor:"4,keyasint" json:"values"`                       // list of ControlValue
	Refusals []string  `cbor:"5,keyasint,omitempty" json:"refusals,omitempty"` // codes: inspect_failed, controls_unequal, unknown_field, …
	Detail   *BlobRef  `cbor:"6,keyasint,omitempty" json:"detail,omitempty"`   // what was unequal or unknown, a line each
}

// KernelObserved is what the host's /proc and cgroup files said of the container's process
// while it lived. A process gone before it was read leaves controls unavailable, never zero.
type KernelObserved struct {
	Handle   HandleKey `cbor:"1,keyasint" json:"handle"`
	Controls []Control `cbor:"2,keyasint" json:"controls"`
	Values   BlobRef   `cbor:"3,keyasint" json:"values"`
}

// OOMEvent is what the daemon's event stream said of memory (req F5).
type OOMEvent string

const (
	OOMSeen    OOMEvent = "seen"
	OOMNone    OOMEvent = "none"    // and the same subscription delivered the container's die
	OOMUnknown OOMEvent = "unknown" // the subscription broke or delivered no die
)

// ContainerExited is the stopped container as inspected by ID.
type ContainerExited struct {
	Handle       HandleKey `cbor:"1,keyasint" json:"handle"`
	Status       string    `cbor:"2,keyasint" json:"status"` // the daemon's state: exited, dead, created, …; absent, unreadable
	ExitCode     int64     `cbor:"3,keyasint" json:"exit_code"`
	OOMFlag      bool      `cbor:"4,keyasint,omitempty" json:"oom_flag,omitempty"`
	OOMEvent     OOMEvent  `cbor:"5,keyasint" json:"oom_event"`
	OOMKills     uint64    `cbor:"6,keyasint,omitempty" json:"oom_kills,omitempty"`    // largest kernel count sampled while alive
	Interference []string  `cbor:"7,keyasint,omitempty" json:"interference,omitempty"` // foreign actions seen, sorted codes (req C9)
	Unrecorded   StopCause `cbor:"8,keyasint,omitempty" json:"unrecorded,omitempty"`   // a kill whose StopOrdered could not be stored
	Faults       []string  `cbor:"9,keyasint,omitempty" json:"faults,omitempty"`       // daemon calls that failed, sorted codes
	StartedAt    int64     `cbor:"10,keyasint,omitempty" json:"started_at,omitempty"`  // the daemon's word, ns since the epoch
	FinishedAt   int64     `cbor:"11,keyasint,omitempty" json:"finished_at,omitempty"` // the daemon's word; may precede StartedAt
	Duration     uint64    `cbor:"12,keyasint" json:"duration_ns"`                     // ns from the start reply, our monotonic clock
	Detail       *BlobRef  `cbor:"13,keyasint,omitempty" json:"detail,omitempty"`
}

// Stream is one captured output stream, after the redactor (req D2).
type Stream struct {
	Stored       uint64       `cbor:"1,keyasint" json:"stored"`          // bytes kept
	Received     uint64       `cbor:"2,keyasint" json:"received"`        // all bytes that arrived
	Bytes        BlobRef      `cbor:"3,keyasint" json:"bytes"`           // the bytes kept
	ReceivedHash SaltedDigest `cbor:"4,keyasint" json:"received_digest"` // SHA-256(salt32 ‖ all bytes that arrived)
	EndOfStream  bool         `cbor:"5,keyasint,omitempty" json:"end_of_stream,omitempty"`
	Truncated    bool         `cbor:"6,keyasint,omitempty" json:"truncated,omitempty"`
	Redacted     bool         `cbor:"7,keyasint,omitempty" json:"redacted,omitempty"`
}

// OutputCaptured is the output of the run. Incomplete stays beside whatever outcome wins (req D3).
type OutputCaptured struct {
	Handle     HandleKey `cbor:"1,keyasint" json:"handle"`
	Stdout     Stream    `cbor:"2,keyasint" json:"stdout"`
	Stderr     Stream    `cbor:"3,keyasint" json:"stderr"`
	Incomplete bool      `cbor:"4,keyasint,omitempty" json:"incomplete,omitempty"`
	Code       string    `cbor:"5,keyasint,omitempty" json:"code,omitempty"` // why: no_end_of_stream, stream_error, output_limit
}

func (RuntimeObserved) EventType() string   { return "RuntimeObserved" }
func (IsolationObserved) EventType() string { return "IsolationObserved" }
func (KernelObserved) EventType() string    { return "KernelObserved" }
func (ContainerExited) EventType() string   { return "ContainerExited" }
func (OutputCaptured) EventType() string    { return "OutputCaptured" }
