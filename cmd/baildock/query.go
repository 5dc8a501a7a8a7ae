package main

import (
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/projections"
)

func queryCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "query",
		Usage: "ask what the ledger holds",
		Subcommands: []*cli.Command{{
			Name:  "attempts",
			Usage: "list attempts, the latest first",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "outcome", Usage: "only those that ended so: `OUTCOME`"},
				&cli.StringFlag{Name: "state", Usage: "only those in `STATE`: pending, running or finished"},
				&cli.StringFlag{Name: "revision", Usage: "only those of `REVISION`: a commit or manifest digest, or its first digits"},
				&cli.StringFlag{Name: "change", Usage: "only those of a change's `ID`"},
				&cli.StringFlag{Name: "since", Usage: "only those registered since `TIME`: RFC 3339, or an age like 24h"},
				&cli.StringFlag{Name: "limit", Usage: "at most `N`"},
				formatFlag(),
			},
			Action: p.queryAttempts,
		},
			viewCommand(p, projections.CustodyView, "custody", "list daemon objects that exist, existed or may exist"),
			viewCommand(p, projections.AdmissionsView, "admissions", "list approvals and integrations, the latest first"),
			viewCommand(p, projections.RuntimesView, "runtimes", "list the runtimes that attempts ran on"),
			viewCommand(p, projections.TimelineView, "timeline", "list events in the ledger's order; with --limit the latest"),
			outcomesCommand(p),
			sqlCommand(p),
		},
	}
}

func (p *program) queryAttempts(c *cli.Context) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	f, err := attemptFilter(c, time.Now())
	if err != nil {
		return err
	}
	format, err := p.format(c)
	if err != nil {
		return err
	}
	return readHome(c, func(h *home) error {
		return p.withProjections(c.Context, h, func(pr *projections.Projections) error {
			rows, err := pr.Attempts(c.Context, f)
			if err != nil {
				return err
			}
			switch format {
			case formatJSON:
				return p.ui.printJSON(rows)
			case formatTable:
				return p.writeAttempts(rows)
			}
			return p.writeTable(attemptTable(rows), format)
		})
	})
}

func attemptFilter(c *cli.Context, now time.Time) (projections.Filter, error) {
	f := projections.Filter{
		Outcome: evidence.Outcome(c.String("outcome")), State: evidence.State(c.String("state")), Revision: c.String("revision"),
	}
	if f.Outcome != "" && !slices.Contains(evidence.Outcomes(), f.Outcome) {
		return f, usage("--outcome %q is none of %v", f.Outcome, evidence.Outcomes())
	}
	states := []evidence.State{evidence.StatePending, evidence.StateRunning, evidence.StateFinished}
	if f.State != "" && !slices.Contains(states, f.State) {
		return f, usage("--state %q is none of %v", f.State, states)
	}
	var err error
	if s := c.String("change"); s != "" {
		if f.Change, err = evidence.ParseChangeID(s); err != nil {
			return f, usage("--change: %w", err)
		}
	}
	if s := c.String("since"); s != "" {
		if f.Since, err = moment("since", s, now); err != nil {
			return f, err
		}
	}
	f.Limit, err = limitFlag(c)
	return f, err
}

func moment(flag, s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, usage("--%s %q is neither a time like 2006-01-02T15:04:05Z nor an age like 24h", flag, s)
	}
	return t, nil
}

func (p *program) writeAttempts(rows []projections.AttemptRow) error {
	if len(rows) == 0 {
		p.note("no attempts")
		return nil
	}
	w := tabwriter.NewWriter(p.ui.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ATTEMPT\tSTATE\tOUTCOME\tDETAIL\tEXIT\tCLAIM\tREVISION\tREGISTERED")
	for _, r := range rows {
		exit := "-"
		if r.ExitCode != nil {
			exit = fmt.Sprint(*r.ExitCode)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Attempt, r.State, dash(string(r.Outcome)), dash(r.Detail), exit,
			r.Claim, dash(short(r.Revision)), r.RegisteredAt.UTC().Format(time.RFC3339))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Problem != "" {
			p.note("%s can't be read further: %s", r.Attempt, visible(r.Problem))
		}
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// short is as much of a revision as a table has room for.
func short(s string) string {
	const digits = 19 // `sha256:` and twelve digits
	return s[:min(len(s), digits)]
}
