package export

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/schemas"
)

// Request says what a bundle is to show.
type Request struct {
	Attempts   []evidence.AttemptID // finished ones
	Changes    []evidence.ChangeID  // to be judged themselves: whatever context of theirs was approved, with or without attempts
	At         *ledger.Index        // as of which event, inclusive; nil: the last one
	Withhold   []bundle.Class       // what to leave out, with what bundle.WithThem adds
	Disclose   []bundle.Class       // what is left out unless it is named here: bundle.ClassSalts
	Checkpoint ledger.CheckpointSigner
	ProveFrom  []byte // a checkpoint's note that readers keep; the bundle shows how its tree relates to theirs
}

// Summary says what a built bundle holds.
type Summary struct {
	At       ledger.Index
	Attempts []Exported
	Streams  int
	Events   int
	Blobs    int
	Missing  []bundle.Missing
	EnvNames []string // names of the environment entries the bundle discloses, sorted (req A6)
	Notes    []string // what whoever exports should know
}

// Exported is one attempt of a bundle.
type Exported struct {
	Attempt evidence.AttemptID
	Outcome evidence.Outcome
	Detail  string
	Claim   evidence.Claim
	Index   ledger.Index // of its AttemptFinished
}

// Build reads the log and returns the payload of a bundle. It appends no event. It fails with
// *AbsentError, *UnfinishedError, *TooEarlyError or *UnsealedError where the log doesn't hold what
// the bundle must show, and with *ForeignError or *BehindError where ProveFrom isn't of its tree.
//
// The checkpoint is signed for the size At + 1 and, if that is the ledger's whole size, kept.
func Build(ctx context.Context, led ledger.Ledger, r Request) ([]byte, Summary, error) {
	size, err := led.Size(ctx)
	if err != nil {
		return nil, Summary{}, fmt.Errorf("export: %w", err)
	}
	if size == 0 {
		return nil, Summary{}, errors.New("the ledger is empty; open it with: baildock init")
	}
	at := ledger.Index(size - 1)
	if r.At != nil {
		if *r.At > at {
			return nil, Summary{}, fmt.Errorf("index %d is beyond the ledger's last event, which is %d", *r.At, at)
		}
		at = *r.At
	}
	c, err := collect(ctx, led, r, at)
	if err != nil {
		return nil, Summary{}, err
	}
	if len(c.unsealed) > 0 {
		return nil, Summary{}, &UnsealedError{Streams: c.unsealed}
	}
	if at < c.smallest {
		return nil, Summary{}, &TooEarlyError{At: at, Smallest: c.smallest, Why: c.latest + " at index " + fmt.Sprint(c.smallest)}
	}
	cp, err := checkpoint(ctx, led, at, r.Checkpoint)
	if err != nil {
		return nil, Summary{}, err
	}
	kept, err := c.relate(ctx, led, cp, r.ProveFrom)
	if err != nil {
		return nil, Summary{}, err
	}
	c.upTo(at)
	p, sum, err := assemble(ctx, led, c, cp, r.withheld())
	if err != nil {
		return nil, Summary{}, err
	}
	p.Kept = kept
	payload, err := p.Marshal()
	return payload, sum, err
}

// withheld is what the bundle leaves out: what was asked, and what must be named to be shown.
func (r Request) withheld() []bundle.Class {
	out := slices.Clone(r.Withhold)
	if !slices.Contains(r.Disclose, bundle.ClassSalts) {
		out = append(out, bundle.ClassSalts)
	}
	return out
}

