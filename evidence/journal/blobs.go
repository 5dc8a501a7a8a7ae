package journal

import (
	"context"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Keep stores withholdable bytes and their descriptors durably, all or none. It belongs before
// the append of the event that names them (req R6).
func (j *Journal) Keep(ctx context.Context, ws ...evidence.Withholdable) error {
	blobs := make([]ledger.Blob, 0, 2*len(ws))
	for _, w := range ws {
		salted := ledger.Blob{Salt: w.Descriptor.Salt[:], Data: w.Bytes}
		descriptor := ledger.Blob{Data: evidence.Marshal(w.Descriptor)}
		if salted.Key() != ledger.BlobKey(w.Ref.Salted) || descriptor.Key() != ledger.BlobKey(w.Ref.Descriptor) {
			return fmt.Errorf("keep blob: its reference does not name its bytes and descriptor")
		}
		blobs = append(blobs, salted, descriptor)
	}
	if err := j.ledger.Put(ctx, blobs...); err != nil {
		return fmt.Errorf("keep %d blobs: %w", len(blobs), err)
	}
	return nil
}

// KeepPlain stores bytes durably, all or none, each named by its plain SHA-256.
func (j *Journal) KeepPlain(ctx context.Context, bs ...[]byte) ([]evidence.PlainDigest, error) {
	blobs := make([]ledger.Blob, len(bs))
	names := make([]evidence.PlainDigest, len(bs))
	for i, b := range bs {
		blobs[i] = ledger.Blob{Data: b}
		names[i] = evidence.PlainDigest(blobs[i].Key())
	}
	if err := j.ledger.Put(ctx, blobs...); err != nil {
		return nil, fmt.Errorf("keep %d blobs: %w", len(blobs), err)
	}
	return names, nil
}

// Kept reads withholdable bytes back. It fails with *ledger.BlobAbsentError when either part was
// withheld or forgotten.
func (j *Journal) Kept(ctx context.Context, ref evidence.BlobRef) (evidence.Withholdable, error) {
	w := evidence.Withholdable{Ref: ref}
	d, err := j.ledger.Get(ctx, ledger.BlobKey(ref.Descriptor))
	if err != nil {
		return w, fmt.Errorf("read descriptor: %w", err)
	}
	if err := evidence.Unmarshal(d.Data, &w.Descriptor); err != nil {
		return w, fmt.Errorf("descriptor %s: %w", ref.Descriptor, err)
	}
	b, err := j.ledger.Get(ctx, ledger.BlobKey(ref.Salted))
	if err != nil {
		return w, fmt.Errorf("read blob: %w", err)
	}
	w.Bytes = b.Data
	if again := evidence.WithholdCaptured(w.Bytes, w.Descriptor); again.Ref != ref || uint64(len(w.Bytes)) != w.Descriptor.Length {
		return w, fmt.Errorf("blob %s does not fit its descriptor", ref.Salted)
	}
	return w, nil
}

// Recipe reads a recipe by its digest.
func (j *Journal) Recipe(ctx context.Context, d evidence.RecipeDigest) (evidence.Recipe, error) {
	b, err := j.ledger.Get(ctx, ledger.BlobKey(d))
	if err != nil {
		return evidence.Recipe{}, fmt.Errorf("read recipe: %w", err)
	}
	return evidence.ParseRecipe(b.Data)
}

// Environment reads a recipe's environment by its digest.
func (j *Journal) Environment(ctx context.Context, d evidence.EnvironmentDigest) (evidence.Environment, error) {
	b, err := j.ledger.Get(ctx, ledger.BlobKey(d))
	if err != nil {
		return evidence.Environment{}, fmt.Errorf("read environment: %w", err)
	}
	var e evidence.Environment
	if err := evidence.Unmarshal(b.Data, &e); err != nil {
		return evidence.Environment{}, fmt.Errorf("environment: %w", err)
	}
	return e, e.Check()
}

// WorkspacePolicy reads a workspace policy's canonical bytes by its digest.
func (j *Journal) WorkspacePolicy(ctx context.Context, d evidence.WorkspacePolicyDigest) ([]byte, error) {
	b, err := j.ledger.Get(ctx, ledger.BlobKey(d))
	if err != nil {
		return nil, fmt.Errorf("read workspace policy: %w", err)
	}
	return b.Data, nil
}
