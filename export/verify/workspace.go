package verify

import (
	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
)

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
		err = m.Redecide(mutations)
	}
	if err == nil && j.fold.Policy != nil {
		err = v.policyAgain(*j.fold.Policy, mutations)
	}
	if err != nil {
		v.report.fail(CheckSource, "attempt %s: workspace: %v", j.fold.Registered.Attempt, err)
	}
}

// policyAgain decides a workspace policy over the mutations and compares each check. A policy that
// the bundle doesn't hold is excused like any blob that is missing.
func (v *verification) policyAgain(e evidence.PolicyChecked, l evidence.Mutations) error {
	b, held := v.payload.Blob(bundle.BlobDigest(e.Policy))
	if !held {
		v.lacks(CheckSource, bundle.ClassProfile)
		return nil
	}
	return e.Redecide(b, l)
}
