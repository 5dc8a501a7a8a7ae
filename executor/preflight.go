package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"

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

// LookedAt lists the checks that Examine makes.
var LookedAt = []string{CheckDaemon, CheckEngine, CheckPlatform, CheckImage, CheckNetwork}

// Codes of checks that have none of their own.
const (
	CodePlatform = "platform_mismatched" // a desktop-managed engine under a configuration that names none
	CodeNetwork  = "network_unknown"
	CodePin      = "image_unpinned" // the daemon doesn't know the image under the digest it was named by
)

// Check is one check with what was found, for people: at most MaxDiagnostic bytes, sanitised (req M5).
type Check struct {
	evidence.PreflightCheck
	Reason string `json:"reason,omitempty"`
}

// Findings are what a preflight found, before they become evidence.
type Findings struct {
	Checks     []Check
	Reductions []evidence.Reduction // sorted
	Identity   *evidence.RuntimeIdentity
}

// Add appends one check with what was found.
func (f *Findings) Add(name string, result evidence.PreflightResult, code, text string) {
	f.Checks = append(f.Checks, Check{evidence.PreflightCheck{Name: name, Result: result, Code: code}, Diagnostic(text)})
}

// Result is that of the worst check.
func (f *Findings) Result() evidence.PreflightResult { return evidence.SumChecks(f.plain()) }

// Go reports whether nothing found so far forbids a run; a reduced claim doesn't.
func (f *Findings) Go() bool {
	r := f.Result()
	return r == evidence.PreflightSupported || r == evidence.PreflightExperimental
}

// Claim is what a run would claim for its isolation (req M3).
func (f *Findings) Claim() evidence.Claim {
	switch {
	case !f.Go():
		return evidence.ClaimNone
	case len(f.Reductions) > 0:
		return evidence.ClaimReduced
	}
	return evidence.ClaimFull
}

// Lines are the checks for people, a line each, the check's name first.
func (f *Findings) Lines() []string {
	lines := make([]string, len(f.Checks))
	for i, c := range f.Checks {
		lines[i] = c.Name + ": " + string(c.Result)
		for _, more := range []string{c.Code, c.Reason} {
			if more != "" {
				lines[i] += ": " + more
			}
		}
	}
	return lines
}

func (f *Findings) plain() []evidence.PreflightCheck {
	out := make([]evidence.PreflightCheck, len(f.Checks))
	for i, c := range f.Checks {
		out[i] = c.PreflightCheck
	}
	return out
}

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
	case rt.SELinux:
		// Whether a container may read what is bound into it, the controlled run shows.
		f.Add(CheckPlatform, evidence.PreflightSupported, "", "Linux Docker Engine that labels containers for SELinux")
	default:
		f.Add(CheckPlatform, evidence.PreflightSupported, "", "Linux Docker Engine")
	}
}

func (f *Findings) image(s Sighting, job Job) {
	refusals := imageRefusals(s.Image, s.ImageErr, job)
	if len(refusals) == 0 && !pinned(s.Image, job.Recipe.Contained) {
		refusals = append(refusals, Refusal{CodePin, "the daemon does not know the image under the digest that the configuration names"})
	}
	switch {
	case len(refusals) == 0:
		f.Add(CheckImage, evidence.PreflightSupported, "", fmt.Sprintf("%s, %s", s.Image.ID, declaredUser(s.Image, job)))
	case s.ImageErr != nil:
		f.Add(CheckImage, evidence.PreflightUnavailable, refusals[0].Code, join(refusals))
	default:
		f.Add(CheckImage, evidence.PreflightUnsafe, refusals[0].Code, join(refusals))
	}
}

// pinned reports whether an image that was named by a repository digest has it. One that was named by
// its ID is pinned by that.
func pinned(img Image, terms *evidence.ContainedTerms) bool {
	if terms == nil {
		return true
	}
	_, digest, named := strings.Cut(terms.Reference, "@")
	return !named || slices.ContainsFunc(img.Digests, func(d string) bool {
		_, has, _ := strings.Cut(d, "@")
		return has == digest
	})
}

// declaredUser says whom the image would run as, and who runs instead: every container names its user.
func declaredUser(img Image, job Job) string {
	uid, gid := job.Profile.User(job.Recipe)
	if img.User == "" {
		return fmt.Sprintf("declares no user; %d:%d is asked for", uid, gid)
	}
	return fmt.Sprintf("declares user %s; %d:%d is asked for", img.User, uid, gid)
}

func (f *Findings) network(job Job) {
	if n := job.Profile.Network; n != evidence.NetworkNone && n != evidence.NetworkBridge {
		f.Add(CheckNetwork, evidence.PreflightUnsafe, CodeNetwork, string(n))
		return
	}
	f.Add(CheckNetwork, evidence.PreflightSupported, "", string(job.Profile.Network))
}

// join tells refusals; the code of the first stands beside it already.
func join(rs []Refusal) string {
	text := rs[0].Detail
	for _, r := range rs[1:] {
		text += "; " + r.Code + ": " + r.Detail
	}
	return text
}

// Event makes the event of findings, with the reference to their lines.
func (f *Findings) Event(detail *evidence.BlobRef) evidence.PreflightObserved {
	return evidence.PreflightObserved{
		Result: f.Result(), Reductions: f.Reductions, Checks: f.plain(), Identity: f.Identity, Detail: detail,
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
