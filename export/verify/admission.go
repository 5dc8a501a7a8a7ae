package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

// Admission is an approval or an integration, decided again.
type Admission struct {
	Change  evidence.ChangeID      `json:"change"`
	Version uint64                 `json:"version"`
	Context evidence.ContextDigest `json:"context"`
	Kind    string                 `json:"kind"` // approval, integration
	Index   ledger.Index           `json:"index"`
	Stands  bool                   `json:"stands"` // false: void, it admits nothing
	Void    *ledger.Index          `json:"void,omitempty"`
	Relied  []evidence.AttemptID   `json:"relied"`

	// NotRedecided names what the decision rests on and the bundle lacks. The events alone give the same
	// decision; what they say of these was not checked.
	NotRedecided []string `json:"not_redecided,omitempty"`

	Tally   evidence.Tally    `json:"tally"` // of the context's attempts, up to the judgement
	Rulings []evidence.Ruling `json:"rulings"`
}

// count folds an attempt that an approval counts.
func (v *verification) count(name string, events []bundle.Placed) error {
	id, err := evidence.ParseAttemptID(strings.TrimPrefix(name, evidence.AttemptPrefix))
	if err != nil {
		return fmt.Errorf("stream %s is counted and is no attempt's", name)
	}
	j := &judged{events: events}
	for _, e := range events {
		if r, ok := e.Payload.(evidence.AttemptRegistered); ok && r.Attempt != id {
			return fmt.Errorf("stream %s registers attempt %q", name, r.Attempt)
		}
		if err := j.fold.Apply(e.Payload); err != nil {
			return fmt.Errorf("stream %s, version %s: %w", name, e.Version, err)
		}
	}
	v.requests(name, j)
	if v.counted == nil {
		v.counted = map[evidence.AttemptID]*judged{}
	}
	v.counted[id] = j
	return nil
}

// admissions decides every approval and integration of the judged attempts' contexts again, and all of the
// judged changes. The check passes if the last context of every change that a judged attempt is bound to, or
// that a judged change judges, has an approval that stands: what was superseded needs none.
func (v *verification) admissions() {
	var judged [][]bundle.Placed
	adHoc, unapproved := false, evidence.ChangeID("")
	for _, j := range v.attempt {
		judged = append(judged, j.events)
		adHoc = adHoc || j.fold.Registered.Binding == nil
	}
	for _, s := range v.payload.Streams {
		events := v.streams[s.Name]
		id, ok := bundle.ChangeOf(events)
		if !ok || s.Role != bundle.Judged {
			continue
		}
		v.report.Changes = append(v.report.Changes, id)
		contexts := bundle.Contexts(events)
		if len(contexts) == 0 {
			unapproved = id
			v.change(id, nil)
			continue
		}
		judged = append(judged, events)
	}
	bindings := bundle.Bindings(judged)
	v.superseded = v.supersededOf(bindings)
	changes := map[evidence.ChangeID]bool{}
	for _, b := range bindings {
		if !changes[b.Change] {
			changes[b.Change] = true
			v.change(b.Change, bindings)
		}
	}
	var says []string
	for _, b := range bindings {
		if v.superseded[b] {
			continue // it was decided again, and another context took its place
		}
		last, ok := v.lastApproval(b)
		switch {
		case !ok:
			v.report.excuse(CheckAdmission, "the bundle holds no approval of change %s version %d", b.Change, b.Version)
		case !last.Stands:
			v.report.excuse(CheckAdmission, "the approval at index %d is void: the event at index %d came before it", last.Index, *last.Void)
		case len(last.NotRedecided) > 0:
			v.report.excuse(CheckAdmission, "not re-decided: the approval at index %d rests on what is missing: %s", last.Index, strings.Join(last.NotRedecided, ", "))
		default:
			says = append(says, fmt.Sprintf("change %s version %d was approved at index %d, decided again: %s", b.Change, b.Version, last.Index, last.Tally))
		}
	}
	if unapproved != "" {
		v.report.excuse(CheckAdmission, "the bundle holds no approval of change %s", unapproved)
		return
	}
	if adHoc || len(bindings) == 0 {
		v.report.excuse(CheckAdmission, "an attempt is bound to no change; it admits nothing")
		return
	}
	v.report.pass(CheckAdmission, "%s", strings.Join(says, "; "))
}

