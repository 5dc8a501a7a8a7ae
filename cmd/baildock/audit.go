package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/witness"
)

func auditCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "audit",
		Usage: "recompute everything the ledger holds, and name the first bad event",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "checkpoint", Usage: "compare with a checkpoint kept elsewhere: `FILE`"},
		},
		Action: p.audit,
	}
}

// auditView is what an audit says of a ledger.
type auditView struct {
	Verdict     journal.AuditVerdict `json:"verdict"`
	Events      uint64               `json:"events"` // good ones, up to the first bad one
	Streams     int                  `json:"streams"`
	Root        string               `json:"root"`
	Checkpoints uint64               `json:"checkpoints"`            // stored ones that hold
	Kept        int                  `json:"kept_checkpoints"`       // kept elsewhere, that hold
	Later       uint64               `json:"later_checkpoints"`      // signed meanwhile, not judged
	Uncompared  uint64               `json:"uncompared_checkpoints"` // kept elsewhere, of more events than were audited
	Unjudged    uint64               `json:"unjudged_checkpoints"`   // by keys only a newer version knows
	Blobs       blobCountsView       `json:"blobs"`
	Unread      []unreadView         `json:"unread"`
	FirstBad    *badView             `json:"first_bad,omitempty"`
}

type blobCountsView struct {
	Checked   uint64 `json:"checked"`
	Absent    uint64 `json:"absent"`
	Forgotten uint64 `json:"forgotten"`
}

type unreadView struct {
	Index   ledger.Index    `json:"index"`
	Stream  ledger.StreamID `json:"stream"`
	Version ledger.Version  `json:"version"`
	Type    string          `json:"type"`
	Schema  uint            `json:"schema"`
}

type badView struct {
	Index    ledger.Index    `json:"index"`
	Stream   ledger.StreamID `json:"stream"`            // empty where there is no event
	Version  *ledger.Version `json:"version,omitempty"` // absent where there is no event
	Field    string          `json:"field"`
	Expected string          `json:"expected"`
	Found    string          `json:"found"`
}

func (p *program) audit(c *cli.Context) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	var kept []journal.KeptCheckpoint
	if path := c.String("checkpoint"); path != "" {
		note, _, err := readCheckpointFile(path)
		if err != nil {
			return err
		}
		kept = append(kept, journal.KeptCheckpoint{Name: "kept checkpoint", Note: note})
	}
	dir, err := existingHome(c)
	if err != nil {
		return err
	}
	file, err := readHomeFile(dir)
	if err != nil {
		return err
	}
	path, note, ok, err := readKept(file.Ledger)
	if err != nil {
		return err
	}
	if ok {
		if _, err := ledger.ReadCheckpoint(note); err != nil {
			return fail(exitBadEvidence, "kept_damaged", "the checkpoint kept outside the home, %q, can't be read: %w", path, err)
		}
		kept = append(kept, journal.KeptCheckpoint{Name: "checkpoint kept outside the home", Note: note})
	}
	r, err := p.auditHome(c, dir, file, kept)
	if err != nil {
		return err
	}
	v := viewAudit(r)
	if p.ui.json {
		err = p.ui.printJSON(v)
	} else {
		err = p.writeAudit(v)
	}
	if err != nil {
		return err
	}
	switch r.Verdict {
	case journal.AuditValid:
		return nil
	case journal.AuditInvalid:
		return exitWith(exitBadEvidence)
	}
	return exitWith(exitNotChecked)
}

// auditHome opens the ledger and audits it. It trusts nothing in it beforehand, not even its
// genesis event.
func (p *program) auditHome(c *cli.Context, dir string, file homeFile, kept []journal.KeptCheckpoint) (journal.AuditReport, error) {
	at, err := ledgerOf(c, dir)
	if err != nil {
		return journal.AuditReport{}, err
	}
	store, err := at.open(c.Context, dir, true)
	var damaged *ledger.DamagedError
	if errors.As(err, &damaged) {
		return journal.AuditReport{Verdict: journal.AuditInvalid, Root: ledger.EmptyRoot, FirstBad: &ledger.Finding{
			Version: ledger.NoStream, Field: "storage", Expected: "a store that can be read", Found: damaged.Error(),
		}}, nil
	}
	if err != nil {
		return journal.AuditReport{}, ledgerFailure(at, err)
	}
	exhibit, ok := exhibitOf(store)
	if !ok {
		return journal.AuditReport{}, errors.Join(fmt.Errorf("the ledger %q can't be audited", at), store.Close())
	}
	r, err := journal.Audit{
		Exhibit: exhibit, Ledger: file.Ledger, Mentions: blobMentions, Kept: kept, Progress: p.ui.bar("audit"),
	}.Run(c.Context)
	return r, errors.Join(err, store.Close())
}

