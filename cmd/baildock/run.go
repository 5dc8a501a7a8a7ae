package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/warden"
)

func runCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run one contained command, start to record",
		ArgsUsage: "-- ARGV…",
		Flags: append(commandFlags(), append(runFlags(),
			&cli.StringFlag{Name: "source", Usage: "what the command sees at /source: `PATH` as it lies, or PATH@REV"},
			&cli.StringFlag{Name: "attempt", Usage: "the attempt's `ID`; made up when omitted"},
			&cli.BoolFlag{Name: "print-request", Usage: "print what would be bound, and do nothing"},
		)...),
		Action: p.run,
	}
}

// runFlags are those of every verb that runs an attempt.
func runFlags() []cli.Flag {
	return []cli.Flag{
		socketFlag(),
		acceptFlag(),
		&cli.BoolFlag{Name: "tee", Usage: "show the command's output as it arrives; the summary goes to stderr"},
		&cli.BoolFlag{Name: "propagate-exit", Usage: "exit with the command's own status when it ran to its end"},
	}
}

func (p *program) run(c *cli.Context) error {
	reductions, err := accepted(c)
	if err != nil {
		return err
	}
	if c.String("source") == "" {
		return usage("--source is missing").hint("--source . is the directory as it lies, --source .@HEAD the commit")
	}
	id := evidence.AttemptID(c.String("attempt"))
	if id == "" {
		if id, err = newAttemptID(time.Now()); err != nil {
			return err
		}
	} else if id, err = evidence.ParseAttemptID(string(id)); err != nil {
		return usage("--attempt: %w", err)
	}
	if _, err := existingHome(c); err != nil {
		return err
	}
	cmd, err := commandFromFlags(c, p, p.resolver(c))
	if err != nil {
		return err
	}
	subject, err := resolveSource(c.Context, c.String("source"))
	if err != nil {
		return err
	}
	reserved, err := reservedIn(c)
	if err != nil {
		return err
	}
	if err := source.Check(c.Context, subject, reserved); err != nil {
		return err
	}
	if c.Bool("print-request") {
		return p.printRequest(c, id, cmd, subject, reserved)
	}
	return p.withEngine(c, func(e engine) error {
		e.reserved = reserved
		return withHome(c, actorRunner, func(h *home) error {
			w, err := h.warden(c, e)
			if err != nil {
				return err
			}
			if err := w.Ready(); err != nil {
				return err
			}
			_, err = h.journal.Register(c.Context, journal.Registration{
				Attempt: id, Subject: subject.Subject, Recipe: cmd.recipe, Environment: cmd.env,
			})
			if err != nil {
				return err
			}
			return p.perform(c, h, w, warden.RunRequest{Attempt: id, Path: subject.Path, Accepted: reductions})
		})
	})
}

// engine is what a run needs beside a home: a daemon's driver and a watchdog that waits.
type engine struct {
	driver *docker.Driver
	dog    *warden.Watchdog
	self   string // this program's own file

	reserved []source.Reserved // what never enters a snapshot
}

// withEngine prepares an engine before anything is recorded, so that a bad flag records nothing.
func (p *program) withEngine(c *cli.Context, work func(engine) error) (err error) {
	var e engine
	if e.driver, err = p.openDaemon(c); err != nil {
		return err
	}
	defer func() { p.closed(e.driver.Close()) }()
	if e.self, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program's own file: %w", err)
	}
	if e.dog, err = warden.StartWatchdog(e.self, "watchdog", "--docker-socket", c.String("docker-socket")); err != nil {
		return err
	}
	defer func() { p.closed(e.dog.Close()) }()
	return work(e)
}

// perform runs a registered attempt and prints where it stands.
func (p *program) perform(c *cli.Context, h *home, w *warden.Warden, req warden.RunRequest) error {
	p.recoverFirst(c.Context, w)
	finishTee := p.teeInto(c, &req)
	res, runErr := w.Run(c.Context, req, p.ui.stage)
	runErr = errors.Join(runErr, finishTee())
	p.ui.progressDone()
	if res.Attempt == "" {
		return runErr
	}
	// The command line's own context may be cancelled by now: what was recorded is shown anyway.
	if err := p.showResult(c, h, res, context.WithoutCancel(c.Context)); err != nil {
		return errors.Join(runErr, err)
	}
	switch {
	case errors.Is(runErr, executor.ErrFenced):
		p.ui.say("another process took the attempt over; what is shown is how it stands now")
	case runErr != nil:
		p.ui.say("what happened could not be recorded whole: " + runErr.Error())
	}
	return exitWith(resultExit(c, res, runErr))
}

// resultExit is the exit code of a run: the outcome's, unless the run itself broke without it
// showing there; the command's own where that was asked for.
func resultExit(c *cli.Context, res warden.Result, runErr error) int {
	v := res.Verdict
	ranToEnd := v.Outcome == evidence.OutcomeSuccess || v.Outcome == evidence.OutcomeFailed
	switch {
	case runErr != nil && (ranToEnd || !res.Finished) && v.Exit != exitCleanup:
		return exitInternal
	case v.Outcome == evidence.OutcomeSuccess && v.Exit != 0: // a policy was broken: never the command's own 0
	case c.Bool("propagate-exit") && ranToEnd && res.Record.ExitCode != nil:
		return int(*res.Record.ExitCode) & maxPropagated
	}
	return v.Exit
}

