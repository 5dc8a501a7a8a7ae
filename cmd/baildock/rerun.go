package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/verify"
)

func rerunCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "rerun",
		Usage:     "run a bundle's recipe on the same source again, and compare how it ends",
		ArgsUsage: "BUNDLE",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "source", Usage: "the source that the bundle is about: `PATH` as it lies, or PATH@REV"},
			&cli.StringFlag{Name: "key", Usage: "whom to trust: a ledger.pub `FILE`, or the PEM of a bundle key; this home's own ledger when omitted"},
			&cli.StringFlag{Name: "of", Usage: "the attempt's `ID`, where the bundle holds several"},
			&cli.StringFlag{Name: "attempt", Usage: "the new attempt's `ID`; made up when omitted"},
			socketFlag(),
			acceptFlag(),
		},
		Action: p.rerun,
	}
}

// rerunView says how a second run compares with the one in the bundle.
type rerunView struct {
	Of       evidence.AttemptID `json:"of"`
	Attempt  evidence.AttemptID `json:"attempt"` // the new one, in this home
	Equal    bool               `json:"equal"`   // everything compared is equal, and nothing was left out
	Compared []comparison       `json:"compared"`
}

type comparison struct {
	What   string `json:"what"`
	Result string `json:"result"` // equal, different, not_checked
	Before string `json:"before"`
	After  string `json:"after"`
}

const (
	comparedEqual     = "equal"
	comparedDifferent = "different"
	comparedNot       = "not_checked"
)

func (p *program) rerun(c *cli.Context) error {
	reductions, err := accepted(c)
	if err != nil {
		return err
	}
	id := evidence.AttemptID(c.String("attempt"))
	if id == "" {
		if id, err = newAttemptID(time.Now()); err != nil {
			return err
		}
	} else if id, err = evidence.ParseAttemptID(string(id)); err != nil {
		return usage("--attempt: %w", err)
	}
	if c.String("source") == "" {
		return usage("--source is missing").hint("the directory or PATH@REV that the bundle is about")
	}
	before, err := p.rerunnable(c)
	if err != nil {
		return err
	}
	cmd := command{recipe: *before.Recipe, env: *before.Environment}
	subject, reserved, err := p.sameSource(c, before)
	if err != nil {
		return err
	}
	return p.withEngine(c, func(e engine) error {
		e.reserved = reserved
		return withHome(c, actorRunner, func(h *home) error {
			_, err := h.journal.Register(c.Context, journal.Registration{
				Attempt: id, Subject: subject.Subject, Recipe: cmd.recipe, Environment: cmd.env,
			})
			if err != nil {
				return err
			}
			w, err := h.warden(c, e)
			if err != nil {
				return err
			}
			p.recoverFirst(c.Context, w)
			res, err := w.Run(c.Context, warden.RunRequest{Attempt: id, Path: subject.Path, Accepted: reductions}, p.ui.stage)
			p.ui.progressDone()
			if err != nil {
				return fmt.Errorf("the second run: %w", err)
			}
			return p.compare(context.WithoutCancel(c.Context), h, before, res)
		})
	})
}

// rerunnable is the attempt that a verified bundle holds, with everything that a second run needs.
func (p *program) rerunnable(c *cli.Context) (verify.Attempt, error) {
	dir, err := existingHome(c)
	if err != nil {
		return verify.Attempt{}, err
	}
	policy := verify.Policy{AllowWithheld: bundle.Withholdables()} // what is needed of it is asked for below
	if c.String("key") == "" {
		text, err := readBounded(filepath.Join(dir, publicName), bundle.MaxIdentity)
		if err != nil {
			return verify.Attempt{}, err
		}
		if policy.Trust, err = verify.ParseTrust(text); err != nil {
			return verify.Attempt{}, err
		}
	}
	r, err := p.verified(c, policy)
	switch {
	case err != nil:
		return verify.Attempt{}, err
	case r.Verdict == verify.Invalid:
		return verify.Attempt{}, fail(exitBadEvidence, "bundle_invalid", "the bundle is bad evidence, or another ledger's; nothing was run").
			hint("baildock verify says what is wrong; --key names another ledger's ledger.pub")
	case r.Verdict != verify.Valid:
		return verify.Attempt{}, fail(exitNotChecked, "bundle_not_checked", "the bundle could not be checked whole; nothing was run").
			hint("baildock verify says what is missing")
	}
	of := evidence.AttemptID(c.String("of"))
	if of == "" && len(r.Attempts) > 1 {
		return verify.Attempt{}, usage("the bundle holds %d attempts: name one with --of", len(r.Attempts))
	}
	for _, a := range r.Attempts {
		if of != "" && a.Attempt != of {
			continue
		}
		if a.Record.Profile == evidence.ProfileContained {
			return a, usage("attempt %s is a contained run: the values of its environment are kept nowhere, so it can't be run again from its bundle", a.Attempt).
				hint("baildock contained-run with the same configuration")
		}
		if a.Recipe == nil || a.Environment == nil {
			return a, fail(exitNotChecked, "recipe_withheld", "recipe or environment of attempt %s is missing from the bundle: there is nothing to run", a.Attempt)
		}
		if a.Record.Manifest == nil {
			return a, fail(exitNotChecked, "source_unknown", "attempt %s was never given its source: there is nothing to compare with", a.Attempt)
		}
		return a, nil
	}
	return verify.Attempt{}, usage("the bundle holds no attempt %q", of)
}

