package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Audit recomputes everything a ledger holds, in one pass (req R5): ledger.Auditor checks bytes,
// Meaning checks what they mean, and every blob that an event names is hashed again and, where it is held,
// what the event says of it is decided again. It relies on
// nothing that is stored beside the events; it compares with all of it.
type Audit struct {
	Exhibit ledger.Exhibit

	// Ledger is the ID the genesis event must carry; the zero ID accepts any.
	Ledger evidence.LedgerID

	// Mentions lists the blobs an event names.
	Mentions func(evidence.Payload) []Mention

	// Kept are checkpoints that somebody else kept. Only they can show that a whole ledger was
	// rewritten with hashes and signatures made consistent again.
	Kept []KeptCheckpoint

	// Progress, if set, is told now and then how far the pass is.
	Progress func(done, total uint64)
}

// KeptCheckpoint is a signed note from outside the ledger.
type KeptCheckpoint struct {
	Name string // for findings, such as "kept checkpoint"
	Note []byte
}

// Mention is how an event names a blob: by its plain digest, or by a reference.
type Mention struct {
	Plain ledger.BlobKey    // set when Ref is nil
	Ref   *evidence.BlobRef // bytes and their descriptor
}

// AuditVerdict is how an audit ends.
type AuditVerdict string

const (
	AuditValid      AuditVerdict = "valid"
	AuditInvalid    AuditVerdict = "invalid"
	AuditNotChecked AuditVerdict = "not_checked" // nothing is wrong, but not all of it was judged
)

// AuditReport is what an audit found.
type AuditReport struct {
	Verdict     AuditVerdict
	Events      uint64 // good ones, up to the first bad one
	Streams     int
	Root        ledger.Hash // over Events
	Checkpoints uint64      // stored ones that hold
	Kept        int         // kept ones that hold
	Later       uint64      // stored checkpoints signed while the audit ran, not judged
	Uncompared  uint64      // kept checkpoints of more events than there were when the audit began
	Unjudged    uint64      // checkpoints that no key known to this version signed, in a ledger newer than it
	Blobs       BlobCounts
	Unread      []Unread
	FirstBad    *ledger.Finding // nil unless invalid
}

// Run audits the events that are there when it begins. An error says that the audit couldn't be
// done; what is wrong with the ledger is in the report.
func (a Audit) Run(ctx context.Context) (AuditReport, error) {
	p := pass{Audit: a, bytes: ledger.NewAuditor(), meaning: &Meaning{}, blobs: &blobChecker{exhibit: a.Exhibit}}
	err := p.run(ctx)
	var (
		finding *ledger.Finding
		event   *BadEventError
		damaged *ledger.DamagedError
	)
	switch {
	case errors.As(err, &finding):
	case errors.As(err, &event):
		finding = &ledger.Finding{Index: event.Index, Stream: event.Stream, Version: event.Version,
			Field: event.Field, Expected: event.Expected, Found: event.Found}
	case errors.As(err, &damaged):
		finding = &ledger.Finding{Index: ledger.Index(p.bytes.Size()), Version: ledger.NoStream,
			Field: "storage", Expected: "a store that can be read and doesn't contradict itself", Found: damaged.Error()}
	case err != nil:
		return AuditReport{}, fmt.Errorf("audit: %w", err)
	}
	r := p.report
	r.Verdict, r.FirstBad = AuditValid, finding
	r.Events, r.Streams, r.Root, r.Unread = p.bytes.Size(), p.bytes.Streams(), p.bytes.Root(), p.meaning.Unread()
	switch {
	case finding != nil:
		r.Verdict, r.Events = AuditInvalid, min(r.Events, uint64(finding.Index))
	case len(r.Unread) > 0 || r.Unjudged > 0 || r.Uncompared > 0:
		r.Verdict = AuditNotChecked
	}
	return r, nil
}

// pass is one audit under way. Only its own goroutine touches it.
type pass struct {
	Audit
	bytes   *ledger.Auditor
	meaning *Meaning
	blobs   *blobChecker
	report  AuditReport

	kept   []kept // by size
	stored func() (ledger.StoredCheckpoint, error, bool)
	next   *ledger.StoredCheckpoint // the first one not judged yet
}

// kept is a kept checkpoint with what its note claims.
type kept struct {
	name  string
	claim ledger.StoredCheckpoint
}