func (p *program) showResult(c *cli.Context, h *home, res warden.Result, ctx context.Context) error {
	a, err := h.journal.Attempt(ctx, res.Attempt)
	if err != nil {
		return err
	}
	v, err := viewAttempt(ctx, h.journal, a)
	if err != nil {
		return err
	}
	if p.ui.json {
		return p.ui.printJSON(v)
	}
	to := p.ui.out
	if c.Bool("tee") {
		to = p.ui.err
	}
	return v.write(to, p.ui, p.homeFlag())
}

// teeInto copies the command's output to where it is watched. With --json, stdout is the
// document's alone.
func (p *program) teeInto(c *cli.Context, req *warden.RunRequest) (finish func() error) {
	if !c.Bool("tee") {
		return func() error { return nil }
	}
	p.ui.plainStages()
	out := &tee{to: p.ui.out, term: p.ui.outTerm}
	if p.ui.json {
		out = &tee{to: p.ui.err, term: p.ui.errTerm}
	}
	errOut := &tee{to: p.ui.err, term: p.ui.errTerm}
	req.Stdout, req.Stderr = out, errOut
	return func() error { return errors.Join(out.Close(), errOut.Close()) }
}

// probe is how a runtime is probed: this program in an image of its own, made of its own file.
func probe(d *docker.Driver, self string) *warden.Probe {
	return &warden.Probe{
		Executable: "/baildock",
		Args:       []string{"probe-self"},
		Image: func(ctx context.Context) (evidence.ImageID, error) {
			archive, err := docker.BuildArchive(ctx, "baildock-probe", []docker.ArchiveFile{{Host: self, Dest: "/baildock"}})
			if err != nil {
				return evidence.ImageID{}, err
			}
			if img, err := d.ImageInspect(ctx, archive.ID().String()); err == nil {
				return img.ID, nil
			} else if !errors.Is(err, executor.ErrAbsent) {
				return evidence.ImageID{}, err
			}
			return loadArchive(ctx, d, archive, io.Discard)
		},
	}
}

// printRequest prints what a run would bind, without recording anything.
func (p *program) printRequest(c *cli.Context, id evidence.AttemptID, cmd command, subject source.Subject, reserved []source.Reserved) error {
	r := evidence.Request{
		Attempt: id, Generation: 1, Recipe: cmd.recipe.Digest(), Toolchain: cmd.recipe.Toolchain,
		Environment: cmd.env.Digest(), Profile: profileOf(cmd.recipe).Digest(),
	}
	v := struct {
		Request  evidence.RequestDigest `json:"request"`
		Attempt  evidence.AttemptID     `json:"attempt"`
		Source   sourceView             `json:"source"`
		Binding  *evidence.Binding      `json:"binding"` // null: ad hoc
		Argv     []string               `json:"argv"`
		Recipe   recipeJSON             `json:"recipe"`
		Sequence uint64                 `json:"generation"`
	}{Attempt: id, Source: sourceView{Kind: subject.Kind, Revision: subject.Revision}, Argv: cmd.recipe.Argv(), Recipe: recipeView(cmd), Sequence: 1}
	if subject.Kind == evidence.SubjectDirectory {
		content, err := source.Digest(c.Context, subject, reserved)
		if err != nil {
			return err
		}
		m, err := content.Manifest.Digest()
		if err != nil {
			return err
		}
		v.Source.Manifest, r.Revision.Manifest = &m, &m
	} else {
		r.Revision.Commit = subject.Revision
	}
	v.Request = r.Digest()
	return p.ui.printJSON(v)
}

// newAttemptID makes up an ID that sorts by time: 20060102-150405.000-8 hex digits, UTC.
func newAttemptID(now time.Time) (evidence.AttemptID, error) {
	n, err := newNonce()
	if err != nil {
		return "", err
	}
	return evidence.ParseAttemptID(now.UTC().Format("20060102-150405.000") + "-" + n.String()[:8])
}

// closed tells what went wrong while closing: how the attempt ended is recorded and stays the
// exit code.
func (p *program) closed(err error) {
	if err != nil {
		p.ui.say(err.Error())
	}
}

// watchdogCommand is the child that guards a container; probeCommand is what runs inside a probe.
func watchdogCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "watchdog", Hidden: true, Flags: []cli.Flag{socketFlag()},
		Action: func(c *cli.Context) error {
			d, err := docker.Open(c.String("docker-socket"))
			if err != nil {
				return err
			}
			return errors.Join(warden.WatchdogMain(c.Context, d, p.in, p.ui.out), d.Close())
		},
	}
}

func probeCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "probe-self", Hidden: true,
		Action: func(*cli.Context) error { return warden.ProbeSelf(p.ui.out) },
	}
}
