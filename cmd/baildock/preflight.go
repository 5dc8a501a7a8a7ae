package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/warden"
)

// preflightName is where a preflight without a home makes its private directory, in the state directory.
const preflightName = "preflight"

func preflightCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "preflight",
		Usage:     "verify what a contained run needs, and run nothing but a probe of our own",
		ArgsUsage: "[CONFIG]",
		Description: "Without CONFIG the daemon is verified with the defaults of a contained run, as the user who asks. No home is\n" +
			"needed. Exit 0: supported, or every reduction is accepted; 4 otherwise.",
		Flags:  []cli.Flag{socketFlag(), acceptFlag()},
		Action: p.preflight,
	}
}

// preflightView is what a preflight found (req M3).
type preflightView struct {
	Result     evidence.PreflightResult `json:"result"`
	Claim      evidence.Claim           `json:"claim"`
	Reductions []evidence.Reduction     `json:"reductions"`
	Checks     []executor.Check         `json:"checks"`
}

func (p *program) preflight(c *cli.Context) error {
	reductions, err := accepted(c)
	if err != nil {
		return err
	}
	want, err := p.preflightJob()
	if err != nil {
		return err
	}
	return p.withEngine(c, func(e engine) error {
		files, err := custodyFiles()
		if err != nil {
			return fail(exitUsage, "state_unusable", "there is no place to keep custody of the probe's container: %w", err).
				hint("set XDG_STATE_HOME to a private directory on a disk of this machine")
		}
		dir, err := preflightDir(c)
		if err != nil {
			return err
		}
		look := activePreflight(e, files, dir)
		look.Progress = p.ui.stage
		f, err := want.examine(c.Context, e.driver, look)
		p.ui.progressDone()
		if err != nil {
			return err
		}
		if err := p.showPreflight(f); err != nil {
			return err
		}
		return exitWith(preflightExit(f, append(reductions, want.accepts...)))
	})
}

// preflightExit is 0 where a run would start.
func preflightExit(f executor.Findings, accepted []evidence.Reduction) int {
	refused := func(r evidence.Reduction) bool { return !slices.Contains(accepted, r) }
	if !f.Go() || slices.ContainsFunc(f.Reductions, refused) {
		return exitRefused
	}
	return exitOK
}

// preflightDir is where the private directory is made that the probe's container sees: in the home, where
// workspaces lie, so that a daemon that can't see it is found out; without a home beside the custody.
func preflightDir(c *cli.Context) (string, error) {
	if dir, err := existingHome(c); err == nil {
		return filepath.Join(dir, executionName), nil
	}
	dir, err := stateDir()
	return filepath.Join(dir, preflightName), err
}

// activePreflight is the preflight of an engine, for this verb and for every contained run.
func activePreflight(e engine, files *warden.CustodyFiles, dir string) warden.Preflight {
	own := probe(e.driver, e.self)
	own.Args = []string{preflightSelf}
	return warden.Preflight{Driver: e.driver, Watchdog: e.dog, Probe: own, Custody: files, Dir: dir}
}

// runPreflight is the preflight of a home's contained runs. Without a place for custody it refuses them:
// a warden without one only looks.
func runPreflight(e engine, home string) executor.Preflight {
	files, err := custodyFiles()
	if err != nil {
		files = nil
	}
	return activePreflight(e, files, filepath.Join(home, executionName)).Examine
}

func (p *program) showPreflight(f executor.Findings) error {
	v := preflightView{Result: f.Result(), Claim: f.Claim(), Reductions: append([]evidence.Reduction{}, f.Reductions...), Checks: f.Checks}
	if p.ui.json {
		return p.ui.printJSON(v)
	}
	w := tabwriter.NewWriter(p.ui.out, 0, 0, 2, ' ', 0)
	for _, check := range v.Checks {
		said := check.Code
		if said != "" && check.Reason != "" {
			said += ": "
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", check.Name, check.Result, visible(said+check.Reason))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	claim := string(v.Claim)
	if v.Claim == evidence.ClaimReduced {
		claim = fmt.Sprintf("%s %v", claim, v.Reductions)
	}
	return p.printf("preflight: %s; claim: %s\n", p.ui.strong(string(v.Result), f.Go()), claim)
}

// preflightSelf is the hidden verb that a preflight's container runs.
const preflightSelf = "preflight-self"

func preflightSelfCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: preflightSelf, Hidden: true,
		Action: func(*cli.Context) error { return warden.PreflightSelf(p.ui.out) },
	}
}

// examine looks at daemon and image, in the order of a run: the user, then the daemon.
func (w rehearsal) examine(ctx context.Context, d *docker.Driver, look warden.Preflight) (executor.Findings, error) {
	job := w.job
	var imageErr error
	switch {
	case w.reference != "":
		var img executor.Image
		img, imageErr = d.ImageInspect(ctx, w.reference)
		job.Recipe.Image = img.ID
	case job.Recipe.Image == evidence.ImageID{}:
		job.Recipe.Image, imageErr = look.Probe.Image(ctx)
	}
	var f executor.Findings
	uid, gid := job.Profile.User(job.Recipe)
	warden.CheckUserIs(&f, os.Geteuid(), os.Getegid(), uid, gid)
	s := executor.Look(ctx, d, job.Recipe.Image)
	if imageErr != nil {
		s.Image, s.ImageErr = executor.Image{}, imageErr
	}
	seen := executor.Examine(s, job)
	f.Checks = append(f.Checks, seen.Checks...)
	f.Reductions, f.Identity = seen.Reductions, seen.Identity
	return look.Continue(ctx, job, f), ctx.Err()
}
