package main

import (
	"bytes"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/export/report"
)

func reportCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "verify a bundle and write what it shows, for people",
		ArgsUsage: "FILE",
		Flags: []cli.Flag{
			keyFlag(),
			policyFlag(),
			&cli.StringFlag{Name: "format", Value: "text", Usage: "text, markdown, html or json"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`; stdout when omitted"},
		},
		Action: p.report,
	}
}

func (p *program) report(c *cli.Context) error {
	format, err := report.ParseFormat(c.String("format"))
	if err != nil {
		return usage("--format: %w", err)
	}
	if p.ui.json {
		if c.IsSet("format") && format != report.FormatJSON {
			return usage("--json contradicts --format %s", format)
		}
		format = report.FormatJSON
	}
	policy, err := askedFor(c)
	if err != nil {
		return err
	}
	r, err := p.verified(c, policy)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := report.Write(&b, format, report.Of(r)); err != nil {
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
