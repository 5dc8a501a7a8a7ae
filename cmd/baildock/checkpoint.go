package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/witness"
)

func checkpointCommand(p *program) *cli.Command {
	output := func(usage string) cli.Flag {
		return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: usage}
	}
	return &cli.Command{
		Name:  "checkpoint",
		Usage: "signed tree heads: what others keep, so that nothing can be rewritten unseen",
		Subcommands: []*cli.Command{
			{
				Name:   "sign",
				Usage:  "sign the ledger's present tree head; nothing is appended",
				Flags:  []cli.Flag{output("write to `FILE`")},
				Action: p.checkpointSign,
			},
			{
				Name:  "show",
				Usage: "print a signed checkpoint, the last one when no size is given",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "size", Usage: "the one that covers `N` events"},
					&cli.StringFlag{Name: "prove-from", Usage: "with the proof that it continues the tree of `N` events, as a cosigner wants it"},
					output("write to `FILE`"),
				},
				Action: p.checkpointShow,
			},
			{
				Name:      "verify",
				Usage:     "check a checkpoint offline, and who cosigned it",
				ArgsUsage: "FILE",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "key", Usage: "whom to trust: a ledger.pub `FILE`"},
					&cli.StringFlag{Name: "policy", Usage: "whose cosignatures count, and how many are needed: `FILE`"},
					&cli.StringFlag{Name: "since", Usage: "an older checkpoint that FILE must prove to continue: `FILE`"},
				},
				Action: p.checkpointVerify,
			},
			{
				Name:      "cosign",
				Usage:     "add a cosignature to another ledger's checkpoint, if it continues what was seen of it",
				ArgsUsage: "FILE",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "trust", Usage: "the other ledger's ledger.pub `FILE`"},
					&cli.StringFlag{Name: "key", Usage: "the cosigner's private key `FILE` (Ed25519; baildock key generate checkpoint)"},
					&cli.StringFlag{Name: "name", Usage: "the cosigner's `NAME`, as policies know it"},
					&cli.StringFlag{Name: "state", Usage: "`DIR` where the cosigner remembers what it has seen"},
					output("write to `FILE`"),
				},
				Action: p.checkpointCosign,
			},
			{
				Name:  "cosigner",
				Usage: "print a cosigner's public key, as a policy names it",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "key", Usage: "the cosigner's private key `FILE`"},
					&cli.StringFlag{Name: "name", Usage: "the cosigner's `NAME`"},
				},
				Action: p.checkpointCosigner,
			},
		},
	}
}

// checkpointView is a checkpoint, and what it was asked for with it.
type checkpointView struct {
	Origin    string   `json:"origin"`
	Size      uint64   `json:"size"`
	Root      string   `json:"root"`
	Note      string   `json:"note"`
	ProveFrom *uint64  `json:"prove_from,omitempty"`
	Proof     []string `json:"proof,omitempty"`
}

func viewCheckpoint(c ledger.Checkpoint) checkpointView {
	return checkpointView{Origin: c.Origin, Size: c.Size, Root: c.Root.String(), Note: string(c.Note)}
}

// deliver prints a text, or writes it to the file that was asked for.
func (p *program) deliver(c *cli.Context, v any, text []byte) error {
	if path := c.String("output"); path != "" {
		if err := replaceFile(path, 0o644, text); err != nil {
			return err
		}
		if !p.ui.json {
			return nil
		}
	}
	if p.ui.json {
		return p.ui.printJSON(v)
	}
	_, err := p.ui.out.Write(text)
	return err
}

func (p *program) checkpointSign(c *cli.Context) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	return withHome(c, actorOperator, func(h *home) error {
		signer, err := p.checkpointSigner(c, h)
		if err != nil {
			return err
		}
		if err := h.readyToKeep(); err != nil {
			return err
		}
		cp, err := h.store.SignCheckpoint(c.Context, signer)
		if err != nil {
			return fail(exitBadEvidence, "checkpoint_refused", "%w", err).hint("baildock audit says what is wrong")
		}
		if err := h.keepLast(c.Context); err != nil {
			return err
		}
		return p.deliver(c, viewCheckpoint(cp), cp.Note)
	})
}

