package report

import (
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/containment"
)

// containmentSection shows the containment evidence: every section of it with its state (req P3).
func containmentSection(e containment.Evidence) Section {
	s := Section{Key: "containment", Title: say("Containment: %s", phrase(string(e.Containment)))}
	if e.Containment == containment.NotApplicable {
		s.Title = say("Containment: not applicable, the profile is %s", e.Profile)
	}
	q := e.Requested
	s.toned("requested", say("%s: platform %s, network %s, image provenance %s, %s with %d arguments", q.State, q.Platform, q.Network,
		q.ImageProvenance, q.Executable, q.Arguments), unsureIf(q.State == containment.StateWithheld))
	if len(q.Writable) > 0 {
		s.fact("writable", say("%s", strings.Join(q.Writable, ", ")))
	}
	s.toned("preflight", phrase(string(e.Preflight.State)), map[containment.State]Tone{
		"supported": Good, "unsafe": Bad, "unavailable": Bad, "experimental": Unsure}[e.Preflight.State])
	for _, c := range e.Preflight.Checks {
		if c.Result != evidence.PreflightSupported {
			s.toned("preflight", say("%s: %s (%s)", c.Name, c.Result, c.Code), Unsure)
		}
	}
	i := e.Image
	s.toned("image", say("%s: configured %s, repository digest %s, local ID %s, of the container %s", i.State, i.Configured, i.RepositoryDigest,
		i.LocalID, i.ContainerBound), map[containment.State]Tone{containment.StateBound: Good, containment.StateMismatched: Bad,
		containment.StateUnobserved: Unsure}[i.State])
	s.toned("controls", controlsLine(e.Controls), map[containment.State]Tone{containment.StateHeld: Good, containment.StateNotHeld: Bad}[e.Controls.State])
	v := e.Environment
	s.toned("environment", say("%s: fixed %s; configured %s; values %s", v.State, names(v.Fixed), names(v.Configured), phrase(v.Values)),
		unsureIf(v.State == containment.StateWithheld))
	s.toned("workspace", workspaceLine(e.Workspace), unsureIf(e.Workspace.State == containment.StateUnknown))
	s.policy(e.Workspace)
	x := e.Execution
	s.toned("execution", say("%s (%s), stage %s", x.State, x.Detail, x.Stage), outcomeTone(x.State))
	s.toned("cleanup", say("%s: %d containers, workspace %s", e.Cleanup.State, len(e.Cleanup.Containers)+e.Cleanup.Omitted, e.Cleanup.Workspace),
		map[containment.State]Tone{containment.StateComplete: Good, containment.StateIncomplete: Unsure}[e.Cleanup.State])
	return s
}

// controlsLine never adds what was only accepted, or seen elsewhere, to what was observed.
func controlsLine(c containment.Controls) Shown {
	if c.Total == 0 {
		return phrase(string(c.State))
	}
	text := say("%s: %d of %d observed and equal on the container that ran", phrase(string(c.State)), c.Held, c.Total)
	for _, of := range []struct {
		n    int
		what string
	}{
		{c.Accepted, "accepted by the daemon"}, {c.Probed, "seen in another container"}, {c.NotRun, "equal on a container that never ran"},
		{c.Unequal, "UNEQUAL"}, {c.Unavailable, "not known"},
	} {
		if of.n > 0 {
			text += say("; %d %s", of.n, of.what)
		}
	}
	if c.Unknown > 0 {
		text += say("; %d fields outside the table", c.Unknown)
	}
	if c.Interfered {
		text += "; somebody acted on the container afterwards"
	}
	return text
}

func workspaceLine(w containment.Workspace) Shown {
	switch w.State {
	case containment.StateChanged, containment.StateUnchanged:
		return say("%s: %d modified, %d added, %d deleted, %d renamed", w.State, w.Modified, w.Added, w.Deleted, w.Renamed)
	case containment.StateUnknown:
		return say("unknown: what changed could not be captured (%s)", w.Code)
	}
	return phrase(string(w.State))
}

func (s *Section) policy(w containment.Workspace) {
	if w.State == containment.StateNotApplicable {
		return
	}
	s.toned("policy", phrase(string(w.Policy.State)), map[containment.PolicyState]Tone{
		containment.PolicyKept: Good, containment.PolicyBroken: Bad, containment.PolicyUnchecked: Unsure}[w.Policy.State])
	for _, c := range w.Policy.Checks {
		result, tone := Shown("held"), Good
		if !c.Held {
			result, tone = "BROKEN", Bad
		}
		s.toned("policy", say("%s: %s", c.Name, result), tone)
	}
}

// phrase is a word of the object as prose.
func phrase(s string) Shown { return field(strings.ReplaceAll(s, "_", " ")) }

func names(all []string) Shown {
	if len(all) == 0 {
		return "none"
	}
	return say("%s", strings.Join(all, ", "))
}

func unsureIf(yes bool) Tone {
	if yes {
		return Unsure
	}
	return Neutral
}
