package executor

import (
	"context"
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
)

// Names of what a preflight checks by looking alone. Others may check more.
const (
	CheckDaemon   = "daemon"   // reachable, and its replies can be read
	CheckEngine   = "engine"   // has what every run requires (req C2)
	CheckPlatform = "platform" // is what the configuration names, and which claim it carries
	CheckImage    = "image"    // is here, is the one pinned, and brings nothing undeclared
	CheckNetwork  = "network"  // is one of the two that a profile has
)

// Codes of checks that have none of their own.
const (
	CodePlatform = "platform_mismatched" // a desktop-managed engine under a configuration that names none
	CodeNetwork  = "network_unknown"
)

// Findings are what a preflight found, before they become evidence.
type Findings struct {
	Checks     []evidence.PreflightCheck
	Reductions []evidence.Reduction // sorted
	Identity   *evidence.RuntimeIdentity
	Lines      []string // for people: a line each, the check's name first
}

// Add appends one check with what was found.
func (f *Findings) Add(name string, result evidence.PreflightResult, code, text string) {
	f.Checks = append(f.Checks, evidence.PreflightCheck{Name: name, Result: result, Code: code})
	line := name + ": " + string(result)
	if text != "" {
		line += ": " + text
	}
	f.Lines = append(f.Lines, line)
}

// Result is that of the worst check.
func (f *Findings) Result() evidence.PreflightResult { return evidence.SumChecks(f.Checks) }

// Examine judges a daemon and an image as they were seen for a contained run (req M2, M3). It makes
// no call: nothing of the image, the repository or the command runs. What could not be looked at is
// not supported.
func Examine(s Sighting, job Job) Findings {
	var f Findings
	if s.RuntimeErr != nil {
		f.Add(CheckDaemon, evidence.PreflightUnavailable, daemonCode(s.RuntimeErr), s.RuntimeErr.Error())
		return f
	}
	f.Identity, f.Reductions = &s.Runtime.Identity, slices.Clone(s.Runtime.Reductions)
	f.Add(CheckDaemon, evidence.PreflightSupported, "", "")
	f.engine(s.Runtime)
	f.platform(s.Runtime, job.Recipe.Contained)
	f.image(s, job)
	f.network(job)
	return f
}

func (f *Findings) engine(rt Runtime) {
	if len(rt.Refusals) == 0 {
		f.Add(CheckEngine, evidence.PreflightSupported, "", "")
		return
	}
	f.Add(CheckEngine, evidence.PreflightUnsafe, rt.Refusals[0].Code, join(rt.Refusals))
}

// platform compares the engine with the one the configuration names. A desktop-managed one carries a
// reduced claim, and only where it was named (req L2).
func (f *Findings) platform(rt Runtime, terms *evidence.ContainedTerms) {
	desktop := slices.Contains(rt.Reductions, evidence.ReducedDesktop)
	switch {
	case terms == nil:
		f.Add(CheckPlatform, evidence.PreflightUnsafe, CodePlatform, "the recipe has no contained terms")
	case desktop && terms.Platform != evidence.PlatformDesktop:
		f.Add(CheckPlatform, evidence.PreflightUnsafe, CodePlatform, "the daemon is desktop-managed, and the configuration names "+string(terms.Platform))
	case len(rt.Reductions) > 0:
		f.Add(CheckPlatform, evidence.PreflightExperimental, string(rt.Reductions[0]), fmt.Sprintf("only a reduced claim: %v", rt.Reductions))
	default:
		f.Add(CheckPlatform, evidence.PreflightSupported, "", "")
	}
}

func (f *Findings) image(s Sighting, job Job) {
	refusals := imageRefusals(s.Image, s.ImageErr, job)
	switch {
	case len(refusals) == 0:
		f.Add(CheckImage, evidence.PreflightSupported, "", s.Image.ID.String())
	case s.ImageErr != nil:
		f.Add(CheckImage, evidence.PreflightUnavailable, refusals[0].Code, join(refusals))
	default:
		f.Add(CheckImage, evidence.PreflightUnsafe, refusals[0].Code, join(refusals))
	}
}

func (f *Findings) network(job Job) {
	if n := job.Profile.Network; n != evidence.NetworkNone && n != evidence.NetworkBridge {
		f.Add(CheckNetwork, evidence.PreflightUnsafe, CodeNetwork, string(n))
		return
	}
	f.Add(CheckNetwork, evidence.PreflightSupported, "", string(job.Profile.Network))
}

func join(rs []Refusal) string {
	text := ""
	for i, r := range rs {
		if i > 0 {
			text += "; "
		}
		text += r.Code + ": " + r.Detail
	}
	return text
}

// Event makes the event of findings, with the reference to their lines.
func (f *Findings) Event(detail *evidence.BlobRef) evidence.PreflightObserved {
	return evidence.PreflightObserved{
		Result: f.Result(), Reductions: f.Reductions, Checks: f.Checks, Identity: f.Identity, Detail: detail,
	}
}

// Preflight verifies what a contained run needs before its workspace is prepared (req N2).
type Preflight func(ctx context.Context, job Job) Findings

// LookFirst is the preflight that looks at daemon and image and runs nothing.
func LookFirst(d Driver) Preflight {
	return func(ctx context.Context, job Job) Findings {
		return Examine(Look(ctx, d, job.Recipe.Image), job)
	}
}
