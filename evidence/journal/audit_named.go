package journal

import (
	"context"
	"errors"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// What an event says of the bytes it names is decided again wherever they are held, as a verifier decides
// it from a bundle: an event that lies about them is as bad here as there. What is absent or forgotten
// is left undecided.

// redecide decides again what an event alone tells of its blobs, which were hashed just before. The result
// for a manifest waits for the attempt's profile.
func (b *blobChecker) redecide(ctx context.Context, p evidence.Payload, out *mentioned) error {
	if controls, ref, ok := evidence.ControlsOf(p); ok {
		values, err := b.opened(ctx, ref)
		if err != nil || values == nil {
			return err
		}
		_, err = evidence.OpenControls(controls, values)
		return lie(err)
	}
	switch e := p.(type) {
	case evidence.AttemptRegistered:
		var held [3][]byte
		for i, key := range []ledger.BlobKey{ledger.BlobKey(e.Recipe), ledger.BlobKey(e.Environment), ledger.BlobKey(e.Table)} {
			var err error
			if held[i], err = b.get(ctx, key); err != nil {
				return err
			}
		}
		return lie(e.Redecide(held[0], held[1], held[2]))
	case evidence.SourceMaterialized:
		manifest, err := b.opened(ctx, e.Entries)
		if err != nil || manifest == nil {
			return err
		}
		out.manifest = &manifestRead{source: e.Redecide(false, manifest), workspace: e.Redecide(true, manifest)}
	case evidence.PathsChecked:
		list, err := b.opened(ctx, e.Paths)
		if err != nil || list == nil {
			return err
		}
		return lie(e.Redecide(list))
	case evidence.OutputCaptured:
		for _, s := range []evidence.Stream{e.Stdout, e.Stderr} {
			if err := b.stream(ctx, s); err != nil {
				return err
			}
		}
	case evidence.WorkspaceMutated:
		l, err := b.mutations(ctx, e.Mutations)
		if err != nil || l == nil {
			return err
		}
		return lie(e.Redecide(*l))
	}
	return nil
}

// manifestRead is why a manifest isn't what its event says, read as each of the two kinds.
type manifestRead struct{ source, workspace error }

// lieError says that an event and the bytes it names disagree.
type lieError struct{ err error }

func (e *lieError) Error() string { return e.err.Error() }

func lie(err error) error {
	if err == nil {
		return nil
	}
	return &lieError{err}
}

// found makes a finding of a lie; other errors stay.
func found(e ledger.Event, err error) error {
	var l *lieError
	if errors.As(err, &l) {
		return e.Found(e.Index, "named blobs", "bytes that bear out what the event says of them", l.Error())
	}
	return damagedBlob(e, err)
}

// ofAttempt decides again what takes an attempt's earlier events too: which kind of manifest it binds, and
// a workspace policy over what changed.
func (p *pass) ofAttempt(ctx context.Context, e ledger.Event, payload evidence.Payload, named *mentioned) error {
	s := p.meaning.attempts[e.Stream]
	if s == nil || s.trail == nil {
		return nil // a stream this version gave up reading
	}
	if _, skip := p.meaning.unread[e.Stream]; skip {
		return nil
	}
	a := &s.trail.Fold
	switch c := payload.(type) {
	case evidence.SourceMaterialized:
		if named == nil || named.manifest == nil {
			return nil
		}
		if a.Contained() {
			return found(e, lie(named.manifest.workspace))
		}
		return found(e, lie(named.manifest.source))
	case evidence.PolicyChecked:
		if a.Mutated == nil {
			return nil
		}
		l, err := p.blobs.mutations(ctx, a.Mutated.Mutations)
		if err != nil || l == nil {
			return found(e, err)
		}
		policy, err := p.blobs.get(ctx, ledger.BlobKey(c.Policy))
		if err != nil || policy == nil {
			return found(e, err)
		}
		return found(e, lie(c.Redecide(policy, *l)))
	}
	return nil
}

// get reads a blob; nil says that it isn't here.
func (b *blobChecker) get(ctx context.Context, key ledger.BlobKey) ([]byte, error) {
	kept, err := b.exhibit.Get(ctx, key)
	var absent *ledger.BlobAbsentError
	switch {
	case errors.As(err, &absent):
		return nil, nil
	case err != nil:
		return nil, err
	case kept.Data == nil:
		return []byte{}, nil
	}
	return kept.Data, nil
}

// opened reads withholdable bytes; nil says that they or their descriptor aren't here. That both agree
// was checked where they are named.
func (b *blobChecker) opened(ctx context.Context, ref evidence.BlobRef) ([]byte, error) {
	descriptor, err := b.get(ctx, ledger.BlobKey(ref.Descriptor))
	if err != nil || descriptor == nil {
		return nil, err
	}
	return b.get(ctx, ledger.BlobKey(ref.Salted))
}

// stream needs only the descriptor of captured bytes, which may be many.
func (b *blobChecker) stream(ctx context.Context, s evidence.Stream) error {
	described, err := b.get(ctx, ledger.BlobKey(s.Bytes.Descriptor))
	if err != nil || described == nil {
		return err
	}
	var d evidence.Descriptor
	if err := evidence.Unmarshal(described, &d); err != nil {
		return lie(err)
	}
	return lie(s.Redecide(d))
}

func (b *blobChecker) mutations(ctx context.Context, ref *evidence.BlobRef) (*evidence.Mutations, error) {
	if ref == nil {
		return nil, nil
	}
	list, err := b.opened(ctx, *ref)
	if err != nil || list == nil {
		return nil, err
	}
	l, err := evidence.ParseMutations(list)
	if err != nil {
		return nil, lie(err)
	}
	return &l, nil
}
