package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/verify"
)

// Text writes a report as plain text. It fails only with the writer's error.
func Text(w io.Writer, r verify.Report) error {
	p := &printer{w: w}
	p.stamp(r)
	for _, a := range r.Attempts {
		p.attempt(a)
	}
	for _, a := range r.Admissions {
		p.admission(a)
	}
	p.evidence(r)
	return p.err
}

// Verification writes what `verify` prints: the outcome first, then each check.
func Verification(w io.Writer, r verify.Report) error {
	p := &printer{w: w}
	p.stamp(r)
	p.evidence(r)
	return p.err
}

// printer keeps the first error, so that callers check once.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) heading(s string) { p.line("\n%s", s) }

// Stamp is how a report opens.
func Stamp(v verify.Verdict) string {
	switch v {
	case verify.Valid:
		return "VERIFIED"
	case verify.Invalid:
		return "INVALID"
	}
	return "NOT VERIFIED"
}

func (p *printer) stamp(r verify.Report) {
	outcome := "no outcome"
	if r.Outcome != "" {
		outcome = fmt.Sprintf("%s, claim %s", r.Outcome, r.Claim)
	}
	p.line("%s: %s", Stamp(r.Verdict), outcome)
	switch {
	case r.Verdict == verify.Invalid:
		p.line("  The bundle is bad evidence. Nothing below may be relied on.")
	case r.Keys.Trusted == nil:
		p.line("  No key was given. Everything below is what the bundle says of itself.")
	case r.Verdict == verify.NotChecked:
		p.line("  Not everything could be checked; the list says what.")
	}
	if r.Verdict == verify.Valid && !r.Reached {
		p.line("  Level %s is not reached: %s", r.Required, Escape(r.Why))
	}
}

func (p *printer) attempt(a verify.Attempt) {
	rec := a.Record
	p.heading("Attempt " + field(string(a.Attempt)))
	p.line("  outcome      %s (%s)", rec.Outcome, field(rec.Detail))
	if len(rec.Causes) > 1 {
		p.line("  also         %s", fields(rec.Causes[1:]))
	}
	if len(rec.Refusals) > 0 {
		p.line("  refusals     %s", fields(rec.Refusals))
	}
	p.line("  exit code    %s", exitCode(rec))
	p.line("  claim        %s", claim(rec))
	if len(a.Accepted) > 0 {
		p.line("  accepted     %s", fields(a.Accepted))
	}
	p.line("  generation   %d", rec.Generation)
	p.line("  duration     %s (the runner's monotonic clock)", time.Duration(min(rec.Duration, 1<<62)))
	p.line("  finished     index %d", a.Index)
	p.line("  record       %s", a.RecordDigest)
	p.subject(a)
	p.recipe(a)
	p.controls(a)
	p.output(a)
	p.cleanup(a)
	p.details(a)
	p.timeline(a)
}

func exitCode(r evidence.Record) string {
	if r.ExitCode == nil {
		return "none: the command never ran to an end"
	}
	return fmt.Sprint(*r.ExitCode)
}

func claim(r evidence.Record) string {
	switch {
	case r.Claim == evidence.ClaimNone:
		return "none: nothing was started"
	case len(r.Reductions) > 0:
		return fmt.Sprintf("%s: %s", r.Claim, fields(r.Reductions))
	}
	return string(r.Claim)
}

func (p *printer) subject(a verify.Attempt) {
	rec := a.Record
	p.heading("Subject")
	p.line("  kind         %s", field(string(rec.Subject.Kind)))
	if rec.Subject.Revision != "" {
		p.line("  revision     %s", field(rec.Subject.Revision))
	}
	if rec.Manifest != nil {
		p.line("  manifest     %s", rec.Manifest)
	} else {
		p.line("  manifest     none: the source was not put in place")
	}
	if rec.Binding == nil {
		p.line("  bound to     nothing: an ad hoc run, which admits nothing")
		return
	}
	p.line("  bound to     change %s, version %d, context %s", field(string(rec.Binding.Change)), rec.Binding.Version, rec.Binding.Context)
	if c := a.Change; c != nil {
		p.line("  of attempts  %d of %d listed for this version and context up to the judgement; %d not in this bundle", c.Number, c.Listed, c.Others)
	}
}

