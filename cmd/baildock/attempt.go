package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
)

// findAttempt reads what stands for an attempt: its ID, a unique prefix of one, or @last.
func (p *program) findAttempt(ctx context.Context, h *home, text string) (evidence.AttemptID, error) {
	return evidence.ParseAttemptID(text)
}

// withAttempt runs a verb's work on the one attempt it names.
func (p *program) withAttempt(c *cli.Context, work func(*home, attemptView) error) error {
	args, err := p.positional("ATTEMPT")
	if err != nil {
		return err
	}
	return withHome(c, actorOperator, func(h *home) error {
		id, err := p.findAttempt(c.Context, h, args[0])
		if err != nil {
			return err
		}
		a, err := h.journal.Attempt(c.Context, id)
		if err != nil {
			return err
		}
		v, err := viewAttempt(c.Context, h.journal, a)
		if err != nil {
			return err
		}
		return work(h, v)
	})
}
