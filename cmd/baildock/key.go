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
	newFile := &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "new `FILE` for it, mode 0600"}
	encrypt := &cli.BoolFlag{Name: "encrypt", Usage: "with a password: " + passwordVariable + ", or asked for"}
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
				Flags:     []cli.Flag{newFile, encrypt},
				Action:    p.keyGenerate,
			},
			{
				Name:      "import",
				Usage:     "copy a private key that another tool made: PKCS#8, SEC 1, cosign's, encrypted or not",
				ArgsUsage: "bundle|checkpoint FILE",
				Flags:     []cli.Flag{newFile, encrypt},
				Action:    p.keyImport,
			},
			{
				Name:   "list",
				Usage:  "list the ledger's keys, live and retired, and which of them lie here",
				Action: p.keyList,
			},
			{
				Name:      "add",
				Usage:     "make a key live, endorsed by one that is; from then on this home signs with it",
				ArgsUsage: "bundle|checkpoint FILE|REFERENCE",
				Flags:     []cli.Flag{kmsFlag()},
				Action:    p.keyAdd,
			},
			{
				Name:      "retire",
				Usage:     "end a key's validity, endorsed by another live one",
				ArgsUsage: "bundle|checkpoint KEY",
				Flags:     []cli.Flag{kmsFlag()},
				Action:    p.keyRetire,
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
	role, err := parseRole(args[0])
	if err != nil {
		return err
	}
	generate := export.GenerateBundleKey
	if role == evidence.RoleCheckpoint {
		generate = export.GenerateCheckpointKey
	}
	text, err := generate(rand.Reader)
	if err != nil {
		return err
	}
	return p.storeKey(c, role, text)
}

func (p *program) keyImport(c *cli.Context) error {
	args, err := p.positional("bundle|checkpoint", "FILE")
	if err != nil {
		return err
	}
	role, err := parseRole(args[0])
	if err != nil {
		return err
	}
	text, err := export.ReadKeyFile(args[1])
	if err == nil {
		text, err = export.PlainKey(text, p.keyPassword)
	}
	if err != nil {
		return keyFailure(args[1], err)
	}
	return p.storeKey(c, role, text)
}

func parseRole(s string) (evidence.KeyRole, error) {
	role := evidence.KeyRole(s)
	if role != evidence.RoleBundle && role != evidence.RoleCheckpoint {
		return "", usage("key role %q is neither bundle nor checkpoint", s)
	}
	return role, nil
}

// storeKey writes a plain private key to the file that --output names, encrypted if asked, and
// prints its public half.
func (p *program) storeKey(c *cli.Context, role evidence.KeyRole, plain []byte) error {
	path := c.String("output")
	if path == "" {
		return usage("--output is missing").hint("a private key goes to a file of its own: -o FILE")
	}
	spki, err := publicHalf(role, plain, export.NoPassword)
	if err != nil {
		return fail(exitUsage, "key_unreadable", "%w", err)
	}
	text := plain
	if c.Bool("encrypt") {
		if text, err = export.EncryptKey(plain, export.NoPassword, p.keyPassword); err != nil {
			return keyFailure(path, err)
		}
	}
	if err := export.WriteKey(path, text); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fail(exitUsage, "file_exists", "file %q exists already", path).hint("a key never replaces a file: name a new one")
		}
		return unwritable(path, err)
	}
	if p.ui.json {
		return p.ui.printJSON(struct {
			File   string           `json:"file"`
			Role   evidence.KeyRole `json:"role"`
			Key    evidence.KeyID   `json:"key"`
			Public string           `json:"public"`
		}{path, role, evidence.KeyIDOf(spki), string(bundle.FormatKey(spki))})
	}
	return p.printf("%s", bundle.FormatKey(spki))
}

// publicHalf is the SubjectPublicKeyInfo of a private key of that role.
func publicHalf(role evidence.KeyRole, text []byte, pass export.PassFunc) ([]byte, error) {
	if role == evidence.RoleCheckpoint {
		k, err := export.ParseCheckpointKey(text, pass)
		return k.SPKI(), err
	}
	k, err := export.ParseBundleKey(text, pass)
	return k.SPKI(), err
}