// checkpointSigner signs the ledger's checkpoints with a live key: one signed by another would be kept
// for ever, and no audit would accept it.
func (p *program) checkpointSigner(c *cli.Context, h *home) (ledger.CheckpointSigner, error) {
	key, err := p.checkpointKey(c, h)
	if err != nil {
		return ledger.CheckpointSigner{}, err
	}
	return key.Signer(h.genesis.Origin)
}

func (p *program) checkpointShow(c *cli.Context) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	return readHome(c, func(h *home) error {
		cp, err := h.findCheckpoint(c)
		if err != nil {
			return err
		}
		v, text := viewCheckpoint(cp), cp.Note
		if s := c.String("prove-from"); s != "" {
			old, err := parseCount("--prove-from", s)
			if err != nil {
				return err
			}
			if old > cp.Size {
				return usage("--prove-from %d comes after the checkpoint, which covers %d events", old, cp.Size)
			}
			r := witness.Request{Old: old, Note: cp.Note}
			if r.Proof, err = h.store.ProveConsistency(c.Context, old, cp.Size); err != nil {
				return err
			}
			v.ProveFrom, text = &old, r.Format()
			for _, hash := range r.Proof {
				v.Proof = append(v.Proof, hash.String())
			}
		}
		return p.deliver(c, v, text)
	})
}

// findCheckpoint is the kept checkpoint of the size asked for, or the last one.
func (h *home) findCheckpoint(c *cli.Context) (ledger.Checkpoint, error) {
	last, ok, err := h.store.LastCheckpoint(c.Context)
	if err != nil {
		return last, err
	}
	if !ok {
		return last, fail(exitUsage, "checkpoint_absent", "this ledger has signed no checkpoint yet").hint("baildock checkpoint sign makes one")
	}
	s := c.String("size")
	if s == "" {
		return last, nil
	}
	size, err := parseCount("--size", s)
	if err != nil {
		return last, err
	}
	exhibit, ok := exhibitOf(h.store)
	if !ok {
		return last, fail(exitUsage, "checkpoint_absent", "this ledger shows only its last checkpoint, of size %d", last.Size)
	}
	for k, err := range exhibit.StoredCheckpoints(c.Context) {
		if err != nil {
			return last, err
		}
		if k.Size == size {
			return ledger.ReadCheckpoint(k.Note)
		}
	}
	return last, fail(exitUsage, "checkpoint_absent", "no checkpoint of size %d was signed; the last one has size %d", size, last.Size)
}

func (p *program) checkpointCosigner(c *cli.Context) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	k, err := p.cosignerOf(c)
	if err != nil {
		return err
	}
	key, err := k.Key()
	if err != nil {
		return usage("%w", err)
	}
	if p.ui.json {
		return p.ui.printJSON(struct {
			Name string `json:"name"`
			Key  string `json:"key"`
		}{key.Name(), key.String()})
	}
	return p.printf("%s\n", key)
}

// cosignerOf is the cosigner a command line names, without its memory.
func (p *program) cosignerOf(c *cli.Context) (witness.Cosigner, error) {
	for _, name := range []string{"key", "name"} {
		if c.String(name) == "" {
			return witness.Cosigner{}, usage("--%s is missing", name).
				hint("baildock key generate checkpoint -o FILE makes a key; a name is like witness.example.org")
		}
	}
	if err := ledger.CheckOrigin(c.String("name")); err != nil {
		return witness.Cosigner{}, usage("--name: %w", err)
	}
	key, err := export.LoadCheckpointKey(c.String("key"), p.keyPassword)
	if err != nil {
		return witness.Cosigner{}, fail(exitUsage, "key_unreadable", "%w", err)
	}
	return witness.Cosigner{Name: c.String("name"), Private: key.Private()}, nil
}

