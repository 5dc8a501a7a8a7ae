package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/workspace"
	"github.com/baildock/baildock/export/verify"
)

// aboutSource holds every attempt of a report to a source that the reader has: the directory as it
// lies, or the commit in a repository (req J5).
func (p *program) aboutSource(c *cli.Context, text string, r *verify.Report) error {
	loc, err := source.ParseLocator(text)
	if err != nil {
		return err
	}
	reserved, err := reservedIn(c)
	if err != nil {
		return err
	}
	check, err := heldTo(loc, r.Attempts, func(a verify.Attempt) (string, error) { return differs(c.Context, loc, reserved, a) })
	if err != nil {
		return err
	}
	settleSource(r, check)
	return nil
}

// heldTo compares each attempt with a source. One that differs weighs more than one that can't be compared,
// wherever it stands.
func heldTo(loc source.Locator, attempts []verify.Attempt, differs func(verify.Attempt) (string, error)) (verify.Check, error) {
	check := verify.Check{Name: "repository", Result: verify.Pass}
	if len(attempts) == 0 {
		check.Result, check.Detail = verify.NotDone, "no attempt could be judged"
	}
	for _, a := range attempts {
		if a.Record.Profile == evidence.ProfileContained && a.Record.Manifest != nil && a.Workspace == nil {
			if check.Result == verify.Pass {
				check.Result, check.Detail = verify.NotDone, fmt.Sprintf("what attempt %s was given is withheld", a.Attempt)
			}
			continue
		}
		why, err := differs(a)
		if err != nil {
			return check, err
		}
		if why != "" {
			check.Result, check.Detail = verify.Fail, fmt.Sprintf("attempt %s is not about %s: %s", a.Attempt, loc, why)
			return check, nil
		}
		if check.Result == verify.Pass {
			check.Detail = fmt.Sprintf("every attempt is about %s, manifest %s", loc, a.Record.Manifest)
		}
	}
	return check, nil
}

// settleSource adds the comparison to a report. Where it could not be made, not everything asked for was checked.
// Where the source is another one, what was asked for isn't reached; the bundle is as good evidence as before, of
// something else, so that the verdict stays.
func settleSource(r *verify.Report, check verify.Check) {
	r.Checks = append(r.Checks, check)
	if check.Result == verify.Pass {
		return
	}
	if check.Result == verify.NotDone && r.Verdict == verify.Valid {
		r.Verdict = verify.NotChecked
	}
	if r.Reached {
		r.Reached, r.Why = false, check.Name+": "+check.Detail
	}
}

// differs says why a record is not about a source; empty when it is. A commit is looked up by the
// record's own hash where the reader named none.
func differs(ctx context.Context, loc source.Locator, reserved []source.Reserved, a verify.Attempt) (string, error) {
	rec := a.Record
	if rec.Manifest == nil {
		return "its source was not put in place", nil
	}
	if a.Workspace != nil {
		return workspaceDiffers(ctx, loc, reserved, *a.Workspace)
	}
	if rec.Subject.Kind == evidence.SubjectCommit && loc.Rev == "" {
		loc.Rev = rec.Subject.Revision
	}
	subject, err := source.Resolve(ctx, loc)
	var refused *source.RefusedError
	if errors.As(err, &refused) && rec.Subject.Kind == evidence.SubjectCommit {
		return refused.Error(), nil
	}
	if err != nil {
		return "", err
	}
	if rec.Subject.Kind == evidence.SubjectCommit && subject.Revision != rec.Subject.Revision {
		return fmt.Sprintf("it is about commit %s, not %s", rec.Subject.Revision, subject.Revision), nil
	}
	content, err := source.Digest(ctx, subject, reserved)
	if err != nil {
		return "", err
	}
	got, err := content.Manifest.Digest()
	if err != nil {
		return "", err
	}
	if got != *rec.Manifest {
		return fmt.Sprintf("it is about manifest %s, not %s", rec.Manifest, got), nil
	}
	return "", nil
}

// workspaceDiffers compares a directory with what an agent's copy held before it: files, links and execute
// bits, since the other permissions differ from one checkout to the next.
func workspaceDiffers(ctx context.Context, loc source.Locator, reserved []source.Reserved, m evidence.WorkspaceManifest) (string, error) {
	if loc.Rev != "" {
		return "it is about a directory as it lay, not about a commit", nil
	}
	measured, err := workspace.Measure(ctx, loc.Path, reserved)
	if err != nil {
		return "", err
	}
	var digests [2]evidence.ManifestDigest
	for i, w := range []evidence.WorkspaceManifest{m, measured} {
		s, err := w.Source()
		if err != nil {
			return "", err
		}
		if digests[i], err = s.Digest(); err != nil {
			return "", err
		}
	}
	if digests[0] != digests[1] {
		return fmt.Sprintf("it is about files with manifest %s, not %s", digests[0], digests[1]), nil
	}
	return "", nil
}
