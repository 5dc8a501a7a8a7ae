package evidence

import (
	"fmt"
	"strings"
	"unicode"
)

// Platform is where a contained run claims to run (req L1).
type Platform string

const (
	PlatformEngine  Platform = "linux-docker-engine"
	PlatformDesktop Platform = "docker-desktop-experimental" // only ever a reduced claim
)

// Reductions are those that whoever names the platform accepts by it.
func (p Platform) Reductions() []Reduction {
	if p == PlatformDesktop {
		return []Reduction{ReducedDesktop}
	}
	return nil
}

// ContainedTerms is what a recipe of `contained/v1` fixes beside the rest: who the agent is, where
// it may write, and what is asked of its changes afterwards.
type ContainedTerms struct {
	UID       uint32                 `cbor:"1,keyasint" json:"uid"` // of the agent; never 0
	GID       uint32                 `cbor:"2,keyasint" json:"gid"` // never 0
	Network   Network                `cbor:"3,keyasint" json:"network"`
	Platform  Platform               `cbor:"4,keyasint" json:"platform"`
	Writable  WritablePaths          `cbor:"5,keyasint" json:"writable"`                      // where the agent may write
	Policy    *WorkspacePolicyDigest `cbor:"6,keyasint,omitempty" json:"policy,omitempty"`    // of its workspace policy; none: nothing is asked
	Reference string                 `cbor:"7,keyasint,omitempty" json:"reference,omitempty"` // the image as configured, for people
}

// checkTerms refuses terms that a profile doesn't take or that have no legal shape (req L2, O2).
func (r Recipe) checkTerms() error {
	t := r.Contained
	switch {
	case r.Profile != ProfileContained && t == nil:
		return nil
	case r.Profile != ProfileContained:
		return fmt.Errorf("profile %s has no contained terms", r.Profile)
	case t == nil:
		return fmt.Errorf("profile %s needs contained terms", r.Profile)
	case t.UID == 0 || t.UID > MaxHostID || t.GID == 0 || t.GID > MaxHostID:
		return fmt.Errorf("UID %d and GID %d are not both 1 to %d", t.UID, t.GID, MaxHostID)
	case t.Platform != PlatformEngine && t.Platform != PlatformDesktop:
		return fmt.Errorf("platform %q is neither %s nor %s", t.Platform, PlatformEngine, PlatformDesktop)
	case len(t.Reference) > MaxReference || strings.ContainsFunc(t.Reference, unicode.IsControl):
		return fmt.Errorf("image reference is longer than %d bytes or holds a control character", MaxReference)
	}
	return t.Writable.Validate()
}
