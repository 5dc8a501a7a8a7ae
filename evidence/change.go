package evidence

import (
	"fmt"
	"slices"
)

// Change is one proposed change, folded from its stream. It must not be copied once it was
// applied to. Exported fields are for reading.
type Change struct {
	Opened        ChangeOpened
	Version       uint64            // the present one, from 1; 0: none was added
	Revision      string            // of the present version
	Context       *Context          // of the present version; nil: none was set
	ContextDigest ContextDigest     // of Context
	Openings      []Opening         // every attempt listed, in order
	Paths         *PathsChecked     // the last of the present context; nil: none
	Approvals     []uint64          // stream versions of the present context's approvals, void ones among them
	Integrated    *ChangeIntegrated // the last one

	opened bool
	next   uint64 // stream version of the next event
	byID   map[AttemptID]int
}

// Opening is one attempt as a change lists it.
type Opening struct {
	Attempt      AttemptID
	Version      uint64 // of the change
	Context      ContextDigest
	Registration PlainDigest // SHA-256 of the listed registration data
}

// Exists reports whether the change was opened.
func (c *Change) Exists() bool { return c.opened }

// Opening returns the listing of one attempt.
func (c *Change) Opening(id AttemptID) (Opening, bool) {
	i, ok := c.byID[id]
	if !ok {
		return Opening{}, false
	}
	return c.Openings[i], true
}

// Binding is what an attempt for the present version and context is bound to; ok is false while
// no context is set.
func (c *Change) Binding() (b Binding, ok bool) {
	if c.Context == nil {
		return Binding{}, false
	}
	return Binding{Repository: c.Opened.Repository, Change: c.Opened.Change, Version: c.Version, Context: c.ContextDigest}, true
}

// Apply folds the next event of the stream. It fails with *IllegalEventError, leaving the change
// unchanged, when the event can't legally follow.
func (c *Change) Apply(p Payload) error {
	if err := c.apply(p); err != nil {
		return &IllegalEventError{Type: p.EventType(), Why: err.Error()}
	}
	c.next++
	return nil
}

func (c *Change) apply(p Payload) error {
	if _, seal := p.(StreamSealed); seal {
		return nil
	}
	if e, ok := p.(ChangeOpened); ok != !c.opened {
		if c.opened {
			return fmt.Errorf("the change is open already")
		}
		return fmt.Errorf("a change opens with ChangeOpened")
	} else if ok {
		if _, err := ParseChangeID(string(e.Change)); err != nil {
			return err
		}
		c.Opened, c.opened = e, true
		return nil
	}
	switch e := p.(type) {
	case VersionAdded:
		if e.Version != c.Version+1 {
			return fmt.Errorf("version %d does not follow version %d", e.Version, c.Version)
		}
		if err := CheckRevision(e.Revision); err != nil {
			return err
		}
		c.Version, c.Revision = e.Version, e.Revision
		c.setContext(nil)
		return nil
	case ContextSet:
		if e.Version != c.Version || c.Version == 0 {
			return fmt.Errorf("the context is for version %d; the present one is %d", e.Version, c.Version)
		}
		if e.Context.Revision != c.Revision {
			return fmt.Errorf("the context is for revision %s; version %d is %s", e.Context.Revision, c.Version, c.Revision)
		}
		if err := e.Context.Check(); err != nil {
			return err
		}
		c.setContext(&e.Context)
		return nil
	case AttemptOpened:
		return c.openAttempt(e)
	case PathsChecked:
		return c.checkPaths(e)
	case ContextApproved:
		if err := c.judged(e.Version, e.Context, e.Attempts, e.Basis, e.Grounds); err != nil {
			return err
		}
		c.Approvals = append(c.Approvals, c.next)
		return nil
	case ChangeIntegrated:
		return c.integrate(e)
	}
	return fmt.Errorf("it does not belong in a change's stream")
}

// setContext makes a context the present one, or ends the present one.
func (c *Change) setContext(to *Context) {
	c.Context, c.ContextDigest, c.Paths, c.Approvals = to, ContextDigest{}, nil, nil
	if to != nil {
		c.ContextDigest = to.Digest()
	}
}

