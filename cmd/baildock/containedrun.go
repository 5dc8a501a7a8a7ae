package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/config"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/warden"
)

func containedRunCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "contained-run",
		Usage:     "run an agent in a contained copy of a repository, and keep what it changed",
		ArgsUsage: "CONFIG -- ARGV…",
		Flags: append(runFlags(),
			&cli.StringFlag{Name: "source", Value: ".", Usage: "the repository: the directory at `PATH`, copied and never written to"},
			&cli.StringFlag{Name: "attempt", Usage: "the run's `ID`; made up when omitted"},
			&cli.StringFlag{Name: "patch", Usage: "write what changed to `FILE`, for git apply"},
			&cli.BoolFlag{Name: "print-config", Usage: "print the configuration that holds, without values, and do nothing"},
		),
		Action: p.containedRun,
	}
}

// Stages of a contained run, in their order (req N2). An artifact names the one that ended it.
const (
	stageConfiguration = "configuration"
	stageEnvironment   = "environment"
	stageImage         = "image"
	stagePreflight     = "preflight"
	stageWorkspace     = "workspace"
	stageLaunch        = "launch"
	stageRun           = "run"
	stageCleanup       = "cleanup"
	stageCapture       = "capture"
	stagePolicy        = "policy"
	stageDone          = "done"
)

// agentRun is one contained run on its way.
type agentRun struct {
	*program
	c        *cli.Context
	id       evidence.AttemptID
	home     string
	source   string // as named
	config   config.Config
	resolved config.Resolved
	artifact artifact
	patch    bytes.Buffer
}

func (p *program) containedRun(c *cli.Context) error {
	if len(p.args) != 1 {
		return usage("contained-run takes one CONFIG before --, not %d", len(p.args)).hint("baildock contained-run baildock.yaml -- /bin/agent ARG")
	}
	text, err := readBounded(p.args[0], config.MaxFile)
	if err != nil {
		return fail(exitUsage, "config_unreadable", "configuration %q: %w", p.args[0], err)
	}
	if c.Bool("print-config") {
		cfg, err := config.Load(filepath.Base(p.args[0]), text)
		if err != nil {
			return refusedConfig(err)
		}
		_, err = p.ui.out.Write(cfg.Print())
		return err
	}
	if !p.cut || len(p.tail) == 0 {
		return usage("the agent's command is missing").hint("put it after --: baildock contained-run %s -- /bin/agent ARG", p.args[0])
	}
	r := &agentRun{program: p, c: c, source: c.String("source")}
	if r.id, err = r.name(); err != nil {
		return err
	}
	if r.home, err = existingHome(c); err != nil {
		return err
	}
	if err := r.free(); err != nil {
		return err
	}
	r.artifact = newArtifact(r.id)
	return r.close(r.perform(text))
}

func (r *agentRun) name() (evidence.AttemptID, error) {
	s := r.c.String("attempt")
	if s == "" {
		return newAttemptID(time.Now())
	}
	id, err := evidence.ParseAttemptID(s)
	if err != nil {
		return "", usage("--attempt: %w", err)
	}
	return id, nil
}

