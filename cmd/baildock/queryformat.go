package main

import (
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/projections"
)

// Formats of an answer.
const (
	formatTable  = "table"
	formatCSV    = "csv"
	formatJSON   = "json"
	formatNDJSON = "ndjson"
)

var formats = []string{formatTable, formatCSV, formatJSON, formatNDJSON}

func formatFlag() cli.Flag {
	return &cli.StringFlag{Name: "format", Value: formatTable, Usage: "`FORMAT`: table, csv, json or ndjson"}
}

// format is what an answer is to be written as; --json asks for one JSON document.
func (p *program) format(c *cli.Context) (string, error) {
	switch f := c.String("format"); {
	case p.ui.json && (!c.IsSet("format") || f == formatJSON):
		return formatJSON, nil
	case p.ui.json:
		return "", usage("--json and --format %s exclude each other", f)
	case f == formatTable || f == formatCSV || f == formatJSON || f == formatNDJSON:
		return f, nil
	default:
		return "", usage("--format %q is none of table, csv, json, ndjson", f)
	}
}

// writeTable writes an answer.
func (p *program) writeTable(t projections.Table, format string) error {
	switch format {
	case formatCSV:
		return writeCSV(p.ui.out, t)
	case formatJSON:
		objects := make([]orderedRow, len(t.Rows))
		for i, r := range t.Rows {
			objects[i] = orderedRow{t.Columns, r}
		}
		return p.ui.printJSON(objects)
	case formatNDJSON:
		objects := make([]orderedRow, len(t.Rows))
		for i, r := range t.Rows {
			objects[i] = orderedRow{t.Columns, r}
		}
		return writeLines(p.ui.out, objects)
	}
	if len(t.Rows) == 0 {
		p.note("no rows")
		return nil
	}
	w := tabwriter.NewWriter(p.ui.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.Join(t.Columns, "\t")))
	for _, r := range t.Rows {
		cells := make([]string, len(r))
		for i, v := range r {
			cells[i] = visible(dash(cell(v)))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// writeLines writes a JSON object a line.
func writeLines[T any](w io.Writer, rows []T) error {
	for _, r := range rows {
		b, err := encodeJSON(r, "")
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// cell is a value as text.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []byte:
		return hex.EncodeToString(v)
	case time.Time:
		return stamp(v.UnixNano())
	}
	return fmt.Sprint(v)
}

// writeCSV writes RFC 4180 with a head line. A text that a spreadsheet would take for a formula gets an
// apostrophe before it.
func writeCSV(w io.Writer, t projections.Table) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(t.Columns); err != nil {
		return err
	}
	for _, r := range t.Rows {
		cells := make([]string, len(r))
		for i, v := range r {
			cells[i] = cell(v)
			if text, ok := v.(string); ok {
				cells[i] = harmless(text)
			}
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// harmless keeps a text from being taken for a formula.
func harmless(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}

// orderedRow is a JSON object whose members are in the order of the columns.
type orderedRow struct {
	columns []string
	values  []any
}

func (r orderedRow) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, name := range r.columns {
		v := r.values[i]
		if raw, ok := v.([]byte); ok {
			v = hex.EncodeToString(raw)
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, key...), ':'), value...)
	}
	return append(b, '}'), nil
}
