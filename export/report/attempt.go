package report

import (
	"bytes"
	"fmt"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/verify"
)

// absent is shown for a blob that the bundle lacks.
const absent Shown = "missing from the bundle"

func attemptPart(a verify.Attempt) Part {
	p := Part{Kind: "attempt", Title: "Attempt " + field(string(a.Attempt))}
	p.add(result(a), containmentSection(a.Containment), subject(a), recipe(a))
	if a.Environment != nil && len(a.Environment.Vars) > 0 {
		p.add(environment(*a.Environment))
	}
	p.add(output(a)...)
	p.add(details(a)...)
	p.add(controls("isolation", "Controls before start", a.Isolation),
		controls("kernel", "Controls the kernel showed", a.Kernel),
		controls("probed", "Controls seen in a probe container on the same runtime, not in this one", a.Probed))
	p.add(cleanup(a), timeline(a))
	return p
}

func (p *Part) add(s ...Section) { p.Sections = append(p.Sections, s...) }

func result(a verify.Attempt) Section {
	rec := a.Record
	s := Section{Key: "result", Title: "Result"}
	s.toned("outcome", say("%s (%s)", rec.Outcome, rec.Detail), recordTone(rec))
	if len(rec.Causes) > 1 {
		s.fact("also", codes(rec.Causes[1:]))
	}
	if len(rec.Refusals) > 0 {
		s.fact("refusals", codes(rec.Refusals))
	}
	s.fact("exit code", exitCode(rec))
	s.fact("claim", claim(rec))
	if len(a.Accepted) > 0 {
		s.fact("accepted", codes(a.Accepted))
	}
	s.fact("generation", say("%d", rec.Generation))
	s.fact("duration", say("%s (the runner's monotonic clock)", time.Duration(min(rec.Duration, 1<<62))))
	s.fact("finished", say("index %d", a.Index))
	s.fact("record", say("%s", a.RecordDigest))
	return s
}

func exitCode(r evidence.Record) Shown {
	if r.ExitCode == nil {
		return "none: the command never ran to an end"
	}
	return say("%d", *r.ExitCode)
}

func claim(r evidence.Record) Shown {
	switch {
	case r.Claim == evidence.ClaimNone:
		return "none: nothing was started"
	case len(r.Reductions) > 0:
		return field(string(r.Claim)) + ": " + codes(r.Reductions)
	}
	return field(string(r.Claim))
}

func subject(a verify.Attempt) Section {
	rec := a.Record
	s := Section{Key: "subject", Title: "Subject"}
	s.fact("kind", field(string(rec.Subject.Kind)))
	if rec.Subject.Revision != "" {
		s.fact("revision", field(rec.Subject.Revision))
	}
	if rec.Manifest != nil {
		s.fact("manifest", say("%s", rec.Manifest))
	} else {
		s.fact("manifest", "none: the source was not put in place")
	}
	if rec.Binding == nil {
		s.fact("bound to", "nothing: an ad hoc run, which admits nothing")
		return s
	}
	s.fact("bound to", say("change %s, version %d, context %s", rec.Binding.Change, rec.Binding.Version, rec.Binding.Context))
	if c := a.Change; c != nil {
		s.fact("of attempts", say("%d of %d listed for this version and context up to the judgement; %d not in this bundle", c.Number, c.Listed, c.Others))
	}
	return s
}

func recipe(a verify.Attempt) Section {
	rec := a.Record
	s := Section{Key: "recipe", Title: "Recipe"}
	s.fact("digest", say("%s", rec.Recipe))
	if rec.Request != nil {
		s.fact("request", say("%s", rec.Request))
	}
	s.fact("profile", say("%s, table %s", rec.Profile, rec.Table))
	if rec.Toolchain != nil {
		s.fact("toolchain", say("%s (bound, not discovered)", rec.Toolchain))
	} else {
		s.fact("toolchain", "none bound")
	}
	if r := a.Recipe; r != nil {
		s.fact("image", say("%s", r.Image))
		for i, arg := range r.Argv() {
			s.fact(fmt.Sprintf("argv[%d]", i), quoted(arg))
		}
		l := r.Limits
		s.fact("limits", say("wall %s, output %d B, memory with swap %d B, scratch %d B, processes %d, CPU %.3g cores",
			l.Wall, l.Output, l.Memory, l.Scratch, l.PIDs, float64(l.NanoCPUs)/1e9))
	} else {
		s.toned("image, argv and limits", absent, Unsure)
	}
	if a.Environment == nil {
		s.toned("environment", say("%s, digest %s", absent, rec.Environment), Unsure)
	} else {
		s.fact("environment", say("%d entries, digest %s", len(a.Environment.Vars), rec.Environment))
	}
	return s
}

