package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/projections"
)

func queryCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "query",
		Usage: "ask what the ledger holds",
		Subcommands: []*cli.Command{
			viewCommand(p, projections.AttemptsView, "attempts", "list attempts, the latest first", p.askAttempts),
			viewCommand(p, projections.CustodyView, "custody", "list daemon objects that exist, existed or may exist", nil),
			viewCommand(p, projections.AdmissionsView, "admissions", "list approvals and integrations, the latest first", nil),
			viewCommand(p, projections.RuntimesView, "runtimes", "list the runtimes that attempts ran on", nil),
			viewCommand(p, projections.QualificationsView, "qualifications", "list what probes and canaries saw of runtimes, the latest first", nil),
			viewCommand(p, projections.TimelineView, "timeline", "list events in the ledger's order; with --limit the latest", nil),
			outcomesCommand(p),
			sqlCommand(p),
		},
	}
}

// askAttempts prints attempts: as JSON with the members of their schema, as a table with the columns a
// terminal has room for.
func (p *program) askAttempts(ctx context.Context, pr *projections.Projections, q projections.Query, format string) error {
	rows, err := pr.Attempts(ctx, q)
	if err != nil {
		return err
	}
	switch format {
	case formatJSON:
		return p.ui.printJSON(rows)
	case formatNDJSON:
		return writeLines(p.ui.out, rows)
	case formatTable:
		return p.writeAttempts(rows)
	}
	return p.writeTable(attemptTable(rows), format)
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