func (p *pass) run(ctx context.Context) error {
	for _, k := range p.Kept {
		c, err := ledger.ReadCheckpoint(k.Note)
		if err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		p.kept = append(p.kept, kept{k.Name, ledger.StoredCheckpoint{Size: c.Size, Origin: c.Origin, Root: c.Root[:], Note: k.Note}})
	}
	slices.SortStableFunc(p.kept, func(a, b kept) int { return cmp.Compare(a.claim.Size, b.claim.Size) })

	size, err := p.Exhibit.Size(ctx)
	if err != nil {
		return err
	}
	next, stop := iter.Pull2(p.Exhibit.StoredCheckpoints(ctx))
	defer stop()
	p.stored = next
	if err := p.advance(); err != nil {
		return err
	}
	if err := p.checkpoints(); err != nil { // of the empty tree
		return err
	}
	if size == 0 {
		return &ledger.Finding{Version: ledger.NoStream, Field: "genesis", Expected: "the event that opens a ledger", Found: "no event"}
	}
	// What the backend checks of itself needs no event. It runs beside the pass and is heard last: a
	// bad event says more than a store that contradicts itself.
	beside, cancel := context.WithCancel(ctx)
	storage := make(chan error, 1)
	go func() { storage <- p.Exhibit.CheckStorage(beside) }()
	err = p.events(ctx, size)
	if err == nil {
		err = p.leftOver(ctx)
	}
	if err != nil {
		cancel()
		<-storage
		return err
	}
	defer cancel()
	return <-storage
}

// visit takes one event that was prepared ahead.
func (p *pass) visit(ctx context.Context, e ledger.StoredEvent, leaf ledger.Hash, d Decoded, named *mentioned) error {
	if err := p.bytes.Visit(e, leaf); err != nil {
		return err
	}
	if err := p.meaning.VisitDecoded(e.Event, d); err != nil {
		return err
	}
	if g := p.meaning.Genesis(); e.Index == 0 && g != nil && p.Ledger != (evidence.LedgerID{}) && g.Ledger != p.Ledger {
		return e.Found(0, "ledger", p.Ledger.String(), g.Ledger.String())
	}
	if named != nil {
		if named.err != nil {
			return named.err
		}
		p.report.Blobs.add(named.counts)
	}
	if err := p.ofAttempt(ctx, e.Event, d.Payload, named); err != nil {
		return err
	}
	return p.checkpoints()
}

// checkpoints judges those of the present size, stored and kept.
func (p *pass) checkpoints() error {
	size := p.bytes.Size()
	for p.next != nil && p.next.Size <= size {
		done, err := p.judge("checkpoint", *p.next)
		if err != nil {
			return err
		}
		if done {
			p.report.Checkpoints++
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
	for len(p.kept) > 0 && p.kept[0].claim.Size <= size {
		done, err := p.judge(p.kept[0].name, p.kept[0].claim)
		if err != nil {
			return err
		}
		if done {
			p.report.Kept++
		}
		p.kept = p.kept[1:]
	}
	return nil
}

// judge checks one checkpoint of the present size. It isn't done when a newer version may know a
// key that this one doesn't.
func (p *pass) judge(what string, c ledger.StoredCheckpoint) (done bool, err error) {
	unknown := false
	err = p.bytes.VisitCheckpoint(what, c, func(note []byte) (ledger.Checkpoint, error) {
		opened, err := p.open(note)
		_, newer := p.meaning.unread[GenesisStream]
		unknown = newer && errors.Is(err, ledger.ErrCheckpointUnsigned)
		return opened, err
	})
	if unknown {
		p.report.Unjudged++
		return false, nil
	}
	return err == nil, err
}

// open opens a checkpoint under the keys that are live now.
func (p *pass) open(note []byte) (ledger.Checkpoint, error) {
	g := p.meaning.Genesis()
	if g == nil {
		return ledger.Checkpoint{}, errors.New("no key is live before the genesis event")
	}
	return OpenCheckpoint(p.meaning.Keys(), note)
}

// advance moves to the next stored checkpoint.
func (p *pass) advance() error {
	c, err, ok := p.stored()
	p.next = nil
	if !ok {
		return nil
	}
	if err != nil {
		return err
	}
	p.next = &c
	return nil
}

// leftOver judges the checkpoints that cover more than the pass saw. A kept one that the ledger has
// grown to meanwhile was compared with nothing: who gave it must not take the audit for a comparison.
func (p *pass) leftOver(ctx context.Context) error {
	size, err := p.Exhibit.Size(ctx) // others may have appended and signed meanwhile
	if err != nil {
		return err
	}
	for p.next != nil {
		if p.next.Size > size {
			return p.bytes.Missing("checkpoint", p.next.Size)
		}
		p.report.Later++
		if err := p.advance(); err != nil {
			return err
		}
	}
	for _, k := range p.kept {
		if k.claim.Size > size {
			return p.bytes.Missing(k.name, k.claim.Size)
		}
		p.report.Uncompared++
	}
	return nil
}
