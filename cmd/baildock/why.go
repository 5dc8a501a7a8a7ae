package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
)

func whyCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "why",
		Usage:     "say where an attempt stands, why, and what to type next",
		ArgsUsage: "ATTEMPT",
		Action: func(c *cli.Context) error {
			return p.withAttempt(c, func(h *home, v attemptView) error {
				if p.ui.json {
					return p.ui.printJSON(struct {
						Attempt evidence.AttemptID `json:"attempt"`
						State   evidence.State     `json:"state"`
						Outcome *evidence.Outcome  `json:"outcome"`
						Detail  string             `json:"detail,omitempty"`
						Causes  []string           `json:"causes"`
						Why     string             `json:"why"`
						Next    string             `json:"next"`
					}{v.Attempt, v.State, v.Outcome, v.Detail, append([]string{}, v.Causes...), v.why(), v.next(p.homeFlag())})
				}
				says := string(v.State)
				if v.Outcome != nil {
					says += ": " + string(*v.Outcome)
				}
				if err := p.printf("%s is %s\n  why   %s\n", v.Attempt, says, visible(v.why())); err != nil {
					return err
				}
				for i, cause := range v.Causes {
					if i > 0 {
						if err := p.printf("        also %s (%s)\n", causeMeans(cause), cause); err != nil {
							return err
						}
					}
				}
				return p.printf("  next  %s\n", visible(v.next(p.homeFlag())))
			})
		},
	}
}

// why says in one sentence what decided, with its stable code.
func (v attemptView) why() string {
	switch {
	case v.Outcome == nil && v.State == evidence.StatePending:
		return "it is registered and nobody has claimed it"
	case v.Outcome == nil && v.fenced:
		return "a recovery took it from its runner and has not finished it"
	case v.Outcome == nil && v.runnerGone:
		return "its runner is gone and has not finished it"
	case v.Outcome == nil:
		return "its runner has claimed it and has not finished it"
	case *v.Outcome == evidence.OutcomeSuccess && v.Detail == evidence.DetailOK:
		return "every check held (ok)"
	}
	return fmt.Sprintf("%s (%s)", causeMeans(v.Detail), v.Detail)
}

func causeMeans(detail string) string {
	for _, c := range evidence.Causes() {
		if c.Detail == detail {
			return c.Means
		}
	}
	return detail
}

// nextSteps says what to do about a cause, where exporting the record isn't all there is to do.
var nextSteps = map[string]string{
	"source_refused":               "mend the source, then start a new attempt: baildock run",
	"cancelled_before_start":       "start a new attempt: baildock run",
	"create_refused":               "read the daemon's words: baildock check show %s --explain",
	"create_warnings":              "the daemon discards a limit; use one that enforces it, then start a new attempt",
	"runtime_changed_before_start": "somebody restarted or replaced the daemon; start a new attempt",
	"isolation_refused":            "see the control that differs: baildock check show %s --explain",
	"start_failed":                 "check that the executable is in the image and runs there: baildock check show %s --explain",
	"interfered":                   "keep others away from the daemon, then start a new attempt",
	"timeout":                      "give it more time: baildock run --timeout",
	"output_limit":                 "let it say less, or keep more: baildock run --output-limit",
	"oom":                          "give it more memory: baildock run --memory",
	"exit_137":                     "something killed it; if memory ran out, give it more: baildock run --memory",
	"exit_nonzero":                 "read what it said: baildock check show %s --explain",
	"preflight_refused":            "see what containment lacks: baildock check show %s --explain",
	"workspace_limit":              "the agent filled its workspace; see what it wrote: baildock check show %s --explain",
	"mutations_unknown":            "see why its changes can't be told: baildock check show %s --explain",
	"policy_violated":              "see which check its changes break: baildock check show %s --explain",
	"void_claim":                   "register a new attempt for what is current",
}

// containedSteps takes the place of nextSteps where a configuration says what `run` takes as a flag.
var containedSteps = map[string]string{
	"timeout":      "give it more time: contained_execution.timeout in its configuration",
	"output_limit": "let it say less, or keep more: contained_execution.output_limit in its configuration",
	"oom":          "give it more memory: contained_execution.memory_limit in its configuration",
	"exit_137":     "something killed it; if memory ran out, give it more: contained_execution.memory_limit in its configuration",
}

// next is the command to type now.
func (v attemptView) next(home string) string {
	switch {
	case v.Outcome == nil && v.State == evidence.StatePending:
		return fmt.Sprintf("baildock%s check run %s %d", home, v.Attempt, v.Generation)
	case v.State != evidence.StateFinished && v.mayAbandon:
		return fmt.Sprintf("see what the daemon answered (baildock%s check show %s --explain), then try again: baildock%s check recover %s %d REASON; "+
			"with --abandon-unconfirmed it ends indeterminate", home, v.Attempt, home, v.Attempt, v.Generation)
	case v.State != evidence.StateFinished && (v.fenced || v.runnerGone || v.Outcome != nil):
		return fmt.Sprintf("baildock%s supervise --once, or baildock%s check recover %s %d REASON", home, home, v.Attempt, v.Generation)
	case v.Outcome == nil:
		return fmt.Sprintf("watch it: baildock%s replay attempt-%s --follow", home, v.Attempt)
	case *v.Outcome == evidence.OutcomeIndeterminate:
		return fmt.Sprintf("a container may still exist; its ID and labels: baildock%s check show %s --explain", home, v.Attempt)
	case v.Detail == "reduction_not_accepted":
		var flags []string
		for _, r := range v.Reductions {
			flags = append(flags, "--accept-reduced "+string(r))
		}
		verb := "run"
		if v.contained {
			verb = "contained-run CONFIG"
		}
		return fmt.Sprintf("accept the reduced claim by name, in a new attempt: baildock%s %s %s", home, verb, strings.Join(flags, " "))
	case v.Detail == "runtime_refused":
		for _, code := range v.Refusals {
			if step, ok := refusalSteps[code]; ok {
				return step
			}
		}
		return fmt.Sprintf("see what the daemon lacks: baildock%s check show %s --explain", home, v.Attempt)
	}
	if step, ok := containedSteps[v.Detail]; ok && v.contained {
		return step
	}
	if step, ok := nextSteps[v.Detail]; ok {
		if strings.Contains(step, "%s") {
			return fmt.Sprintf(step, v.Attempt)
		}
		return step
	}
	return fmt.Sprintf("baildock%s export %s -o %s.cbor", home, v.Attempt, v.Attempt)
}

// refusalSteps says what to do about a runtime that was refused.
var refusalSteps = map[string]string{
	"daemon_unreachable": "start the Docker daemon, or name its socket with --docker-socket; then start a new attempt",
	"image_missing":      "nothing is pulled: baildock image make makes the image, baildock image list shows what is here",
	"image_environment":  "take the image's environment into the recipe: baildock run --image-env",
}

// homeFlag is how a printed command names the home that this command line named.
func (p *program) homeFlag() string {
	if p.home == "" {
		return ""
	}
	return " --home " + p.home
}