// sameSource finds the source again and refuses another one, before anything is recorded.
func (p *program) sameSource(c *cli.Context, before verify.Attempt) (source.Subject, []source.Reserved, error) {
	subject, err := resolveSource(c.Context, c.String("source"))
	if err != nil {
		return subject, nil, err
	}
	reserved, err := reservedIn(c)
	if err != nil {
		return subject, nil, err
	}
	content, err := source.Digest(c.Context, subject, reserved)
	if err != nil {
		return subject, nil, err
	}
	got, err := content.Manifest.Digest()
	if err != nil {
		return subject, nil, err
	}
	if got != *before.Record.Manifest {
		return subject, nil, fail(exitUsage, "source_other", "--source has manifest %s, the bundle is about %s; nothing was run", got, before.Record.Manifest).
			hint("check out %s, or name it as PATH@REV", wanted(before.Record.Subject))
	}
	return subject, reserved, nil
}

func wanted(s evidence.Subject) string {
	if s.Revision != "" {
		return "commit " + s.Revision
	}
	return "the same files"
}

// compare prints how the two runs compare: exit 0 when everything is equal, 1 when something differs, 8
// when nothing differs and something could not be compared.
func (p *program) compare(ctx context.Context, h *home, before verify.Attempt, res warden.Result) error {
	a, err := h.journal.Attempt(ctx, res.Attempt)
	if err != nil {
		return err
	}
	after, err := viewAttempt(ctx, h.journal, a)
	if err != nil {
		return err
	}
	v := rerunView{Of: before.Attempt, Attempt: after.Attempt, Equal: true}
	v.add("outcome", string(before.Record.Outcome), string(res.Record.Outcome))
	v.add("exit code", exitText(before.Record.ExitCode), exitText(res.Record.ExitCode))
	v.add("recipe", before.Record.Recipe.String(), res.Record.Recipe.String())
	manifest := ""
	if res.Record.Manifest != nil {
		manifest = res.Record.Manifest.String()
	}
	v.add("source", before.Record.Manifest.String(), manifest)
	for i, name := range []string{"stdout", "stderr"} {
		now := []*outputView{after.Stdout, after.Stderr}[i]
		was, is := "none", "none"
		if len(before.Output) > i {
			was = ""
			if before.Output[i].Held {
				was = before.Output[i].Digest.String()
			}
		}
		if now != nil {
			is = ""
			if now.SHA256 != nil {
				is = now.SHA256.String()
			}
		}
		v.add(name, was, is)
	}
	if p.ui.json {
		err = p.ui.printJSON(v)
	} else {
		err = p.writeRerun(v)
	}
	if err != nil {
		return err
	}
	return exitWith(v.exit(res))
}

// add compares two texts; an empty one isn't known.
func (v *rerunView) add(what, before, after string) {
	c := comparison{What: what, Before: before, After: after, Result: comparedEqual}
	switch {
	case before == "" || after == "":
		c.Result = comparedNot
	case before != after:
		c.Result = comparedDifferent
	}
	v.Equal = v.Equal && c.Result == comparedEqual
	v.Compared = append(v.Compared, c)
}

func (v rerunView) exit(res warden.Result) int {
	code := exitOK
	for _, c := range v.Compared {
		switch c.Result {
		case comparedDifferent:
			code = exitFailed
		case comparedNot:
			code = max(code, exitNotChecked)
		}
		if code == exitFailed {
			break
		}
	}
	if !res.Finished {
		code = exitCleanup
	}
	return code
}

func exitText(code *int64) string {
	if code == nil {
		return "none"
	}
	return fmt.Sprint(*code)
}

func (p *program) writeRerun(v rerunView) error {
	said := map[bool]string{true: "equal", false: "not equal"}[v.Equal]
	if err := p.printf("%s  %s, a second run of %s\n", p.ui.strong(said, v.Equal), v.Attempt, v.Of); err != nil {
		return err
	}
	for _, c := range v.Compared {
		says := c.Before
		switch c.Result {
		case comparedDifferent:
			says = c.Before + ", now " + c.After
		case comparedNot:
			says = "not known of both runs"
		}
		if err := p.printf("  %-10s %-12s %s\n", c.What, c.Result, visible(says)); err != nil {
			return err
		}
	}
	return nil
}