func environment(e evidence.Environment) Section {
	t := &Table{Columns: []string{"name", "value"}, Toned: -1}
	for _, v := range e.Vars {
		t.Rows = append(t.Rows, Row{Cells: []Shown{field(v.Name), quoted(v.Value)}})
	}
	return Section{Key: "environment", Title: "Environment", Table: t}
}

// controls shows what was asked of each control beside what was found, and by which kind of
// evidence (law 5).
func controls(key string, title Shown, seen []verify.ControlSeen) Section {
	if len(seen) == 0 {
		return Section{Key: key, Title: title + ": none"}
	}
	t := &Table{Columns: []string{"control", "evidence", "compared", "requested", "found", "reason"}, Toned: 2}
	for _, c := range seen {
		name := field(c.Name)
		if name == "" {
			name = say("control %d", c.ID)
		}
		compared, tone := equality(c)
		requested, found := field(c.Expected), field(c.Found)
		if !c.Opened {
			requested, found = absent, absent
		}
		reason := field(c.Reason)
		t.Rows = append(t.Rows, Row{Cells: []Shown{name, field(string(c.Kind)), compared, requested, found, reason}, Tone: tone})
	}
	return Section{Key: key, Title: title, Table: t}
}

// equality never calls a control equal that wasn't known.
func equality(c verify.ControlSeen) (Shown, Tone) {
	switch {
	case c.Kind == evidence.Unavailable:
		return "unknown", Unsure
	case c.Equal:
		return "equal", Good
	}
	return "DIFFERS", Bad
}

func output(a verify.Attempt) []Section {
	if len(a.Output) == 0 {
		return []Section{{Key: "output", Title: "Output: none captured"}}
	}
	var out []Section
	for _, o := range a.Output {
		s := Section{Key: "output", Title: "Output: " + field(o.Name)}
		s.fact("bytes", say("%d stored of %d received%s", o.Stored, o.Received, flags(o)))
		if a.Record.Incomplete {
			s.toned("capture", "incomplete", Unsure)
		}
		if o.Held {
			s.fact("digest", say("%s", o.Digest))
			s.Excerpt = excerpt(o.Bytes)
		} else {
			s.toned("content", absent, Unsure)
		}
		out = append(out, s)
	}
	return out
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

// excerpt shows the beginning of what somebody wrote.
func excerpt(b []byte) *Excerpt {
	x := &Excerpt{Lines: []Shown{}, More: len(b)}
	for b = b[:min(len(b), maxOutputBytes)]; len(b) > 0 && len(x.Lines) < maxOutputLines; {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		x.Lines = append(x.Lines, cut(Escape(string(line)), maxLine))
		x.More -= len(b) - len(rest)
		x.Unended = !ended
		b = rest
	}
	return x
}

func cleanup(a verify.Attempt) Section {
	s := Section{Key: "cleanup", Title: "Cleanup"}
	if len(a.Record.Cleanup) == 0 {
		s.fact("container", "none was created")
	}
	for _, c := range a.Record.Cleanup {
		id, state, tone := Shown("no known ID"), field(string(c.State)), Good
		if c.Container != nil {
			id = field(c.Container.Hex()[:12])
		}
		if state == "" {
			state = "nothing tried"
		}
		if c.State == "" || c.State == evidence.CleanupIncomplete || c.State == evidence.CleanupUnverifiable {
			tone = Unsure
		}
		if c.Abandoned {
			state, tone = state+", ABANDONED: it may still exist", Bad
		}
		s.toned("container", id+": "+state, tone)
	}
	if a.Record.Snapshot != "" {
		s.fact("source copy", field(string(a.Record.Snapshot)))
	}
	return s
}

func details(a verify.Attempt) []Section {
	var out []Section
	for _, d := range a.Details {
		s := Section{Key: "text", Title: say("Text of index %d, %s", d.Index, d.Type)}
		if d.Held {
			s.Excerpt = excerpt(d.Text)
		} else {
			s.toned("content", absent, Unsure)
		}
		out = append(out, s)
	}
	return out
}

func timeline(a verify.Attempt) Section {
	t := &Table{Columns: []string{"index", "after", "event", "time", "actor"}, Toned: -1}
	for _, e := range a.Timeline {
		t.Rows = append(t.Rows, Row{Cells: []Shown{
			say("%d", e.Index), since(e.Time, a.Timeline[0].Time), field(e.Type),
			say("%s", time.Unix(0, e.Time).UTC().Format("2006-01-02T15:04:05.000000000Z")), field(e.Actor),
		}})
	}
	return Section{Key: "timeline", Title: "Timeline (order from the log; times are the writer's claim)", Table: t}
}

// since is a time relative to the attempt's first event, both as the writer claims.
func since(t, first int64) Shown {
	d := t - first
	if (t > first) != (d > 0) && t != first {
		return "out of range" // the claimed times are further apart than a duration can say
	}
	sign := "+"
	if d < 0 {
		sign = ""
	}
	return say("%s%s", sign, time.Duration(d).Round(time.Microsecond))
}
