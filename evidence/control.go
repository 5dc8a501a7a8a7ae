package evidence

// EvidenceKind says how a control is known (req C6). Reports never print one as another.
type EvidenceKind string

const (
	Requested   EvidenceKind = "requested"   // asked for in the create request
	Accepted    EvidenceKind = "accepted"    // the daemon reported support and created without a warning
	Observed    EvidenceKind = "observed"    // inspection of the container that ran
	Kernel      EvidenceKind = "kernel"      // the host's /proc or cgroup files for it
	Probed      EvidenceKind = "probed"      // seen in another container on the same runtime
	Unavailable EvidenceKind = "unavailable" // not known; the reason is kept
)

// Control is the observation of one control. The value lies in the blob named by the event that
// carries it, under the control's own salt.
type Control struct {
	ID     ControlID    `cbor:"1,keyasint" json:"id"`
	Kind   EvidenceKind `cbor:"2,keyasint" json:"kind"`
	Equal  bool         `cbor:"3,keyasint" json:"equal"`                      // found what the profile expects; false for unavailable
	Value  SaltedDigest `cbor:"4,keyasint" json:"value"`                      // of the value found
	Reason string       `cbor:"5,keyasint,omitempty" json:"reason,omitempty"` // missing, zero, downgraded, ambiguous, malformed, mismatched, gone
}

// ControlValue opens one Control. A list of them, in control order, is the blob of an
// IsolationObserved or KernelObserved event.
type ControlValue struct {
	ID       ControlID `cbor:"1,keyasint" json:"id"`
	Salt     Salt      `cbor:"2,keyasint" json:"-"`
	Expected string    `cbor:"3,keyasint" json:"expected"`
	Found    string    `cbor:"4,keyasint" json:"found"`
}

// ControlID numbers a control of a profile. Numbers are never reused.
type ControlID uint
