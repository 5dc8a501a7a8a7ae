package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/containment"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/evidence/redact"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/config"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
)

// Where artifacts lie in a home, and their bounds.
const (
	artifactsName = "contained-runs"
	artifactName  = "contained-run.json"

	maxArtifactText    = 512
	maxArtifactEntries = 64
)

// artifact is what a contained run says of itself in one compact file, also where it was refused
// (req N5). It holds no host path, no environment value and no output; it is a view of the events, and
// proves nothing by itself.
type artifact struct {
	Schema   string             `json:"schema"` // baildock.contained-run
	Version  int                `json:"version"`
	Attempt  evidence.AttemptID `json:"attempt"`
	Stage    string             `json:"stage"` // the one that ended it, or done
	Exit     int                `json:"exit"`
	Error    *artifactError     `json:"error"`
	Recorded bool               `json:"recorded"` // the ledger has the attempt

	Outcome    *evidence.Outcome      `json:"outcome"`
	Detail     string                 `json:"detail,omitempty"`
	Claim      evidence.Claim         `json:"claim"`
	Reductions []evidence.Reduction   `json:"reductions"`
	Refusals   []string               `json:"refusals"`
	Record     *evidence.RecordDigest `json:"record"`
	Index      *ledger.Index          `json:"index"` // of the attempt's last event

	Requested   *artifactRequest     `json:"requested"`
	Preflight   *artifactPreflight   `json:"preflight"`
	Environment *artifactEnvironment `json:"environment"`
	Execution   *artifactExecution   `json:"execution"`
	Workspace   *artifactWorkspace   `json:"workspace"`
	Policy      []artifactCheck      `json:"policy"`
	Cleanup     artifactCleanup      `json:"cleanup"`

	Containment *containment.Evidence `json:"containment"` // as reports and bundles have it (req P3)
}

type artifactError struct {
	Code string `json:"code"`
	What string `json:"what"`
}

type artifactRequest struct {
	Platform evidence.Platform `json:"platform"`
	Network  evidence.Network  `json:"network"`
	Image    string            `json:"image"`
	UID      uint32            `json:"uid"`
	GID      uint32            `json:"gid"`
	Command  []string          `json:"command"`
}

type artifactPreflight struct {
	Result evidence.PreflightResult  `json:"result"`
	Checks []evidence.PreflightCheck `json:"checks"`
}

type artifactEnvironment struct {
	Names   []string `json:"names"`
	Omitted []string `json:"omitted"`
}

type artifactExecution struct {
	Started  bool            `json:"started"`
	ExitCode *int64          `json:"exit_code"`
	TimedOut bool            `json:"timed_out"`
	Duration uint64          `json:"duration_ns"`
	Stdout   *artifactStream `json:"stdout"`
	Stderr   *artifactStream `json:"stderr"`
}

type artifactStream struct {
	Bytes     uint64 `json:"bytes"`
	Received  uint64 `json:"received"`
	Truncated bool   `json:"truncated"`
	Redacted  bool   `json:"redacted"`
}

type artifactWorkspace struct {
	Modified uint64           `json:"modified"`
	Added    uint64           `json:"added"`
	Deleted  uint64           `json:"deleted"`
	Renamed  uint64           `json:"renamed"`
	Code     string           `json:"code,omitempty"` // why that isn't known
	Changes  []artifactChange `json:"changes"`        // the first ones
	State    string           `json:"state"`          // gone, left, or held
}

type artifactChange struct {
	Kind string `json:"kind"`
	Path string `json:"path"` // quoted
	From string `json:"from,omitempty"`
}

type artifactCheck struct {
	Name   evidence.PolicyCheck `json:"name"`
	Held   bool                 `json:"held"`
	Detail string               `json:"detail"`
}

type artifactCleanup struct {
	State     evidence.CleanupState `json:"state"` // empty: nothing was created
	Confirmed bool                  `json:"confirmed"`
	Container string                `json:"container,omitempty"` // the first 12 digits of its ID
}

func newArtifact(id evidence.AttemptID) artifact {
	return artifact{
		Schema: "baildock.contained-run", Version: 1, Attempt: id, Stage: stageConfiguration, Claim: evidence.ClaimNone,
		Reductions: []evidence.Reduction{}, Refusals: []string{}, Policy: []artifactCheck{},
	}
}

func (a *artifact) request(c config.Config) {
	a.Requested = &artifactRequest{
		Platform: c.Platform, Network: c.Network, Image: c.Image.Reference,
		UID: c.UID, GID: c.GID, Command: []string{},
	}
}

