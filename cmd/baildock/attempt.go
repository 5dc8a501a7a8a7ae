package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/projections"
)

// withProjections runs a verb's questions on the home's projections.
func (p *program) withProjections(ctx context.Context, h *home, ask func(*projections.Projections) error) error {
	pr, err := projections.Open(ctx, h.path(projectionsName), h.store, p.ui.bar("reading the ledger"))
	if err != nil {
		return err
	}
	return errors.Join(ask(pr), pr.Close())
}

// findAttempt reads what stands for an attempt: its ID, a unique prefix of one, or @last (req J4).
func (p *program) findAttempt(ctx context.Context, h *home, text string) (evidence.AttemptID, error) {
	if text != projections.Last {
		id, err := evidence.ParseAttemptID(text)
		if err != nil {
			return "", fail(exitUsage, "attempt_name", "%w", err)
		}
		// A whole ID needs no projection.
		if _, found, err := h.store.Head(ctx, journal.AttemptStream(id)); err != nil || found {
			return id, err
		}
	}
	var id evidence.AttemptID
	err := p.withProjections(ctx, h, func(pr *projections.Projections) (err error) {
		id, err = pr.Resolve(ctx, text)
		return err
	})
	return id, err
}

// withAttempt runs a verb's work on the one attempt it names.
func (p *program) withAttempt(c *cli.Context, work func(*home, attemptView) error) error {
	args, err := p.positional("ATTEMPT")
	if err != nil {
		return err
	}
	return readHome(c, func(h *home) error {
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
		if v.runnerGone, err = (warden.Home{Dir: h.dir, ID: h.file.Home}).RunnerGone(a.Fold); err != nil {
			return err
		}
		return work(h, v)
	})
}