// blobMentions lists the blobs an event names, as bundles hold them.
func blobMentions(e evidence.Payload) []journal.Mention {
	ms := bundle.Mentions(e)
	out := make([]journal.Mention, len(ms))
	for i, m := range ms {
		out[i] = journal.Mention{Plain: ledger.BlobKey(m.Plain), Ref: m.Ref}
	}
	return out
}

// codeNoCheckpoint is a file that holds no checkpoint.
const codeNoCheckpoint = "checkpoint_unreadable"

// readCheckpointFile reads a checkpoint from a file: a bare note, or a request that holds one.
func readCheckpointFile(path string) (note []byte, r *witness.Request, err error) {
	text, err := readBounded(path, witness.MaxRequest)
	if err != nil {
		return nil, nil, err
	}
	note = text
	if witness.IsRequest(text) {
		parsed, err := witness.ParseRequest(text)
		if err != nil {
			return nil, nil, fail(exitUsage, codeNoCheckpoint, "%q: %w", path, err)
		}
		note, r = parsed.Note, &parsed
	}
	if _, err := ledger.ReadCheckpoint(note); err != nil {
		return nil, nil, fail(exitUsage, codeNoCheckpoint, "%q holds no checkpoint: %w", path, err).
			hint("baildock checkpoint show prints one")
	}
	return note, r, nil
}

func viewAudit(r journal.AuditReport) auditView {
	v := auditView{
		Verdict: r.Verdict, Events: r.Events, Streams: r.Streams, Root: r.Root.String(),
		Checkpoints: r.Checkpoints, Kept: r.Kept, Later: r.Later, Uncompared: r.Uncompared, Unjudged: r.Unjudged,
		Blobs: blobCountsView(r.Blobs), Unread: []unreadView{},
	}
	for _, u := range r.Unread {
		v.Unread = append(v.Unread, unreadView(u))
	}
	if f := r.FirstBad; f != nil {
		v.FirstBad = &badView{Index: f.Index, Stream: f.Stream, Field: f.Field, Expected: f.Expected, Found: f.Found}
		if f.Version != ledger.NoStream {
			v.FirstBad.Version = &f.Version
		}
	}
	return v
}

func (p *program) writeAudit(v auditView) error {
	lines := []string{
		fmt.Sprintf("events       %d good, in %d streams", v.Events, v.Streams),
		"root         " + v.Root,
		fmt.Sprintf("checkpoints  %d hold, and %d kept elsewhere", v.Checkpoints, v.Kept),
		fmt.Sprintf("blobs        %d hashed again, %d absent, %d forgotten", v.Blobs.Checked, v.Blobs.Absent, v.Blobs.Forgotten),
	}
	if v.Later > 0 {
		lines = append(lines, fmt.Sprintf("later        %d checkpoints were signed meanwhile; audit again to judge them", v.Later))
	}
	if v.Uncompared > 0 {
		lines = append(lines, fmt.Sprintf("not checked  %d checkpoints kept elsewhere cover more events than there were when the audit began; audit again", v.Uncompared))
	}
	if v.Unjudged > 0 {
		lines = append(lines, fmt.Sprintf("not checked  %d checkpoints, signed by keys that only a newer version knows", v.Unjudged))
	}
	for _, u := range v.Unread {
		lines = append(lines, fmt.Sprintf("not checked  stream %s from version %s (index %d): %s of schema %d needs a newer version", u.Stream, u.Version, u.Index, u.Type, u.Schema))
	}
	if f := v.FirstBad; f != nil {
		lines = append(lines, fmt.Sprintf("first bad    index %d", f.Index))
		if f.Version != nil {
			lines = append(lines, fmt.Sprintf("stream       %s, version %s", f.Stream, *f.Version))
		}
		lines = append(lines, "field        "+f.Field, "expected     "+f.Expected, "found        "+f.Found)
	}
	if v.Kept == 0 && v.FirstBad == nil {
		lines = append(lines, "note         only a checkpoint that somebody else kept shows a ledger rewritten as a whole: --checkpoint FILE")
	}
	if err := p.printf("audit %s\n", p.ui.strong(string(v.Verdict), v.Verdict == journal.AuditValid)); err != nil {
		return err
	}
	for _, l := range lines {
		if err := p.printf("  %s\n", visible(l)); err != nil {
			return err
		}
	}
	return nil
}