func (a *artifact) environment(r config.Resolved) {
	a.Environment = &artifactEnvironment{Names: []string{}, Omitted: append([]string{}, r.Omitted...)}
	for _, v := range r.Variables {
		a.Environment.Names = append(a.Environment.Names, v.Name)
	}
}

func (a *artifact) command(argv []string, r *redact.Redactor) {
	for _, arg := range argv[:min(len(argv), maxArtifactEntries)] {
		a.Requested.Command = append(a.Requested.Command, bounded(r.String(arg)))
	}
}

// result fills in what an attempt's events say.
func (a *artifact) result(res warden.Result, r *redact.Redactor) {
	f, v := &res.Fold, res.Verdict
	record := evidence.RecordOf(f)
	a.Recorded, a.Outcome, a.Detail, a.Exit, a.Claim = true, &v.Outcome, v.Detail, v.Exit, record.Claim
	a.Stage, a.Index = stageOf(f, v), &res.Index
	a.Reductions = append(a.Reductions, record.Reductions...)
	a.Refusals = append(a.Refusals, record.Refusals...)
	if res.Finished {
		d := record.Digest()
		a.Record = &d
	}
	if p := f.Preflight; p != nil {
		a.Preflight = &artifactPreflight{Result: p.Result, Checks: p.Checks}
	}
	a.Execution = &artifactExecution{
		Started: f.Run.Started, ExitCode: record.ExitCode, TimedOut: v.Outcome == evidence.OutcomeTimedOut, Duration: record.Duration,
		Stdout: streamOf(record.Stdout), Stderr: streamOf(record.Stderr),
	}
	a.changed(f, res.Changes, r)
	for _, c := range record.Cleanup[:min(len(record.Cleanup), 1)] {
		a.Cleanup.State = c.State
		a.Cleanup.Confirmed = len(f.Custodies.Open()) == 0 && !c.Abandoned
		if c.Container != nil {
			a.Cleanup.Container = c.Container.Hex()[:12]
		}
	}
}

// contain views how the attempt was contained, from its events and what they name.
func (a *artifact) contain(ctx context.Context, j *journal.Journal, f *evidence.Attempt, g journal.Registration) error {
	b := containment.Blobs{Recipe: &g.Recipe, Environment: &g.Environment}
	if f.Isolation != nil {
		kept, err := j.Kept(ctx, f.Isolation.Values)
		if err == nil {
			err = evidence.Unmarshal(kept.Bytes, &b.Values)
		}
		if err != nil {
			return fmt.Errorf("read what the controls showed: %w", err)
		}
	}
	e := containment.Of(f, b)
	a.Containment = &e
	return nil
}

func (a *artifact) changed(f *evidence.Attempt, c *warden.Changes, r *redact.Redactor) {
	if f.Materialized == nil {
		return
	}
	w := &artifactWorkspace{State: string(f.Snapshot), Changes: []artifactChange{}}
	a.Workspace = w
	if m := f.Mutated; m != nil {
		w.Modified, w.Added, w.Deleted, w.Renamed, w.Code = m.Modified, m.Added, m.Deleted, m.Renamed, m.Code
	}
	if c == nil {
		return
	}
	for _, m := range c.Mutations[:min(len(c.Mutations), maxArtifactEntries)] {
		one := artifactChange{Kind: m.Kind.String(), Path: quoted(r.String(m.Path))}
		if m.From != "" {
			one.From = quoted(r.String(m.From))
		}
		w.Changes = append(w.Changes, one)
	}
	for _, p := range c.Checks {
		a.Policy = append(a.Policy, artifactCheck{Name: p.Name, Held: p.Held, Detail: bounded(p.Detail)})
	}
}

func streamOf(s *evidence.Stream) *artifactStream {
	if s == nil {
		return nil
	}
	return &artifactStream{Bytes: s.Stored, Received: s.Received, Truncated: s.Truncated, Redacted: s.Redacted}
}

// stageOf names the stage that decided an attempt.
func stageOf(f *evidence.Attempt, v evidence.Verdict) string {
	switch {
	case len(f.Custodies.Open()) > 0 || v.Detail == "cleanup_unconfirmed" || v.Detail == "custody_abandoned":
		return stageCleanup
	case v.Outcome == evidence.OutcomeSuccess && v.Detail == evidence.DetailOK:
		return stageDone
	case f.Materialized == nil && f.SourceRefusal == nil:
		return stagePreflight
	case f.Materialized == nil:
		return stageWorkspace
	case !f.Run.Started:
		return stageLaunch
	case v.Detail == "mutations_unknown":
		return stageCapture
	case v.Detail == "policy_violated" || v.Detail == "policy_unchecked":
		return stagePolicy
	case v.Detail == "snapshot_left" || v.Detail == "cleanup_missing":
		return stageCleanup
	}
	return stageRun
}

