package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/export/report"
	"github.com/baildock/baildock/ledger"
)

// judgeCommands are the verbs that judge a change.
func judgeCommands(p *program) []*cli.Command {
	explain := &cli.BoolFlag{Name: "explain", Usage: "with every rule and the event that satisfied or broke it"}
	repository := &cli.StringFlag{Name: "repository", Usage: "where the change's repository lies, if not where it was opened: `PATH`"}
	return []*cli.Command{
		{Name: "approve", Usage: "approve the present context, if it is admitted", ArgsUsage: "ID", Flags: []cli.Flag{explain, repository}, Action: p.changeApprove},
		{Name: "integrate", Usage: "record that the approved context was integrated; no ref is moved", ArgsUsage: "ID", Flags: []cli.Flag{explain}, Action: p.changeIntegrate},
	}
}

// judgementView is how an approval or an integration went.
type judgementView struct {
	Change   evidence.ChangeID `json:"change"`
	What     string            `json:"what"` // approve, integrate
	Admitted bool              `json:"admitted"`
	Void     *ledger.Index     `json:"void,omitempty"`    // stored, and void: the event there came before it
	Index    *ledger.Index     `json:"index"`             // of the stored judgement; null: refused
	Already  bool              `json:"already,omitempty"` // it was stored before
	Decision evidence.Decision `json:"decision"`
}

func (p *program) changeApprove(c *cli.Context) error {
	id, err := p.changeArgument()
	if err != nil {
		return err
	}
	return withHome(c, actorOperator, func(h *home) error {
		diff, err := h.pathDiff(c, id)
		if err != nil {
			return err
		}
		j, err := h.journal.Approve(c.Context, id, diff)
		return p.judged(c, id, "approve", j, err)
	})
}

func (p *program) changeIntegrate(c *cli.Context) error {
	id, err := p.changeArgument()
	if err != nil {
		return err
	}
	return withHome(c, actorOperator, func(h *home) error {
		j, err := h.journal.Integrate(c.Context, id)
		return p.judged(c, id, "integrate", j, err)
	})
}

// pathDiff compares the present revision with its parent where the context asks for it.
func (h *home) pathDiff(c *cli.Context, id evidence.ChangeID) (*journal.PathDiff, error) {
	ch, err := h.journal.Change(c.Context, id)
	if err != nil {
		return nil, err
	}
	f := ch.Fold
	if f.Context == nil || len(f.Context.AllowPaths) == 0 {
		return nil, nil
	}
	path := c.String("repository")
	if path == "" {
		if path, err = h.locate(f.Opened.Repository); err != nil {
			return nil, err
		}
	}
	d, err := source.Differ(c.Context, path, f.Revision)
	if err != nil {
		return nil, err
	}
	return &journal.PathDiff{Parent: d.Parent, Revision: f.Revision, Touched: d.Touched}, nil
}

// judged prints how a judgement went: exit 1 when it was refused, with all reasons, or is void.
func (p *program) judged(c *cli.Context, id evidence.ChangeID, what string, j journal.Judgement, err error) error {
	v := judgementView{Change: id, What: what, Admitted: err == nil, Already: j.Already, Decision: j.Decision}
	var refused *journal.NotAdmittedError
	var void *journal.VoidJudgementError
	switch {
	case errors.As(err, &refused):
		v.Decision = refused.Decision
	case errors.As(err, &void):
		v.Void, v.Index = &void.Index, &void.Stored.Index
	case err != nil:
		return err
	default:
		v.Index = &j.Event.Index
	}
	if p.ui.json {
		if err := p.ui.printJSON(v); err != nil {
			return err
		}
	} else if err := p.printf("%s", v.text(p.ui, c.Bool("explain"))); err != nil {
		return err
	}
	if !v.Admitted {
		return exitWith(exitFailed)
	}
	return nil
}

func (v judgementView) text(u *ui, all bool) string {
	done := map[string]string{"approve": "approved", "integrate": "integrated"}[v.What]
	var b strings.Builder
	switch {
	case v.Admitted && v.Already:
		fmt.Fprintf(&b, "%s  %s, at index %d already\n", u.strong(done, true), v.Change, *v.Index)
	case v.Admitted:
		fmt.Fprintf(&b, "%s  %s, at index %d\n", u.strong(done, true), v.Change, *v.Index)
	case v.Void != nil:
		fmt.Fprintf(&b, "%s  %s: stored at index %d, but the event at index %d came before it\n", u.strong("void", false), v.Change, *v.Index, *v.Void)
	default:
		fmt.Fprintf(&b, "%s  %s: not %s\n", u.strong("refused", false), v.Change, done)
	}
	fmt.Fprintf(&b, "  attempts  %s\n", v.Decision.Tally)
	rulings := v.Decision.Broken()
	if all {
		rulings = v.Decision.Rulings
	}
	for _, line := range report.Rulings(rulings) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}

// decisionText explains what admission would say now.
func decisionText(d evidence.Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "admission %s; %s\n", map[bool]string{true: "would be granted", false: "would be refused"}[d.Admitted], d.Tally)
	for _, line := range report.Rulings(d.Rulings) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}
