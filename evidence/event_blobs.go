package evidence

import (
	"errors"
	"fmt"
	"slices"
)

// What an event says of bytes it only names is decided again from those bytes, wherever they are held:
// by a verifier from a bundle and by an audit from a ledger (req R5). Each function here trusts that the
// bytes have the digest they are named by, and decides nothing of bytes it isn't given.

// Redecide holds a registration to the canonical bytes it names: recipe, environment and profile table.
// What is nil isn't held, and isn't decided.
func (g AttemptRegistered) Redecide(recipe, environment, table []byte) error {
	var r *Recipe
	if recipe != nil {
		parsed, err := ParseRecipe(recipe)
		if err != nil {
			return err
		}
		if err := g.Fits(parsed); err != nil {
			return err
		}
		r = &parsed
	}
	if environment != nil {
		var e Environment
		err := Unmarshal(environment, &e)
		switch {
		case err != nil:
		case r != nil:
			err = e.Fits(*r)
		default:
			err = e.Check()
		}
		if err != nil {
			return fmt.Errorf("environment: %w", err)
		}
	}
	if table != nil {
		var p Profile
		err := Unmarshal(table, &p)
		if err == nil && p.Name != g.Profile {
			err = fmt.Errorf("it is the table of %s", p.Name)
		}
		if err != nil {
			return fmt.Errorf("profile: %w", err)
		}
	}
	return nil
}

// Fits holds a recipe to what was registered beside its digest.
func (g AttemptRegistered) Fits(r Recipe) error {
	if r.Profile != g.Profile || r.Environment != g.Environment || !same(r.Toolchain, g.Toolchain) {
		return errors.New("the recipe is of another profile, environment or toolchain than registered")
	}
	var policy *WorkspacePolicyDigest
	if r.Contained != nil {
		policy = r.Contained.Policy
	}
	if table, err := r.Table(); err != nil || table.Digest() != g.Table && r.Contained != nil || !same(policy, g.Policy) {
		return errors.New("the recipe is of another table or workspace policy than registered")
	}
	return nil
}

func same[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// Redecide holds what was materialized to the canonical manifest it names: that of a workspace under
// contained/v1, that of a source otherwise.
func (m SourceMaterialized) Redecide(workspace bool, manifest []byte) error {
	if workspace {
		w, err := ParseWorkspaceManifest(manifest)
		if err != nil {
			return err
		}
		d, err := w.Digest()
		if err != nil {
			return err
		}
		return m.adds(ManifestDigest(d), len(w.Entries), w.Bytes())
	}
	s, err := UnmarshalManifest(manifest)
	if err != nil {
		return err
	}
	d, err := s.Digest()
	if err != nil {
		return err
	}
	return m.adds(d, len(s.Entries), s.Bytes())
}

func (m SourceMaterialized) adds(d ManifestDigest, entries int, bytes uint64) error {
	switch {
	case d != m.Manifest:
		return fmt.Errorf("the manifest has digest %s; bound is %s", d, m.Manifest)
	case bytes != m.Bytes || uint64(entries) != m.Files:
		return fmt.Errorf("the manifest has %d entries and %d bytes; the event says %d and %d", entries, bytes, m.Files, m.Bytes)
	}
	return nil
}

// Redecide holds what an event says of a captured stream to the descriptor of its bytes.
func (s Stream) Redecide(d Descriptor) error {
	switch {
	case s.Stored != d.Length:
		return fmt.Errorf("the event says %d bytes are stored, the descriptor %d", s.Stored, d.Length)
	case s.Truncated != d.Truncated || s.Redacted != d.Redacted:
		return errors.New("event and descriptor differ on whether it was truncated or redacted")
	case s.Received < s.Stored || !s.Truncated && s.Received != s.Stored:
		return fmt.Errorf("%d bytes received and %d stored don't agree with truncated = %t", s.Received, s.Stored, s.Truncated)
	case !s.Truncated && s.ReceivedHash != s.Bytes.Salted:
		return errors.New("it is not truncated and its received digest is not that of the bytes stored")
	}
	return nil
}

// ControlsOf returns the controls an event observed and the reference to what opens them.
func ControlsOf(p Payload) (controls []Control, values BlobRef, ok bool) {
	switch e := p.(type) {
	case IsolationObserved:
		return e.Controls, e.Values, true
	case KernelObserved:
		return e.Controls, e.Values, true
	case RuntimeProbed:
		return e.Controls, e.Values, true
	}
	return nil, BlobRef{}, false
}

// OpenControls opens a list of controls: as many values, in the same order, each opening its control.
func OpenControls(controls []Control, b []byte) ([]ControlValue, error) {
	var values []ControlValue
	if err := Unmarshal(b, &values); err != nil {
		return nil, fmt.Errorf("control values: %w", err)
	}
	if len(values) != len(controls) {
		return nil, fmt.Errorf("%d controls have %d values", len(controls), len(values))
	}
	for i, c := range controls {
		if values[i].ID != c.ID || SaltedSum(values[i].Salt, []byte(values[i].Found)) != c.Value {
			return nil, fmt.Errorf("the value of control %d doesn't open it", c.ID)
		}
	}
	return values, nil
}

// Redecide counts the mutations again.
func (m WorkspaceMutated) Redecide(l Mutations) error {
	var n WorkspaceMutated
	for _, one := range l {
		switch one.Kind {
		case MutationModified:
			n.Modified++
		case MutationAdded:
			n.Added++
		case MutationDeleted:
			n.Deleted++
		case MutationRenamed:
			n.Renamed++
		}
	}
	if n.Modified != m.Modified || n.Added != m.Added || n.Deleted != m.Deleted || n.Renamed != m.Renamed {
		return fmt.Errorf("%d modified, %d added, %d deleted, %d renamed; the event says %d, %d, %d, %d",
			n.Modified, n.Added, n.Deleted, n.Renamed, m.Modified, m.Added, m.Deleted, m.Renamed)
	}
	return nil
}

// Redecide decides a workspace policy over the mutations and compares each check.
func (c PolicyChecked) Redecide(policy []byte, l Mutations) error {
	p, err := ParseWorkspacePolicy(policy)
	if err != nil {
		return err
	}
	var again []CheckedRule
	for _, r := range p.Check(l) {
		again = append(again, CheckedRule{Name: r.Name, Held: r.Held})
	}
	if !slices.Equal(again, c.Checks) {
		return fmt.Errorf("the policy gives %v over what changed; the event says %v", again, c.Checks)
	}
	return nil
}
