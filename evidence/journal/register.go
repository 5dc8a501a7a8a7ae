package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Registration is what a caller wants registered. A change's attempts are bound to whatever
// version, context and revision are current when the attempt is listed.
type Registration struct {
	Attempt     evidence.AttemptID
	Change      evidence.ChangeID // empty: ad hoc, never admissible
	Subject     evidence.Subject
	Recipe      evidence.Recipe
	Environment evidence.Environment // the recipe's

	Salts  *evidence.Withholdable // what opens the environment's commitments; nil without any
	Policy []byte                 // the canonical workspace policy that the recipe's terms name; nil without one
}

// Check refuses a registration whose parts have no legal shape or don't fit one another.
func (r Registration) Check() error {
	if _, err := evidence.ParseAttemptID(string(r.Attempt)); err != nil {
		return err
	}
	if err := r.Subject.Check(); err != nil {
		return err
	}
	if err := r.Recipe.Check(); err != nil {
		return err
	}
	if err := r.Environment.Fits(r.Recipe); err != nil {
		return err
	}
	if (r.Salts != nil) != (len(r.Environment.Committed) > 0) {
		return fmt.Errorf("an environment's commitments and what opens them are registered together")
	}
	want, ok := policyOf(r.Recipe)
	if ok != (r.Policy != nil) || ok && evidence.PlainDigest(sha256.Sum256(r.Policy)) != evidence.PlainDigest(want) {
		return fmt.Errorf("the workspace policy is not the one that the recipe names")
	}
	return nil
}

func policyOf(r evidence.Recipe) (d evidence.WorkspacePolicyDigest, ok bool) {
	if r.Contained == nil || r.Contained.Policy == nil {
		return d, false
	}
	return *r.Contained.Policy, true
}

// withNonce is the same registration under another recipe nonce.
func (r Registration) withNonce(n *evidence.Nonce) Registration {
	r.Recipe.Nonce, r.Environment.Nonce = n, n
	r.Recipe.Environment = r.Environment.Digest()
	return r
}

func (r Registration) event(b *evidence.Binding) (evidence.AttemptRegistered, error) {
	table, err := r.Recipe.Table()
	if err != nil {
		return evidence.AttemptRegistered{}, err
	}
	e := evidence.AttemptRegistered{
		Attempt: r.Attempt, Binding: b, Subject: r.Subject, Profile: table.Name, Table: table.Digest(),
		Recipe: r.Recipe.Digest(), Toolchain: r.Recipe.Toolchain, Environment: r.Recipe.Environment,
	}
	if d, ok := policyOf(r.Recipe); ok {
		e.Policy = &d
	}
	if r.Salts != nil {
		e.Salts = &r.Salts.Ref
	}
	return e, nil
}

// Register opens an attempt, or returns the one that stands for the same input already. The
// nonce is no input: the one registered first stays (req A1, G1). Recipe and environment are
// durable before the events that name them. It fails with *TakenError when the ID stands for
// another input, and with *NotCurrentError when the change isn't where the registration needs it.
func (j *Journal) Register(ctx context.Context, r Registration) (Attempt, error) {
	if err := r.Check(); err != nil {
		return Attempt{}, err
	}
	if err := j.requireGenesis(ctx); err != nil {
		return Attempt{}, err
	}
	for range maxRaces {
		a, err := j.register(ctx, r)
		if !isConflict(err) {
			return a, err
		}
	}
	return Attempt{}, tooManyRaces(AttemptStream(r.Attempt))
}

