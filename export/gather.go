package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

// gatherer collects the blobs that a bundle's events name.
type gatherer struct {
	blobs    ledger.Blobs
	withhold map[bundle.Class]bool
	held     map[bundle.BlobDigest][]byte
	missing  map[bundle.BlobDigest]bundle.Missing
	envNames map[string]bool
}

func newGatherer(blobs ledger.Blobs, withhold []bundle.Class) *gatherer {
	g := &gatherer{
		blobs: blobs, withhold: map[bundle.Class]bool{}, envNames: map[string]bool{},
		held: map[bundle.BlobDigest][]byte{}, missing: map[bundle.BlobDigest]bundle.Missing{},
	}
	for _, c := range bundle.WithThem(withhold) {
		g.withhold[c] = true
	}
	return g
}

func (g *gatherer) event(ctx context.Context, p evidence.Payload) error {
	registered, registers := p.(evidence.AttemptRegistered)
	if registers {
		g.builtin(registered)
	}
	for _, m := range bundle.Mentions(p) {
		for _, d := range m.Digests() {
			if err := g.blob(ctx, m.Class, d); err != nil {
				return err
			}
		}
	}
	if registers {
		return g.disclosed(registered)
	}
	return nil
}

// builtin holds the table of a profile this program has; its digest names it.
func (g *gatherer) builtin(r evidence.AttemptRegistered) {
	if p, ok := evidence.ProfileByDigest(r.Table); ok {
		g.held[bundle.BlobDigest(r.Table)] = evidence.Marshal(p)
	}
}

func (g *gatherer) blob(ctx context.Context, c bundle.Class, d bundle.BlobDigest) error {
	if _, ok := g.held[d]; ok {
		return nil
	}
	b, err := g.blobs.Get(ctx, ledger.BlobKey(d))
	var absent *ledger.BlobAbsentError
	switch {
	case errors.As(err, &absent):
		g.missing[d] = bundle.Missing{Digest: d, Class: c, Why: bundle.Absent}
	case err != nil:
		return fmt.Errorf("export: blob %s: %w", d, err)
	case g.withhold[c]:
		if err := withholdable(c, b.Data); err != nil {
			return err
		}
		g.missing[d] = bundle.Missing{Digest: d, Class: c, Why: bundle.Withheld}
	default:
		g.held[d] = b.Data
	}
	return nil
}

// withholdable refuses to leave out what its plain digest would give away (req R6).
func withholdable(c bundle.Class, data []byte) error {
	var nonce *evidence.Nonce
	switch c {
	case bundle.ClassRecipe:
		r, err := evidence.ParseRecipe(data)
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		nonce = r.Nonce
	case bundle.ClassEnv:
		var e evidence.Environment
		if err := evidence.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("export: environment: %w", err)
		}
		nonce = e.Nonce
	default:
		return nil
	}
	if nonce == nil {
		return fmt.Errorf("%s can't be withheld: the recipe has no nonce, so its digest could be guessed from its content (recipe new writes one)", c)
	}
	return nil
}

// disclosed notes the names of the environment that the bundle shows.
func (g *gatherer) disclosed(r evidence.AttemptRegistered) error {
	data, ok := g.held[bundle.BlobDigest(r.Environment)]
	if !ok {
		return nil
	}
	var e evidence.Environment
	if err := evidence.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("export: environment: %w", err)
	}
	for _, v := range e.Vars {
		g.envNames[v.Name] = true
	}
	for _, c := range e.Committed {
		g.envNames[c.Name] = true
	}
	return nil
}

func (g *gatherer) names() []string { return slices.Sorted(maps.Keys(g.envNames)) }

// notes says where withholding one thing is undone by showing another.
func (g *gatherer) notes() []string {
	if g.withhold[bundle.ClassRecipe] != g.withhold[bundle.ClassEnv] {
		return []string{"recipe and environment share one nonce: with only one of them withheld, its content can be confirmed by guessing; withhold both"}
	}
	return nil
}

func (g *gatherer) sorted() ([]bundle.Blob, []bundle.Missing) {
	var held []bundle.Blob
	for d, b := range g.held {
		held = append(held, bundle.Blob{Digest: d, Data: b})
	}
	slices.SortFunc(held, func(a, b bundle.Blob) int { return bytes.Compare(a.Digest[:], b.Digest[:]) })
	missing := slices.Collect(maps.Values(g.missing))
	slices.SortFunc(missing, func(a, b bundle.Missing) int { return bytes.Compare(a.Digest[:], b.Digest[:]) })
	return held, missing
}
