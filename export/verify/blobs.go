package verify

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
)

// blobs checks that the bundle holds, or names as missing, exactly the blobs its events name, and
// that each held one has the digest it is named by.
func (v *verification) blobs() {
	classes := map[bundle.BlobDigest]bundle.Class{}
	for _, s := range v.payload.Streams {
		if s.Role == bundle.Counted {
			continue // its events decide, its blobs aren't there
		}
		for _, e := range v.streams[s.Name] {
			for _, m := range bundle.Mentions(e.Payload) {
				if err := v.mention(m, classes); err != nil {
					v.report.fail(CheckBlobs, "stream %s, version %s: %v", s.Name, e.Version, err)
					return
				}
			}
		}
	}
	for _, b := range v.payload.Blobs {
		if _, named := classes[b.Digest]; !named {
			v.report.fail(CheckBlobs, "blob %s is held and no event names it", b.Digest)
			return
		}
	}
	for _, m := range v.payload.Missing {
		if class, named := classes[m.Digest]; !named || class != m.Class {
			v.report.fail(CheckBlobs, "blob %s is called missing from %s; no event names it so", m.Digest, m.Class)
			return
		}
	}
	v.report.pass(CheckBlobs, "%d held, each with its digest; %d missing", len(v.payload.Blobs), len(v.payload.Missing))
	v.withheld()
	for _, j := range v.attempt {
		v.recipe(j)
		v.source(j)
		v.workspace(j)
		v.output(j)
	}
	v.report.pass(CheckRecipe, "recipe, environment and profile are those registered")
	v.report.pass(CheckSource, "the manifests are those that were bound")
	v.report.pass(CheckOutput, "lengths, flags and digests agree")
	v.controlValues()
	v.schemas()
}

// mention checks the blobs of one mention, as far as the bundle holds them.
func (v *verification) mention(m bundle.Mention, classes map[bundle.BlobDigest]bundle.Class) error {
	for _, d := range m.Digests() {
		if c, twice := classes[d]; twice && c != m.Class {
			return fmt.Errorf("blob %s is named as %s and as %s", d, c, m.Class)
		}
		classes[d] = m.Class
		if _, held := v.payload.Blob(d); !held && !v.missing(d) {
			return fmt.Errorf("blob %s (%s) is named and neither held nor called missing", d, m.Class)
		}
	}
	if m.Ref == nil {
		if b, held := v.payload.Blob(m.Plain); held && sha256.Sum256(b) != m.Plain {
			return fmt.Errorf("blob %s has another digest", m.Plain)
		}
		return nil
	}
	_, _, err := v.opened(*m.Ref)
	return err
}

func (v *verification) missing(d bundle.BlobDigest) bool {
	_, ok := slices.BinarySearchFunc(v.payload.Missing, d, func(m bundle.Missing, d bundle.BlobDigest) int { return bytes.Compare(m.Digest[:], d[:]) })
	return ok
}

// opened is a referenced blob with its descriptor. held is false when either is missing: bytes
// without the salt that opens them can't be checked, so they are as good as missing.
func (v *verification) opened(ref evidence.BlobRef) (w evidence.Withholdable, held bool, err error) {
	w.Ref = ref
	described, ok := v.payload.Blob(bundle.BlobDigest(ref.Descriptor))
	if !ok {
		if _, odd := v.payload.Blob(bundle.BlobDigest(ref.Salted)); odd {
			return w, false, fmt.Errorf("blob %s is held without its descriptor", ref.Salted)
		}
		return w, false, nil
	}
	if sha256.Sum256(described) != ref.Descriptor {
		return w, false, fmt.Errorf("descriptor %s has another digest", ref.Descriptor)
	}
	if err := evidence.Unmarshal(described, &w.Descriptor); err != nil {
		return w, false, fmt.Errorf("descriptor %s: %w", ref.Descriptor, err)
	}
	if w.Bytes, ok = v.payload.Blob(bundle.BlobDigest(ref.Salted)); !ok {
		return w, false, nil
	}
	d := w.Descriptor
	switch {
	case evidence.SaltedSum(d.Salt, w.Bytes) != ref.Salted:
		return w, false, fmt.Errorf("blob %s has another salted digest", ref.Salted)
	case uint64(len(w.Bytes)) != d.Length || sha256.Sum256(w.Bytes) != d.Stored:
		return w, false, fmt.Errorf("blob %s isn't as long as its descriptor says, or has another plain digest", ref.Salted)
	case !d.Truncated && d.Received != d.Stored:
		return w, false, fmt.Errorf("blob %s is not truncated and differs from what was received", ref.Salted)
	}
	return w, true, nil
}