// register is one try; a version conflict means that somebody else wrote in between.
func (j *Journal) register(ctx context.Context, r Registration) (Attempt, error) {
	a, err := j.readAttempt(ctx, r.Attempt)
	if err != nil {
		return Attempt{}, err
	}
	var c Change
	if r.Change != "" {
		if c, err = j.Change(ctx, r.Change); err != nil {
			return Attempt{}, err
		}
	}
	if a.Fold.State != evidence.StateNone {
		return a, j.sameInput(ctx, r, c, a.Fold.Registered)
	}
	if r.Change == "" {
		if err := j.keepRecipe(ctx, r); err != nil {
			return Attempt{}, err
		}
		e, err := r.event(nil)
		if err != nil {
			return Attempt{}, err
		}
		return j.appendRegistered(ctx, a, nil, e)
	}
	if _, listed := c.Fold.Opening(r.Attempt); !listed {
		return j.registerListed(ctx, r, c, a)
	}
	// Somebody listed it and went away before its own stream opened.
	e, listing, err := j.listed(ctx, r.Change, r.Attempt)
	if err != nil {
		return Attempt{}, err
	}
	if err := j.sameInput(ctx, r, c, e); err != nil {
		return Attempt{}, err
	}
	return j.appendRegistered(ctx, a, listing, e)
}

// registerListed lists a new attempt in its change, then opens its own stream.
func (j *Journal) registerListed(ctx context.Context, r Registration, c Change, a Attempt) (Attempt, error) {
	e, err := j.current(r, c)
	if err != nil {
		return Attempt{}, err
	}
	if err := j.keepRecipe(ctx, r); err != nil {
		return Attempt{}, err
	}
	opening := evidence.AttemptOpened{Attempt: r.Attempt, Registration: evidence.Marshal(e)}
	if err := c.Fold.Apply(opening); err != nil {
		return Attempt{}, fmt.Errorf("stream %s: %w", ChangeStream(r.Change), err)
	}
	prepared, err := j.prepare(nil, opening)
	if err != nil {
		return Attempt{}, err
	}
	done, err := j.append(ctx, ChangeStream(r.Change), c.Head.Version, prepared)
	if err != nil {
		return Attempt{}, err
	}
	return j.appendRegistered(ctx, a, &done[0], e)
}

// Complete opens the stream of an attempt that its change lists, with exactly the registration
// listed. Anyone may do it after a crash between the two appends; it is no error when the stream
// is open with that registration already.
func (j *Journal) Complete(ctx context.Context, change evidence.ChangeID, id evidence.AttemptID) (Attempt, error) {
	if err := j.requireGenesis(ctx); err != nil {
		return Attempt{}, err
	}
	e, listing, err := j.listed(ctx, change, id)
	if err != nil {
		return Attempt{}, err
	}
	for range maxRaces {
		a, err := j.readAttempt(ctx, id)
		if err != nil {
			return Attempt{}, err
		}
		if a.Fold.State != evidence.StateNone {
			return a, differs(a.Fold.Registered, e)
		}
		a, err = j.appendRegistered(ctx, a, listing, e)
		if !isConflict(err) {
			return a, err
		}
	}
	return Attempt{}, tooManyRaces(AttemptStream(id))
}

// listed finds an attempt's listing and the registration it holds.
func (j *Journal) listed(ctx context.Context, change evidence.ChangeID, id evidence.AttemptID) (evidence.AttemptRegistered, *ledger.Event, error) {
	for e, err := range j.ledger.ReadStream(ctx, ChangeStream(change), 0) {
		if err != nil {
			return evidence.AttemptRegistered{}, nil, fmt.Errorf("read %s: %w", ChangeStream(change), err)
		}
		p, _, err := Decode(e)
		if err != nil {
			return evidence.AttemptRegistered{}, nil, err
		}
		if o, ok := p.(evidence.AttemptOpened); ok && o.Attempt == id {
			var r evidence.AttemptRegistered
			if err := evidence.Unmarshal(o.Registration, &r); err != nil {
				return r, nil, badHistory(e, err)
			}
			return r, &e, nil
		}
	}
	return evidence.AttemptRegistered{}, nil, &NotFoundError{Kind: KindAttempt, ID: string(id)}
}

