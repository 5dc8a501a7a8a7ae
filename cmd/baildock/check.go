package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/warden"
)

func checkCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "attempts of a change, step by step",
		Subcommands: []*cli.Command{
			{
				Name:  "register",
				Usage: "register an attempt for a change's present version and context",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "attempt", Usage: "the attempt's `ID`"},
					&cli.StringFlag{Name: "change", Usage: "the change's `ID`"},
					&cli.StringFlag{Name: "recipe", Usage: "recipe `FILE`"},
				},
				Action: p.checkRegister,
			},
			{
				Name:      "run",
				Usage:     "claim a pending attempt and run it",
				ArgsUsage: "ATTEMPT GENERATION",
				Flags: append(runFlags(),
					&cli.StringFlag{Name: "repository", Usage: "where its repository lies, if not where the change was opened: `PATH`"}),
				Action: p.checkRun,
			},
			{
				Name:      "show",
				Usage:     "show an attempt",
				ArgsUsage: "ATTEMPT",
				Flags:     []cli.Flag{&cli.BoolFlag{Name: "explain", Usage: "with every cause, control, container and the output"}},
				Action: func(c *cli.Context) error {
					return p.withAttempt(c, func(h *home, v attemptView) error { return p.showAttempt(c, h, v) })
				},
			},
			cancelCommand(p),
			recoverCommand(p),
			candidateCommand(p),
		},
	}
}

func (p *program) checkRegister(c *cli.Context) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	for _, name := range []string{"attempt", "change", "recipe"} {
		if c.String(name) == "" {
			return usage("--%s is missing", name)
		}
	}
	id, err := evidence.ParseAttemptID(c.String("attempt"))
	if err != nil {
		return usage("--attempt: %w", err)
	}
	change, err := evidence.ParseChangeID(c.String("change"))
	if err != nil {
		return usage("--change: %w", err)
	}
	cmd, err := loadRecipe(c.String("recipe"))
	if err != nil {
		return err
	}
	return withHome(c, actorOperator, func(h *home) error {
		ch, err := h.journal.Change(c.Context, change)
		if err != nil {
			return err
		}
		a, err := h.journal.Register(c.Context, journal.Registration{
			Attempt: id, Change: change, Recipe: cmd.recipe, Environment: cmd.env,
			Subject: evidence.Subject{Kind: evidence.SubjectCommit, Revision: ch.Fold.Revision},
		})
		if err != nil {
			if want := ch.Fold.Context; want != nil && !taken(err) && want.FitsRecipe(cmd.recipe) != nil {
				return fail(exitUsage, "recipe_unfit", "%w", err).hint("register with the recipe that the change's context requires")
			}
			return err
		}
		v, err := viewAttempt(c.Context, h.journal, a)
		if err != nil {
			return err
		}
		return p.showView(c, v)
	})
}

// taken tells an ID that stands for another input.
func taken(err error) bool {
	var t *journal.TakenError
	return errors.As(err, &t)
}

func (p *program) checkRun(c *cli.Context) error {
	args, err := p.positional("ATTEMPT", "GENERATION")
	if err != nil {
		return err
	}
	generation, err := parseCount("GENERATION", args[1])
	if err != nil {
		return err
	}
	reductions, err := accepted(c)
	if err != nil {
		return err
	}
	return p.withEngine(c, func(e engine) error {
		return withHome(c, actorRunner, func(h *home) error { return p.runRegistered(c, h, e, args[0], generation, reductions) })
	})
}

func (p *program) runRegistered(c *cli.Context, h *home, e engine, name string, generation uint64, reductions []evidence.Reduction) error {
	id, err := p.findAttempt(c.Context, h, name)
	if err != nil {
		return err
	}
	a, err := h.journal.Attempt(c.Context, id)
	if err != nil {
		return err
	}
	r := warden.RunRequest{Attempt: id, Generation: generation, Path: c.String("repository"), Accepted: reductions}
	if r.Path == "" {
		b := a.Fold.Registered.Binding
		if b == nil {
			return usage("--repository is missing").hint("an ad hoc attempt knows no repository: name its source with --repository PATH")
		}
		if r.Path, err = h.locate(b.Repository); err != nil {
			return err
		}
	}
	subject := source.Subject{Subject: a.Fold.Registered.Subject}
	if subject.Path, err = filepath.EvalSymlinks(r.Path); err != nil {
		return fail(exitUsage, "source_not_found", "%q can't be found: %w", r.Path, err)
	}
	if e.reserved, err = reservedIn(c); err != nil {
		return err
	}
	if err := source.Check(c.Context, subject, e.reserved); err != nil {
		return err
	}
	w, err := h.warden(c, e)
	if err != nil {
		return err
	}
	return p.perform(c, h, w, r)
}

func (p *program) showView(c *cli.Context, v attemptView) error {
	if p.ui.json {
		return p.ui.printJSON(v)
	}
	return v.write(p.ui.out, p.ui, p.homeFlag())
}

func (p *program) showAttempt(c *cli.Context, h *home, v attemptView) error {
	if !c.Bool("explain") {
		return p.showView(c, v)
	}
	e, err := explain(c.Context, h.journal, v.Attempt)
	if err != nil {
		return err
	}
	if p.ui.json {
		return p.ui.printJSON(struct {
			attemptView
			Explained explanation `json:"explained"`
		}{v, e})
	}
	if err := v.write(p.ui.out, p.ui, p.homeFlag()); err != nil {
		return err
	}
	var b strings.Builder
	e.write(&b, v)
	return p.printf("%s", b.String())
}

func (e explanation) write(b *strings.Builder, v attemptView) {
	for _, cause := range e.Causes {
		fmt.Fprintf(b, "cause     %s: %s\n", cause.Code, cause.Means)
	}
	for _, c := range e.Containers {
		id := "unknown"
		if c.Container != nil {
			id = c.Container.Hex()
		}
		state := string(c.State)
		if c.Open {
			state += " OPEN " + c.Unconfirmed
		}
		fmt.Fprintf(b, "container %s name %s handle %s %s\n", id, visible(c.Name), c.Handle, visible(strings.TrimSpace(state)))
	}
	for _, c := range e.Controls {
		if c.Equal {
			fmt.Fprintf(b, "control   %-28s equal, %s\n", c.Name, c.Kind)
		} else {
			fmt.Fprintf(b, "control   %-28s NOT EQUAL, %s %s: expected %s, found %s\n", c.Name, c.Kind, c.Reason, visible(c.Expected), visible(c.Found))
		}
	}
	if e.Admission != nil {
		b.WriteString(decisionText(*e.Admission))
	} else {
		b.WriteString("admission none: the attempt is bound to no change\n")
	}
	for _, d := range e.Details {
		fmt.Fprintf(b, "%s\n%s\n", d.Event, indent(visibleLines(d.Text)))
	}
	for _, s := range []struct {
		name string
		out  *outputView
	}{{"stdout", v.Stdout}, {"stderr", v.Stderr}} {
		if s.out != nil && len(s.out.text) > 0 {
			fmt.Fprintf(b, "%s\n%s\n", s.name, indent(visibleLines(string(s.out.text))))
		}
	}
}

func indent(s string) string {
	return "  | " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n  | ")
}
