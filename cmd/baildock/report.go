package main

import (
	"bytes"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/export/report"
	"github.com/baildock/baildock/export/verify"
)

func reportCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "verify a bundle and write what it shows, for people",
		ArgsUsage: "FILE",
		Flags: []cli.Flag{
			keyFlag(),
			&cli.StringFlag{Name: "format", Value: "text", Usage: "text or json"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`; stdout when omitted"},
		},
		Action: p.report,
	}
}

func (p *program) report(c *cli.Context) error {
	format := c.String("format")
	if p.ui.json {
		if c.IsSet("format") && format != "json" {
			return usage("--json contradicts --format %s", format)
		}
		format = "json"
	}
	if format != "text" && format != "json" {
		return usage("--format %q is neither text nor json", format)
	}
	r, err := p.verified(c, verify.Policy{})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if format == "json" {
		doc, err := encodeJSON(r, "  ")
		if err != nil {
			return err
		}
		b.Write(doc)
	} else if err := report.Text(&b, r); err != nil {
		return err
	}
	if path := c.String("output"); path != "" {
		if err := replaceFile(path, 0o644, b.Bytes()); err != nil {
			return err
		}
	} else if _, err := p.ui.out.Write(b.Bytes()); err != nil {
		return err
	}
	return exitWith(verifyExit(r))
}
