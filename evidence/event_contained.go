package evidence

import (
	"fmt"
	"slices"
)

// PreflightResult sums a preflight up (req M3). The worst check decides.
type PreflightResult string

const (
	PreflightSupported    PreflightResult = "supported"
	PreflightExperimental PreflightResult = "experimental" // only under a reduced claim
	PreflightUnavailable  PreflightResult = "unavailable"  // the daemon, or evidence that is required, could not be had
	PreflightUnsafe       PreflightResult = "unsafe"       // what was asked for, or was found, conflicts with the boundary
)

// preflightOrder lists results from the best to the worst.
var preflightOrder = []PreflightResult{PreflightSupported, PreflightExperimental, PreflightUnavailable, PreflightUnsafe}

// PreflightCheck is one thing a preflight looked at.
type PreflightCheck struct {
	Name   string          `cbor:"1,keyasint" json:"name"`
	Result PreflightResult `cbor:"2,keyasint" json:"result"`
	Code   string          `cbor:"3,keyasint,omitempty" json:"code,omitempty"` // why it isn't supported
}

// SumChecks is the result of a preflight with these checks: of the worst one. Without any it is unavailable.
func SumChecks(checks []PreflightCheck) PreflightResult {
	if len(checks) == 0 {
		return PreflightUnavailable
	}
	worst := 0
	for _, c := range checks {
		i := slices.Index(preflightOrder, c.Result)
		if i < 0 {
			return PreflightUnsafe
		}
		worst = max(worst, i)
	}
	return preflightOrder[worst]
}

// PreflightObserved is what was verified before a workspace was prepared (req N2). Anything but
// supported, or experimental with every reduction accepted, ends the attempt there.
type PreflightObserved struct {
	Result     PreflightResult  `cbor:"1,keyasint" json:"result"`     // SumChecks of the checks
	Reductions []Reduction      `cbor:"2,keyasint" json:"reductions"` // the claim it would give, sorted
	Checks     []PreflightCheck `cbor:"3,keyasint" json:"checks"`     // in the order they were made, each name once
	Identity   *RuntimeIdentity `cbor:"4,keyasint,omitempty" json:"identity,omitempty"`
	Detail     *BlobRef         `cbor:"5,keyasint,omitempty" json:"detail,omitempty"` // what was found, a line each
}

// check refuses a preflight that says something else than its checks.
func (e PreflightObserved) check() error {
	switch {
	case len(e.Checks) == 0 || len(e.Checks) > MaxChecks:
		return fmt.Errorf("it has %d checks; 1 to %d are allowed", len(e.Checks), MaxChecks)
	case e.Result != SumChecks(e.Checks):
		return fmt.Errorf("its result is %q; its checks give %s", e.Result, SumChecks(e.Checks))
	case !sortedUnique(e.Reductions, func(r Reduction) string { return string(r) }):
		return fmt.Errorf("its reductions are not sorted or repeat")
	case len(e.Reductions) > 0 && e.Result == PreflightSupported:
		return fmt.Errorf("it is supported and names reductions")
	}
	seen := map[string]bool{}
	for _, c := range e.Checks {
		if c.Name == "" || len(c.Name) > MaxCode || len(c.Code) > MaxCode || seen[c.Name] {
			return fmt.Errorf("check %q has no legal name or code, or stands twice", c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// WorkspaceMutated is how the workspace differs from its baseline once no container can write to it
// any more (req O5), or why that can't be said.
type WorkspaceMutated struct {
	Modified  uint64   `cbor:"1,keyasint" json:"modified"`
	Added     uint64   `cbor:"2,keyasint" json:"added"`
	Deleted   uint64   `cbor:"3,keyasint" json:"deleted"`
	Renamed   uint64   `cbor:"4,keyasint" json:"renamed"`
	Mutations *BlobRef `cbor:"5,keyasint,omitempty" json:"mutations,omitempty"` // the canonical list; none with a code
	Diff      *BlobRef `cbor:"6,keyasint,omitempty" json:"diff,omitempty"`      // bounded, for people
	Code      string   `cbor:"7,keyasint,omitempty" json:"code,omitempty"`      // why it could not be captured
	Detail    *BlobRef `cbor:"8,keyasint,omitempty" json:"detail,omitempty"`
}

func (e WorkspaceMutated) check() error {
	counted := e.Modified+e.Added+e.Deleted+e.Renamed > 0
	switch {
	case len(e.Code) > MaxCode:
		return fmt.Errorf("its code is longer than %d bytes", MaxCode)
	case e.Code != "" && (counted || e.Mutations != nil || e.Diff != nil):
		return fmt.Errorf("it could not be captured and says what changed")
	case e.Code == "" && e.Mutations == nil:
		return fmt.Errorf("it names no list of mutations")
	}
	return nil
}

// CheckedRule is what one check of a workspace policy came to.
type CheckedRule struct {
	Name PolicyCheck `cbor:"1,keyasint" json:"name"`
	Held bool        `cbor:"2,keyasint" json:"held"`
}

// PolicyChecked is the workspace policy applied to the mutations (req N7). Whoever holds both
// decides again.
type PolicyChecked struct {
	Policy WorkspacePolicyDigest `cbor:"1,keyasint" json:"policy"`
	Checks []CheckedRule         `cbor:"2,keyasint" json:"checks"` // in the policy's order, each name once
	Detail *BlobRef              `cbor:"3,keyasint,omitempty" json:"detail,omitempty"`
}

func (e PolicyChecked) check() error {
	seen := map[PolicyCheck]bool{}
	for _, c := range e.Checks {
		if c.Name == "" || len(c.Name) > MaxCode || seen[c.Name] {
			return fmt.Errorf("check %q has no legal name or stands twice", c.Name)
		}
		seen[c.Name] = true
	}
	if len(e.Checks) > MaxChecks {
		return fmt.Errorf("it has %d checks; at most %d are allowed", len(e.Checks), MaxChecks)
	}
	return nil
}

// broken counts the checks that did not hold.
func (e PolicyChecked) broken() uint64 {
	n := uint64(0)
	for _, c := range e.Checks {
		if !c.Held {
			n++
		}
	}
	return n
}

func (PreflightObserved) EventType() string { return "PreflightObserved" }
func (WorkspaceMutated) EventType() string  { return "WorkspaceMutated" }
func (PolicyChecked) EventType() string     { return "PolicyChecked" }