func (p *printer) recipe(a verify.Attempt) {
	rec := a.Record
	p.heading("Recipe")
	p.line("  digest       %s", rec.Recipe)
	if rec.Request != nil {
		p.line("  request      %s", rec.Request)
	}
	p.line("  profile      %s, table %s", field(string(rec.Profile)), rec.Table)
	if rec.Toolchain != nil {
		p.line("  toolchain    %s (bound, not discovered)", rec.Toolchain)
	} else {
		p.line("  toolchain    none bound")
	}
	if r := a.Recipe; r != nil {
		p.line("  image        %s", r.Image)
		for i, arg := range r.Argv() {
			p.line("  argv[%d]%s%s", i, strings.Repeat(" ", max(1, 7-len(fmt.Sprint(i)))), quoted(arg))
		}
		l := r.Limits
		p.line("  limits       wall %s, output %d B, memory with swap %d B, scratch %d B, processes %d, CPU %.3g cores",
			l.Wall, l.Output, l.Memory, l.Scratch, l.PIDs, float64(l.NanoCPUs)/1e9)
	} else {
		p.line("  image, argv and limits: missing from the bundle")
	}
	if a.Environment == nil {
		p.line("  environment  missing from the bundle, digest %s", rec.Environment)
		return
	}
	p.line("  environment  %d entries, digest %s", len(a.Environment.Vars), rec.Environment)
	for _, v := range a.Environment.Vars {
		p.line("    %s=%s", field(v.Name), quoted(v.Value))
	}
}

func quoted(s string) string { return `"` + strings.ReplaceAll(field(s), `"`, `\"`) + `"` }

func (p *printer) controls(a verify.Attempt) {
	p.controlTable("Controls before start", a.Isolation)
	p.controlTable("Controls the kernel showed", a.Kernel)
	p.controlTable("Controls seen in a probe container on the same runtime, not in this one", a.Probed)
}

func (p *printer) controlTable(title string, controls []verify.ControlSeen) {
	if len(controls) == 0 {
		p.heading(title + ": none")
		return
	}
	p.heading(title)
	for _, c := range controls {
		name := field(c.Name)
		if name == "" {
			name = fmt.Sprintf("control %d", c.ID)
		}
		p.line("  %-22s %-12s %-8s %s", name, field(string(c.Kind)), equality(c), found(c))
	}
}

// equality never calls a control equal that wasn't known.
func equality(c verify.ControlSeen) string {
	switch {
	case c.Kind == evidence.Unavailable:
		return "unknown"
	case c.Equal:
		return "equal"
	}
	return "DIFFERS"
}

func found(c verify.ControlSeen) string {
	var s string
	switch {
	case !c.Opened:
		s = "value missing from the bundle"
	case c.Equal, c.Kind == evidence.Unavailable:
		s = field(c.Found)
	default:
		s = fmt.Sprintf("found %s, expected %s", quoted(c.Found), quoted(c.Expected))
	}
	if c.Reason != "" {
		s += " (" + field(c.Reason) + ")"
	}
	return s
}

func (p *printer) output(a verify.Attempt) {
	if len(a.Output) == 0 {
		p.heading("Output: none captured")
		return
	}
	for _, o := range a.Output {
		p.heading("Output: " + o.Name)
		p.line("  %d bytes stored of %d received%s", o.Stored, o.Received, flags(o))
		if !o.Held {
			p.line("  missing from the bundle")
			continue
		}
		p.line("  %s", o.Digest)
		p.text(o.Bytes)
	}
	if a.Record.Incomplete {
		p.line("  The capture is incomplete.")
	}
}

func flags(o verify.OutputSeen) string {
	var s string
	if o.Truncated {
		s += ", truncated"
	}
	if o.Redacted {
		s += ", redacted"
	}
	if !o.EndOfStream {
		s += ", end of stream not seen"
	}
	return s
}

