package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

func exportCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write a signed bundle of attempts, which anybody verifies offline",
		ArgsUsage: "ATTEMPT… | --change ID",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE` to write"},
			&cli.StringFlag{Name: "at", Usage: "as of `INDEX`, inclusive; then nothing is appended"},
			&cli.StringFlag{Name: "change", Usage: "every attempt of the change `ID`, and what was judged without one"},
			&cli.StringFlag{Name: "prove-from", Usage: "show how the bundle's tree relates to the checkpoint in `FILE`, for those who kept it"},
			&cli.StringSliceFlag{Name: "withhold", Usage: "leave out `output,recipe,env,…`"},
			&cli.StringSliceFlag{Name: "disclose", Usage: "show what is left out unless it is named: `salts`, which open the environment of a contained run"},
			&cli.BoolFlag{Name: "sigstore", Usage: "also write FILE.sigstore.json, which cosign verifies"},
			kmsFlag(),
		},
		Action: p.export,
	}
}

// exportView is what an export says of itself.
type exportView struct {
	File     string              `json:"file"`
	At       ledger.Index        `json:"at"`
	Sealed   []ledger.StreamID   `json:"sealed"` // streams that got an event, so that the bundle can show completeness
	SHA256   string              `json:"sha256"`
	Sigstore string              `json:"sigstore,omitempty"`         // the file beside it
	Skipped  []string            `json:"never_registered,omitempty"` // attempts the change lists that never came to be
	Attempts []exportedView      `json:"attempts"`
	EnvNames []string            `json:"discloses_env"`
	Missing  map[string][]string `json:"missing"` // classes by why: withheld, absent
}

type exportedView struct {
	Attempt evidence.AttemptID `json:"attempt"`
	Outcome evidence.Outcome   `json:"outcome"`
	Claim   evidence.Claim     `json:"claim"`
}

func (p *program) export(c *cli.Context) error {
	names := append(append([]string{}, p.args...), p.tail...)
	change := c.String("change")
	switch {
	case len(names) == 0 && change == "":
		return usage("ATTEMPT is missing").hint("name an attempt, a unique prefix, or @last")
	case len(names) > 0 && change != "":
		return usage("--change names the attempts; leave %q out", names[0])
	}
	path := c.String("output")
	if path == "" {
		return usage("--output is missing").hint("name the bundle's file: -o %s.cbor", strings.TrimPrefix(append(names, change)[0], "@"))
	}
	withhold, err := withholdFlag(c, "withhold")
	if err != nil {
		return err
	}
	disclose, err := withholdFlag(c, "disclose")
	if err != nil {
		return err
	}
	r := export.Request{Withhold: withhold, Disclose: disclose}
	if from := c.String("prove-from"); from != "" {
		if r.ProveFrom, err = readBounded(from, ledger.MaxNote); err != nil {
			return err
		}
	}
	if s := c.String("at"); s != "" {
		n, err := parseCount("--at", s)
		if err != nil {
			return err
		}
		at := ledger.Index(n)
		r.At = &at
	}
	return withHome(c, actorOperator, func(h *home) error {
		for _, name := range names {
			id, err := p.findAttempt(c.Context, h, name)
			if err != nil {
				return err
			}
			r.Attempts = append(r.Attempts, id)
		}
		var skipped []string
		if change != "" {
			if skipped, err = h.about(c, change, &r); err != nil {
				return err
			}
		}
		v, err := p.exportTo(c, h, path, r)
		if err != nil {
			return exportFailure(err)
		}
		v.Skipped = skipped
		if p.ui.json {
			return p.ui.printJSON(v)
		}
		return p.writeExport(c, h, v)
	})
}

// exportTo seals what needs a seal, builds, signs and writes the bundle.
func (p *program) exportTo(c *cli.Context, h *home, path string, r export.Request) (exportView, error) {
	v := exportView{File: path, Sealed: []ledger.StreamID{}, Attempts: []exportedView{}, EnvNames: []string{}, Missing: map[string][]string{}}
	bundleKey, err := p.bundleKey(c, h)
	if err != nil {
		return v, err
	}
	checkpointKey, err := p.checkpointKey(c, h)
	if err != nil {
		return v, err
	}
	if r.Checkpoint, err = checkpointKey.Signer(h.genesis.Origin); err != nil {
		return v, err
	}
	size, err := h.store.Size(c.Context)
	if err != nil {
		return v, err
	}
	if r.At != nil && uint64(*r.At) >= size {
		return v, fail(exitUsage, "index_beyond", "--at %d is beyond the ledger's last event; it has %d", *r.At, size)
	}
	if err := h.readyToKeep(); err != nil {
		return v, err
	}
	if r.At == nil {
		if v.Sealed, err = h.seal(c, r); err != nil {
			return v, err
		}
	}
	payload, sum, err := export.Build(c.Context, h.store, r)
	if err != nil {
		return v, err
	}
	if err := h.keepLast(c.Context); err != nil {
		return v, err
	}
	file, err := export.Sign(payload, bundleKey)
	if err != nil {
		return v, err
	}
	if err := replaceFile(path, 0o644, file); err != nil {
		return v, err
	}
	if c.Bool("sigstore") {
		attested, err := export.Attest(file, filepath.Base(path), bundleKey)
		if err != nil {
			return v, err
		}
		v.Sigstore = path + sigstoreSuffix
		if err := replaceFile(v.Sigstore, 0o644, append(attested, '\n')); err != nil {
			return v, err
		}
	}
	digest := sha256.Sum256(file)
	v.At, v.SHA256 = sum.At, "sha256:"+hex.EncodeToString(digest[:])
	v.EnvNames = append(v.EnvNames, sum.EnvNames...)
	for _, a := range sum.Attempts {
		v.Attempts = append(v.Attempts, exportedView{a.Attempt, a.Outcome, a.Claim})
	}
	seen := map[bundle.Missing]bool{}
	for _, m := range sum.Missing {
		m.Digest = bundle.BlobDigest{}
		if !seen[m] {
			seen[m] = true
			v.Missing[string(m.Why)] = append(v.Missing[string(m.Why)], string(m.Class))
		}
	}
	return v, nil
}

// sigstoreSuffix names the Sigstore bundle beside a bundle.
const sigstoreSuffix = ".sigstore.json"

// about adds what a bundle of a change is about: its attempts that came to be, and the change itself where
// a context was judged that none of them is bound to, as one that asks for no attempt. It returns the
// attempts that never came to be: whoever registered them ended between the two appends.
func (h *home) about(c *cli.Context, change string, r *export.Request) (never []string, err error) {
	id, err := evidence.ParseChangeID(change)
	if err != nil {
		return nil, usage("--change: %w", err)
	}
	seen, err := h.journal.Change(c.Context, id)
	if err != nil {
		return nil, err
	}
	bound := map[evidence.ContextDigest]bool{}
	for _, o := range seen.Fold.Openings {
		_, there, err := h.store.Head(c.Context, journal.AttemptStream(o.Attempt))
		if err != nil {
			return nil, err
		}
		if there {
			r.Attempts, bound[o.Context] = append(r.Attempts, o.Attempt), true
		} else {
			never = append(never, string(o.Attempt))
		}
	}
	var events []ledger.Event
	for e, err := range h.store.ReadStream(c.Context, journal.ChangeStream(id), 0) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	stream, err := bundle.Decode(events)
	if err != nil {
		return nil, err
	}
	for _, b := range bundle.Contexts(stream) {
		if !bound[b.Context] {
			r.Changes = []evidence.ChangeID{id}
		}
	}
	switch n := len(r.Attempts) + len(r.Changes); {
	case n == 0:
		return nil, fail(exitUsage, "change_empty", "change %s has no attempts and no approval", id)
	case n > bundle.MaxJudged:
		return nil, fail(exitUsage, "change_large", "change %s has %d attempts; a bundle holds at most %d", id, len(r.Attempts), bundle.MaxJudged).
			hint("name the attempts; a bundle counts the others")
	}
	return never, nil
}

// seal gives every stream a judgement rests on an event after the judgement, where none is.
func (h *home) seal(c *cli.Context, r export.Request) ([]ledger.StreamID, error) {
	judgement, open, err := export.Unsealed(c.Context, h.store, r.Attempts, r.Changes...)
	if err != nil || len(open) == 0 {
		return []ledger.StreamID{}, err
	}
	return open, h.journal.Seal(c.Context, judgement, open...)
}

func exportFailure(err error) error {
	var (
		absent     *export.AbsentError
		unfinished *export.UnfinishedError
		early      *export.TooEarlyError
		unsealed   *export.UnsealedError
		foreign    *export.ForeignError
		behind     *export.BehindError
	)
	switch {
	case errors.As(err, &absent):
		return fail(exitUsage, "attempt_not_found", "%w", err).hint("baildock query attempts lists what is here")
	case errors.As(err, &unfinished):
		return fail(exitUsage, "attempt_unfinished", "%w", err).hint("baildock why %s says what it waits for", unfinished.Attempt)
	case errors.As(err, &early):
		return fail(exitUsage, "index_too_early", "%w", err).hint("use --at %d or a larger index", early.Smallest)
	case errors.As(err, &unsealed):
		return fail(exitUsage, "index_too_early", "%w", err).hint("export without --at once: that seals the streams")
	case errors.As(err, &foreign):
		return fail(exitUsage, "checkpoint_other", "%w", err).hint("--prove-from wants a checkpoint of this ledger, as it was signed")
	case errors.As(err, &behind):
		return fail(exitBadEvidence, "ledger_behind", "%w", err).hint("find out what happened to the ledger before you export anything: baildock audit")
	}
	return err
}

func withholdFlag(c *cli.Context, name string) ([]bundle.Class, error) {
	var out []bundle.Class
	for _, list := range c.StringSlice(name) {
		for _, s := range strings.Split(list, ",") {
			class, err := bundle.ParseWithholdable(s)
			if err != nil {
				return nil, usage("--%s: %w", name, err)
			}
			out = append(out, class)
		}
	}
	return out, nil
}

func (p *program) writeExport(c *cli.Context, h *home, v exportView) error {
	for _, a := range v.Attempts {
		if err := p.printf("%s  %s, claim %s\n", a.Attempt, a.Outcome, a.Claim); err != nil {
			return err
		}
	}
	lines := []string{fmt.Sprintf("bundle   %s, %s", v.File, v.SHA256), fmt.Sprintf("at       index %d", v.At)}
	if v.Sigstore != "" {
		lines = append(lines, "sigstore "+v.Sigstore)
	}
	if len(v.Skipped) > 0 {
		lines = append(lines, "absent   attempts listed and never registered: "+strings.Join(v.Skipped, " "))
	}
	if len(v.Sealed) > 0 {
		var names []string
		for _, s := range v.Sealed {
			names = append(names, string(s))
		}
		lines = append(lines, "sealed   "+strings.Join(names, " "))
	}
	if len(v.EnvNames) > 0 {
		lines = append(lines, "shows    environment "+strings.Join(v.EnvNames, " "))
	}
	for _, why := range []bundle.Why{bundle.Withheld, bundle.Absent} {
		if classes := v.Missing[string(why)]; len(classes) > 0 {
			lines = append(lines, fmt.Sprintf("%-8s %s", why, strings.Join(classes, " ")))
		}
	}
	lines = append(lines, fmt.Sprintf("next     baildock verify %s --key %s", v.File, h.path(publicName)))
	for _, l := range lines {
		if err := p.printf("  %s\n", visible(l)); err != nil {
			return err
		}
	}
	return nil
}