// lastApproval is the last approval of a context that stands or, without one, the last.
func (v *verification) lastApproval(b evidence.Binding) (last Admission, ok bool) {
	for _, a := range v.report.Admissions {
		if a.Kind == kindApproval && a.Change == b.Change && a.Version == b.Version && a.Context == b.Context && (a.Stands || !last.Stands) {
			last, ok = a, true
		}
	}
	return last, ok
}

const (
	kindApproval    = "approval"
	kindIntegration = "integration"
)

// change decides each admission of one change where it stands in the stream: before it is folded,
// so that the change is as the judgement read it.
func (v *verification) change(id evidence.ChangeID, bindings []evidence.Binding) {
	var trail evidence.ChangeTrail
	approvals := map[uint64]evidence.ApprovalExhibit{}
	for _, e := range v.streams[evidence.ChangePrefix+string(id)] {
		if a, ok := bundle.AdmissionOf(e); ok && slices.ContainsFunc(bindings, func(b evidence.Binding) bool { return b.Change == id && a.About(b) }) {
			x, err := v.admission(id, a, &trail, approvals)
			if err != nil {
				v.report.fail(CheckAdmission, "change %s, %s at index %d: %v", id, a.Type, a.Index, err)
				return
			}
			if x != nil {
				v.report.Admissions = append(v.report.Admissions, *x)
			}
		}
		if p, ok := e.Payload.(evidence.PathsChecked); ok {
			if err := v.paths(p); err != nil {
				v.report.fail(CheckAdmission, "change %s, %s at index %d: %v", id, e.Type, e.Index, err)
			}
		}
		if err := trail.Apply(evidence.EventIndex(e.Index), e.Payload); err != nil {
			v.report.fail(CheckHistory, "stream %s, version %s: %v", e.Stream, e.Version, err)
			return
		}
	}
}

// admission decides one admission again. It is nil where it can't be decided, and the report says
// why.
func (v *verification) admission(id evidence.ChangeID, a bundle.Admission, trail *evidence.ChangeTrail, approvals map[uint64]evidence.ApprovalExhibit) (*Admission, error) {
	if a.Grounds.Rules > evidence.RuleSet {
		v.report.skip(CheckAdmission, "the approval at index %d is by rules that a newer version knows", a.Index)
		return nil, nil
	}
	if trail.Fold.Context == nil {
		return nil, fmt.Errorf("the change has no context there")
	}
	the := evidence.Case{Change: trail.Exhibit()}
	for _, i := range trail.Present() {
		ex, err := v.exhibit(trail.Fold.Openings[i], trail.Listed[i], a.Index)
		if err != nil {
			return nil, err
		}
		the.Attempts = append(the.Attempts, ex)
	}
	runtimes := qualifying(a, the)
	void, err := v.judgementBasis(a, trail.Fold.Context.Policy, runtimes)
	if err != nil {
		return nil, err
	}
	if err := v.canaries(a, &the, runtimes); err != nil {
		return nil, err
	}
	x := &Admission{Change: id, Version: a.Version, Context: a.Context, Kind: kindApproval, Index: a.Index, Stands: void == nil, Void: void, Relied: []evidence.AttemptID{}}
	if p, ok := a.Payload.(evidence.ChangeIntegrated); ok {
		x.Kind, the.Integration = kindIntegration, true
		if _, err := v.find(p.Approval); err != nil {
			return nil, err
		}
		if approval, ok := approvals[p.Approval.Version]; ok {
			the.Approval = &approval
		}
	}
	if the.Policy, err = v.policyAt(trail.Fold.Context.Policy, a.Basis); err != nil {
		return nil, err
	}
	for _, r := range a.Relied {
		if err := v.relied(r.Attempt, a.Index); err != nil {
			return nil, fmt.Errorf("attempt %s: %w", r.Attempt, err)
		}
		x.Relied = append(x.Relied, r.Attempt)
		the.Rely = append(the.Rely, r.Attempt)
		if held, err := v.reliedRecipe(r.Attempt); err != nil {
			return nil, fmt.Errorf("attempt %s: %w", r.Attempt, err)
		} else if !held {
			x.NotRedecided = append(x.NotRedecided, fmt.Sprintf("the recipe of attempt %s", r.Attempt))
		}
	}
	if err := evidence.Redecide(the, a.Relied, a.Grounds); err != nil {
		return nil, err
	}
	d := evidence.Admit(the)
	x.Tally, x.Rulings = d.Tally, d.Rulings
	if v.pathsMissing(trail) {
		x.NotRedecided = append(x.NotRedecided, "the list of paths that the change touches")
	}
	if x.Kind == kindApproval {
		seen := evidence.ApprovalExhibit{At: evidence.EventIndex(a.Index)}
		if void != nil {
			at := evidence.EventIndex(*void)
			seen.Void = &at
		}
		approvals[uint64(a.Placed.Event.Version)] = seen
	}
	return x, nil
}