// withheld lists what is missing and holds it to the policy.
func (v *verification) withheld() {
	for _, m := range v.payload.Missing {
		i := slices.IndexFunc(v.report.Missing, func(c MissingClass) bool { return c.Class == m.Class && c.Why == m.Why })
		if i < 0 {
			i = len(v.report.Missing)
			v.report.Missing = append(v.report.Missing, MissingClass{Class: m.Class, Why: m.Why, Allowed: v.policy.allows(m.Class)})
		}
		v.report.Missing[i].Blobs++
	}
	if len(v.report.Missing) == 0 {
		v.report.pass(CheckWithheld, "nothing is missing")
		return
	}
	var named string
	allowed := true
	for i, m := range v.report.Missing {
		if i > 0 {
			named += ", "
		}
		named += fmt.Sprintf("%s %s (%d)", m.Class, m.Why, m.Blobs)
		allowed = allowed && m.Allowed
	}
	if allowed {
		v.report.excuse(CheckWithheld, "%s; allowed by name", named)
		return
	}
	v.report.skip(CheckWithheld, "%s; allow it by name to accept that", named)
}

// lacks excuses a check for what is missing: CheckWithheld carries the weight of it.
func (v *verification) lacks(check string, c bundle.Class) {
	v.report.excuse(check, "%s is missing", c)
}

// recipe checks the registered recipe, environment and profile table.
func (v *verification) recipe(j *judged) {
	if v.failed(CheckRecipe) {
		return
	}
	g := j.fold.Registered
	var held [3][]byte
	for i, b := range []struct {
		digest bundle.BlobDigest
		class  bundle.Class
	}{
		{bundle.BlobDigest(g.Recipe), bundle.ClassRecipe}, {bundle.BlobDigest(g.Environment), bundle.ClassEnv}, {bundle.BlobDigest(g.Table), bundle.ClassProfile},
	} {
		bytes, ok := v.payload.Blob(b.digest)
		if !ok {
			v.lacks(CheckRecipe, b.class)
			continue
		}
		held[i] = append([]byte{}, bytes...) // empty is not missing
	}
	if err := g.Redecide(held[0], held[1], held[2]); err != nil {
		v.report.fail(CheckRecipe, "attempt %s: %v", g.Attempt, err)
	}
}

// source checks that the manifest is the one whose digest was bound, and that its sums agree.
func (v *verification) source(j *judged) {
	m := j.fold.Materialized
	if m == nil || v.failed(CheckSource) {
		return
	}
	w, held, err := v.opened(m.Entries)
	if err != nil || !held {
		v.lacks(CheckSource, bundle.ClassSource)
		return
	}
	if err := m.Redecide(j.fold.Contained(), w.Bytes); err != nil {
		v.report.fail(CheckSource, "attempt %s: manifest: %v", j.fold.Registered.Attempt, err)
	}
}

// output checks both captured streams.
func (v *verification) output(j *judged) {
	o := j.fold.Run.Output
	if o == nil || v.failed(CheckOutput) {
		return
	}
	for _, s := range []struct {
		name string
		evidence.Stream
	}{{"stdout", o.Stdout}, {"stderr", o.Stderr}} {
		w, held, err := v.opened(s.Bytes)
		if err != nil || !held {
			v.lacks(CheckOutput, bundle.ClassOutput)
			continue
		}
		if err := s.Redecide(w.Descriptor); err != nil {
			v.report.fail(CheckOutput, "attempt %s: %s: %v", j.fold.Registered.Attempt, s.name, err)
			return
		}
	}
}
