package warden

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// Preflight verifies a daemon for contained runs (req M1, M2). It looks at daemon and image, and then
// lets the one thing run that a preflight ever runs: baildock's own binary in its own image, under the
// controls that the agent would have, over a private directory with a marker in it. Nothing of the
// agent, the command, the repository or another image runs.
//
//	look := warden.Preflight{Driver: d, Watchdog: dog, Probe: probe, Custody: files, Dir: dir}
//	findings := look.Examine(ctx, job)        // an executor.Preflight
//
// The container is nobody's attempt: its custody lies in files, whoever asks (0150). A process that dies
// leaves it to supervise.
type Preflight struct {
	Driver   executor.Driver
	Watchdog executor.Watchdog
	Probe    *Probe        // Args must make the binary call PreflightSelf
	Custody  *CustodyFiles // of the container; nil: there is no place for it, and nothing is created
	Dir      string        // where the marker's directory is made: this user's, absolute; made if it is missing
	Progress executor.Progress
	Random   io.Reader // nil: crypto/rand
}

// Names of the checks that need a container.
const (
	CheckUser       = "user"       // this process may hand the agent its copy (req N3)
	CheckContainer  = "container"  // the probe's was created and, inspected by its ID, is what the profile wants
	CheckLimits     = "limits"     // memory, swap, CPU, processes, files: accepted as asked for
	CheckFilesystem = "filesystem" // read-only root, bounded writable tmpfs
	CheckProhibited = "prohibited" // what hands over the host is absent, and would be refused
	CheckRun        = "run"        // the probe ran to its end, and nobody interfered
	CheckIdentity   = "identity"   // as the required user, without privileges, under the filter
	CheckMarker     = "marker"     // it could read what was bound into it
	CheckRoutes     = "routes"     // it has routes out on a bridge, and none without a network
	CheckCleanup    = "cleanup"    // its container is gone (req M4)
)

// probed by container, in the order they are told.
var containerChecks = []string{
	CheckContainer, CheckLimits, CheckFilesystem, CheckProhibited, CheckRun, CheckIdentity, CheckMarker, CheckRoutes, CheckCleanup,
}

// Codes of checks that have none of their own.
const (
	CodeUser       = "user_mismatched"
	CodeNotReached = "not_reached" // an earlier check ended the preflight
	CodeNoProbe    = "probe_image"
	CodePrivate    = "directory"
	CodeCustody    = "custody"
	CodeBroken     = "broken" // the run could not be recorded, or broke itself
)

// CheckUserIs compares the agent's user with this process's: only root hands its copy to another
// (req N3).
func CheckUserIs(f *executor.Findings, own, group int, uid, gid uint32) {
	if own == 0 || uint32(own) == uid && uint32(group) == gid {
		f.Add(CheckUser, evidence.PreflightSupported, "", "")
		return
	}
	f.Add(CheckUser, evidence.PreflightUnsafe, CodeUser, fmt.Sprintf(
		"the agent is to run as %d:%d and this is %d:%d; set required_uid and required_gid to these, or run as root", uid, gid, own, group))
}

// Examine is an executor.Preflight: every check has its place in the findings, those that an earlier one
// cut off as not_reached.
func (p Preflight) Examine(ctx context.Context, job executor.Job) executor.Findings {
	f := executor.Examine(executor.Look(ctx, p.Driver, job.Recipe.Image), job)
	return p.Continue(ctx, job, f)
}

// Continue is Examine for a caller that looked already: f are its findings so far.
func (p Preflight) Continue(ctx context.Context, job executor.Job, f executor.Findings) executor.Findings {
	if p.Random == nil {
		p.Random = rand.Reader
	}
	if f.Go() {
		if t, code, err := p.trial(ctx, job); err != nil {
			f.Add(CheckContainer, evidence.PreflightUnavailable, code, err.Error())
		} else {
			t.judge(&f)
		}
	}
	for _, name := range executor.LookedAt {
		missing(&f, name)
	}
	for _, name := range containerChecks {
		missing(&f, name)
	}
	return f
}

