package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

// explanation is everything the events of one attempt say, for people.
type explanation struct {
	Causes     []causeView     `json:"causes"`
	Containers []containerView `json:"containers"`
	Controls   []controlView   `json:"controls"`
	Details    []detailView    `json:"details"` // error texts and other words kept beside events

	// Admission is what would be said now of the present context of the attempt's change; absent for
	// an ad hoc attempt.
	Admission *evidence.Decision `json:"admission,omitempty"`
}

type causeView struct {
	Code  string `json:"code"`
	Means string `json:"means"`
}

type containerView struct {
	Handle      evidence.HandleKey    `json:"handle"`
	Name        string                `json:"name"`
	Container   *evidence.ContainerID `json:"container"`
	State       evidence.CleanupState `json:"state"`
	Open        bool                  `json:"open"`
	Unconfirmed string                `json:"unconfirmed,omitempty"`
}

// controlView is one control: compared before the start, or seen by the kernel afterwards. The
// values are empty where they were withheld or forgotten.
type controlView struct {
	ID       evidence.ControlID    `json:"id"`
	Name     string                `json:"name"`
	Kind     evidence.EvidenceKind `json:"kind"`
	Equal    bool                  `json:"equal"`
	Reason   string                `json:"reason,omitempty"`
	Expected string                `json:"expected,omitempty"`
	Found    string                `json:"found,omitempty"`
}

type detailView struct {
	Event string `json:"event"`
	Text  string `json:"text"`
}

func explain(ctx context.Context, j *journal.Journal, id evidence.AttemptID) (explanation, error) {
	e := explanation{Causes: []causeView{}, Containers: []containerView{}, Controls: []controlView{}, Details: []detailView{}}
	a, err := j.Attempt(ctx, id)
	if err != nil {
		return e, err
	}
	f := a.Fold
	if f.State == evidence.StateFinished || unconfirmed(f) {
		for _, code := range evidence.VerdictOf(&f).Causes {
			e.Causes = append(e.Causes, causeView{code, causeMeans(code)})
		}
	}
	if b := f.Registered.Binding; b != nil {
		d, err := j.Decide(ctx, b.Change, false)
		if err != nil {
			return e, err
		}
		e.Admission = &d
	}
	for _, c := range f.Custodies {
		e.Containers = append(e.Containers, containerView{c.Handle, c.Name, c.Container, c.State, c.Open(), c.Unconfirmed})
	}
	if f.Isolation != nil {
		if err := e.addControls(ctx, j, f.Registered.Profile, f.Isolation.Controls, f.Isolation.Values); err != nil {
			return e, err
		}
	}
	if k := f.Run.Kernel; k != nil {
		if err := e.addControls(ctx, j, f.Registered.Profile, k.Controls, k.Values); err != nil {
			return e, err
		}
	}
	for _, event := range a.Events {
		p, _, err := journal.Decode(event)
		if err != nil {
			return e, err
		}
		for _, m := range bundle.Mentions(p) {
			if m.Class != bundle.ClassDetail || m.Ref == nil {
				continue
			}
			if err := e.addDetail(ctx, j, event.Type, *m.Ref); err != nil {
				return e, err
			}
		}
	}
	return e, nil
}

func (e *explanation) addDetail(ctx context.Context, j *journal.Journal, typ string, ref evidence.BlobRef) error {
	kept, err := j.Kept(ctx, ref)
	var absent *ledger.BlobAbsentError
	switch {
	case errors.As(err, &absent):
		e.Details = append(e.Details, detailView{typ, "(not kept here)"})
	case err != nil:
		return fmt.Errorf("read the detail of %s: %w", typ, err)
	default:
		e.Details = append(e.Details, detailView{typ, string(kept.Bytes)})
	}
	return nil
}

func (e *explanation) addControls(ctx context.Context, j *journal.Journal, profile evidence.ProfileName, controls []evidence.Control, ref evidence.BlobRef) error {
	table, err := evidence.ProfileByName(profile)
	if err != nil {
		return err
	}
	names := map[evidence.ControlID]string{}
	for _, c := range table.Controls {
		names[c.ID] = c.Name
	}
	values := map[evidence.ControlID]evidence.ControlValue{}
	kept, err := j.Kept(ctx, ref)
	var absent *ledger.BlobAbsentError
	switch {
	case errors.As(err, &absent):
	case err != nil:
		return fmt.Errorf("read the control values: %w", err)
	default:
		var list []evidence.ControlValue
		if err := evidence.Unmarshal(kept.Bytes, &list); err != nil {
			return fmt.Errorf("read the control values: %w", err)
		}
		for _, v := range list {
			values[v.ID] = v
		}
	}
	for _, c := range controls {
		v := values[c.ID]
		e.Controls = append(e.Controls, controlView{c.ID, names[c.ID], c.Kind, c.Equal, c.Reason, v.Expected, v.Found})
	}
	return nil
}
