package warden

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/redact"
	"github.com/baildock/baildock/executor"
)

// ContainedRun is what an attempt of contained/v1 needs beside what was registered. It lives in memory
// alone (req L5).
type ContainedRun struct {
	Values []evidence.EnvOpening // exactly what the environment commits to
	Redact *redact.Redactor      // of the sensitive ones; nil: there are none
	Patch  io.Writer             // takes what changed as a patch for a person to apply; nil: nobody wants one
}

// Changes is what a contained run left in its workspace.
type Changes struct {
	Mutations evidence.Mutations
	Diff      []byte // bounded, redacted
	Omitted   int    // changes that the diff has no room for
	Checks    []evidence.PolicyResult
	PatchErr  error    // why there is no patch
	Unpatched []string // paths whose change no text patch can carry
}

// ContainedError says that an attempt can't be run by whoever has only its registration.
type ContainedError struct{ Attempt evidence.AttemptID }

func (e *ContainedError) Error() string {
	return fmt.Sprintf("attempt %s runs an agent in a workspace, with values that are kept nowhere: only the contained-run that registered it can run it", e.Attempt)
}

// terms checks, before anything is claimed, that what the run needs is at hand.
func (k *work) terms(ctx context.Context) error {
	r := k.req.Contained
	if !k.profile.Writable {
		if r != nil {
			return fmt.Errorf("attempt %s runs a command, not an agent in a workspace", k.req.Attempt)
		}
		return nil
	}
	if r == nil {
		return &ContainedError{Attempt: k.req.Attempt}
	}
	if err := k.env.Opens(r.Values); err != nil {
		return err
	}
	said := k.progress
	k.progress = func(stage, text string) { said(stage, r.Redact.String(text)) }
	if d := k.recipe.Contained.Policy; d != nil {
		b, err := k.Journal.WorkspacePolicy(ctx, *d)
		if err != nil {
			return err
		}
		policy, err := evidence.ParseWorkspacePolicy(b)
		if err != nil {
			return err
		}
		k.policy = &policy
	}
	return nil
}

// redactor takes sensitive values out of what this attempt says. It may be nil.
func (k *work) redactor() *redact.Redactor {
	if k.req.Contained == nil {
		return nil
	}
	return k.req.Contained.Redact
}

// performContained does everything between claim and finish for an agent in a workspace, in the order
// of req N2: the user, the preflight, the workspace, the launch; then, once the container is confirmed
// gone, what it changed, what the policy says of it, and the workspace's removal.
func (k *work) performContained(ctx context.Context) (err error) {
	if ok, err := k.preflight(ctx); err != nil || !ok {
		return err
	}
	looking := make(chan executor.Sighting, 1)
	go func() { looking <- executor.Look(k.life, k.Driver, k.recipe.Image) }()
	placed, err := k.prepareWorkspace(ctx)
	sighting := <-looking
	if err != nil || !placed {
		return err
	}
	defer func() { err = errors.Join(err, k.releaseWorkspace()) }()
	job, err := k.job()
	if err != nil {
		return err
	}
	job.Sighting, job.Source, job.Usage = &sighting, k.workspace.Dir, k.usage
	err = executor.Run(ctx, k.execution(), job)
	return errors.Join(err, k.capture())
}

// preflight verifies what containment needs and records it. False without an error means that the
// attempt ends here.
func (k *work) preflight(ctx context.Context) (bool, error) {
	k.progress("preflight", "")
	var f executor.Findings
	uid, gid := k.profile.User(k.recipe)
	own, group := k.user()
	CheckUserIs(&f, own, group, uid, gid)
	if f.Result() == evidence.PreflightSupported {
		look := k.Preflight
		if look == nil {
			look = executor.LookFirst(k.Driver)
		}
		more := look(ctx, executor.Job{Attempt: k.req.Attempt, Profile: k.profile, Recipe: k.recipe, Environment: k.env, Values: k.req.Contained.Values})
		f.Checks = append(f.Checks, more.Checks...)
		f.Reductions, f.Identity = more.Reductions, more.Identity
	}
	if ctx.Err() != nil {
		return false, k.rec.Record(k.life, evidence.StopOrdered{Cause: evidence.StopCancelled})
	}
	detail, err := k.keepText(strings.Join(f.Lines(), "\n"))
	if err != nil {
		return false, err
	}
	e := f.Event(detail)
	if err := k.rec.Record(k.life, e); err != nil {
		return false, err
	}
	k.progress("preflight", string(e.Result))
	if e.Result == evidence.PreflightUnavailable || e.Result == evidence.PreflightUnsafe {
		k.progress("refused", "the preflight is "+string(e.Result))
		return false, nil
	}
	fold := k.appender.Attempt()
	for _, r := range e.Reductions {
		if !slices.Contains(fold.Claimed.Accepted, r) { // req C8
			k.progress("refused", "reduction "+string(r)+" is not accepted")
			return false, nil
		}
	}
	return true, nil
}

// currentUser is who this process acts as.
func currentUser() (uid, gid int) { return os.Geteuid(), os.Getegid() }
