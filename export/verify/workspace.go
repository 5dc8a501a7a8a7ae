package verify

import (
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
)

// workspaceBaseline checks that a workspace's manifest is the one that was bound, and that its sums
// agree.
func workspaceBaseline(m *evidence.SourceMaterialized, b []byte) error {
	manifest, err := evidence.ParseWorkspaceManifest(b)
	if err != nil {
		return err
	}
	d, err := manifest.Digest()
	switch {
	case err != nil:
		return err
	case evidence.ManifestDigest(d) != m.Manifest:
		return fmt.Errorf("the manifest has digest %s; bound is %s", d, m.Manifest)
	case manifest.Bytes() != m.Bytes || uint64(len(manifest.Entries)) != m.Files:
		return fmt.Errorf("the manifest has %d entries and %d bytes; the event says %d and %d", len(manifest.Entries), manifest.Bytes(), m.Files, m.Bytes)
	}
	return nil
}

// workspaceSeen is the baseline of an agent's copy, where it is held. Whether it is the one that was bound
// was checked.
func (v *verification) workspaceSeen(j *judged) *evidence.WorkspaceManifest {
	if !j.fold.Contained() || j.fold.Materialized == nil {
		return nil
	}
	w, held, err := v.opened(j.fold.Materialized.Entries)
	if err != nil || !held {
		return nil
	}
	m, err := evidence.ParseWorkspaceManifest(w.Bytes)
	if err != nil {
		return nil
	}
	return &m
}

// workspace checks that what changed adds up to what the event says, and decides the workspace policy
// again over it (req N7).
func (v *verification) workspace(j *judged) {
	m := j.fold.Mutated
	if m == nil || m.Mutations == nil || v.failed(CheckSource) {
		return
	}
	w, held, err := v.opened(*m.Mutations)
	if err != nil || !held {
		v.lacks(CheckSource, bundle.ClassChanges)
		return
	}
	mutations, err := evidence.ParseMutations(w.Bytes)
	if err == nil {
		err = sums(m, mutations)
	}
	if err == nil && j.fold.Policy != nil {
		err = v.policyAgain(*j.fold.Policy, mutations)
	}
	if err != nil {
		v.report.fail(CheckSource, "attempt %s: workspace: %v", j.fold.Registered.Attempt, err)
	}
}

func sums(m *evidence.WorkspaceMutated, l evidence.Mutations) error {
	var n evidence.WorkspaceMutated
	for _, one := range l {
		switch one.Kind {
		case evidence.MutationModified:
			n.Modified++
		case evidence.MutationAdded:
			n.Added++
		case evidence.MutationDeleted:
			n.Deleted++
		case evidence.MutationRenamed:
			n.Renamed++
		}
	}
	if n.Modified != m.Modified || n.Added != m.Added || n.Deleted != m.Deleted || n.Renamed != m.Renamed {
		return fmt.Errorf("%d modified, %d added, %d deleted, %d renamed; the event says %d, %d, %d, %d",
			n.Modified, n.Added, n.Deleted, n.Renamed, m.Modified, m.Added, m.Deleted, m.Renamed)
	}
	return nil
}

// policyAgain decides a workspace policy over the mutations and compares each check. A policy that
// the bundle doesn't hold is excused like any blob that is missing.
func (v *verification) policyAgain(e evidence.PolicyChecked, l evidence.Mutations) error {
	b, held := v.payload.Blob(bundle.BlobDigest(e.Policy))
	if !held {
		v.lacks(CheckSource, bundle.ClassProfile)
		return nil
	}
	p, err := evidence.ParseWorkspacePolicy(b)
	if err != nil {
		return err
	}
	var again []evidence.CheckedRule
	for _, r := range p.Check(l) {
		again = append(again, evidence.CheckedRule{Name: r.Name, Held: r.Held})
	}
	if !slices.Equal(again, e.Checks) {
		return fmt.Errorf("the policy gives %v over what changed; the event says %v", again, e.Checks)
	}
	return nil
}