func (p *program) checkpointCosign(c *cli.Context) error {
	args, err := p.positional("FILE")
	if err != nil {
		return err
	}
	for _, name := range []string{"trust", "state"} {
		if c.String(name) == "" {
			return usage("--%s is missing", name)
		}
	}
	cosigner, err := p.cosignerOf(c)
	if err != nil {
		return err
	}
	cosigner.Dir = c.String("state")
	origin, keys, err := trustedCheckpointKey(c.String("trust"))
	if err != nil {
		return err
	}
	note, r, err := readCheckpointFile(args[0])
	if err != nil {
		return err
	}
	if r == nil { // a bare note proves nothing: enough for the first one, and for the same one again
		if r, err = bareRequest(cosigner, origin, note); err != nil {
			return err
		}
	}
	signed, err := cosigner.Cosign(*r, origin, keys)
	if err != nil {
		return cosignFailure(err)
	}
	cp, err := ledger.ReadCheckpoint(signed)
	if err != nil {
		return err
	}
	return p.deliver(c, viewCheckpoint(cp), signed)
}

// bareRequest is the request a bare note stands for.
func bareRequest(c witness.Cosigner, origin string, note []byte) (*witness.Request, error) {
	cp, err := ledger.ReadCheckpoint(note)
	if err != nil {
		return nil, err
	}
	seen, ok, err := c.Seen(origin)
	if err != nil {
		return nil, err
	}
	r := &witness.Request{Note: note}
	if ok && seen.Size == cp.Size {
		r.Old = seen.Size
	}
	return r, nil
}

func cosignFailure(err error) error {
	var (
		stale *witness.StaleError
		fork  *witness.ForkError
	)
	switch {
	case errors.As(err, &stale):
		return fail(exitConflict, "cosigner_ahead", "%w; nothing was signed", err).
			hint("the ledger's keeper makes what is wanted: baildock checkpoint show --prove-from %d", stale.Seen)
	case errors.As(err, &fork):
		return fail(exitBadEvidence, "checkpoint_fork", "%w; nothing was signed", err).
			hint("keep both checkpoints: together they show it; this cosigner has seen size %d, root %s", fork.Seen.Size, fork.Seen.Root)
	case errors.Is(err, ledger.ErrCheckpointUnsigned):
		return fail(exitBadEvidence, "checkpoint_unsigned", "%w; nothing was signed", err).
			hint("--trust names only the ledger's first checkpoint key: checkpoints signed by a key added since can't be cosigned")
	}
	return fail(exitBadEvidence, "checkpoint_refused", "%w; nothing was signed", err)
}

func (p *program) checkpointVerify(c *cli.Context) error {
	args, err := p.positional("FILE")
	if err != nil {
		return err
	}
	v, err := verifyCheckpoint(c, args[0])
	if err != nil {
		return err
	}
	if p.ui.json {
		err = p.ui.printJSON(v)
	} else {
		err = p.writeVerifiedCheckpoint(v)
	}
	if err != nil {
		return err
	}
	return exitWith(v.exit)
}

func (p *program) writeVerifiedCheckpoint(v verifiedCheckpoint) error {
	if err := p.printf("checkpoint %s\n", p.ui.strong(v.Verdict, v.exit == exitOK)); err != nil {
		return err
	}
	lines := []string{"origin     " + v.Origin, fmt.Sprintf("size       %d", v.Size), "root       " + v.Root}
	for _, w := range v.Witnesses {
		lines = append(lines, fmt.Sprintf("cosigned   by %s, at %s by its clock", w.Name, w.Time))
	}
	if v.Detail != "" {
		lines = append(lines, "why        "+v.Detail)
	}
	for _, l := range lines {
		if err := p.printf("  %s\n", visible(l)); err != nil {
			return err
		}
	}
	return nil
}
