package verify

import (
	"bytes"
	"crypto/sha256"
	"errors"
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
	bad := func(format string, args ...any) {
		v.report.fail(CheckRecipe, "attempt %s: %s", g.Attempt, fmt.Sprintf(format, args...))
	}
	var lacking []bundle.Class
	var r *evidence.Recipe
	if b, ok := v.payload.Blob(bundle.BlobDigest(g.Recipe)); ok {
		parsed, err := evidence.ParseRecipe(b)
		if err != nil {
			bad("%v", err)
			return
		}
		r = &parsed
		if err := fits(parsed, g); err != nil {
			bad("%v", err)
			return
		}
	} else {
		lacking = append(lacking, bundle.ClassRecipe)
	}
	if b, ok := v.payload.Blob(bundle.BlobDigest(g.Environment)); ok {
		var e evidence.Environment
		err := evidence.Unmarshal(b, &e)
		switch {
		case err != nil:
		case r != nil:
			err = e.Fits(*r)
		default:
			err = e.Check()
		}
		if err != nil {
			bad("environment: %v", err)
			return
		}
	} else {
		lacking = append(lacking, bundle.ClassEnv)
	}
	if b, ok := v.payload.Blob(bundle.BlobDigest(g.Table)); ok {
		var p evidence.Profile
		err := evidence.Unmarshal(b, &p)
		if err == nil && p.Name != g.Profile {
			err = fmt.Errorf("it is the table of %s", p.Name)
		}
		if err != nil {
			bad("profile: %v", err)
			return
		}
	} else {
		lacking = append(lacking, bundle.ClassProfile)
	}
	for _, c := range lacking {
		v.lacks(CheckRecipe, c)
	}
}

// fits holds a recipe to what was registered beside its digest.
func fits(r evidence.Recipe, g evidence.AttemptRegistered) error {
	if r.Profile != g.Profile || r.Environment != g.Environment || !sameToolchain(r.Toolchain, g.Toolchain) {
		return errors.New("the recipe is of another profile, environment or toolchain than registered")
	}
	if table, err := r.Table(); err != nil || table.Digest() != g.Table && r.Contained != nil || !samePolicy(r.Contained, g.Policy) {
		return errors.New("the recipe is of another table or workspace policy than registered")
	}
	return nil
}

func samePolicy(t *evidence.ContainedTerms, registered *evidence.WorkspacePolicyDigest) bool {
	if t == nil || t.Policy == nil {
		return registered == nil
	}
	return registered != nil && *t.Policy == *registered
}

func sameToolchain(a, b *evidence.ToolchainDigest) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
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
	if j.fold.Contained() {
		if err := workspaceBaseline(m, w.Bytes); err != nil {
			v.report.fail(CheckSource, "attempt %s: workspace: %v", j.fold.Registered.Attempt, err)
		}
		return
	}
	manifest, err := evidence.UnmarshalManifest(w.Bytes)
	if err == nil {
		var d evidence.ManifestDigest
		if d, err = manifest.Digest(); err == nil && d != m.Manifest {
			err = fmt.Errorf("it has digest %s; bound is %s", d, m.Manifest)
		}
	}
	if err == nil && (manifest.Bytes() != m.Bytes || uint64(len(manifest.Entries)) != m.Files) {
		err = fmt.Errorf("it has %d entries and %d bytes; the event says %d and %d", len(manifest.Entries), manifest.Bytes(), m.Files, m.Bytes)
	}
	if err != nil {
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
		if err := agrees(s.Stream, w); err != nil {
			v.report.fail(CheckOutput, "attempt %s: %s: %v", j.fold.Registered.Attempt, s.name, err)
			return
		}
	}
}

// agrees compares what an event says of a stream with its bytes and their descriptor.
func agrees(s evidence.Stream, w evidence.Withholdable) error {
	d := w.Descriptor
	switch {
	case s.Stored != d.Length:
		return fmt.Errorf("the event says %d bytes are stored, the descriptor %d", s.Stored, d.Length)
	case s.Truncated != d.Truncated || s.Redacted != d.Redacted:
		return fmt.Errorf("event and descriptor differ on whether it was truncated or redacted")
	case s.Received < s.Stored || !s.Truncated && s.Received != s.Stored:
		return fmt.Errorf("%d bytes received and %d stored don't agree with truncated = %t", s.Received, s.Stored, s.Truncated)
	case !s.Truncated && s.ReceivedHash != w.Ref.Salted:
		return fmt.Errorf("it is not truncated and its received digest is not that of the bytes stored")
	}
	return nil
}