// perform takes the run through its stages. What ends it is in the artifact and in the error.
func (r *agentRun) perform(text []byte) error {
	reductions, err := accepted(r.c)
	if err != nil {
		return r.refuse(stageConfiguration, err)
	}
	if r.config, err = config.Load(filepath.Base(r.args[0]), text); err != nil {
		return r.refuse(stageConfiguration, refusedConfig(err))
	}
	r.artifact.request(r.config)
	if r.resolved, err = r.config.ResolveEnvironment(os.LookupEnv); err != nil {
		return r.refuse(stageEnvironment, fail(exitUsage, "environment_refused", "%w", err))
	}
	r.artifact.environment(r.resolved)
	r.artifact.command(r.tail, r.resolved.Redactor)
	patch, err := r.patchFile()
	if err != nil {
		return r.refuse(stageConfiguration, err)
	}
	subject, reserved, err := r.subject()
	if err != nil {
		return r.refuse(stageWorkspace, err)
	}
	return r.withEngine(r.c, func(e engine) error {
		e.reserved = reserved
		image, err := r.image(e)
		if err != nil {
			return r.refuse(stageImage, err)
		}
		registration, run, err := r.registration(image, subject)
		if err != nil {
			return r.refuse(stageConfiguration, err)
		}
		return withHome(r.c, actorRunner, func(h *home) error {
			w, err := h.warden(r.c, e)
			if err == nil {
				err = w.Ready()
			}
			if err != nil {
				return r.refuse(stagePreflight, err)
			}
			if _, err := h.journal.Register(r.c.Context, registration); err != nil {
				return r.refuse(stageConfiguration, err)
			}
			if patch != "" {
				run.Patch = &r.patch
			}
			return r.agent(h, w, warden.RunRequest{
				Attempt: r.id, Path: subject.Path, Contained: run,
				Accepted: append(reductions, r.config.Platform.Reductions()...),
			}, registration, patch)
		})
	})
}

// patchFile is where a patch goes; nothing is written there that isn't new.
func (r *agentRun) patchFile() (string, error) {
	path := r.c.String("patch")
	if path == "" {
		return "", nil
	}
	if _, err := os.Lstat(path); err == nil {
		return "", usage("--patch %q exists already", path).hint("name a new file")
	}
	return path, nil
}

func (r *agentRun) subject() (source.Subject, []source.Reserved, error) {
	subject, err := source.Resolve(r.c.Context, source.Locator{Path: r.source})
	if err != nil {
		return subject, nil, err
	}
	reserved, err := reservedIn(r.c)
	return subject, reserved, err
}

// image is the ID of the configured image: itself, or what the daemon has under the pinned digest.
func (r *agentRun) image(e engine) (evidence.ImageID, error) {
	ref := r.config.Image
	if ref.Local() {
		return ref.ID, nil
	}
	img, err := e.driver.ImageInspect(r.c.Context, ref.Reference)
	switch {
	case errors.Is(err, executor.ErrAbsent):
		return evidence.ImageID{}, fail(exitRefused, executor.RefusedNoImage, "there is no local image %s, and nothing is ever pulled", ref.Reference).
			hint("load it first, or pin a local image by its ID: baildock image list")
	case err != nil:
		return evidence.ImageID{}, fail(exitRefused, executor.RefusedImageError, "the image can't be inspected: %w", err)
	}
	return img.ID, nil
}

// registration binds the configuration, the command and the environment's commitments.
func (r *agentRun) registration(image evidence.ImageID, subject source.Subject) (journal.Registration, *warden.ContainedRun, error) {
	var none journal.Registration
	nonce, err := newNonce()
	if err != nil {
		return none, nil, err
	}
	var values []evidence.EnvOpening
	for _, v := range r.resolved.Variables {
		if v.Origin == config.OriginFixed {
			continue // the profile's own
		}
		o := evidence.EnvOpening{Name: v.Name, Value: v.Value.Reveal()}
		if o.Salt, err = newSalt(); err != nil {
			return none, nil, err
		}
		values = append(values, o)
	}
	env, salts, err := evidence.CommitEnv(&nonce, values)
	if err != nil {
		return none, nil, fail(exitUsage, "environment_refused", "environment: %w", err)
	}
	g := journal.Registration{Attempt: r.id, Subject: subject.Subject, Environment: env}
	if len(salts) > 0 {
		salt, err := newSalt()
		if err != nil {
			return none, nil, err
		}
		opened := evidence.Withhold(salt, evidence.Marshal(salts))
		g.Salts = &opened
	}
	terms := &evidence.ContainedTerms{
		UID: r.config.UID, GID: r.config.GID, Network: r.config.Network, Platform: r.config.Platform,
		Writable: r.config.Writable, Reference: r.config.Image.Reference,
	}
	if p := r.config.Policy; p != nil {
		if g.Policy, err = p.Marshal(); err != nil {
			return none, nil, err
		}
		d, err := p.Digest()
		if err != nil {
			return none, nil, err
		}
		terms.Policy = &d
	}
	if r.resolved.Redactor.String(fmt.Sprint(r.tail)) != fmt.Sprint(r.tail) {
		return none, nil, fail(exitUsage, "argv_sensitive", "an argument holds a sensitive value of the environment, and arguments are kept").
			hint("let the agent read it from its environment")
	}
	g.Recipe = evidence.Recipe{
		Version: 1, Profile: evidence.ProfileContained, Image: image, Executable: r.tail[0], Args: r.tail[1:],
		Environment: env.Digest(), Limits: r.config.Limits, Nonce: &nonce, Contained: terms,
	}
	if err := g.Check(); err != nil {
		return none, nil, fail(exitUsage, "recipe_refused", "refused: %w", err)
	}
	return g, &warden.ContainedRun{Values: values, Redact: r.resolved.Redactor}, nil
}

