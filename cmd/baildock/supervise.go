package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/projections"
)

const (
	superviseEvery = 15 * time.Second
	// minSuperviseEvery keeps a supervisor from reading the ledger in a loop.
	minSuperviseEvery = time.Second
	// auditEvery is how often a running supervisor reads the whole ledger again.
	auditEvery = time.Hour
)

func superviseCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "supervise",
		Usage: "recover this home's attempts whose runners are gone, until it is told to end",
		Description: "With --json and --once it prints one array; with --json alone a line for each thing that is new.\n" +
			"Attempts of other homes and machines are shown and never touched, and so are containers and networks with\n" +
			"our labels that no open custody of this ledger names. What a preflight left is removed as its custody files say.",
		Flags: []cli.Flag{
			socketFlag(),
			&cli.BoolFlag{Name: "once", Usage: "make one pass and end: exit 6 if something stays unconfirmed"},
			&cli.DurationFlag{Name: "every", Value: superviseEvery, Usage: "`TIME` from one pass to the next"},
		},
		Action: p.supervise,
	}
}

func (p *program) supervise(c *cli.Context) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	every := c.Duration("every")
	if every < minSuperviseEvery {
		return usage("--every %v is shorter than %v", every, minSuperviseEvery)
	}
	driver, err := p.openDaemon(c)
	if err != nil {
		return err
	}
	defer func() { p.closed(driver.Close()) }()
	return withHome(c, actorSupervisor, func(h *home) error {
		w, err := h.warden(c, engine{driver: driver})
		if err != nil {
			return err
		}
		pass := warden.Pass{Lister: lister{p, h}, Audit: true, Strays: true}
		if _, err := stateDir(); err != nil {
			p.note("custody files of preflights are not looked for: %v", err)
		} else if pass.Custody, err = custodyFiles(); err != nil {
			return err
		}
		if c.Bool("once") {
			met, err := w.Supervise(c.Context, pass, p.ui.stage)
			p.ui.progressDone()
			if err != nil {
				return err
			}
			if met == nil {
				met = []warden.Supervised{}
			}
			if err := p.showSupervised(met, true); err != nil {
				return err
			}
			return exitWith(superviseExit(met))
		}
		return p.superviseOn(c.Context, w, pass, every)
	})
}

// superviseOn makes pass after pass until ctx ends, and shows what is new. A pass that fails is told
// and tried again: whatever else, the supervisor stays.
func (p *program) superviseOn(ctx context.Context, w *warden.Warden, pass warden.Pass, every time.Duration) error {
	p.note("supervising; a pass every %v", every)
	shown := map[string]bool{}
	audited := time.Now()
	for {
		met, err := w.Supervise(ctx, pass, p.ui.stage)
		p.ui.progressDone()
		if err != nil && ctx.Err() == nil {
			p.ui.say("this pass failed and is tried again: " + err.Error())
		}
		now := map[string]bool{}
		var fresh []warden.Supervised
		for _, m := range met {
			key := shownAs(m)
			now[key] = true
			if !shown[key] {
				fresh = append(fresh, m)
			}
		}
		if err == nil {
			for key := range shown {
				if !pass.Strays && strings.HasPrefix(key, strayKey) {
					now[key] = true // this pass didn't look
				}
			}
			shown = now
		}
		if err := p.showSupervised(fresh, false); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil // told to end: what was under way has come to its end
		case <-time.After(every):
		}
		// From here on failures are left alone for a while.
		pass.Patient, pass.Audit = true, time.Since(audited) > auditEvery
		if pass.Strays = pass.Audit; pass.Audit {
			audited = time.Now()
		}
	}
}

// strayKey begins the key of what no attempt names.
const strayKey = "unknown "

// shownAs tells apart what was shown before.
func shownAs(m warden.Supervised) string {
	if m.Action == warden.ActionUnknown {
		return strayKey + m.Object.ID + " " + m.Detail
	}
	if m.Object != nil {
		return fmt.Sprint(m.Object.Name, " ", m.Action, " ", m.Detail)
	}
	return fmt.Sprint(m.Attempt, " ", m.Action, " ", m.Generation)
}

// subject names what a line is about.
func subject(m warden.Supervised) string {
	switch {
	case m.Object != nil:
		return m.Object.Name
	case m.Attempt != "":
		return string(m.Attempt)
	}
	return "supervise"
}

// described is an object for people.
func described(o *warden.Object) string {
	parts := []string{string(o.Kind)}
	if o.ID != "" {
		parts = append(parts, o.ID)
	}
	if o.Status != "" {
		parts = append(parts, o.Status)
	}
	if !o.Created.IsZero() {
		parts = append(parts, "made "+o.Age.Round(time.Second).String()+" ago")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Labels)) {
		parts = append(parts, name+"="+o.Labels[name])
	}
	return strings.Join(parts, ", ")
}

func (p *program) showSupervised(met []warden.Supervised, whole bool) error {
	if p.ui.json && whole {
		return p.ui.printJSON(met)
	}
	for _, m := range met {
		if p.ui.json {
			line, err := encodeJSON(m, "")
			if err != nil {
				return err
			}
			if err := p.printf("%s", line); err != nil {
				return err
			}
			continue
		}
		says := string(m.Action)
		if m.Outcome != "" {
			says += ": " + string(m.Outcome)
		}
		if m.Detail != "" {
			says += " (" + m.Detail + ")"
		}
		if m.Object != nil {
			says += "; " + described(m.Object)
		}
		if err := p.printf("%s  %s\n", visible(subject(m)), visible(says)); err != nil {
			return err
		}
	}
	return nil
}

// superviseExit is the exit code of one pass.
func superviseExit(met []warden.Supervised) int {
	exit := exitOK
	for _, m := range met {
		switch {
		case m.Action == warden.ActionUnconfirmed:
			return exitCleanup
		case m.Action == warden.ActionFailed:
			exit = classify(m.Err).Exit
		}
	}
	return exit
}

// lister is the projection of a home as a supervisor asks it.
type lister struct {
	p *program
	h *home
}

func (l lister) Unfinished(ctx context.Context) ([]evidence.AttemptID, error) {
	var ids []evidence.AttemptID
	err := l.p.withProjections(ctx, l.h, func(pr *projections.Projections) error {
		rows, err := pr.OpenAttempts(ctx)
		for _, r := range rows {
			ids = append(ids, r.Attempt)
		}
		return err
	})
	return ids, err
}

// recoverFirst recovers what dead runners of this home left, before a run's own work (req G8). What
// can't be recovered holds up nothing.
func (p *program) recoverFirst(ctx context.Context, w *warden.Warden) {
	met, err := w.Supervise(ctx, warden.Pass{Patient: true}, nil)
	if err != nil {
		p.ui.say("attempts of dead runners could not be looked for: " + err.Error())
	}
	for _, m := range met {
		switch m.Action {
		case warden.ActionRecovered, warden.ActionRemoved:
			p.note("baildock: attempt %s lost its runner: %s", m.Attempt, m.Action)
		case warden.ActionUnconfirmed, warden.ActionFailed:
			switch {
			case errors.Is(m.Err, context.Canceled):
			case m.Attempt == "":
				p.ui.say("attempts of dead runners could not all be looked for: " + m.Detail)
			default:
				p.ui.say(fmt.Sprintf("attempt %s lost its runner: %s: %s", m.Attempt, m.Action, m.Detail))
			}
		}
	}
}
