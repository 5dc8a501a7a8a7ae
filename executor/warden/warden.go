package warden

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/workspace"
	"github.com/baildock/baildock/ledger"
)

// Config is what a Warden works with.
type Config struct {
	Home     Home
	Journal  *journal.Journal
	Driver   executor.Driver
	Watchdog executor.Watchdog // guards one container
	Reserved []source.Reserved // what never enters a snapshot: home, ledger, keys, Docker socket

	LedgerDir string                 // where the ledger writes; empty: the home
	Local     func(dir string) error // refuses a home on a network file system; nil: the caller did
	Preflight executor.Preflight     // of contained attempts; nil: executor.LookFirst
	Probe     *Probe                 // how runtimes are probed; nil: they aren't, and seccomp-unproven applies
	Random    io.Reader              // of salts and handles; nil: crypto/rand
}

// Warden runs attempts of one home.
type Warden struct {
	Config
	free     func(dir string) (uint64, error)
	boot     func() (uint64, error) // CLOCK_BOOTTIME, ns
	patience time.Duration          // of a fenced runner, for the end of its attempt
	user     func() (uid, gid int)
	behind   sync.Map // what a supervisor's passes left behind, by name: see attend
}

// New makes a warden.
func New(c Config) *Warden {
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.LedgerDir == "" {
		c.LedgerDir = c.Home.Dir
	}
	return &Warden{Config: c, free: freeBytes, boot: bootTime, patience: fencedPatience, user: currentUser}
}

// RunRequest asks for one run.
type RunRequest struct {
	Attempt    evidence.AttemptID
	Generation uint64               // the one the attempt stands at: 0 for a pending one
	Path       string               // the directory, or the repository of the commit
	Accepted   []evidence.Reduction // in any order
	Stdout     io.Writer            // a copy of the output kept, as it arrives; nil: none
	Stderr     io.Writer
	Contained  *ContainedRun // of contained/v1 alone

	probing bool // this is the probe that others rest on
}

// Result is where an attempt stands after a run.
type Result struct {
	Attempt  evidence.AttemptID
	Fold     evidence.Attempt
	Finished bool // false: custody is open, or somebody else has the attempt now
	Record   evidence.Record
	Verdict  evidence.Verdict
	Index    ledger.Index // of AttemptFinished; of the last event known, when not finished
	Changes  *Changes     // of a contained run whose changes could be captured
}

// Run claims a pending attempt and takes it to its end. It returns an error without a Result only
// when nothing was claimed: *NoSpaceError, *HeldError, *journal.NotPendingError,
// *journal.NotCurrentError, *journal.NotFoundError among others. After the claim the Result says
// where the attempt stands, and the error, if any, what could not be recorded.
//
// Cancelling ctx ends the run as cancelled; recording and cleanup go on.
func (w *Warden) Run(ctx context.Context, req RunRequest, progress executor.Progress) (_ Result, err error) {
	if progress == nil {
		progress = func(string, string) {}
	}
	if err := w.Ready(); err != nil {
		return Result{}, err
	}
	lock, err := w.Home.Lock(req.Attempt)
	if err != nil {
		return Result{}, err
	}
	finished := false
	defer func() {
		if finished {
			err = errors.Join(err, lock.Delete())
		} else {
			err = errors.Join(err, lock.Close())
		}
	}()
	work, err := w.prepare(ctx, req, progress)
	if err != nil {
		return Result{}, err
	}
	claim, err := w.claim(work.profile, work.recipe)
	if err != nil {
		return Result{}, err
	}
	claim.Accepted = req.Accepted
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	work.life = context.WithoutCancel(ctx)
	p, err := w.Journal.Claim(work.life, req.Attempt, req.Generation, claim)
	var void *journal.VoidClaimError
	if err != nil && !errors.As(err, &void) {
		return Result{}, err
	}
	work.appender, work.rec = p, &recorder{journal: w.Journal, appender: p}
	if void != nil { // req H5: it creates nothing and finishes
		progress("refused", void.Error())
		err = work.rec.Record(work.life, evidence.ClaimVoided{Breaking: void.Breaking})
	} else if work.profile.Writable {
		err = work.redactor().Error(work.performContained(ctx))
	} else {
		err = work.perform(ctx)
	}
	res, finishErr := work.finish()
	finished, res.Changes = res.Finished, work.changes
	return res, errors.Join(err, finishErr)
}

// Ready refuses a home where a run would fail later: one on a network filesystem, or with a disk
// that is nearly full (*NoSpaceError). Run asks it too; a caller that registers first asks before,
// so that nothing is recorded.
func (w *Warden) Ready() error {
	if w.Local != nil {
		if err := w.Local(w.Home.Dir); err != nil {
			return err
		}
	}
	free, err := w.free(w.LedgerDir)
	if err != nil {
		return err
	}
	if free < minFree { // req N10
		return &NoSpaceError{Dir: w.LedgerDir, Free: free}
	}
	return nil
}