// checkPaths folds evidence of source-paths/v1: only for what the present context asks.
func (c *Change) checkPaths(e PathsChecked) error {
	switch {
	case c.Context == nil || len(c.Context.AllowPaths) == 0:
		return fmt.Errorf("no context asks for it")
	case e.Revision != c.Context.Revision:
		return fmt.Errorf("it is about revision %s; the context is for %s", e.Revision, c.Context.Revision)
	case !slices.Equal(e.Globs, c.Context.AllowPaths):
		return fmt.Errorf("it names another set of allowed paths than the context")
	case e.Outside > e.Touched || e.Touched > MaxTouched:
		return fmt.Errorf("%d of %d paths outside is no possible count", e.Outside, e.Touched)
	}
	if e.Parent != "" {
		if err := CheckRevision(e.Parent); err != nil {
			return err
		}
	}
	c.Paths = &e
	return nil
}

// judged refuses a judgement that isn't about the present context, or whose parts have no legal
// shape. Whether it is right can't be told from this stream alone.
func (c *Change) judged(version uint64, context ContextDigest, relied []AttemptRelied, basis []Basis, g Grounds) error {
	if c.Context == nil || version != c.Version || context != c.ContextDigest {
		return fmt.Errorf("it is not about the present version and context")
	}
	if len(relied) > MaxRelied || !sortedUnique(relied, func(r AttemptRelied) string { return string(r.Attempt) }) {
		return fmt.Errorf("the attempts it relies on are not sorted, repeat or are more than %d", MaxRelied)
	}
	for _, r := range relied {
		if o, ok := c.Opening(r.Attempt); !ok || o.Version != version || o.Context != context {
			return fmt.Errorf("attempt %s is not listed for this context", r.Attempt)
		}
	}
	if len(basis) > MaxBasis || !sortedUnique(basis, func(b Basis) string { return b.Stream }) {
		return fmt.Errorf("its basis is not sorted, repeats a stream or names more than %d", MaxBasis)
	}
	return g.Check()
}

func (c *Change) integrate(e ChangeIntegrated) error {
	if err := c.judged(e.Version, e.Context, e.Attempts, e.Basis, e.Grounds); err != nil {
		return err
	}
	if e.Revision != c.Revision {
		return fmt.Errorf("it integrates revision %s; the present one is %s", e.Revision, c.Revision)
	}
	if e.Approval.Stream != ChangePrefix+string(c.Opened.Change) || !slices.Contains(c.Approvals, e.Approval.Version) {
		return fmt.Errorf("it follows no approval of the present context")
	}
	c.Integrated = &e
	c.setContext(nil)
	return nil
}

// openAttempt lists an attempt. What it lists must be a registration for exactly the present
// version, context and revision (req G1).
func (c *Change) openAttempt(e AttemptOpened) error {
	var r AttemptRegistered
	if err := Unmarshal(e.Registration, &r); err != nil {
		return fmt.Errorf("the registration it holds: %w", err)
	}
	if err := r.Check(); err != nil {
		return err
	}
	if r.Attempt != e.Attempt {
		return fmt.Errorf("it lists attempt %s with a registration of %s", e.Attempt, r.Attempt)
	}
	want, ok := c.Binding()
	if !ok {
		return fmt.Errorf("no context is set")
	}
	if r.Binding == nil || *r.Binding != want {
		return fmt.Errorf("its registration is not for the present version and context")
	}
	if r.Subject != (Subject{Kind: SubjectCommit, Revision: c.Context.Revision}) {
		return fmt.Errorf("its subject is not the context's revision")
	}
	if _, twice := c.byID[e.Attempt]; twice {
		return fmt.Errorf("attempt %s is listed already", e.Attempt)
	}
	if c.byID == nil {
		c.byID = map[AttemptID]int{}
	}
	c.byID[e.Attempt] = len(c.Openings)
	c.Openings = append(c.Openings, Opening{
		Attempt: e.Attempt, Version: c.Version, Context: c.ContextDigest, Registration: Sum[plainMeaning](e.Registration),
	})
	return nil
}
