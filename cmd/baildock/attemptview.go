package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
)

// attemptView is an attempt as `run`, `check run` and `check show` print it. What doesn't apply
// yet is null.
type attemptView struct {
	Attempt    evidence.AttemptID      `json:"attempt"`
	State      evidence.State          `json:"state"` // pending, running, finished
	Generation uint64                  `json:"generation"`
	Outcome    *evidence.Outcome       `json:"outcome"`
	Detail     string                  `json:"detail,omitempty"`
	Causes     []string                `json:"causes,omitempty"` // all that hold, the deciding one first
	Refusals   []string                `json:"refusals,omitempty"`
	ExitCode   *int64                  `json:"exit_code"` // the command's own
	Claim      evidence.Claim          `json:"claim"`
	Reductions []evidence.Reduction    `json:"reductions"`
	Record     *evidence.RecordDigest  `json:"record"`
	Request    *evidence.RequestDigest `json:"request"`
	Recipe     evidence.RecipeDigest   `json:"recipe"`
	Source     sourceView              `json:"source"`
	Stdout     *outputView             `json:"stdout"`
	Stderr     *outputView             `json:"stderr"`
	Cleanup    evidence.CleanupState   `json:"cleanup"` // of the command's container; empty: none was made or nothing is known yet
	Index      *ledger.Index           `json:"index"`   // of AttemptFinished

	Change   evidence.ChangeID     `json:"change,omitempty"`
	Controls evidence.ControlCount `json:"controls"`
	Duration uint64                `json:"duration_ns,omitempty"`

	contained  bool // it runs an agent in a workspace
	fenced     bool // a recovery took it from its runner
	mayAbandon bool // a recovery of it stayed unconfirmed
	runnerGone bool // it was claimed from this home, and nobody holds its lock
}

type sourceView struct {
	Kind     evidence.SubjectKind     `json:"kind"`
	Revision string                   `json:"revision,omitempty"`
	Manifest *evidence.ManifestDigest `json:"manifest,omitempty"`
}

// outputView is one stream. The digest is of the bytes stored; null when they are not here.
type outputView struct {
	SHA256    *evidence.PlainDigest `json:"sha256"`
	Bytes     uint64                `json:"bytes"`    // stored
	Received  uint64                `json:"received"` // arrived in all
	Truncated bool                  `json:"truncated"`

	text []byte
}

// viewAttempt reads what is shown of an attempt.
func viewAttempt(ctx context.Context, j *journal.Journal, a journal.Attempt) (attemptView, error) {
	f := a.Fold
	r := evidence.RecordOf(&f)
	v := attemptView{
		Attempt: r.Attempt, State: f.State, Generation: f.Generation, Claim: r.Claim,
		Reductions: append([]evidence.Reduction{}, r.Reductions...), Request: r.Request, Recipe: r.Recipe,
		Refusals: r.Refusals, Controls: r.Controls, Duration: r.Duration,
		contained: f.Contained(), fenced: f.Fenced(), mayAbandon: warden.TriedBefore(a),
		Source: sourceView{Kind: r.Subject.Kind, Revision: r.Subject.Revision, Manifest: r.Manifest},
	}
	if r.Binding != nil {
		v.Change = r.Binding.Change
	}
	if c, ok := f.Custodies.MainContainer(); ok {
		v.Cleanup = c.State
	}
	// An attempt that is still running has no outcome, unless its cleanup was tried and failed.
	if f.State == evidence.StateFinished || unconfirmed(f) {
		v.Outcome, v.Detail, v.Causes, v.ExitCode = &r.Outcome, r.Detail, r.Causes, r.ExitCode
	}
	if f.Finished != nil {
		d := f.Finished.Record
		v.Record = &d
		for i := range a.Events {
			if a.Events[i].Type == f.Finished.EventType() {
				v.Index = &a.Events[i].Index
			}
		}
	}
	var err error
	if v.Stdout, err = viewOutput(ctx, j, r.Stdout); err != nil {
		return v, err
	}
	v.Stderr, err = viewOutput(ctx, j, r.Stderr)
	return v, err
}

func unconfirmed(f evidence.Attempt) bool {
	for _, c := range f.Custodies.Open() {
		if c.Unconfirmed != "" {
			return true
		}
	}
	return false
}

func viewOutput(ctx context.Context, j *journal.Journal, s *evidence.Stream) (*outputView, error) {
	if s == nil {
		return nil, nil
	}
	v := &outputView{Bytes: s.Stored, Received: s.Received, Truncated: s.Truncated}
	kept, err := j.Kept(ctx, s.Bytes)
	var absent *ledger.BlobAbsentError
	switch {
	case errors.As(err, &absent):
		return v, nil
	case err != nil:
		return nil, fmt.Errorf("read the output: %w", err)
	}
	v.SHA256, v.text = &kept.Descriptor.Stored, kept.Bytes
	return v, nil
}

// write prints the outcome first, then why, then what to type next.
func (v attemptView) write(w io.Writer, u *ui, home string) error {
	var b strings.Builder
	says := string(v.State)
	if v.Outcome != nil {
		says = string(*v.Outcome)
	}
	fmt.Fprintf(&b, "%s  %s\n", u.strong(says, v.Outcome == nil || *v.Outcome == evidence.OutcomeSuccess), v.Attempt)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-8s %s\n", name, visible(fmt.Sprintf(format, args...)))
	}
	row("why", "%s", v.why())
	if len(v.Refusals) > 0 {
		row("refused", "%s", strings.Join(v.Refusals, ", "))
	}
	if v.ExitCode != nil {
		row("exit", "%d, after %.3f s", *v.ExitCode, float64(v.Duration)/1e9)
	}
	row("claim", "%s%s; %d of %d controls equal", v.Claim, reasons(v.Reductions), v.Controls.Equal, v.Controls.Total)
	row("source", "%s", v.Source)
	for _, s := range []struct {
		name string
		out  *outputView
	}{{"stdout", v.Stdout}, {"stderr", v.Stderr}} {
		if s.out != nil {
			row(s.name, "%s", s.out)
		}
	}
	if v.Cleanup != "" {
		row("cleanup", "%s", v.Cleanup)
	}
	row("recipe", "%s", v.Recipe)
	if v.Record != nil {
		row("record", "%s at index %d", v.Record, *v.Index)
	}
	row("next", "%s", v.next(home))
	_, err := io.WriteString(w, b.String())
	return err
}

func reasons(rs []evidence.Reduction) string {
	if len(rs) == 0 {
		return ""
	}
	var names []string
	for _, r := range rs {
		names = append(names, string(r))
	}
	return " (" + strings.Join(names, ", ") + ")"
}

func (s sourceView) String() string {
	text := "directory"
	if s.Kind == evidence.SubjectCommit {
		text = "commit " + s.Revision
	}
	if s.Manifest != nil {
		text += ", manifest " + s.Manifest.String()
	}
	return text
}

func (o *outputView) String() string {
	text := fmt.Sprintf("%d bytes", o.Bytes)
	if o.Truncated {
		text += fmt.Sprintf(", truncated: %d arrived", o.Received)
	}
	if o.SHA256 == nil {
		return text + ", not kept here"
	}
	return text + ", " + o.SHA256.String()
}