// work is one attempt in a warden's hands.
type work struct {
	*Warden
	req      RunRequest
	progress executor.Progress
	life     context.Context // outlives the caller's
	rec      *recorder
	appender *journal.Appender
	profile  evidence.Profile
	recipe   evidence.Recipe
	env      evidence.Environment
	subject  source.Subject
	snapshot *source.Snapshot

	policy    *evidence.WorkspacePolicy // of contained/v1 alone, as what follows
	workspace *workspace.Workspace
	changes   *Changes
}

// prepare reads what was registered.
func (w *Warden) prepare(ctx context.Context, req RunRequest, progress executor.Progress) (*work, error) {
	a, err := w.Journal.Attempt(ctx, req.Attempt)
	if err != nil {
		return nil, err
	}
	k := &work{Warden: w, req: req, progress: progress}
	g := a.Fold.Registered
	if k.recipe, err = w.Journal.Recipe(ctx, g.Recipe); err != nil {
		return nil, err
	}
	if k.env, err = w.Journal.Environment(ctx, g.Environment); err != nil {
		return nil, err
	}
	if k.profile, err = k.recipe.Table(); err != nil {
		return nil, err
	}
	if k.profile.Digest() != g.Table {
		return nil, fmt.Errorf("attempt %s was registered under another table of profile %s; register a new attempt", req.Attempt, g.Profile)
	}
	path, err := filepath.Abs(req.Path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, fmt.Errorf("source %q can't be found: %w", req.Path, err)
	}
	k.subject = source.Subject{Subject: g.Subject, Path: path}
	return k, k.terms(ctx)
}

func (w *Warden) claim(p evidence.Profile, r evidence.Recipe) (journal.Claim, error) {
	home, err := w.Home.Identity()
	if err != nil {
		return journal.Claim{}, err
	}
	now, err := w.boot()
	if err != nil {
		return journal.Claim{}, err
	}
	allowance := Allowance
	if p.Writable {
		allowance += workspaceAllowance
	}
	return journal.Claim{Home: home, Deadline: now + uint64(r.Limits.Wall+allowance)}, nil
}

// perform does everything between claim and finish.
func (k *work) perform(ctx context.Context) error {
	looking := make(chan executor.Sighting, 1)
	go func() { looking <- executor.Look(k.life, k.Driver, k.recipe.Image) }()
	placed, err := k.materialize(ctx)
	sighting := <-looking
	if err != nil || !placed {
		return err
	}
	job, err := k.job()
	if err != nil {
		return err
	}
	job.Sighting, job.Source = &sighting, k.snapshot.Dir
	err = executor.Run(ctx, k.execution(), job)
	return errors.Join(err, k.dematerialize())
}

// job is what an executor needs of the attempt, its source and sighting apart.
func (k *work) job() (executor.Job, error) {
	fold := k.appender.Attempt()
	request, ok := fold.Request()
	if !ok {
		return executor.Job{}, fmt.Errorf("attempt %s has no request although it is claimed and its source is in place", k.req.Attempt)
	}
	job := executor.Job{
		Attempt: k.req.Attempt, Profile: k.profile, Recipe: k.recipe, Environment: k.env, Request: request.Digest(),
		Places: k.places(), Accepted: fold.Claimed.Accepted, Stdout: k.req.Stdout, Stderr: k.req.Stderr,
	}
	if !k.req.probing {
		job.Prove = k.prove
	}
	if c := k.req.Contained; c != nil {
		job.Values, job.Redact = c.Values, c.Redact
	}
	return job, nil
}

// execution is what an executor works with.
func (k *work) execution() executor.Config {
	return executor.Config{Driver: k.Driver, Recorder: k.rec, Watchdog: k.Watchdog, Progress: k.progress, Random: k.Random}
}

// finish ends the attempt unless custody is open, and says where it stands. Of an attempt that was
// taken away it waits a little for the end that somebody else gives it (req G5).
func (k *work) finish() (Result, error) {
	fold := k.appender.Attempt()
	res := Result{Attempt: k.req.Attempt, Fold: fold, Index: ledger.Index(k.rec.last.Load())}
	if len(fold.Custodies.Open()) == 0 || fold.Fenced() { // req G6
		record, event, err := k.appender.Finish(k.life)
		for by := time.Now().Add(k.patience); errors.Is(err, journal.ErrFenced) && time.Now().Before(by); {
			time.Sleep(fencedPause)
			record, event, err = k.appender.Finish(k.life)
		}
		if err != nil {
			res.Fold = k.appender.Attempt()
			fold = res.Fold
			res.Verdict = evidence.VerdictOf(&fold)
			return res, fmt.Errorf("finish attempt %s: %w", k.req.Attempt, err)
		}
		res.Finished, res.Record, res.Index = true, record, event.Index
		res.Fold = k.appender.Attempt()
	}
	res.Verdict = evidence.VerdictOf(&res.Fold)
	return res, nil
}
