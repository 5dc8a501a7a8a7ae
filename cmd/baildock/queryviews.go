package main

import (
	"context"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/projections"
)

// filterUsage says what each filter selects.
var filterUsage = map[projections.Filterable]string{
	projections.ByAttempt:  "only of an attempt's `ID`, a prefix that only one has, or @last",
	projections.ByChange:   "only of a change's `ID`",
	projections.ByRevision: "only of a `REVISION`: a commit or manifest digest, or its first digits",
	projections.ByRecipe:   "only of the recipe with this `DIGEST`, or its first digits",
	projections.ByRuntime:  "only of the runtime with this `DIGEST`, or its first digits",
	projections.ByOutcome:  "only of attempts that ended so: `OUTCOME`",
	projections.ByClaim:    "only with this `CLAIM`: none, full or reduced",
	projections.ByStream:   "only of a `STREAM`",
	projections.ByPolicy:   "only of a policy's `ID`",
	projections.ByType:     "only events of a `TYPE`",
	projections.ByActor:    "only by an `ACTOR`: operator, runner, supervisor or another name",
	projections.ByStands:   "only those that stand (`yes`) or are void (no)",
	projections.ByCanary:   "only of a canary's `NAME`; seccomp is the probe",
	projections.ByVerdict:  "only with this `VERDICT`: held, not_held",
}

// Filters that mean something else for each view.
var (
	stateUsage = map[string]string{
		projections.AttemptsView.Name: "only those in a `STATE`: pending, running or finished",
		projections.CustodyView.Name:  "only in a `STATE`: open, closed or abandoned",
	}
	kindUsage = map[string]string{
		projections.CustodyView.Name:    "only of a `KIND`: container or network",
		projections.AdmissionsView.Name: "only of a `KIND`: approval or integration",
	}
)

func usageOf(v projections.View, f projections.Filterable) string {
	switch f {
	case projections.ByState:
		return stateUsage[v.Name]
	case projections.ByKind:
		return kindUsage[v.Name]
	}
	return filterUsage[f]
}

// asker answers a question about a view and prints the answer.
type asker func(context.Context, *projections.Projections, projections.Query, string) error

// viewCommand asks one view by its filters. ask is nil where its rows are printed as they are.
func viewCommand(p *program, v projections.View, name, usage string, ask asker) *cli.Command {
	if ask == nil {
		ask = func(ctx context.Context, pr *projections.Projections, q projections.Query, format string) error {
			t, err := pr.Ask(ctx, v, q)
			if err != nil {
				return err
			}
			return p.writeTable(t, format)
		}
	}
	flags := []cli.Flag{
		&cli.StringFlag{Name: "sort", Usage: "by a `COLUMN`, from small to large; COLUMN:desc the other way"},
		&cli.StringFlag{Name: "limit", Usage: "at most `N`"},
		formatFlag(),
	}
	if v.Timed() {
		flags = append(flags, timeFlags()...)
	}
	for _, f := range v.Filters() {
		flags = append(flags, &cli.StringFlag{Name: string(f), Usage: usageOf(v, f)})
	}
	return &cli.Command{Name: name, Usage: usage, Flags: flags, Action: func(c *cli.Context) error { return p.askView(c, v, ask) }}
}

func timeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "since", Usage: "only since `TIME`: RFC 3339, or an age like 24h"},
		&cli.StringFlag{Name: "until", Usage: "only before `TIME`: RFC 3339, or an age like 24h"},
	}
}

func (p *program) askView(c *cli.Context, v projections.View, ask asker) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	format, err := p.format(c)
	if err != nil {
		return err
	}
	q := projections.Query{Where: map[projections.Filterable]string{}, Sort: c.String("sort")}
	for _, f := range v.Filters() {
		if c.IsSet(string(f)) {
			q.Where[f] = c.String(string(f))
		}
	}
	if err := times(c, &q.Since, &q.Until); err != nil {
		return err
	}
	if q.Limit, err = limitFlag(c); err != nil {
		return err
	}
	if err := v.Check(q); err != nil {
		return usage("%w", err).hint("see: %s --help", c.Command.HelpName)
	}
	return readHome(c, func(h *home) error {
		return p.withProjections(c.Context, h, func(pr *projections.Projections) error { return ask(c.Context, pr, q, format) })
	})
}

