package projections

import (
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// AttemptRow is one attempt as the projection tells it. Absent values are nil or empty.
type AttemptRow struct {
	Attempt       evidence.AttemptID   `json:"attempt"`
	State         evidence.State       `json:"state"`
	Generation    uint64               `json:"generation"`
	Outcome       evidence.Outcome     `json:"outcome,omitempty"` // of a finished attempt
	Detail        string               `json:"detail,omitempty"`
	Causes        []string             `json:"causes,omitempty"`
	ExitStatus    *int64               `json:"exit_status,omitempty"` // of baildock itself for this outcome
	ExitCode      *int64               `json:"exit_code,omitempty"`   // the command's own
	Claim         evidence.Claim       `json:"claim"`
	Reductions    []evidence.Reduction `json:"reductions"`
	Profile       evidence.ProfileName `json:"profile"`
	Subject       evidence.SubjectKind `json:"subject"`
	Revision      string               `json:"revision,omitempty"` // commit, or manifest digest of a directory
	Manifest      string               `json:"manifest,omitempty"`
	Recipe        string               `json:"recipe"`
	Environment   string               `json:"environment"`
	Toolchain     string               `json:"toolchain,omitempty"`
	Request       string               `json:"request,omitempty"`
	Runtime       string               `json:"runtime,omitempty"`
	Change        evidence.ChangeID    `json:"change,omitempty"` // empty: ad hoc
	ChangeVersion *int64               `json:"change_version,omitempty"`
	Context       string               `json:"context,omitempty"`
	Record        string               `json:"record,omitempty"`
	Cleanup       string               `json:"cleanup"` // none, open, abandoned, or a CleanupState
	OpenCustody   int64                `json:"open_custody"`
	Snapshot      string               `json:"snapshot,omitempty"`
	StdoutBytes   *int64               `json:"stdout_bytes,omitempty"`
	StderrBytes   *int64               `json:"stderr_bytes,omitempty"`
	Duration      *int64               `json:"duration_ns,omitempty"`
	Home          string               `json:"home,omitempty"`
	Actor         string               `json:"actor"`         // who registered it
	RegisteredAt  time.Time            `json:"registered_at"` // claims of their writers, UTC
	ClaimedAt     *time.Time           `json:"claimed_at,omitempty"`
	FinishedAt    *time.Time           `json:"finished_at,omitempty"`
	FirstIndex    ledger.Index         `json:"first_index"`
	LastIndex     ledger.Index         `json:"last_index"`
	FinishedIndex *int64               `json:"finished_index,omitempty"`
	Version       ledger.Version       `json:"version"`           // of the stream's last event
	Problem       string               `json:"problem,omitempty"` // why the stream could not be read further
}

// Cleanup words beside the states of evidence.
const (
	cleanupNone      = "none"
	cleanupOpen      = "open"
	cleanupAbandoned = "abandoned"
)

// row makes the row of an attempt.
func (l *live) row() *AttemptRow {
	a := &l.fold
	g := a.Registered
	record := evidence.RecordOf(a)
	r := &AttemptRow{
		Attempt: l.id, State: a.State, Generation: a.Generation, ExitCode: record.ExitCode,
		Claim: record.Claim, Reductions: record.Reductions, Profile: g.Profile, Subject: g.Subject.Kind,
		Revision: g.Subject.Revision, Recipe: g.Recipe.String(), Environment: g.Environment.String(),
		Manifest: text(record.Manifest), Toolchain: text(g.Toolchain), Request: text(record.Request), Runtime: text(record.Runtime),
		Cleanup: cleanup(a.Custodies), OpenCustody: int64(len(a.Custodies.Open())), Snapshot: string(a.Snapshot),
		Actor: l.actor, RegisteredAt: time.Unix(0, l.registered).UTC(), ClaimedAt: at(l.claimed), FinishedAt: at(l.finished),
		FirstIndex: l.first, LastIndex: l.last, Version: l.version, Problem: l.problem,
	}
	if g.Subject.Kind == evidence.SubjectDirectory {
		r.Revision = r.Manifest
	}
	if b := g.Binding; b != nil {
		version := int64(b.Version)
		r.Change, r.ChangeVersion, r.Context = b.Change, &version, b.Context.String()
	}
	if a.Claimed != nil {
		r.Home = a.Claimed.Home.Home.String()
	}
	if o := a.Run.Output; o != nil {
		r.StdoutBytes, r.StderrBytes = number(o.Stdout.Stored), number(o.Stderr.Stored)
	}
	if x := a.Run.Exited; x != nil {
		r.Duration = number(x.Duration)
	}
	if l.finishedIndex != nil {
		r.FinishedIndex = number(uint64(*l.finishedIndex))
	}
	if a.State == evidence.StateFinished && l.problem == "" {
		status := int64(evidence.VerdictOf(a).Exit)
		r.Outcome, r.Detail, r.Causes, r.ExitStatus = record.Outcome, record.Detail, record.Causes, &status
		r.Record = a.Finished.Record.String()
	}
	return r
}

func cleanup(cs evidence.Custodies) string {
	for _, c := range cs {
		if c.Abandoned {
			return cleanupAbandoned
		}
	}
	if len(cs.Open()) > 0 {
		return cleanupOpen
	}
	if c, ok := cs.MainContainer(); ok {
		return string(c.State)
	}
	return cleanupNone
}

func text[M any](d *evidence.Digest[M]) string {
	if d == nil {
		return ""
	}
	return d.String()
}

func number(n uint64) *int64 {
	i := int64(n)
	return &i
}

func at(ns *int64) *time.Time {
	if ns == nil {
		return nil
	}
	t := time.Unix(0, *ns).UTC()
	return &t
}

// columns of attempt_rows, in the order of values and scan.
var columns = []string{
	"attempt", "state", "generation", "outcome", "detail", "causes", "exit_status", "exit_code", "claim", "reductions",
	"profile", "subject", "revision", "manifest", "recipe", "environment", "toolchain", "request", "runtime", "change_id",
	"change_version", "context", "record", "cleanup", "open_custody", "snapshot", "stdout_bytes", "stderr_bytes", "duration",
	"home", "actor", "registered", "claimed", "finished", "first_index", "last_index", "finished_index", "version", "problem",
}

var (
	upsert     = "INSERT OR REPLACE INTO attempt_rows (" + strings.Join(columns, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(columns)-1) + ")"
	selectRows = "SELECT " + strings.Join(columns, ", ") + " FROM attempt_rows"
)

func (r *AttemptRow) values() []any {
	return []any{
		string(r.Attempt), string(r.State), int64(r.Generation), orNull(string(r.Outcome)), orNull(r.Detail),
		causesOrNull(r), integer(r.ExitStatus), integer(r.ExitCode), string(r.Claim), words(r.Reductions),
		string(r.Profile), string(r.Subject), orNull(r.Revision), orNull(r.Manifest), r.Recipe, r.Environment, orNull(r.Toolchain),
		orNull(r.Request), orNull(r.Runtime), orNull(string(r.Change)),
		integer(r.ChangeVersion), orNull(r.Context), orNull(r.Record), r.Cleanup, r.OpenCustody, orNull(r.Snapshot),
		integer(r.StdoutBytes), integer(r.StderrBytes), integer(r.Duration),
		orNull(r.Home), r.Actor, r.RegisteredAt.UnixNano(), nanos(r.ClaimedAt), nanos(r.FinishedAt), int64(r.FirstIndex), int64(r.LastIndex),
		integer(r.FinishedIndex), int64(r.Version), orNull(r.Problem),
	}
}

// AttemptColumns names the columns of the view attempts, and what Values returns.
func AttemptColumns() []string {
	out := slices.Clone(columns)
	for i, name := range out {
		switch name {
		case "registered", "claimed", "finished":
			out[i] = name + "_at"
		case "duration":
			out[i] = name + "_ns"
		}
	}
	return out
}

// Values are the row's values in the order of AttemptColumns; times are time.Time.
func (r *AttemptRow) Values() []any {
	out := r.values()
	for i, name := range columns {
		if ns, ok := out[i].(int64); ok && (name == "registered" || name == "claimed" || name == "finished") {
			out[i] = time.Unix(0, ns).UTC()
		}
	}
	return out
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// causesOrNull tells a success, whose list is empty, from an attempt without a verdict.
func causesOrNull(r *AttemptRow) any {
	if r.Outcome == "" {
		return nil
	}
	return words(r.Causes)
}

func integer(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

func nanos(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UnixNano()
}

func words[T ~string](ts []T) string {
	out := make([]string, len(ts))
	for i, t := range ts {
		out[i] = string(t)
	}
	return strings.Join(out, " ")
}

func split[T ~string](s string) []T {
	out := []T{}
	for _, f := range strings.Fields(s) {
		out = append(out, T(f))
	}
	return out
}

// scan reads a row of selectRows.
func scan(s *sqlite3.Stmt) AttemptRow {
	col := -1
	str := func() string { col++; return s.ColumnText(col) }
	num := func() int64 { col++; return s.ColumnInt64(col) }
	maybe := func() *int64 {
		col++
		if s.ColumnType(col) == sqlite3.NULL {
			return nil
		}
		n := s.ColumnInt64(col)
		return &n
	}
	r := AttemptRow{
		Attempt: evidence.AttemptID(str()), State: evidence.State(str()), Generation: uint64(num()),
		Outcome: evidence.Outcome(str()), Detail: str(), Causes: split[string](str()), ExitStatus: maybe(), ExitCode: maybe(),
		Claim: evidence.Claim(str()), Reductions: split[evidence.Reduction](str()),
		Profile: evidence.ProfileName(str()), Subject: evidence.SubjectKind(str()), Revision: str(), Manifest: str(),
		Recipe: str(), Environment: str(), Toolchain: str(), Request: str(), Runtime: str(), Change: evidence.ChangeID(str()),
		ChangeVersion: maybe(), Context: str(), Record: str(), Cleanup: str(), OpenCustody: num(), Snapshot: str(),
		StdoutBytes: maybe(), StderrBytes: maybe(), Duration: maybe(),
		Home: str(), Actor: str(), RegisteredAt: time.Unix(0, num()).UTC(), ClaimedAt: at(maybe()), FinishedAt: at(maybe()),
		FirstIndex: ledger.Index(num()), LastIndex: ledger.Index(num()), FinishedIndex: maybe(),
		Version: ledger.Version(num()), Problem: str(),
	}
	return r
}
