package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger/sqlite"
)

// maxReason is the length of an operator's reason, in bytes: words for people, kept for ever.
const maxReason = 4096

// cancelCommand and recoverCommand end an attempt in place of its runner.
func cancelCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "cancel",
		Usage:     "end an attempt as cancelled: a pending one at once, a running one once nothing of it is left",
		ArgsUsage: "ATTEMPT GENERATION REASON",
		Flags:     []cli.Flag{socketFlag()},
		Action:    func(c *cli.Context) error { return p.recover(c, evidence.FencedByCancel) },
	}
}

func recoverCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "recover",
		Usage:     "end an attempt whose runner is gone as incomplete, once nothing of it is left",
		ArgsUsage: "ATTEMPT GENERATION REASON",
		Flags: []cli.Flag{
			socketFlag(),
			&cli.BoolFlag{Name: "abandon-unconfirmed", Usage: "give up a container that an earlier recovery could not confirm gone; the attempt ends indeterminate"},
		},
		Action: func(c *cli.Context) error { return p.recover(c, evidence.FencedByRecover) },
	}
}

func (p *program) recover(c *cli.Context, by evidence.FencedBy) (err error) {
	args, err := p.positional("ATTEMPT", "GENERATION", "REASON")
	if err != nil {
		return err
	}
	generation, err := parseCount("GENERATION", args[1])
	if err != nil {
		return err
	}
	reason := args[2]
	if strings.TrimSpace(reason) == "" || len(reason) > maxReason || !utf8.ValidString(reason) {
		return usage("REASON must be 1 to %d bytes of text", maxReason)
	}
	driver, err := p.openDaemon(c)
	if err != nil {
		return err
	}
	defer func() { p.closed(driver.Close()) }()
	return withHome(c, actorOperator, func(h *home) error {
		id, err := p.findAttempt(c.Context, h, args[0])
		if err != nil {
			return err
		}
		w, err := h.warden(c, engine{driver: driver})
		if err != nil {
			return err
		}
		res, recoverErr := w.Recover(c.Context, warden.RecoverRequest{
			Attempt: id, Generation: generation, By: by, Reason: reason + "\n", Abandon: c.Bool("abandon-unconfirmed"),
		}, p.ui.stage)
		p.ui.progressDone()
		if res.Attempt == "" {
			return recoverErr
		}
		if err := p.showResult(c, h, res, context.WithoutCancel(c.Context)); err != nil {
			return errors.Join(recoverErr, err)
		}
		if recoverErr == nil && res.Verdict.Outcome == evidence.OutcomeIndeterminate {
			return exitWith(exitCleanup) // abandoned
		}
		return recoverErr // nil: done as asked, whatever the outcome
	})
}

// warden works on attempts of this home.
func (h *home) warden(c *cli.Context, e engine) (*warden.Warden, error) {
	if e.reserved == nil {
		var err error
		if e.reserved, err = reservedIn(c); err != nil {
			return nil, err
		}
	}
	cfg := warden.Config{
		Home: warden.Home{Dir: h.dir, ID: h.file.Home}, Journal: h.journal, Driver: e.driver,
		Reserved: e.reserved, LedgerDir: h.ledgerDir, Local: sqlite.RefuseNetwork,
	}
	if e.dog != nil {
		cfg.Watchdog, cfg.Probe, cfg.Preflight = e.dog, probe(e.driver, e.self), runPreflight(e, h.dir)
	}
	return warden.New(cfg), nil
}

// classifyRecovery is the part of classify that speaks of attempts in other hands.
func classifyRecovery(err error) *failure {
	var (
		moved *journal.GenerationError
		idle  *journal.NotRunningError
		early *warden.TooEarlyError
		open  *warden.UnconfirmedError
		agent *warden.ContainedError
	)
	switch {
	case errors.As(err, &moved):
		f := fail(exitConflict, "wrong_generation", "%v", err)
		f.Expected, f.Actual = fmt.Sprint(moved.Asked), fmt.Sprint(moved.Generation)
		if moved.State == evidence.StateFinished {
			return f.hint("baildock why %s says how it ended", moved.Attempt)
		}
		return f.hint("if it is still to be ended, retry at generation %d", moved.Generation)
	case errors.As(err, &idle):
		return fail(exitConflict, "not_running", "%v", err).hint("baildock check cancel %s %d REASON ends it", idle.Attempt, idle.Generation)
	case errors.As(err, &agent):
		return fail(exitUsage, "contained_only", "%v", err).hint("start another: baildock contained-run CONFIG -- ARGV…")
	case errors.As(err, &early):
		return fail(exitUsage, "abandon_too_early", "%v", err).hint("baildock check recover %s %d REASON", early.Attempt, early.Generation)
	case errors.As(err, &open):
		return fail(exitCleanup, "cleanup_unconfirmed", "%v", err).
			hint("baildock check recover %s %d REASON; baildock check show %s --explain says what the daemon answered", open.Attempt, open.Generation, open.Attempt)
	}
	return nil
}