// times reads --since and --until, where the verb has them.
func times(c *cli.Context, from, to *time.Time) (err error) {
	now := time.Now()
	for name, at := range map[string]*time.Time{"since": from, "until": to} {
		if c.IsSet(name) {
			if *at, err = moment(name, c.String(name), now); err != nil {
				return err
			}
		}
	}
	return nil
}

// limitFlag reads --limit; 0 is none.
func limitFlag(c *cli.Context) (int, error) {
	if !c.IsSet("limit") {
		return 0, nil
	}
	n, err := parseCount("--limit", c.String("limit"))
	if err != nil {
		return 0, err
	}
	if n == 0 || n > 1<<31 {
		return 0, usage("--limit %d is outside 1 to %d", n, 1<<31)
	}
	return int(n), nil
}

func outcomesCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "outcomes", Usage: "how many attempts ended how, over time",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "by", Value: "day", Usage: "`PERIOD`: hour, day or month, in UTC"},
			&cli.StringFlag{Name: "change", Usage: "only of a change's `ID`"},
			formatFlag(),
		}, timeFlags()...),
		Action: p.queryOutcomes,
	}
}

func (p *program) queryOutcomes(c *cli.Context) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	format, err := p.format(c)
	if err != nil {
		return err
	}
	q := projections.OutcomeQuery{}
	if c.IsSet("change") {
		if q.Change, err = evidence.ParseChangeID(c.String("change")); err != nil {
			return usage("--change: %w", err)
		}
	}
	switch by := c.String("by"); by {
	case "hour", "day", "month":
		q.Period = projections.Period(by)
	default:
		return usage("--by %q is none of hour, day, month", by)
	}
	if err := times(c, &q.Since, &q.Until); err != nil {
		return err
	}
	return readHome(c, func(h *home) error {
		return p.withProjections(c.Context, h, func(pr *projections.Projections) error {
			t, err := pr.Outcomes(c.Context, q)
			if err != nil {
				return err
			}
			if format == formatTable {
				t = withBars(t)
			}
			return p.writeTable(t, format)
		})
	})
}

const barWidth = 40

// withBars adds a bar to each row, as long as its count against the largest.
func withBars(t projections.Table) projections.Table {
	last := len(t.Columns) - 1
	var most int64 = 1
	for _, r := range t.Rows {
		if n, ok := r[last].(int64); ok {
			most = max(most, n)
		}
	}
	t.Columns = append(t.Columns, "")
	for i, r := range t.Rows {
		n, _ := r[last].(int64)
		t.Rows[i] = append(r, strings.Repeat("#", int(max(1, n*barWidth/most))))
	}
	return t
}

func sqlCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "sql", Usage: "answer a SELECT over the views; nothing can be written", ArgsUsage: "[STATEMENT]",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "schema", Usage: "list the views and their columns"}, formatFlag()},
		Action: p.querySQL,
	}
}

func (p *program) querySQL(c *cli.Context) error {
	format, err := p.format(c)
	if err != nil {
		return err
	}
	var statement string
	if c.Bool("schema") {
		_, err = p.positional()
	} else {
		var args []string
		if args, err = p.positional("STATEMENT"); err == nil {
			statement = args[0]
		}
	}
	if err != nil {
		return err
	}
	return readHome(c, func(h *home) error {
		return p.withProjections(c.Context, h, func(pr *projections.Projections) error {
			if c.Bool("schema") {
				columns, err := pr.Schema(c.Context)
				if err != nil {
					return err
				}
				t := projections.Table{Columns: []string{"view", "column", "type"}, Rows: [][]any{}}
				for _, x := range columns {
					t.Rows = append(t.Rows, []any{x.View, x.Name, x.Type})
				}
				return p.writeTable(t, format)
			}
			t, err := pr.SQL(c.Context, statement)
			if err != nil {
				return err
			}
			return p.writeTable(t, format)
		})
	})
}

// attemptTable is attempts as a table.
func attemptTable(rows []projections.AttemptRow) projections.Table {
	t := projections.Table{Columns: projections.AttemptColumns(), Rows: [][]any{}}
	for i := range rows {
		t.Rows = append(t.Rows, rows[i].Values())
	}
	return t
}
