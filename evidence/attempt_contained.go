package evidence

import "fmt"

// Contained reports whether the attempt runs an agent in a writable workspace.
func (a *Attempt) Contained() bool { return a.Registered.Profile == ProfileContained }

// contain folds what only an attempt of contained/v1 has. Its runner was checked already.
func (a *Attempt) contain(p Payload) error {
	if !a.Contained() {
		return fmt.Errorf("profile %s has none", a.Registered.Profile)
	}
	switch e := p.(type) {
	case PreflightObserved:
		if a.Preflight != nil || a.Materialized != nil || a.SourceRefusal != nil {
			return fmt.Errorf("it belongs once, before the workspace")
		}
		a.Preflight = &e
		return e.check()
	case WorkspaceMutated:
		if a.Mutated != nil || !a.Run.Ordered {
			return fmt.Errorf("it belongs once, after a start was ordered")
		}
		if err := a.workspaceStill(); err != nil {
			return err
		}
		a.Mutated = &e
		return e.check()
	case PolicyChecked:
		switch {
		case a.Policy != nil:
			return fmt.Errorf("the policy was checked already")
		case a.Mutated == nil || a.Mutated.Code != "":
			return fmt.Errorf("what changed isn't known")
		case a.Registered.Policy == nil || *a.Registered.Policy != e.Policy:
			return fmt.Errorf("policy %s is not the one registered", e.Policy)
		}
		a.Policy = &e
		return e.check()
	}
	return fmt.Errorf("it does not belong in an attempt's stream")
}

// workspaceStill refuses a look at a workspace that somebody may still write to, or that is gone.
func (a *Attempt) workspaceStill() error {
	switch {
	case a.Snapshot != SnapshotHeld:
		return fmt.Errorf("there is no workspace any more")
	case len(a.Custodies.Open()) > 0 || !a.removed():
		return fmt.Errorf("a container that may write to the workspace is not confirmed gone")
	}
	return nil
}

// mayPrepare holds a workspace to the order of req N2: everything was verified before.
func (a *Attempt) mayPrepare() error {
	switch {
	case !a.Contained():
		return nil
	case a.Preflight == nil:
		return fmt.Errorf("no preflight was made")
	case a.preflightRefused():
		return fmt.Errorf("the preflight was %s", a.Preflight.Result)
	case len(a.unaccepted()) > 0:
		return fmt.Errorf("reduction %s was not accepted", a.unaccepted()[0])
	}
	return nil
}

func (a *Attempt) preflightRefused() bool {
	return a.Preflight != nil && (a.Preflight.Result == PreflightUnavailable || a.Preflight.Result == PreflightUnsafe)
}

// mutationsUnknown holds when an agent ran and nothing says what it changed.
func (a *Attempt) mutationsUnknown() bool {
	return a.Contained() && a.Run.Started && (a.Mutated == nil || a.Mutated.Code != "")
}

// policyUnchecked holds when what changed is known and was not held against the policy that asks.
func (a *Attempt) policyUnchecked() bool {
	return a.Run.Started && a.Registered.Policy != nil && a.Policy == nil && a.Mutated != nil && a.Mutated.Code == ""
}

func (a *Attempt) policyViolated() bool { return a.Policy != nil && a.Policy.broken() > 0 }
