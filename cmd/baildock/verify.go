package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/report"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger/witness"
)

func verifyCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "check a bundle offline: no ledger, no network, no Docker",
		ArgsUsage: "FILE",
		Flags: []cli.Flag{
			keyFlag(),
			&cli.StringFlag{Name: "require", Value: string(verify.Authentic), Usage: "`LEVEL` that exit 0 means: authentic, success, admitted or full"},
			&cli.BoolFlag{Name: "explain", Usage: "also show what the bundle holds"},
			&cli.StringFlag{Name: "checkpoint", Usage: "a checkpoint of the ledger that you kept, in `FILE`"},
			policyFlag(),
			&cli.StringFlag{Name: "source", Usage: "also require every attempt to be about this source: a repository or directory `PATH`, or PATH@REV"},
			socketFlag(),
			&cli.StringSliceFlag{Name: "allow-withheld", Usage: "accept that these `CLASSES` are withheld"},
		},
		Action: p.verify,
	}
}

func policyFlag() cli.Flag {
	return &cli.StringFlag{Name: "policy", Usage: "everything you trust and ask for, in a JSON `FILE` (baildock schema verification-policy); or a witness policy: whose cosignatures the checkpoint must have"}
}

func keyFlag() cli.Flag {
	return &cli.StringFlag{Name: "key", Usage: "whom to trust: a ledger.pub `FILE`, or the PEM of a bundle key"}
}

func (p *program) verify(c *cli.Context) error {
	policy, err := askedFor(c)
	if err != nil {
		return err
	}
	r, err := p.verified(c, policy)
	if err != nil {
		return err
	}
	if text := c.String("source"); text != "" {
		if err := p.aboutSource(c, text, &r); err != nil {
			return err
		}
	}
	if p.ui.json {
		if err := p.ui.printJSON(r); err != nil {
			return err
		}
		return exitWith(verifyExit(r))
	}
	var b strings.Builder
	write := report.Verification
	if c.Bool("explain") {
		write = report.Text
	}
	if err := write(&b, r); err != nil {
		return err
	}
	if err := p.printf("%s", b.String()); err != nil {
		return err
	}
	if r.Keys.Trusted == nil {
		p.note("hint: nobody is trusted yet: --key ledger.pub, from whoever keeps the ledger")
	}
	return exitWith(verifyExit(r))
}

// keptNote reads the checkpoint that a reader kept: a note, or a request that holds one. Whether it is
// one at all the verification says.
func keptNote(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readBounded(path, witness.MaxRequest)
	if err != nil || !witness.IsRequest(text) {
		return text, err
	}
	r, err := witness.ParseRequest(text)
	if err != nil {
		return nil, fail(exitUsage, codeNoCheckpoint, "%q: %w", path, err)
	}
	return r.Note, nil
}

// verified checks the bundle a verb names, trusting the key it names.
func (p *program) verified(c *cli.Context, policy verify.Policy) (verify.Report, error) {
	args, err := p.positional("FILE")
	if err != nil {
		return verify.Report{}, err
	}
	if path := c.String("key"); path != "" {
		if !policy.Trust.None() {
			return verify.Report{}, givenTwice("key", "trust")
		}
		text, err := readBounded(path, bundle.MaxIdentity)
		if err != nil {
			return verify.Report{}, err
		}
		if policy.Trust, err = verify.ParseTrust(text); err != nil {
			return verify.Report{}, fail(exitUsage, "key_unreadable", "key file %q: %w", path, err).
				hint("baildock key public prints a ledger.pub")
		}
	}
	file, err := readBundle(args[0])
	if err != nil {
		return verify.Report{}, err
	}
	return verify.Verify(file, policy), nil
}

// readBundle reads a bundle, or as much of a larger file as shows that it is none.
func readBundle(path string) ([]byte, error) { return readUpTo(path, bundle.MaxBundle+1) }

// verifyExit is what a verification comes to for a script.
func verifyExit(r verify.Report) int {
	switch {
	case r.Verdict == verify.Invalid:
		return exitBadEvidence
	case r.Verdict != verify.Valid:
		return exitNotChecked
	case !r.Reached:
		return exitFailed
	}
	return exitOK
}
