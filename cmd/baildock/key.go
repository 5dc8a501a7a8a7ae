package main

import (
	"crypto/rand"
	"errors"
	"io/fs"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
)

func keyCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "key",
		Usage: "the ledger's keys",
		Subcommands: []*cli.Command{
			{
				Name:   "public",
				Usage:  "print ledger.pub: what a reviewer trusts about this ledger",
				Flags:  []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`"}},
				Action: p.keyPublic,
			},
			{
				Name:      "generate",
				Usage:     "make a private key: bundle (ECDSA P-256) or checkpoint (Ed25519)",
				ArgsUsage: "bundle|checkpoint",
				Flags:     []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "new `FILE` for it, mode 0600"}},
				Action:    p.keyGenerate,
			},
		},
	}
}

func (p *program) keyPublic(c *cli.Context) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	return readHome(c, func(h *home) error {
		id := bundle.IdentityOf(h.genesis)
		text, err := bundle.FormatIdentity(id)
		if err != nil {
			return err
		}
		if path := c.String("output"); path != "" {
			if err := replaceFile(path, 0o644, []byte(text)); err != nil {
				return err
			}
		}
		switch {
		case p.ui.json:
			return p.ui.printJSON(struct {
				Ledger     evidence.LedgerID `json:"ledger"`
				Origin     string            `json:"origin"`
				Bundle     string            `json:"bundle"`
				Checkpoint string            `json:"checkpoint"`
			}{id.ID, id.Origin, string(bundle.FormatKey(id.Bundle)), string(bundle.FormatKey(id.Checkpoint))})
		case c.String("output") != "":
			return nil
		}
		return p.printf("%s", text)
	})
}

func (p *program) keyGenerate(c *cli.Context) error {
	args, err := p.positional("bundle|checkpoint")
	if err != nil {
		return err
	}
	path := c.String("output")
	if path == "" {
		return usage("--output is missing").hint("a private key goes to a file of its own: -o FILE")
	}
	var (
		pem  []byte
		spki []byte
	)
	switch role := evidence.KeyRole(args[0]); role {
	case evidence.RoleBundle:
		if pem, err = export.GenerateBundleKey(rand.Reader); err != nil {
			return err
		}
		k, err := export.ParseBundleKey(pem, export.NoPassword)
		if err != nil {
			return err
		}
		spki = k.SPKI()
	case evidence.RoleCheckpoint:
		if pem, err = export.GenerateCheckpointKey(rand.Reader); err != nil {
			return err
		}
		k, err := export.ParseCheckpointKey(pem, export.NoPassword)
		if err != nil {
			return err
		}
		spki = k.SPKI()
	default:
		return usage("key role %q is neither bundle nor checkpoint", role)
	}
	if err := export.WriteKey(path, pem); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fail(exitUsage, "file_exists", "file %q exists already", path).hint("a key never replaces a file: name a new one")
		}
		return unwritable(path, err)
	}
	if p.ui.json {
		return p.ui.printJSON(struct {
			File   string         `json:"file"`
			Role   string         `json:"role"`
			Key    evidence.KeyID `json:"key"`
			Public string         `json:"public"`
		}{path, args[0], evidence.KeyIDOf(spki), string(bundle.FormatKey(spki))})
	}
	return p.printf("%s", bundle.FormatKey(spki))
}
