package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

func sourceCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "source",
		Usage: "look at what a run would mount",
		Subcommands: []*cli.Command{{
			Name:      "digest",
			Usage:     "print the manifest digest of a directory as it lies, or of a commit",
			ArgsUsage: "PATH[@REV]",
			Flags:     []cli.Flag{socketFlag()},
			Action:    p.sourceDigest,
		}},
	}
}

func (p *program) sourceDigest(c *cli.Context) error {
	args, err := p.positional("PATH[@REV]")
	if err != nil {
		return err
	}
	subject, err := resolveSource(c.Context, args[0])
	if err != nil {
		return err
	}
	reserved, err := reservedIn(c)
	if err != nil {
		return err
	}
	content, err := source.Digest(c.Context, subject, reserved)
	if err != nil {
		return err
	}
	digest, err := content.Manifest.Digest()
	if err != nil {
		return err
	}
	type skipped struct {
		Path string `json:"path"`
		Why  string `json:"why"`
	}
	v := struct {
		Manifest evidence.ManifestDigest `json:"manifest"`
		Kind     evidence.SubjectKind    `json:"kind"`
		Revision string                  `json:"revision,omitempty"`
		Entries  int                     `json:"entries"`
		Bytes    uint64                  `json:"bytes"`
		Skipped  []skipped               `json:"skipped"`
	}{
		Manifest: digest, Kind: subject.Kind, Revision: subject.Revision,
		Entries: len(content.Manifest.Entries), Bytes: content.Manifest.Bytes(), Skipped: []skipped{},
	}
	for _, s := range content.Skipped {
		v.Skipped = append(v.Skipped, skipped{Path: s.Path, Why: string(s.Why)})
	}
	if p.ui.json {
		return p.ui.printJSON(v)
	}
	if err := p.printf("%s\n", digest); err != nil {
		return err
	}
	p.note("%d entries, %d bytes%s", v.Entries, v.Bytes, revisionText(v.Revision))
	for _, s := range v.Skipped {
		p.note("skipped %s: %s", visible(s.Path), s.Why)
	}
	return nil
}

func revisionText(rev string) string {
	if rev == "" {
		return ", a directory as it lies"
	}
	return ", commit " + rev
}

func resolveSource(ctx context.Context, text string) (source.Subject, error) {
	loc, err := source.ParseLocator(text)
	if err != nil {
		return source.Subject{}, err
	}
	return source.Resolve(ctx, loc)
}