// checkpoint signs the tree that ends with index `at`. The ledger keeps it if that is its present
// end; an older size is signed and not kept.
func checkpoint(ctx context.Context, led ledger.Ledger, at ledger.Index, s ledger.CheckpointSigner) (ledger.Checkpoint, error) {
	want := uint64(at) + 1
	size, err := led.Size(ctx)
	if err != nil {
		return ledger.Checkpoint{}, fmt.Errorf("export: %w", err)
	}
	if size == want {
		// Somebody may append before the signature: then a larger size is signed and kept.
		cp, err := led.SignCheckpoint(ctx, s)
		if err != nil {
			return ledger.Checkpoint{}, fmt.Errorf("export: %w", err)
		}
		if cp.Size == want {
			return cp, nil
		}
	}
	root, err := led.Root(ctx, want)
	if err != nil {
		return ledger.Checkpoint{}, fmt.Errorf("export: %w", err)
	}
	cp, err := s.Sign(want, root)
	if err != nil {
		return ledger.Checkpoint{}, fmt.Errorf("export: %w", err)
	}
	return cp, nil
}

// assemble puts the payload together.
func assemble(ctx context.Context, led ledger.Ledger, c *collection, cp ledger.Checkpoint, withhold []bundle.Class) (bundle.Payload, Summary, error) {
	p := bundle.Payload{Format: bundle.Format, At: cp.Size - 1, Checkpoint: cp.Note, Schemas: schemaDigests()}
	sum := Summary{At: ledger.Index(p.At), Streams: len(c.streams)}
	for _, h := range c.streams {
		s := bundle.Stream{Name: string(h.events[0].Stream), Role: h.role}
		for _, e := range h.events {
			proof, err := led.ProveInclusion(ctx, e.Index, cp.Size)
			if err != nil {
				return p, sum, fmt.Errorf("export: prove index %d: %w", e.Index, err)
			}
			s.Events = append(s.Events, bundle.Event{Index: uint64(e.Index), Leaf: ledger.MarshalLeaf(e.Event), Proof: proof})
		}
		p.Streams = append(p.Streams, s)
		sum.Events += len(s.Events)
	}
	if err := identify(&p, cp); err != nil {
		return p, sum, err
	}
	for _, h := range c.streams {
		if _, change := bundle.ChangeOf(h.events); h.role == bundle.Judged && !change {
			x, err := exported(h.events, c.finished[string(h.events[0].Stream)])
			if err != nil {
				return p, sum, err
			}
			sum.Attempts = append(sum.Attempts, x)
		}
	}
	g := newGatherer(led, withhold)
	for _, h := range c.streams {
		if h.role == bundle.Counted {
			continue
		}
		for _, e := range h.events {
			if err := g.event(ctx, e.Payload); err != nil {
				return p, sum, err
			}
		}
	}
	p.Blobs, p.Missing = g.sorted()
	sum.Blobs, sum.Missing, sum.EnvNames, sum.Notes = len(p.Blobs), p.Missing, g.names(), g.notes()
	return p, sum, nil
}

// identify takes the identity from the genesis event, and holds the checkpoint to the keys that
// are live at its size.
func identify(p *bundle.Payload, cp ledger.Checkpoint) error {
	keys, err := keyring(*p)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	p.Ledger = bundle.IdentityOf(*keys.Opened)
	if _, err := journal.OpenCheckpoint(&keys, cp.Note); err != nil {
		return fmt.Errorf("export: the checkpoint key is not one of this ledger's: %w", err)
	}
	return nil
}

// exported folds an attempt and says how it ended. An attempt whose history is corrupt is not
// exported.
func exported(events []bundle.Placed, finished bundle.Placed) (Exported, error) {
	var a evidence.Attempt
	for _, e := range events {
		if err := a.Apply(e.Payload); err != nil {
			return Exported{}, fmt.Errorf("export: stream %s, version %s: %w (run: baildock audit)", e.Stream, e.Version, err)
		}
	}
	r := evidence.RecordOf(&a)
	return Exported{Attempt: r.Attempt, Outcome: r.Outcome, Detail: r.Detail, Claim: r.Claim, Index: finished.Index}, nil
}

func schemaDigests() []bundle.Schema {
	var out []bundle.Schema
	for _, s := range schemas.CDDL() {
		out = append(out, bundle.Schema{Name: s.Name, Digest: bundle.BlobDigest(s.Digest())})
	}
	return out
}