// text prints bytes a command wrote, a line each behind a bar, bounded.
func (p *printer) text(b []byte) {
	all := len(b)
	b = b[:min(all, maxOutputBytes)]
	lines, shown := 0, 0
	for len(b) > 0 && lines < maxOutputLines {
		line, rest, more := bytes.Cut(b, []byte("\n"))
		end := ""
		if !more {
			end = " (no line end)"
		}
		p.line("  | %s%s", cut(Escape(string(line)), maxLine), end)
		shown += len(b) - len(rest)
		b = rest
		lines++
	}
	if shown < all {
		p.line("  … %d more bytes are in the bundle", all-shown)
	}
}

func (p *printer) cleanup(a verify.Attempt) {
	p.heading("Cleanup")
	if len(a.Record.Cleanup) == 0 {
		p.line("  nothing was created")
	}
	for _, c := range a.Record.Cleanup {
		id, state := "no known ID", field(string(c.State))
		if c.Container != nil {
			id = c.Container.Hex()[:12]
		}
		if state == "" {
			state = "nothing tried"
		}
		if c.Abandoned {
			state += ", ABANDONED: it may still exist"
		}
		p.line("  container %s: %s", id, state)
	}
	if a.Record.Snapshot != "" {
		p.line("  source snapshot: %s", field(string(a.Record.Snapshot)))
	}
}

func (p *printer) details(a verify.Attempt) {
	for i, d := range a.Details {
		if i == 0 {
			p.heading("Texts")
		}
		if !d.Held {
			p.line("  index %d, %s: missing from the bundle", d.Index, field(d.Type))
			continue
		}
		p.line("  index %d, %s:", d.Index, field(d.Type))
		p.text(d.Text)
	}
}

func (p *printer) timeline(a verify.Attempt) {
	p.heading("Timeline (order from the log; times are the writer's claim)")
	for _, e := range a.Timeline {
		p.line("  %8d  %s  %-20s  %s", e.Index, time.Unix(0, e.Time).UTC().Format("2006-01-02T15:04:05.000000000Z"), field(e.Type), field(e.Actor))
	}
}

// evidence prints the checks, what is missing, keys, and what it all means.
func (p *printer) evidence(r verify.Report) {
	p.heading("Checks")
	for _, c := range r.Checks {
		p.line("  %-13s %-12s %s", c.Name, strings.ReplaceAll(string(c.Result), "_", " "), cut(Escape(c.Detail), maxLine))
	}
	if len(r.Missing) > 0 {
		p.heading("Missing from the bundle")
		for _, m := range r.Missing {
			allowed := "not allowed"
			if m.Allowed {
				allowed = "allowed by name"
			}
			p.line("  %-9s %s, %d blobs, %s", m.Class, m.Why, m.Blobs, allowed)
		}
	}
	p.heading("Ledger")
	if r.At != nil {
		p.line("  id           %s", r.Ledger)
		p.line("  origin       %s", field(r.Origin))
		p.line("  as of        index %d", *r.At)
	}
	if r.Root != "" {
		p.line("  root         %s", r.Root)
	}
	p.key("signed by", r.Keys.Signed)
	p.key("trusted", r.Keys.Trusted)
	p.key("checkpoint", r.Keys.Checkpoint)
	p.line("  %s", r.Times)
	for _, claims := range []bool{true, false} {
		i := slices.IndexFunc(r.Claims, func(s verify.Statement) bool { return s.Claim == claims })
		if i < 0 {
			continue
		}
		if claims {
			p.heading("What this shows")
		} else {
			p.heading("What this does not show")
		}
		for _, s := range r.Claims {
			if s.Claim == claims {
				p.line("  %-7s %s", s.ID, s.Text)
			}
		}
	}
}

func (p *printer) key(name string, id *evidence.KeyID) {
	if id == nil {
		p.line("  %-12s no key", name)
		return
	}
	p.line("  %-12s %s", name, id)
}

// fields joins short codes.
func fields[S ~string](codes []S) string {
	out := make([]string, len(codes))
	for i, c := range codes {
		out[i] = field(string(c))
	}
	return strings.Join(out, ", ")
}
