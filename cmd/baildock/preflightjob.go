package main

import (
	"os"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/config"
)

// rehearsal is the contained run that a preflight is asked about. Nothing of it is run.
type rehearsal struct {
	job       executor.Job
	reference string               // of an image that only the daemon can resolve; empty: the job has its ID, or none is named
	accepts   []evidence.Reduction // by what the configuration names
}

// nobody is whom a preflight of root asks about when no configuration names a user.
const nobody = 65532

// preflightJob reads the configuration, if one is given, and the values it takes from here, in the order
// of a run: what is missing is told before anything is asked of the daemon (req N2).
func (p *program) preflightJob() (rehearsal, error) {
	args := p.args
	if p.cut {
		return rehearsal{}, usage("preflight runs no command").hint("baildock preflight [CONFIG]")
	}
	if len(args) == 0 {
		return defaultJob()
	}
	if len(args) > 1 {
		return rehearsal{}, usage("unexpected argument %q", args[1])
	}
	b, err := readBounded(args[0], config.MaxFile)
	if err != nil {
		return rehearsal{}, err
	}
	cfg, err := config.Load(args[0], b)
	if err != nil {
		return rehearsal{}, refusedConfig(err)
	}
	env, err := cfg.ResolveEnvironment(os.LookupEnv)
	if err != nil {
		return rehearsal{}, fail(exitUsage, "environment_refused", "%w", err)
	}
	w := rehearsal{accepts: cfg.Platform.Reductions()}
	if !cfg.Image.Local() {
		w.reference = cfg.Image.Reference
	}
	var values []evidence.EnvOpening
	for _, v := range env.Variables {
		if v.Origin == config.OriginFixed {
			continue // the profile has them
		}
		o := evidence.EnvOpening{Name: v.Name, Value: v.Value.Reveal()}
		if o.Salt, err = newSalt(); err != nil {
			return rehearsal{}, err
		}
		values = append(values, o)
	}
	w.job, err = jobOf(evidence.Recipe{
		Image: cfg.Image.ID, Limits: cfg.Limits,
		Contained: &evidence.ContainedTerms{UID: cfg.UID, GID: cfg.GID, Network: cfg.Network, Platform: cfg.Platform, Writable: cfg.Writable, Reference: cfg.Image.Reference},
	}, values)
	w.job.Redact = env.Redactor
	return w, err
}

// defaultJob is a contained run with every default, by the user who asks.
func defaultJob() (rehearsal, error) {
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	if uid == 0 || gid == 0 {
		uid, gid = nobody, nobody
	}
	job, err := jobOf(evidence.Recipe{
		Limits:    evidence.Limits{Wall: 10 * time.Minute, Output: 1 << 20, Memory: 512 << 20, Scratch: 256 << 20, PIDs: 256, NanoCPUs: 1_000_000_000},
		Contained: &evidence.ContainedTerms{UID: uid, GID: gid, Network: evidence.NetworkNone, Platform: evidence.PlatformEngine, Writable: evidence.WritablePaths{evidence.WholeWorkspace}},
	}, nil)
	return rehearsal{job: job}, err
}

// jobOf completes a job around what a configuration decides. It has no executable: nothing runs it.
func jobOf(r evidence.Recipe, values []evidence.EnvOpening) (executor.Job, error) {
	nonce, err := newNonce()
	if err != nil {
		return executor.Job{}, err
	}
	env, _, err := evidence.CommitEnv(&nonce, values)
	if err != nil {
		return executor.Job{}, err
	}
	r.Version, r.Profile, r.Environment, r.Nonce = 1, evidence.ProfileContained, env.Digest(), &nonce
	table, err := r.Table()
	if err != nil {
		return executor.Job{}, err
	}
	return executor.Job{Profile: table, Recipe: r, Environment: env, Values: values}, nil
}
