package evidence

import (
	"fmt"
	"slices"
)

// Reduction is a reason why a run can't claim the full profile (req C8). The list is closed.
type Reduction string

const (
	ReducedCgroupV1    Reduction = "cgroup-v1"          // limits enforced by cgroup v1 controllers
	ReducedDesktop     Reduction = "docker-desktop"     // a desktop-managed VM lies between
	ReducedRootless    Reduction = "rootless"           // the daemon runs in a user namespace
	ReducedUserns      Reduction = "userns-remap"       // containers run in a remapped user namespace
	ReducedNoMachineID Reduction = "machine-id-missing" // the machine can't be told from a clone
	ReducedSeccomp     Reduction = "seccomp-unproven"   // the API can't name the seccomp profile and no probe saw it yet
)

// Reductions returns the closed list in its documented order.
func Reductions() []Reduction {
	return []Reduction{ReducedCgroupV1, ReducedDesktop, ReducedRootless, ReducedUserns, ReducedNoMachineID, ReducedSeccomp}
}

// ParseReduction refuses anything outside the closed list.
func ParseReduction(s string) (Reduction, error) {
	if r := Reduction(s); slices.Contains(Reductions(), r) {
		return r, nil
	}
	return "", fmt.Errorf("reduction %q is none of %v", s, Reductions())
}

// Claim is the level a run claims for its isolation.
type Claim string

const (
	ClaimNone    Claim = "none"    // nothing started
	ClaimFull    Claim = "full"    // every control of the profile, as its table requires
	ClaimReduced Claim = "reduced" // with the reasons accepted by name
)
