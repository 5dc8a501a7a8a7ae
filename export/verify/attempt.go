package verify

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/containment"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

// Attempt is one judged attempt as its events show it. Parts that are missing from the bundle are
// nil; nil is never "none".
type Attempt struct {
	Attempt      evidence.AttemptID    `json:"attempt"`
	Index        ledger.Index          `json:"index"` // of its AttemptFinished
	RecordDigest evidence.RecordDigest `json:"record_digest"`
	Record       evidence.Record       `json:"record"`
	Recipe       *evidence.Recipe      `json:"recipe,omitempty"`
	Environment  *evidence.Environment `json:"environment,omitempty"`
	Profile      *evidence.Profile     `json:"-"`
	Accepted     []evidence.Reduction  `json:"accepted,omitempty"` // reductions the runner accepted
	Isolation    []ControlSeen         `json:"isolation,omitempty"`
	Kernel       []ControlSeen         `json:"kernel,omitempty"`
	Probed       []ControlSeen         `json:"probed,omitempty"`
	Output       []OutputSeen          `json:"output,omitempty"` // stdout and stderr
	Change       *ChangeSeen           `json:"change,omitempty"`
	Timeline     []EventSeen           `json:"timeline,omitempty"`
	Details      []DetailSeen          `json:"details,omitempty"`

	Containment containment.Evidence `json:"containment"` // a view of the same events and blobs

	// Workspace is what an agent's copy held before it; nil for other profiles, and where it is withheld.
	Workspace *evidence.WorkspaceManifest `json:"-"`

	superseded bool // another context that is judged came after its own
}

// ControlSeen is one control, by name, with what was found.
type ControlSeen struct {
	ID       evidence.ControlID    `json:"id"`
	Name     string                `json:"name,omitempty"`
	Kind     evidence.EvidenceKind `json:"kind"`
	Equal    bool                  `json:"equal"`
	Reason   string                `json:"reason,omitempty"`
	Opened   bool                  `json:"opened"` // Expected and Found are known
	Expected string                `json:"expected,omitempty"`
	Found    string                `json:"found,omitempty"`
}

// OutputSeen is one captured stream. Bytes and plain digests are known only when Held.
type OutputSeen struct {
	Name        string               `json:"name"`
	Stored      uint64               `json:"stored"`
	Received    uint64               `json:"received"`
	EndOfStream bool                 `json:"end_of_stream"`
	Truncated   bool                 `json:"truncated"`
	Redacted    bool                 `json:"redacted"`
	Held        bool                 `json:"held"`
	Digest      evidence.PlainDigest `json:"digest,omitzero"` // SHA-256 of Bytes
	Bytes       []byte               `json:"bytes,omitempty"`
}

// ChangeSeen says which of a change's attempts this is, up to its judgement.
type ChangeSeen struct {
	Change evidence.ChangeID `json:"change"`
	Number int               `json:"number"` // from 1, in the order they were listed
	Listed int               `json:"listed"`
	Others int               `json:"others"` // listed and not in the bundle: how they ended is not shown
}

// EventSeen is one event in the order of the ledger.
type EventSeen struct {
	Index   ledger.Index   `json:"index"`
	Version ledger.Version `json:"version"`
	Type    string         `json:"type"`
	Time    int64          `json:"time_ns"` // the writer's claim, ns since the epoch
	Actor   string         `json:"actor"`
}

// DetailSeen is a text an event names: an error, an operator's words.
type DetailSeen struct {
	Index ledger.Index `json:"index"`
	Type  string       `json:"type"`
	Held  bool         `json:"held"`
	Text  []byte       `json:"text,omitempty"`
}

// describe fills the report's attempts from what was verified.
func (v *verification) describe() {
	for _, j := range v.attempt {
		v.report.Attempts = append(v.report.Attempts, v.describeOne(j))
	}
}

