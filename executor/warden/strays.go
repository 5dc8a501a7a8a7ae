package warden

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
)

// Object is a daemon object as a supervisor shows it.
type Object struct {
	Kind    evidence.CustodyKind `json:"kind,omitempty"` // empty where the custody can't be read
	ID      string               `json:"id,omitempty"`   // full, hex; empty while it isn't known
	Name    string               `json:"name"`
	Labels  map[string]string    `json:"labels,omitempty"` // those with our prefix
	Status  string               `json:"status,omitempty"`
	Created time.Time            `json:"created,omitzero"` // the daemon's word
	Age     time.Duration        `json:"age_ns,omitempty"` // by our clock, never negative
}

func (o *Object) compare(p *Object) int {
	if o == nil || p == nil {
		return 0
	}
	return cmp.Compare(o.ID, p.ID)
}

func objectOf(l executor.Labelled) *Object {
	o := &Object{Kind: l.Kind, ID: l.ID.Hex(), Name: l.Name, Labels: l.Labels, Status: l.Status}
	if l.Created > 0 {
		o.Created = time.Unix(0, l.Created).UTC()
		o.Age = max(time.Since(o.Created), 0)
	}
	return o
}

// strays shows what carries our labels and no open custody names (req E8, G8): what another home or a
// ledger that is gone made, or somebody who copied our labels. Nothing is done to it.
//
// The daemon is asked before the ledger: custody is durable before its object can be listed.
func (w *Warden) strays(ctx context.Context, files *CustodyFiles) []Supervised {
	var listed []executor.Labelled
	for _, kind := range []evidence.CustodyKind{evidence.CustodyContainer, evidence.CustodyNetwork} {
		some, err := w.Driver.FindLabelled(ctx, kind)
		if err != nil {
			s, _ := failed(fmt.Errorf("what carries our labels can't be listed, so nobody knows whether something was left: %w", err))
			return []Supervised{s}
		}
		listed = append(listed, some...)
	}
	if len(listed) == 0 {
		return nil
	}
	var handles []evidence.HandleKey
	for _, l := range listed {
		if _, h, ok := l.Owner(); ok {
			handles = append(handles, h)
		}
	}
	held, err := w.Journal.CustodyOf(ctx, handles...)
	if err != nil {
		s, _ := failed(fmt.Errorf("whose the objects with our labels are can't be read: %w", err))
		return []Supervised{s}
	}
	for _, h := range handles {
		if _, ok := held[h]; ok || files == nil {
			continue
		}
		if k, err := files.read(h); err == nil { // one that can't be read names nothing, and is shown itself
			held[h] = journal.Held{Custody: k.custody()}
		}
	}
	var out []Supervised
	for _, l := range listed {
		why := unnamed(l, held)
		if why == "" || w.gone(ctx, l) {
			continue
		}
		out = append(out, Supervised{Action: ActionUnknown, Detail: why, Object: objectOf(l)})
	}
	return out
}

// unnamed says why no open custody names an object; empty if one does.
func unnamed(l executor.Labelled, held map[evidence.HandleKey]journal.Held) string {
	request, handle, ok := l.Owner()
	if !ok {
		return "its labels are no handle and request of ours"
	}
	h, ok := held[handle]
	c, whose := h.Custody, fmt.Sprintf("attempt %s", h.Attempt)
	if h.Attempt == "" {
		whose = "a custody file"
	}
	switch {
	case !ok:
		return "no custody in this ledger names it"
	case c.Request != request || c.Kind != l.Kind || c.Container != nil && *c.Container != l.ID:
		return fmt.Sprintf("it carries labels of %s, whose custody names another", whose)
	case c.Abandoned:
		return fmt.Sprintf("attempt %s gave it up", h.Attempt)
	case c.Closed:
		return fmt.Sprintf("the custody of attempt %s was closed (%s)", h.Attempt, c.State)
	}
	return ""
}

// gone reports whether a container was removed since it was listed: its runner may just have done so.
func (w *Warden) gone(ctx context.Context, l executor.Labelled) bool {
	if l.Kind != evidence.CustodyContainer {
		return false
	}
	_, err := w.Driver.Inspect(ctx, l.ID)
	return errors.Is(err, executor.ErrAbsent)
}
