package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/projections"
)

// filterUsage says what each filter selects.
var filterUsage = map[projections.Filterable]string{
	projections.ByAttempt: "only of an attempt's `ID`",
	projections.ByChange:  "only of a change's `ID`",
	projections.ByStream:  "only of a `STREAM`",
	projections.ByType:    "only events of a `TYPE`",
	projections.ByActor:   "only by an `ACTOR`",
	projections.ByRuntime: "only the runtime with this `DIGEST`",
	projections.ByState:   "only in a `STATE`: open, closed or abandoned",
	projections.ByKind:    "only of a `KIND`",
	projections.ByStands:  "only those that stand (`yes`) or are void (no)",
}

// viewCommand asks one view by its filters.
func viewCommand(p *program, v projections.View, name, usage string) *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "sort", Usage: "by a `COLUMN`; with a minus before it, from large to small"},
		&cli.StringFlag{Name: "limit", Usage: "at most `N`"},
		formatFlag(),
	}
	if v.Timed() {
		flags = append(flags, timeFlags()...)
	}
	for _, f := range v.Filters() {
		flags = append(flags, &cli.StringFlag{Name: string(f), Usage: filterUsage[f]})
	}
	return &cli.Command{Name: name, Usage: usage, Flags: flags, Action: func(c *cli.Context) error { return p.askView(c, v) }}
}

func timeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "since", Usage: "only since `TIME`: RFC 3339, or an age like 24h"},
		&cli.StringFlag{Name: "until", Usage: "only before `TIME`: RFC 3339, or an age like 24h"},
	}
}

func (p *program) askView(c *cli.Context, v projections.View) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	format, err := p.format(c)
	if err != nil {
		return err
	}
	q := projections.Query{Where: map[projections.Filterable]string{}, Sort: c.String("sort")}
	for _, f := range v.Filters() {
		if s := c.String(string(f)); s != "" {
			q.Where[f] = s
		}
	}
	if err := times(c, &q.Since, &q.Until); err != nil {
		return err
	}
	if q.Limit, err = limitFlag(c); err != nil {
		return err
	}
	if err := v.Check(q); err != nil {
		return usage("%w", err)
	}
	return withHome(c, actorOperator, func(h *home) error {
		return p.withProjections(c.Context, h, func(pr *projections.Projections) error {
			t, err := pr.Ask(c.Context, v, q)
			if err != nil {
				return err
			}
			return p.writeTable(t, format)
		})
	})
}

// times reads --since and --until, where the verb has them.
func times(c *cli.Context, from, to *time.Time) (err error) {
	now := time.Now()
	for name, at := range map[string]*time.Time{"since": from, "until": to} {
		if s := c.String(name); s != "" {
			if *at, err = moment(name, s, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// limitFlag reads --limit; 0 is none.
func limitFlag(c *cli.Context) (int, error) {
	s := c.String("limit")
	if s == "" {
		return 0, nil
	}
	n, err := parseCount("--limit", s)
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
	q := projections.OutcomeQuery{Change: c.String("change")}
	switch by := c.String("by"); by {
	case "hour", "day", "month":
		q.Period = projections.Period(by)
	default:
		return usage("--by %q is none of hour, day, month", by)
	}
	if err := times(c, &q.Since, &q.Until); err != nil {
		return err
	}
	return withHome(c, actorOperator, func(h *home) error {
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
	return withHome(c, actorOperator, func(h *home) error {
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

// attemptTable is attempts as a table, with times people can read.
func attemptTable(rows []projections.AttemptRow) projections.Table {
	t := projections.Table{Columns: projections.AttemptColumns(), Rows: [][]any{}}
	for i := range rows {
		t.Rows = append(t.Rows, rows[i].Values())
	}
	for i, name := range t.Columns {
		if name != "registered" && name != "claimed" && name != "finished" {
			continue
		}
		t.Columns[i] += "_at"
		for _, r := range t.Rows {
			if ns, ok := r[i].(int64); ok {
				r[i] = stamp(ns)
			}
		}
	}
	return t
}