func (v *verification) describeOne(j *judged) Attempt {
	g := j.fold.Registered
	a := Attempt{Attempt: g.Attempt, Index: j.finished, RecordDigest: j.record.Digest(), Record: j.record}
	// An empty list is one in JSON too; CBOR writes both alike.
	a.Record.Causes, a.Record.Reductions, a.Record.Cleanup = listed(a.Record.Causes), listed(a.Record.Reductions), listed(a.Record.Cleanup)
	var r evidence.Recipe
	if v.read(bundle.BlobDigest(g.Recipe), &r) {
		a.Recipe = &r
	}
	var env evidence.Environment
	if v.read(bundle.BlobDigest(g.Environment), &env) {
		a.Environment = &env
	}
	var p evidence.Profile
	if v.read(bundle.BlobDigest(g.Table), &p) {
		a.Profile = &p
	}
	if j.fold.Claimed != nil {
		a.Accepted = j.fold.Claimed.Accepted
	}
	if i := j.fold.Isolation; i != nil {
		a.Isolation = v.controlsSeen(a.Profile, i.Controls, i.Values)
	}
	if k := j.fold.Run.Kernel; k != nil {
		a.Kernel = v.controlsSeen(a.Profile, k.Controls, k.Values)
	}
	if o := j.fold.BeforeStart; o != nil && o.Probe != nil {
		if e, err := v.find(*o.Probe); err == nil {
			if seen, ok := e.Payload.(evidence.RuntimeProbed); ok {
				a.Probed = v.controlsSeen(a.Profile, seen.Controls, seen.Values)
			}
		}
	}
	if o := j.fold.Run.Output; o != nil {
		a.Output = []OutputSeen{v.outputSeen("stdout", o.Stdout), v.outputSeen("stderr", o.Stderr)}
	}
	a.Change = v.changeSeen(j)
	a.superseded = g.Binding != nil && v.superseded[*g.Binding]
	a.Workspace = v.workspaceSeen(j)
	a.Containment = containment.Of(&j.fold, v.containmentBlobs(j, a))
	for _, e := range j.events {
		a.Timeline = append(a.Timeline, EventSeen{Index: e.Index, Version: e.Version, Type: e.Type, Time: e.Time, Actor: e.Meta.Actor})
		for _, m := range bundle.Mentions(e.Payload) {
			if m.Class == bundle.ClassDetail {
				w, held, _ := v.opened(*m.Ref)
				a.Details = append(a.Details, DetailSeen{Index: e.Index, Type: e.Type, Held: held, Text: w.Bytes})
			}
		}
	}
	return a
}

// containmentBlobs is what of an attempt's blobs is held and opens what the events hold.
func (v *verification) containmentBlobs(j *judged, a Attempt) containment.Blobs {
	b := containment.Blobs{Recipe: a.Recipe, Environment: a.Environment}
	if i := j.fold.Isolation; i != nil {
		if values, held, err := v.valuesOf(i.Controls, i.Values); err == nil && held {
			b.Values = values
		}
	}
	return b
}

func listed[T any](s []T) []T { return append([]T{}, s...) }

// read decodes a held blob named by its plain digest. Whether it is well-formed was checked.
func (v *verification) read(d bundle.BlobDigest, into any) bool {
	b, ok := v.payload.Blob(d)
	return ok && sha256.Sum256(b) == d && evidence.Unmarshal(b, into) == nil
}

func (v *verification) controlsSeen(p *evidence.Profile, controls []evidence.Control, ref evidence.BlobRef) []ControlSeen {
	values, held, err := v.valuesOf(controls, ref)
	out := make([]ControlSeen, len(controls))
	for i, c := range controls {
		out[i] = ControlSeen{ID: c.ID, Kind: c.Kind, Equal: c.Equal, Reason: c.Reason}
		if p != nil {
			if at, ok := slices.BinarySearchFunc(p.Controls, c.ID, func(s evidence.ControlSpec, id evidence.ControlID) int { return cmp.Compare(s.ID, id) }); ok {
				out[i].Name = p.Controls[at].Name
			}
		}
		if held && err == nil {
			out[i].Opened, out[i].Expected, out[i].Found = true, values[i].Expected, values[i].Found
		}
	}
	return out
}

func (v *verification) outputSeen(name string, s evidence.Stream) OutputSeen {
	o := OutputSeen{Name: name, Stored: s.Stored, Received: s.Received, EndOfStream: s.EndOfStream, Truncated: s.Truncated, Redacted: s.Redacted}
	if w, held, err := v.opened(s.Bytes); err == nil && held {
		o.Held, o.Digest, o.Bytes = true, w.Descriptor.Stored, w.Bytes
	}
	return o
}

// changeSeen counts the attempts that the change listed for the same version and context before
// the judgement.
func (v *verification) changeSeen(j *judged) *ChangeSeen {
	b := j.fold.Registered.Binding
	if b == nil {
		return nil
	}
	at, _ := bundle.Judgement(j.events)
	seen := &ChangeSeen{Change: b.Change}
	for _, e := range v.streams[evidence.ChangePrefix+string(b.Change)] {
		o, ok := e.Payload.(evidence.AttemptOpened)
		if !ok || e.Index > at {
			continue
		}
		var r evidence.AttemptRegistered
		if err := evidence.Unmarshal(o.Registration, &r); err != nil || r.Binding == nil || *r.Binding != *b {
			continue
		}
		seen.Listed++
		if o.Attempt == j.fold.Registered.Attempt {
			seen.Number = seen.Listed
		} else if _, here := v.streams[evidence.AttemptPrefix+string(o.Attempt)]; !here {
			seen.Others++
		}
	}
	return seen
}
