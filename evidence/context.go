package evidence

import (
	"fmt"
	"slices"
)

// Capability and evidence kinds a context may ask for.
const (
	CapabilityCommand = "checks.command/v1"
	EvidenceCommand   = "command/v1"
	EvidencePaths     = "source-paths/v1"
)

// RequiredEvidence is one kind of evidence a context requires and the digest it must have: the
// recipe's for command/v1, the path policy's for source-paths/v1.
type RequiredEvidence struct {
	Kind   string      `cbor:"1,keyasint" json:"kind"`
	Digest PlainDigest `cbor:"2,keyasint" json:"digest"`
}

// Context says what must be shown before one version of a change may be admitted (req H1).
type Context struct {
	Version          uint               `cbor:"1,keyasint" json:"version"` // 1
	Revision         string             `cbor:"2,keyasint" json:"revision"`
	Capabilities     []string           `cbor:"3,keyasint" json:"capabilities"` // sorted
	Required         []RequiredEvidence `cbor:"4,keyasint" json:"required"`     // sorted by kind
	Toolchain        *ToolchainDigest   `cbor:"5,keyasint,omitempty" json:"toolchain,omitempty"`
	Environment      EnvironmentDigest  `cbor:"6,keyasint" json:"environment"`
	Policy           PolicyID           `cbor:"7,keyasint" json:"policy"`
	Epoch            uint64             `cbor:"8,keyasint" json:"epoch"`      // from 1
	Reductions       []Reduction        `cbor:"9,keyasint" json:"reductions"` // accepted ones, sorted
	RequireQualified bool               `cbor:"10,keyasint,omitempty" json:"require_qualified,omitempty"`
	AllowPaths       []string           `cbor:"11,keyasint,omitempty" json:"allow_paths,omitempty"` // globs, sorted
	Corpus           *Corpus            `cbor:"12,keyasint,omitempty" json:"corpus,omitempty"`      // what a required qualification is by
}

// Digest is the SHA-256 of the canonical context.
func (c Context) Digest() ContextDigest { return Sum[contextMeaning](Marshal(c)) }

// PathPolicyDigest is the digest of an allowed set of paths, as RequiredEvidence of
// source-paths/v1 names it: SHA-256 of the canonical array of the domain and the sorted globs.
func PathPolicyDigest(globs []string) PlainDigest {
	return Sum[plainMeaning](Marshal([]any{"baildock.path-policy.v1", globs}))
}

// Check refuses a context whose parts have no legal shape or don't fit one another.
func (c Context) Check() error {
	if c.Version != 1 {
		return fmt.Errorf("context version %d is not 1", c.Version)
	}
	if err := CheckRevision(c.Revision); err != nil {
		return err
	}
	if _, err := ParsePolicyID(string(c.Policy)); err != nil {
		return err
	}
	if c.Epoch == 0 {
		return fmt.Errorf("policy epochs start at 1")
	}
	text := func(s string) string { return s }
	switch {
	case !sortedUnique(c.Capabilities, text):
		return fmt.Errorf("the context's capabilities are not sorted or repeat")
	case !sortedUnique(c.Required, func(r RequiredEvidence) string { return r.Kind }):
		return fmt.Errorf("the context's required evidence is not sorted or repeats a kind")
	case !sortedUnique(c.Reductions, func(r Reduction) string { return string(r) }):
		return fmt.Errorf("the context's accepted reductions are not sorted or repeat")
	case !sortedUnique(c.AllowPaths, text) || len(c.AllowPaths) > MaxGlobs:
		return fmt.Errorf("the context's allowed paths are not sorted, repeat or are more than %d", MaxGlobs)
	}
	for _, r := range c.Reductions {
		if _, err := ParseReduction(string(r)); err != nil {
			return err
		}
	}
	for _, g := range c.AllowPaths {
		if err := CheckGlob(g); err != nil {
			return err
		}
	}
	if c.Corpus != nil {
		if !c.RequireQualified {
			return fmt.Errorf("the context names a corpus of canaries and asks for no qualified runtime")
		}
		if err := c.Corpus.Check(); err != nil {
			return err
		}
	}
	return c.checkRequired()
}

func (c Context) checkRequired() error {
	for _, k := range c.Capabilities {
		if k != CapabilityCommand {
			return fmt.Errorf("capability %q is not known; this version has %s", k, CapabilityCommand)
		}
	}
	for _, r := range c.Required {
		if r.Kind != EvidenceCommand && r.Kind != EvidencePaths {
			return fmt.Errorf("evidence kind %q is not known; this version has %s and %s", r.Kind, EvidenceCommand, EvidencePaths)
		}
	}
	_, command := c.Requires(EvidenceCommand)
	if capable := slices.Contains(c.Capabilities, CapabilityCommand); capable != command {
		return fmt.Errorf("capability %s and evidence %s go together", CapabilityCommand, EvidenceCommand)
	}
	paths, ok := c.Requires(EvidencePaths)
	if ok != (len(c.AllowPaths) > 0) {
		return fmt.Errorf("evidence %s and a set of allowed paths go together", EvidencePaths)
	}
	if ok && paths != PathPolicyDigest(c.AllowPaths) {
		return fmt.Errorf("evidence %s names another set of allowed paths than the context", EvidencePaths)
	}
	return nil
}

// Requires returns the digest that evidence of a kind must have; ok is false when the context
// doesn't ask for it.
func (c Context) Requires(kind string) (d PlainDigest, ok bool) {
	for _, r := range c.Required {
		if r.Kind == kind {
			return r.Digest, true
		}
	}
	return PlainDigest{}, false
}

// FitsRecipe refuses a recipe other than the one the context asks for (req H1): its digest,
// toolchain and environment must all be the context's.
func (c Context) FitsRecipe(r Recipe) error {
	want, ok := c.Requires(EvidenceCommand)
	if !ok {
		return fmt.Errorf("the context does not ask for evidence %s", EvidenceCommand)
	}
	if r.Profile != ProfileCommand {
		return fmt.Errorf("a recipe of profile %s gives no evidence %s", r.Profile, EvidenceCommand)
	}
	if got := r.Digest(); PlainDigest(got) != want {
		return fmt.Errorf("recipe %s is not the context's %s", got, want)
	}
	if r.Environment != c.Environment {
		return fmt.Errorf("environment %s is not the context's %s", r.Environment, c.Environment)
	}
	if (r.Toolchain == nil) != (c.Toolchain == nil) || r.Toolchain != nil && *r.Toolchain != *c.Toolchain {
		return fmt.Errorf("the recipe's toolchain is not the context's")
	}
	return nil
}
