package evidence

import "fmt"

// Change is one proposed change, folded from its stream. It must not be copied once it was
// applied to. Exported fields are for reading.
type Change struct {
	Opened        ChangeOpened
	Version       uint64        // the present one, from 1; 0: none was added
	Revision      string        // of the present version
	Context       *Context      // of the present version; nil: none was set
	ContextDigest ContextDigest // of Context
	Openings      []Opening     // every attempt listed, in order

	opened bool
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
		c.Version, c.Revision, c.Context, c.ContextDigest = e.Version, e.Revision, nil, ContextDigest{}
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
		c.Context, c.ContextDigest = &e.Context, e.Context.Digest()
		return nil
	case AttemptOpened:
		return c.openAttempt(e)
	}
	return fmt.Errorf("it does not belong in a change's stream")
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
