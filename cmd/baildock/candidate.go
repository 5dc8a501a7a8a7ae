package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/candidate"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/ledger"
)

func candidateCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "candidate", Usage: "make source of what an attempt proposes on its stdout; prints the revision", ArgsUsage: "ATTEMPT",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "repository", Usage: "where the subject lies, if not where its change was opened: `PATH`"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "for a directory subject, the new `DIR` to write"},
		},
		Action: p.checkCandidate,
	}
}

// candidateView is what was derived.
type candidateView struct {
	Attempt   evidence.AttemptID `json:"attempt"`
	Kind      string             `json:"kind"`     // commit, directory
	Revision  string             `json:"revision"` // commit, or manifest digest
	Parent    string             `json:"parent"`   // the subject: commit, or manifest digest
	Directory string             `json:"directory,omitempty"`
	Written   []string           `json:"written"`
	Deleted   []string           `json:"deleted"`
	Index     ledger.Index       `json:"index"` // of CandidateDerived
}

func (p *program) checkCandidate(c *cli.Context) error {
	args, err := p.positional("ATTEMPT")
	if err != nil {
		return err
	}
	return withHome(c, actorOperator, func(h *home) error {
		id, err := p.findAttempt(c.Context, h, args[0])
		if err != nil {
			return err
		}
		a, err := h.journal.Attempt(c.Context, id)
		if err != nil {
			return err
		}
		v, err := h.derive(c, a)
		var refused *candidate.RefusedError
		var unfit *source.RefusedError
		switch {
		case errors.As(err, &refused):
			return fail(exitFailed, string(refused.Code), "attempt %s proposes nothing that can be derived: %w", id, err)
		case errors.As(err, &unfit):
			return fail(exitFailed, string(unfit.Code), "attempt %s proposes nothing that can be derived: %w", id, err)
		case err != nil:
			return err
		}
		if p.ui.json {
			return p.ui.printJSON(v)
		}
		p.note("candidate of %s: %d files written, %d deleted; it lands nothing by itself", id, len(v.Written), len(v.Deleted))
		return p.printf("%s\n", v.Revision)
	})
}

// derive makes source of an attempt's stdout and records it.
func (h *home) derive(c *cli.Context, a journal.Attempt) (candidateView, error) {
	f := a.Fold
	v := candidateView{Attempt: f.Registered.Attempt, Kind: string(f.Registered.Subject.Kind), Written: []string{}, Deleted: []string{}}
	if d := f.MayDerive(); d.Refused != "" {
		return v, candidate.Refuse(candidate.CodeUnderivable, "", "%s", d.Refused)
	}
	proposed, err := h.proposal(c.Context, f)
	if err != nil {
		return v, err
	}
	for _, x := range proposed.Changes {
		if x.Delete {
			v.Deleted = append(v.Deleted, x.Path)
		} else {
			v.Written = append(v.Written, x.Path)
		}
	}
	subject := source.Subject{Subject: f.Registered.Subject}
	if subject.Path, err = h.subjectPath(c, f); err != nil {
		return v, err
	}
	reserved, err := reservedIn(c)
	if err != nil {
		return v, err
	}
	if err := source.Check(c.Context, subject, reserved); err != nil {
		return v, err
	}
	var e evidence.CandidateDerived
	if subject.Kind == evidence.SubjectDirectory {
		e, err = h.deriveDirectory(c, f, subject, reserved, proposed, &v)
	} else {
		v.Parent = subject.Revision
		v.Revision, err = source.DeriveCommit(c.Context, subject, proposed, source.Origin{Attempt: v.Attempt, Record: f.Finished.Record})
		e.Revision = v.Revision
	}
	if err != nil {
		return v, err
	}
	stored, err := h.journal.Derived(c.Context, v.Attempt, e)
	v.Index = stored.Index
	return v, err
}

func (h *home) deriveDirectory(c *cli.Context, f evidence.Attempt, subject source.Subject, reserved []source.Reserved, proposed candidate.Candidate, v *candidateView) (evidence.CandidateDerived, error) {
	var e evidence.CandidateDerived
	if c.String("output") == "" {
		return e, usage("--output is missing").hint("the subject is a directory: name a new one for the candidate, -o DIR")
	}
	dest, err := filepath.Abs(c.String("output"))
	if err != nil {
		return e, err
	}
	ran := f.Materialized.Manifest
	m, err := source.DeriveDirectory(c.Context, subject, reserved, ran, proposed, dest)
	if err != nil {
		return e, err
	}
	d, err := m.Digest()
	e.Manifest, v.Revision, v.Parent, v.Directory = &d, d.String(), ran.String(), dest
	return e, err
}

// proposal reads what the attempt wrote to its stdout.
func (h *home) proposal(ctx context.Context, f evidence.Attempt) (candidate.Candidate, error) {
	kept, err := h.journal.Kept(ctx, f.Run.Output.Stdout.Bytes)
	var absent *ledger.BlobAbsentError
	if errors.As(err, &absent) {
		return candidate.Candidate{}, candidate.Refuse(candidate.CodeUnderivable, "", "its output is not kept here any more")
	}
	if err != nil {
		return candidate.Candidate{}, err
	}
	return candidate.Parse(kept.Bytes)
}

// subjectPath is where the subject of an attempt lies.
func (h *home) subjectPath(c *cli.Context, f evidence.Attempt) (string, error) {
	path := c.String("repository")
	if path == "" {
		b := f.Registered.Binding
		if b == nil {
			return "", usage("--repository is missing").hint("an ad hoc attempt knows no repository: name its source with --repository PATH")
		}
		var err error
		if path, err = h.locate(b.Repository); err != nil {
			return "", err
		}
	}
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fail(exitUsage, "source_not_found", "%q can't be found: %w", path, err)
	}
	return abs, nil
}
