package verify

import (
	"fmt"
	"math"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

// claims judges every claim again by its basis (req H5), and every probe a runtime observation
// relied on.
func (v *verification) claims() {
	for _, j := range v.attempt {
		if err := v.claim(j); err != nil {
			v.report.fail(CheckClaim, "attempt %s: %v", j.fold.Registered.Attempt, err)
		}
		if err := v.probes(j, math.MaxInt64); err != nil {
			v.report.fail(CheckClaim, "attempt %s: %v", j.fold.Registered.Attempt, err)
		}
	}
	v.report.pass(CheckClaim, "judged again by its basis")
}

func (v *verification) claim(j *judged) error {
	at, claim := bundle.Judgement(j.events)
	if claim == nil {
		return nil
	}
	var breaking *bundle.Placed // the first, by index
	for _, b := range claim.Basis {
		read, err := v.find(b)
		if err != nil {
			return err
		}
		if read.Index >= at {
			return fmt.Errorf("its claim at index %d rests on index %d, which came later", at, read.Index)
		}
		for _, e := range v.streams[b.Stream][b.Version+1:] {
			if e.Index < at && evidence.ChangesBasis(e.Type) && (breaking == nil || e.Index < breaking.Index) {
				breaking = &e
			}
		}
	}
	if err := v.current(j.fold.Registered.Binding, claim.Basis); err != nil {
		return err
	}
	return voided(&j.fold, breaking)
}

// voided compares what the runner admitted with what the streams show. A runner that died before it
// could admit that its claim is void left no custody either; custody under a void claim is bad
// evidence.
func voided(a *evidence.Attempt, breaking *bundle.Placed) error {
	admitted := a.Voided
	switch {
	case admitted == nil && (breaking == nil || len(a.Custodies) == 0):
		return nil
	case admitted == nil:
		return fmt.Errorf("its claim is void: %s at index %d came first; yet custody was taken under it", breaking.Type, breaking.Index)
	case breaking != nil && admitted.Breaking == basisAt(*breaking):
		return nil
	}
	return fmt.Errorf("it says that version %d of %s voided its claim, which is not so", admitted.Breaking.Version, admitted.Breaking.Stream)
}

// current checks that the binding was the present one where the claim read it, and that the claim
// read what decides that: its change and the policy of its context (req G2).
func (v *verification) current(b *evidence.Binding, basis []evidence.Basis) error {
	if b == nil {
		return nil
	}
	var c evidence.Change
	if err := v.foldTo(&c, evidence.ChangePrefix+string(b.Change), basis); err != nil {
		return err
	}
	if now, ok := c.Binding(); !ok || now != *b {
		return fmt.Errorf("its binding was not the present one of change %s where the claim read it", b.Change)
	}
	var p evidence.Policy
	if err := v.foldTo(&p, evidence.PolicyPrefix+string(c.Context.Policy), basis); err != nil {
		return err
	}
	if p.Epoch != c.Context.Epoch {
		return fmt.Errorf("its context is of epoch %d of policy %s; the claim read epoch %d", c.Context.Epoch, c.Context.Policy, p.Epoch)
	}
	return nil
}

// foldTo folds a stream up to the version that a basis names.
func (v *verification) foldTo(f folder, stream string, basis []evidence.Basis) error {
	for _, b := range basis {
		if b.Stream != stream {
			continue
		}
		for _, e := range v.streams[stream][:b.Version+1] {
			if err := f.Apply(e.Payload); err != nil {
				return fmt.Errorf("stream %s, version %s: %w", stream, e.Version, err)
			}
		}
		return nil
	}
	return fmt.Errorf("its claim doesn't rest on stream %s", stream)
}

// probes checks of an attempt's events before an index that every probe relied on is the event that was named,
// came before the observation that relied on it, is of the same runtime and saw what is relied on (req C4).
func (v *verification) probes(j *judged, before ledger.Index) error {
	for _, o := range bundle.Probes(j.events, before) {
		probe, err := v.find(*o.Probe)
		if err != nil {
			return err
		}
		seen, isProbe := probe.Payload.(evidence.RuntimeProbed)
		switch {
		case !isProbe:
			return fmt.Errorf("it relies on a probe at index %d, which is %s", probe.Index, probe.Type)
		case probe.Index >= o.Index:
			return fmt.Errorf("it relies on a probe at index %d, which came later", probe.Index)
		case o.Identity == nil || o.Identity.Stream() != o.Probe.Stream:
			return fmt.Errorf("it relies on a probe of another runtime")
		case !seen.ProvesSeccomp():
			return fmt.Errorf("it relies on the probe at index %d, which didn't see the seccomp filter", probe.Index)
		}
	}
	return nil
}

// find returns the event a basis names.
func (v *verification) find(b evidence.Basis) (bundle.Placed, error) {
	events := v.streams[b.Stream]
	if b.Version > math.MaxInt64 || b.Version >= uint64(len(events)) {
		return bundle.Placed{}, fmt.Errorf("version %d of stream %s is named and not in the bundle", b.Version, b.Stream)
	}
	e := events[b.Version]
	if basisAt(e) != b {
		return bundle.Placed{}, fmt.Errorf("version %d of stream %s is not the event that is named", b.Version, b.Stream)
	}
	return e, nil
}

func basisAt(e bundle.Placed) evidence.Basis {
	return evidence.Basis{Stream: string(e.Stream), Version: uint64(e.Version), Leaf: evidence.LeafDigest(e.Leaf)}
}