// bounded is a text cut to size, on one line, with whatever doesn't print escaped.
func bounded(s string) string {
	s = visible(strings.ToValidUTF8(s, "�"))
	if len(s) > maxArtifactText {
		s = strings.ToValidUTF8(s[:maxArtifactText-len("…")], "") + "…"
	}
	return s
}

func quoted(path string) string { return bounded(strconv.QuoteToASCII(path)) }

// write prints what the agent changed.
func (a *artifact) write(to io.Writer) error {
	w := a.Workspace
	if w == nil {
		return nil
	}
	var b strings.Builder
	if w.Code != "" {
		fmt.Fprintf(&b, "  %-8s unknown (%s)\n", "changes", w.Code)
	} else {
		fmt.Fprintf(&b, "  %-8s %d modified, %d added, %d deleted, %d renamed\n", "changes", w.Modified, w.Added, w.Deleted, w.Renamed)
	}
	for _, c := range w.Changes {
		fmt.Fprintf(&b, "           %s %s\n", c.Kind, c.Path)
	}
	for _, c := range a.Policy {
		says := "held"
		if !c.Held {
			says = "BROKEN"
		}
		fmt.Fprintf(&b, "  %-8s %s %s: %s\n", "policy", c.Name, says, c.Detail)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// free refuses an ID whose artifact exists: the run it tells of is another one.
func (r *agentRun) free() error {
	if _, err := os.Lstat(filepath.Join(r.home, artifactsName, string(r.id))); !errors.Is(err, fs.ErrNotExist) {
		return usage("a contained run %s was made already", r.id).hint("leave --attempt out, or name another")
	}
	return nil
}

// refuse notes where the run ended before anything was registered, and why.
func (r *agentRun) refuse(stage string, err error) error {
	f := classify(err)
	r.artifact.Stage, r.artifact.Exit = stage, f.Exit
	r.artifact.Error = &artifactError{Code: f.Code, What: bounded(r.resolved.Redactor.String(r.portable(f.What)))}
	if r.resolved.Redactor == nil || r.resolved.Redactor.String(f.What) == f.What {
		return err
	}
	return fail(f.Exit, f.Code, "%s", r.resolved.Redactor.String(f.What))
}

// portable takes this host's paths out of a text.
func (r *agentRun) portable(text string) string {
	places := []executor.Place{{Path: r.home, Role: "${RUN_ROOT}"}}
	if abs, err := filepath.Abs(r.source); err == nil {
		places = append(places, executor.Place{Path: abs, Role: "${REPOSITORY_ROOT}"})
		if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
			places = append(places, executor.Place{Path: real, Role: "${REPOSITORY_ROOT}"})
		}
	}
	if own, err := os.UserHomeDir(); err == nil {
		places = append(places, executor.Place{Path: own, Role: "${HOME}"})
	}
	return executor.Portable(text, places...)
}

// close writes the artifact, whatever became of the run.
func (r *agentRun) close(err error) error {
	var ended verdict
	if err != nil && !errors.As(err, &ended) && r.artifact.Error == nil {
		stage := r.artifact.Stage
		if !r.artifact.Recorded {
			stage = stagePreflight // a daemon or a home that can't be used
		}
		err = r.refuse(stage, err)
	}
	dir := filepath.Join(r.home, artifactsName, string(r.id))
	text, encodeErr := encodeJSON(r.artifact, "  ")
	writeErr := errors.Join(encodeErr, os.MkdirAll(dir, homeMode))
	if writeErr == nil {
		writeErr = os.WriteFile(filepath.Join(dir, artifactName), text, 0o600)
	}
	if writeErr != nil {
		return errors.Join(err, fmt.Errorf("write the run's artifact: %w", writeErr))
	}
	r.ui.say("evidence of this run: " + filepath.Join(artifactsName, string(r.id), artifactName) + " in the home")
	if r.ui.json && r.artifact.Recorded {
		if jsonErr := r.ui.printJSON(r.artifact); jsonErr != nil {
			return errors.Join(err, jsonErr)
		}
	}
	return err
}
