package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/canary"
)

func canaryCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "canary",
		Usage: "what is tried at a container's boundary to qualify a runtime",
		Subcommands: []*cli.Command{
			{Name: "list", Usage: "list the corpus of command/v1: what each canary shows, tries and must get", Action: p.canaryList},
		},
	}
}

// corpusDocument is the corpus as JSON.
type corpusDocument struct {
	Corpus   evidence.CorpusDigest `json:"corpus"`
	Profile  evidence.ProfileName  `json:"profile"`
	Canaries []canary.Canary       `json:"canaries"`
}

func (p *program) canaryList(*cli.Context) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	all, digest := canary.All(), canary.Corpus().Digest()
	if p.ui.json {
		return p.ui.printJSON(corpusDocument{Corpus: digest, Profile: evidence.ProfileCommand, Canaries: all})
	}
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, c := range all {
		fmt.Fprintf(w, "%s (%s): %s\n", c.Name, c.Outcome, c.Shows)
		for _, s := range c.Steps {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", tries(s), must(s), s.Why)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(p.ui.out, strings.TrimRight(line, " \n"))
	}
	p.note("%d canaries of %s, corpus %s; a pass covers no escape through the kernel or runc, no side channel and no other runtime or profile",
		len(all), evidence.ProfileCommand, digest)
	return nil
}

func tries(s canary.Step) string { return strings.TrimSpace(string(s.Action) + " " + s.On) }

// must is what a step must get, in words.
func must(s canary.Step) string {
	var out []string
	switch {
	case s.Value != nil && *s.Value == "":
		out = append(out, "nothing")
	case s.Value != nil:
		out = append(out, strings.ReplaceAll(*s.Value, "\n", " | "))
	}
	return strings.Join(append(out, s.Errnos...), " or ")
}

// canarySelfCommand is what runs inside a canary's container.
func canarySelfCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "canary-self", Hidden: true,
		Action: func(*cli.Context) error {
			args, err := p.positional("NAME")
			if err != nil {
				return err
			}
			c, ok := canary.Find(evidence.CanaryName(args[0]))
			if !ok {
				return usage("canary %q is not in the corpus", args[0]).hint("baildock canary list shows it")
			}
			return canary.Run(c, p.ui.out)
		},
	}
}