// agent runs the registered attempt and shows where it stands.
func (r *agentRun) agent(h *home, w *warden.Warden, req warden.RunRequest, g journal.Registration, patch string) error {
	r.recoverFirst(r.c.Context, w)
	finishTee := r.teeInto(r.c, &req)
	res, runErr := w.Run(r.c.Context, req, r.ui.stage)
	runErr = errors.Join(runErr, finishTee())
	r.ui.progressDone()
	if res.Attempt == "" {
		return r.refuse(stageLaunch, runErr)
	}
	r.artifact.result(res, r.resolved.Redactor)
	runErr = errors.Join(runErr, r.artifact.contain(context.WithoutCancel(r.c.Context), h.journal, &res.Fold, g))
	if err := r.writePatch(res, patch); err != nil {
		runErr = errors.Join(runErr, err)
	}
	switch {
	case errors.Is(runErr, executor.ErrFenced):
		r.ui.say("another process took the attempt over; what is shown is how it stands now")
	case runErr != nil:
		r.ui.say("what happened could not be recorded whole: " + runErr.Error())
	}
	r.artifact.Exit = resultExit(r.c, res, runErr)
	if err := r.show(h, res); err != nil {
		return errors.Join(runErr, err)
	}
	return exitWith(r.artifact.Exit)
}

// writePatch writes what changed for a person to apply.
func (r *agentRun) writePatch(res warden.Result, path string) error {
	if path == "" {
		return nil
	}
	if res.Changes == nil || res.Changes.PatchErr != nil {
		r.ui.say("there is no patch: what changed is not known or can't be written as one")
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	_, err = f.Write(r.patch.Bytes())
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	for _, left := range res.Changes.Unpatched {
		r.ui.say(fmt.Sprintf("no text patch carries the change of %q", left))
	}
	return nil
}

// show prints the attempt as every other, then what the agent changed; or the artifact as JSON.
func (r *agentRun) show(h *home, res warden.Result) error {
	if r.ui.json {
		return nil // the artifact is printed once it is whole
	}
	ctx := context.WithoutCancel(r.c.Context)
	a, err := h.journal.Attempt(ctx, res.Attempt)
	if err != nil {
		return err
	}
	v, err := viewAttempt(ctx, h.journal, a)
	if err != nil {
		return err
	}
	var to io.Writer = r.ui.out
	if r.c.Bool("tee") {
		to = r.ui.err
	}
	if err := v.write(to, r.ui, r.homeFlag()); err != nil {
		return err
	}
	return r.artifact.write(to)
}

func newSalt() (evidence.Salt, error) {
	var s evidence.Salt
	a, err := newNonce()
	if err != nil {
		return s, err
	}
	b, err := newNonce()
	copy(s[:16], a[:])
	copy(s[16:], b[:])
	return s, err
}

func refusedConfig(err error) error {
	return fail(exitUsage, "config_refused", "%w", err).hint("baildock schema contained-config prints what a configuration may hold")
}