// current makes the registration for the change's present version and context.
func (j *Journal) current(r Registration, c Change) (evidence.AttemptRegistered, error) {
	stream := ChangeStream(r.Change)
	b, ok := c.Fold.Binding()
	if !ok {
		return evidence.AttemptRegistered{}, &NotCurrentError{Stream: stream, What: "the context", Expected: "set", Found: "not set"}
	}
	want := evidence.Subject{Kind: evidence.SubjectCommit, Revision: c.Fold.Context.Revision}
	if r.Subject != want {
		return evidence.AttemptRegistered{}, &NotCurrentError{Stream: stream, What: "the revision", Expected: r.Subject.Revision, Found: want.Revision}
	}
	if err := c.Fold.Context.FitsRecipe(r.Recipe); err != nil {
		return evidence.AttemptRegistered{}, fmt.Errorf("register %s for %s: %w", r.Attempt, stream, err)
	}
	return r.event(&b)
}

func (j *Journal) keepRecipe(ctx context.Context, r Registration) error {
	table, err := r.Recipe.Table()
	if err != nil {
		return err
	}
	// The registration names the table too: a later version may know another one by that name.
	plain := [][]byte{evidence.Marshal(r.Recipe), evidence.Marshal(r.Environment), evidence.Marshal(table)}
	if r.Policy != nil {
		plain = append(plain, r.Policy)
	}
	if r.Salts != nil {
		if err := j.Keep(ctx, *r.Salts); err != nil {
			return err
		}
	}
	_, err = j.KeepPlain(ctx, plain...)
	return err
}

func (j *Journal) appendRegistered(ctx context.Context, a Attempt, listing *ledger.Event, e evidence.AttemptRegistered) (Attempt, error) {
	prepared, err := j.prepare(causeOf(listing), e)
	if err != nil {
		return Attempt{}, err
	}
	stream := AttemptStream(e.Attempt)
	if _, err := j.append(ctx, stream, a.Version, prepared); err != nil {
		return Attempt{}, err
	}
	return a, a.readOn(ctx, j, stream)
}

// causeOf is the ID of the event that led to another, or nil.
func causeOf(e *ledger.Event) []byte {
	if e == nil {
		return nil
	}
	id := e.ID()
	return id[:]
}

// sameInput compares a registration with one in the ledger, under that one's nonce.
func (j *Journal) sameInput(ctx context.Context, r Registration, c Change, have evidence.AttemptRegistered) error {
	kept, err := j.Recipe(ctx, have.Recipe)
	var absent *ledger.BlobAbsentError
	switch {
	case err == nil:
		r = r.withNonce(kept.Nonce)
	case errors.As(err, &absent): // forgotten: only the digests can be compared
	default:
		return err
	}
	var binding *evidence.Binding
	if r.Change != "" {
		b, ok := c.Fold.Binding()
		if ok {
			binding = &b
		}
	}
	want, err := r.event(binding)
	if err != nil {
		return err
	}
	if r.Change != "" && binding == nil {
		return &TakenError{Attempt: r.Attempt, Differs: []string{"binding"}}
	}
	return differs(have, want)
}

// differs is nil for equal registrations, else *TakenError.
func differs(have, want evidence.AttemptRegistered) error {
	if bytes.Equal(evidence.Marshal(have), evidence.Marshal(want)) {
		return nil
	}
	e := &TakenError{Attempt: have.Attempt}
	for _, part := range []struct {
		name string
		a, b any
	}{
		{"change, version or context", have.Binding, want.Binding},
		{"subject", have.Subject, want.Subject},
		{"profile", []any{have.Profile, have.Table}, []any{want.Profile, want.Table}},
		{"toolchain", have.Toolchain, want.Toolchain},
		{"environment", have.Environment, want.Environment},
		{"recipe", have.Recipe, want.Recipe},
		{"workspace policy", have.Policy, want.Policy},
		{"environment salts", have.Salts, want.Salts},
	} {
		if !bytes.Equal(evidence.Marshal(part.a), evidence.Marshal(part.b)) {
			e.Differs = append(e.Differs, part.name)
		}
	}
	return e
}
