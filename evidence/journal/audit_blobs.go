package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// BlobCounts says what became of the blobs that events name. A blob that is named twice counts
// twice; the bytes of a reference and their descriptor are two blobs.
type BlobCounts struct {
	Checked   uint64 // hashed again, and good
	Absent    uint64 // not here: never stored, or withheld
	Forgotten uint64 // were here and were removed on purpose
}

func (c *BlobCounts) add(o BlobCounts) {
	c.Checked += o.Checked
	c.Absent += o.Absent
	c.Forgotten += o.Forgotten
}

// mentioned is what checking the blobs of one event gave.
type mentioned struct {
	counts   BlobCounts
	manifest *manifestRead // of a manifest that is held
	err      error         // *ledger.Finding, or why it couldn't be checked
}

// rememberedBlobs bounds the blobs that are not hashed again when they are named again: a profile's
// table is named by every attempt, an environment by many.
const rememberedBlobs = 4096

// blobChecker hashes blobs. Several goroutines may share it.
type blobChecker struct {
	exhibit ledger.Exhibit

	mu   sync.Mutex
	seen map[ledger.BlobKey]seenBlob
}

type seenBlob struct {
	facts ledger.BlobFacts
	err   error // *ledger.BlobAbsentError
}

// check looks at the blobs one event names, and at what it says of them.
func (b *blobChecker) check(ctx context.Context, e ledger.Event, p evidence.Payload, ms []Mention) *mentioned {
	out := &mentioned{}
	for _, m := range ms {
		if m.Ref == nil {
			out.err = b.plain(ctx, e, m.Plain, &out.counts)
		} else {
			out.err = b.reference(ctx, e, *m.Ref, &out.counts)
		}
		if out.err != nil {
			return out
		}
	}
	out.err = found(e, b.redecide(ctx, p, out))
	return out
}

// plain checks a blob without a salt.
func (b *blobChecker) plain(ctx context.Context, e ledger.Event, key ledger.BlobKey, counts *BlobCounts) error {
	facts, held, err := b.hash(ctx, e, key, counts)
	if err != nil || !held {
		return err
	}
	if len(facts.Salt) != 0 {
		return e.Found(e.Index, "blob "+key.String(), "no salt", fmt.Sprintf("a salt of %d bytes", len(facts.Salt)))
	}
	return nil
}

// reference checks bytes and the descriptor that opens them, as far as they are here.
func (b *blobChecker) reference(ctx context.Context, e ledger.Event, ref evidence.BlobRef, counts *BlobCounts) error {
	bytes, held, err := b.hash(ctx, e, ledger.BlobKey(ref.Salted), counts)
	if err != nil {
		return err
	}
	if err := b.plain(ctx, e, ledger.BlobKey(ref.Descriptor), counts); err != nil {
		return err
	}
	if !held {
		return nil
	}
	kept, err := b.exhibit.Get(ctx, ledger.BlobKey(ref.Descriptor))
	var absent *ledger.BlobAbsentError
	if errors.As(err, &absent) {
		return nil
	}
	if err != nil {
		return damagedBlob(e, err)
	}
	field := "descriptor " + ref.Descriptor.String()
	var d evidence.Descriptor
	if err := evidence.Unmarshal(kept.Data, &d); err != nil {
		return e.Found(e.Index, field, "a descriptor", err.Error())
	}
	switch {
	case !slices.Equal(d.Salt[:], bytes.Salt):
		return e.Found(e.Index, field, "the salt of the bytes", "another")
	case d.Length != bytes.Length:
		return e.Found(e.Index, field, fmt.Sprintf("%d bytes", bytes.Length), fmt.Sprintf("%d bytes", d.Length))
	case d.Stored != evidence.PlainDigest(bytes.Plain):
		return e.Found(e.Index, field, evidence.PlainDigest(bytes.Plain).String(), d.Stored.String())
	case !d.Truncated && d.Received != d.Stored:
		return e.Found(e.Index, field, "received as stored, since nothing is truncated", d.Received.String())
	}
	return nil
}

// hash hashes one blob, unless it did so lately.
func (b *blobChecker) hash(ctx context.Context, e ledger.Event, key ledger.BlobKey, counts *BlobCounts) (facts ledger.BlobFacts, held bool, err error) {
	b.mu.Lock()
	s, known := b.seen[key]
	b.mu.Unlock()
	if !known {
		s.facts, s.err = b.exhibit.BlobFacts(ctx, key)
		b.remember(key, s)
	}
	var absent *ledger.BlobAbsentError
	switch {
	case errors.As(s.err, &absent) && absent.Forgotten:
		counts.Forgotten++
	case absent != nil:
		counts.Absent++
	case s.err != nil:
		return facts, false, damagedBlob(e, s.err)
	case s.facts.Key != key:
		return facts, false, e.Found(e.Index, "blob", key.String(), s.facts.Key.String())
	default:
		counts.Checked++
		return s.facts, true, nil
	}
	return facts, false, nil
}

func (b *blobChecker) remember(key ledger.BlobKey, s seenBlob) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil || len(b.seen) >= rememberedBlobs {
		b.seen = map[ledger.BlobKey]seenBlob{}
	}
	b.seen[key] = s
}

// damagedBlob makes a finding of a blob whose stored form is broken; other errors stay.
func damagedBlob(e ledger.Event, err error) error {
	var damaged *ledger.BlobDamagedError
	if errors.As(err, &damaged) {
		return e.Found(e.Index, "blob", damaged.Key.String(), damaged.How)
	}
	return err
}
