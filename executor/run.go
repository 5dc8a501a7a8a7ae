package executor

import (
	"context"
	"crypto/rand"
	"errors"
	"io"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/redact"
)

// Config is what a run works with.
type Config struct {
	Driver   Driver
	Recorder Recorder
	Watchdog Watchdog
	Progress Progress  // nil: nobody listens
	Random   io.Reader // of salts and handles; nil: crypto/rand
}

// Job is one attempt whose claim holds and whose snapshot is in place.
type Job struct {
	Attempt     evidence.AttemptID
	Profile     evidence.Profile
	Recipe      evidence.Recipe
	Environment evidence.Environment
	Values      []evidence.EnvOpening // what the environment commits to; none in command/v1
	Redact      *redact.Redactor      // takes sensitive values out of whatever is kept or said; nil: there are none
	Request     evidence.RequestDigest
	Source      string               // absolute host path of the snapshot, or of the workspace
	Usage       Usage                // how much the workspace holds; nil: nothing is written there
	Places      []Place              // further host paths that evidence names by their role; may be nil
	Accepted    []evidence.Reduction // what the claim accepts
	Sighting    *Sighting            // what Look saw while the source was prepared; nil: Run looks
	Prove       Prove                // nil: no runtime was ever probed
	Stdout      io.Writer            // a copy of what is kept, as it arrives; nil: none
	Stderr      io.Writer
}

// Usage looks at what a running command wrote to its workspace and names the first bound that is
// broken, empty for none (req N10). It is called again and again, at most once at a time.
type Usage func() (broken string, err error)

// Prove finds the RuntimeProbed that a runtime's stream holds for this runtime, nil if there is
// none (req C4).
type Prove func(context.Context, evidence.RuntimeIdentity) (*evidence.Basis, error)

// errEnded means that the run ended where it stands, and that the recorder knows why.
var errEnded = errors.New("the run ended")

// Run takes one attempt from its probe to the confirmed removal of its container: steps 4 to 12
// of an attempt's life. What happens is told to the recorder, from which the verdict follows;
// the error is nil also when the command failed or nothing was started. It is not nil when
// something could not be recorded, among them ErrFenced, or when the run itself broke; the
// container was removed then as far as it could be.
//
// A cancelled context ends the run as cancelled. Nothing else of the run depends on it.
func Run(ctx context.Context, cfg Config, job Job) error {
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string, string) {}
	}
	said := cfg.Progress
	cfg.Progress = func(stage, text string) { said(stage, job.Redact.String(text)) }
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	r := &run{
		Config: cfg, job: job, life: life,
		ledger: newScribe(life, cfg.Recorder, cfg.Random),
		watch:  newWatch(string(job.Profile.Network)),
		tee:    newTee(job.Stdout, job.Stderr),
		course: course{faults: map[string]bool{}},
	}
	_, err := guarded(func() (struct{}, error) { return struct{}{}, r.steps(ctx) })
	if !errors.Is(err, errEnded) {
		r.note(err)
	}
	_, err = guarded(func() (struct{}, error) { r.cleanup(); return struct{}{}, nil })
	r.note(err)
	return veil(job.Redact, errors.Join(r.notes...))
}

// run is one run under way. Its own goroutine owns it; what runs beside touches only the channels
// and the parts made for it.
type run struct {
	Config
	job    Job
	life   context.Context // outlives the caller's: calls, appends, streams
	ledger *scribe
	watch  *watch
	tee    *tee
	notes  []error // what could not be recorded, or broke

	premises premises
	plan     Plan
	custody  custody
	harness  harness
	course   course
	beside   beside
	halt     halt
}

func (r *run) steps(ctx context.Context) error {
	for _, step := range []func(context.Context) error{r.look, r.take, r.create, r.isolate} {
		if err := r.cancelled(ctx); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	// The start is ordered: from here a cancellation is a cause to stop.
	if err := r.live(ctx); err != nil {
		return err
	}
	return r.conclude(ctx)
}

// note keeps an error for the caller.
func (r *run) note(err error) {
	if err != nil {
		r.notes = append(r.notes, err)
	}
}

// notePanic keeps an error that is a panic; others have their place in an event.
func (r *run) notePanic(err error) {
	var p *PanicError
	if errors.As(err, &p) {
		r.note(p)
	}
}