// missing adds a check that was not reached.
func missing(f *executor.Findings, name string) {
	for _, c := range f.Checks {
		if c.Name == name {
			return
		}
	}
	f.Add(name, evidence.PreflightUnavailable, CodeNotReached, "")
}

// trial runs the probe and keeps what happened. An error, with its code, means that nothing was created.
func (p Preflight) trial(ctx context.Context, of executor.Job) (_ *trial, code string, err error) {
	if p.Custody == nil {
		return nil, CodeCustody, errors.New("there is no place to keep custody of the probe's container")
	}
	if p.Probe == nil {
		return nil, CodeNoProbe, errors.New("there is no probe to run")
	}
	image, err := p.Probe.Image(ctx)
	if err != nil {
		return nil, CodeNoProbe, fmt.Errorf("load the probe's image: %w", err)
	}
	job, err := p.job(of, image)
	if err != nil {
		return nil, CodeBroken, err
	}
	uid, gid := job.Profile.User(job.Recipe)
	private, err := newPrivate(p.Dir, p.Random, uid, gid)
	if err != nil {
		return nil, CodePrivate, err
	}
	job.Source = private.dir
	job.Places = []executor.Place{{Path: private.dir, Role: executor.WorkspaceRole}}
	t := &trial{job: job, marker: private.marker, rec: &memo{}}
	t.driver = &onlooker{Driver: p.Driver}
	rec := p.Custody.Recorder(t.rec)
	t.err = executor.Run(ctx, executor.Config{
		Driver: t.driver, Recorder: rec, Watchdog: p.Watchdog, Progress: p.Progress, Random: p.Random,
	}, job)
	t.open = len(rec.Open())
	t.err = errors.Join(t.err, rec.Close())
	if t.open == 0 {
		t.left = private.remove()
	} else {
		t.left = private.leave()
	}
	return t, "", nil
}

// job is the probe's: the profile, user, network and limits of the agent's, and none of its environment,
// which a probe has no business with.
func (p Preflight) job(of executor.Job, image evidence.ImageID) (executor.Job, error) {
	var nonce evidence.Nonce
	if _, err := io.ReadFull(p.Random, nonce[:]); err != nil {
		return executor.Job{}, fmt.Errorf("draw a nonce: %w", err)
	}
	if of.Recipe.Contained == nil {
		return executor.Job{}, errors.New("the recipe has no contained terms")
	}
	env, _, err := evidence.CommitEnv(&nonce, nil)
	if err != nil {
		return executor.Job{}, err
	}
	limits := of.Recipe.Limits
	limits.Wall, limits.Output = min(limits.Wall, probeWall), probeOutput
	terms := *of.Recipe.Contained
	terms.Writable, terms.Policy, terms.Reference = evidence.WritablePaths{evidence.WholeWorkspace}, nil, ""
	recipe := evidence.Recipe{
		Version: 1, Profile: evidence.ProfileContained, Image: image, Executable: p.Probe.Executable, Args: p.Probe.Args,
		Environment: env.Digest(), Nonce: &nonce, Limits: limits, Contained: &terms,
	}
	if err := recipe.Check(); err != nil {
		return executor.Job{}, err
	}
	table, err := recipe.Table()
	if err != nil {
		return executor.Job{}, err
	}
	id := evidence.AttemptID("preflight-" + nonce.String())
	request := evidence.Request{Attempt: id, Generation: 1, Recipe: recipe.Digest(), Environment: env.Digest(), Profile: table.Digest()}
	return executor.Job{
		Attempt: id, Profile: table, Recipe: recipe, Environment: env, Request: request.Digest(),
		// What is reduced is said by the findings, and accepted by whoever reads them.
		Accepted: evidence.Reductions(),
	}, nil
}