// judgementBasis checks that a judgement rests on its change as it was directly before it, on the
// policy, on the attempts relied on and, where they must be qualified, on their runtimes, each as the
// bundle shows it, and on nothing else. It returns the first event that makes the judgement void (req H5).
func (v *verification) judgementBasis(a bundle.Admission, policy evidence.PolicyID, runtimes map[string]evidence.Bound) (void *ledger.Index, err error) {
	want := map[string]bool{string(a.Stream): true, evidence.PolicyPrefix + string(policy): true}
	for _, r := range a.Relied {
		want[evidence.AttemptPrefix+string(r.Attempt)] = true
	}
	for stream := range runtimes {
		want[stream] = true
	}
	for _, b := range a.Basis {
		if !want[b.Stream] {
			return nil, fmt.Errorf("it rests on stream %s, which decides nothing", b.Stream)
		}
		delete(want, b.Stream)
		read, err := v.find(b)
		if err != nil {
			return nil, err
		}
		if read.Index >= a.Index {
			return nil, fmt.Errorf("it rests on index %d, which came later", read.Index)
		}
		if b.Stream == string(a.Stream) && b.Version+1 != uint64(a.Placed.Event.Version) {
			return nil, fmt.Errorf("it rests on version %d of its own stream, not on the one directly before it", b.Version)
		}
		for _, e := range v.streams[b.Stream][b.Version+1:] {
			if e.Index < a.Index && evidence.ChangesBasis(e.Type) && (void == nil || e.Index < *void) {
				void = &e.Index
			}
		}
	}
	for stream := range want {
		return nil, fmt.Errorf("it doesn't rest on stream %s", stream)
	}
	return void, nil
}

// policyAt is the policy at the version that a basis names.
func (v *verification) policyAt(id evidence.PolicyID, basis []evidence.Basis) (evidence.PolicyExhibit, error) {
	var t evidence.PolicyTrail
	stream := evidence.PolicyPrefix + string(id)
	for _, b := range basis {
		if b.Stream != stream {
			continue
		}
		for _, e := range v.streams[stream][:b.Version+1] {
			if err := t.Apply(evidence.EventIndex(e.Index), e.Payload); err != nil {
				return evidence.PolicyExhibit{}, fmt.Errorf("stream %s, version %s: %w", stream, e.Version, err)
			}
		}
	}
	return t.Exhibit(), nil
}

// exhibit is what admission reads of one listed attempt, from its events before the judgement.
func (v *verification) exhibit(o evidence.Opening, listed evidence.EventIndex, judgement ledger.Index) (evidence.AttemptExhibit, error) {
	var t evidence.AttemptTrail
	events := v.streams[evidence.AttemptPrefix+string(o.Attempt)]
	for _, e := range events {
		if e.Index >= judgement {
			break
		}
		if err := t.Apply(evidence.EventIndex(e.Index), e.Payload); err != nil {
			return evidence.AttemptExhibit{}, fmt.Errorf("stream %s, version %s: %w", e.Stream, e.Version, err)
		}
	}
	x := t.Exhibit(o, listed)
	if c := t.Fold.Claimed; c != nil {
		for _, b := range c.Basis {
			held := v.streams[b.Stream]
			if b.Version >= uint64(len(held)) {
				continue // the claim itself is checked where it is relied on
			}
			for _, e := range held[b.Version+1:] {
				if at := evidence.EventIndex(e.Index); at < x.ClaimedAt && evidence.ChangesBasis(e.Type) && (x.Void == nil || at < *x.Void) {
					x.Void = &at
				}
			}
		}
	}
	return x, nil
}

// relied checks of an attempt that is relied on and not judged what is checked of judged ones: its
// listing, its claim and, as far as it went before the judgement, its probes. Its requests were checked when it was folded.
func (v *verification) relied(id evidence.AttemptID, judgement ledger.Index) error {
	j, ok := v.counted[id]
	if !ok {
		return nil // judged, or not there, which the decision says
	}
	if len(j.events) == 0 {
		return fmt.Errorf("its stream isn't in the bundle")
	}
	if err := v.listed(evidence.AttemptPrefix+string(id), j); err != nil {
		return err
	}
	if err := v.claim(j); err != nil {
		return err
	}
	return v.probes(j, judgement)
}
