package evidence

import (
	"fmt"
	"slices"
)

// WorkspacePolicy says what a run may leave changed in its workspace (req N7). The zero value asks for
// nothing. It is one canonical value, so that whoever holds it and the mutations decides again.
type WorkspacePolicy struct {
	Version   uint64   `cbor:"1,keyasint" json:"version"`             // 1
	Allowed   []string `cbor:"2,keyasint" json:"allowed"`             // globs; every changed path must match one. None: every path may
	Forbidden []string `cbor:"3,keyasint" json:"forbidden"`           // globs; no changed path may match one
	Protected []string `cbor:"4,keyasint" json:"protected_tests"`     // globs of test files that must stay as they are
	MaxFiles  *uint64  `cbor:"5,keyasint,omitempty" json:"max_files"` // changed files and links; nil: any number; 0: none
	MaxBytes  *uint64  `cbor:"6,keyasint,omitempty" json:"max_bytes"` // of new content; nil: any number; 0: none

	NoExecutableChanges bool `cbor:"7,keyasint,omitempty" json:"no_executable_changes"`
	NoNewLinks          bool `cbor:"8,keyasint,omitempty" json:"no_new_links"`
}

// WorkspacePolicyVersion is the only version there is.
const WorkspacePolicyVersion = 1

// Validate checks version and globs: each list sorted, without repetition, at most MaxGlobs.
func (p WorkspacePolicy) Validate() error {
	if p.Version != WorkspacePolicyVersion {
		return fmt.Errorf("workspace policy version %d, expected %d", p.Version, WorkspacePolicyVersion)
	}
	for _, list := range []struct {
		name  string
		globs []string
	}{{"allowed", p.Allowed}, {"forbidden", p.Forbidden}, {"protected", p.Protected}} {
		if len(list.globs) > MaxGlobs {
			return fmt.Errorf("workspace policy: %d %s paths; at most %d", len(list.globs), list.name, MaxGlobs)
		}
		if !sortedUnique(list.globs, func(g string) string { return g }) {
			return fmt.Errorf("workspace policy: the %s paths are not sorted or repeat", list.name)
		}
		for _, g := range list.globs {
			if err := CheckGlob(g); err != nil {
				return fmt.Errorf("workspace policy: %s: %w", list.name, err)
			}
		}
	}
	return nil
}

// Normal returns the policy with its lists sorted, without repetition and never nil, and the version
// set: what a person wrote becomes the one value to hash.
func (p WorkspacePolicy) Normal() WorkspacePolicy {
	p.Version = WorkspacePolicyVersion
	for _, list := range []*[]string{&p.Allowed, &p.Forbidden, &p.Protected} {
		sorted := append([]string{}, *list...)
		slices.Sort(sorted)
		*list = slices.Compact(sorted)
	}
	return p
}

// Marshal returns the canonical encoding of a valid policy.
func (p WorkspacePolicy) Marshal() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return Marshal(p), nil
}

// Digest is the SHA-256 of the canonical encoding.
func (p WorkspacePolicy) Digest() (WorkspacePolicyDigest, error) {
	b, err := p.Marshal()
	if err != nil {
		return WorkspacePolicyDigest{}, err
	}
	return Sum[wsPolicyMeaning](b), nil
}

// ParseWorkspacePolicy reads the canonical encoding and checks it.
func ParseWorkspacePolicy(b []byte) (WorkspacePolicy, error) {
	if len(b) > MaxWorkspacePolicy {
		return WorkspacePolicy{}, fmt.Errorf("workspace policy of %d bytes exceeds %d", len(b), MaxWorkspacePolicy)
	}
	var p WorkspacePolicy
	if err := Unmarshal(b, &p); err != nil {
		return WorkspacePolicy{}, fmt.Errorf("workspace policy: %w", err)
	}
	return p, p.Validate()
}
