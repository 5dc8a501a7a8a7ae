package evidence

import "fmt"

// Derivation is what becomes of a finished attempt's candidate. It is small, so that whoever
// follows a ledger can keep it when the attempt itself is dropped.
type Derivation struct {
	Kind    SubjectKind
	Refused string            // why nothing can be derived; empty: it can
	Done    *CandidateDerived // once it was
}

// MayDerive says what can be derived from an attempt (req I3): only a finished success with
// isolation observed and cleanup confirmed whose stdout is whole and unredacted.
func (a *Attempt) MayDerive() Derivation {
	d := Derivation{Kind: a.Registered.Subject.Kind}
	switch v := VerdictOf(a); {
	case a.Finished == nil:
		d.Refused = "the attempt is not finished"
	case v.Outcome != OutcomeSuccess || v.Detail != DetailOK:
		d.Refused = fmt.Sprintf("its outcome is %s (%s)", v.Outcome, v.Detail)
	case a.Run.Output.Stdout.Truncated:
		d.Refused = "its output was truncated"
	case a.Run.Output.Stdout.Redacted:
		d.Refused = "its output was redacted"
	}
	return d
}

// Apply folds the event. It fails, leaving the derivation unchanged, when the event can't follow.
func (d *Derivation) Apply(e CandidateDerived) error {
	switch {
	case d.Refused != "":
		return fmt.Errorf("no candidate can be derived: %s", d.Refused)
	case d.Done != nil:
		return fmt.Errorf("a candidate was derived already")
	case (e.Manifest != nil) != (d.Kind == SubjectDirectory):
		return fmt.Errorf("its subject is a %s", d.Kind)
	case d.Kind == SubjectCommit:
		if err := CheckRevision(e.Revision); err != nil {
			return err
		}
	case e.Revision != "":
		return fmt.Errorf("a directory's candidate has no commit")
	}
	d.Done = &e
	return nil
}

// String names the revision.
func (e CandidateDerived) String() string {
	if e.Manifest != nil {
		return e.Manifest.String()
	}
	return e.Revision
}
