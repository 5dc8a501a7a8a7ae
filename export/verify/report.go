package verify

import (
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

// Verdict is what a verification comes to.
type Verdict string

const (
	Valid      Verdict = "valid"
	Invalid    Verdict = "invalid"     // bad evidence
	NotChecked Verdict = "not_checked" // nothing failed, but not everything could be checked
)

// Result is how one check ended.
type Result string

const (
	Pass       Result = "pass"
	Fail       Result = "fail"
	NotDone    Result = "not_checked"
	notReached        = "an earlier check failed"
)

// Check is one thing that was checked.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Detail string `json:"detail"`

	settled bool // something was said of it
	excused bool // not done, and that doesn't weaken the verdict
}

// The checks, in order.
const (
	CheckEnvelope     = "envelope"     // a tagged COSE_Sign1 in its one spelling
	CheckSignature    = "signature"    // by the trusted key, under an allowed algorithm
	CheckPayload      = "payload"      // deterministic CBOR within its limits, as the header says
	CheckIdentity     = "identity"     // the genesis event is the trusted ledger's, and the signing key is live
	CheckCheckpoint   = "checkpoint"   // signed by a live checkpoint key for this origin and size
	CheckKept         = "kept"         // the tree and the one of a checkpoint the reader kept are one history
	CheckStreams      = "streams"      // versions from 0 without a gap, each carrying its predecessor's hash
	CheckInclusion    = "inclusion"    // every event's leaf is in the checkpoint's tree at its index
	CheckEvents       = "events"       // every event decodes strictly and is known
	CheckHistory      = "history"      // every event may follow those before it
	CheckRecord       = "record"       // the record derived again has the digest that was stored
	CheckRequest      = "request"      // every daemon object carries the digest of the request
	CheckClaim        = "claim"        // judged again by its basis
	CheckCompleteness = "completeness" // nothing before the judgement was left out
	CheckBlobs        = "blobs"        // exactly the blobs that events name, each with its digest
	CheckWithheld     = "withheld"     // nothing is missing, or only what the policy allows
	CheckRecipe       = "recipe"       // recipe, environment and profile are those registered
	CheckSource       = "source"       // the manifest is the one that was bound
	CheckControls     = "controls"     // the values found open the salted ones
	CheckOutput       = "output"       // lengths, flags and digests agree
	CheckSchemas      = "schemas"      // the schema texts are those of this program
	CheckAdmission    = "admission"    // approvals decided again; not done where what they rest on is missing
	CheckWitness      = "witness"      // somebody outside saw the tree
)

// Checks lists every check in the order of a report.
func Checks() []string {
	return []string{CheckEnvelope, CheckSignature, CheckPayload, CheckIdentity, CheckCheckpoint, CheckKept, CheckStreams, CheckInclusion,
		CheckEvents, CheckHistory, CheckRecord, CheckRequest, CheckClaim, CheckCompleteness, CheckBlobs, CheckWithheld,
		CheckRecipe, CheckSource, CheckControls, CheckOutput, CheckSchemas, CheckAdmission, CheckWitness}
}

// Times is what a bundle says about time that no outside witness vouches for (req T10).
const Times = "times: the writer's claim; existed by: no outside witness"

// Report is what a verification found. Where the verdict is invalid, everything but Checks is what
// the bundle claims.
type Report struct {
	Verdict  Verdict          `json:"verdict"`
	Outcome  evidence.Outcome `json:"outcome"` // of the first judged attempt that is no success; empty when none is or could be judged
	Claim    evidence.Claim   `json:"claim"`   // of that attempt
	Required Level            `json:"required"`
	Reached  bool             `json:"reached"`          // the required level and claim
	Why      string           `json:"why,omitempty"`    // they weren't
	Ledger   string           `json:"ledger,omitempty"` // its ID
	Origin   string           `json:"origin,omitempty"`
	At       *ledger.Index    `json:"at,omitempty"`
	Root     string           `json:"root,omitempty"`
	Keys     Keys             `json:"keys"`
	Times    string           `json:"times"`

	Witnessed *Witnessed `json:"witnessed,omitempty"` // only where the reader's witness policy is met

	Checks   []Check        `json:"checks"`
	Missing  []MissingClass `json:"missing,omitempty"`
	Attempts []Attempt      `json:"attempts,omitempty"`

	Changes []evidence.ChangeID `json:"changes,omitempty"` // judged themselves, with or without attempts

	Admissions []Admission          `json:"admissions,omitempty"` // approvals and integrations of the judged attempts' contexts, and of the judged changes
	Claims     []evidence.Statement `json:"claims"`
}

// Keys are fingerprints: the SHA-256 of each SubjectPublicKeyInfo.
type Keys struct {
	Signed     *evidence.KeyID `json:"signed,omitempty"`     // the key the bundle says signed it
	Trusted    *evidence.KeyID `json:"trusted,omitempty"`    // the key the reader trusts
	Checkpoint *evidence.KeyID `json:"checkpoint,omitempty"` // the genesis checkpoint key
	Endorsed   bool            `json:"endorsed,omitempty"`   // the checkpoint key is known only through the bundle key
}

// MissingClass counts the blobs of one class that the bundle lacks.
type MissingClass struct {
	Class   bundle.Class `json:"class"`
	Why     bundle.Why   `json:"why"`
	Blobs   int          `json:"blobs"`
	Allowed bool         `json:"allowed"`
}

// settle records how a check ended. The worst that was said of it stays: a failure, then what was
// not checked; a pass only if nothing else was said.
func (r *Report) settle(name string, result Result, excused bool, detail string) {
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Name != name || c.Result == Fail || c.settled && result == Pass {
			continue
		}
		c.Result, c.Detail, c.settled, c.excused = result, detail, true, excused
	}
}

func (r *Report) pass(name, format string, args ...any) {
	r.settle(name, Pass, false, fmt.Sprintf(format, args...))
}

func (r *Report) fail(name, format string, args ...any) {
	r.settle(name, Fail, false, fmt.Sprintf(format, args...))
}

// skip says that a check could not be done, which weakens the verdict.
func (r *Report) skip(name, format string, args ...any) {
	r.settle(name, NotDone, false, fmt.Sprintf(format, args...))
}

// excuse is skip for what doesn't weaken the verdict.
func (r *Report) excuse(name, format string, args ...any) {
	r.settle(name, NotDone, true, fmt.Sprintf(format, args...))
}

// Check returns the check of that name.
func (r Report) Check(name string) Check {
	i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		return Check{Name: name, Result: NotDone}
	}
	return r.Checks[i]
}

func (r Report) passed(name string) bool { return r.Check(name).Result == Pass }

// conclude computes verdict and level from the checks and what the reader asks for.
func (r *Report) conclude(p Policy) {
	r.Verdict, r.Required = Valid, p.Require
	if r.Required == "" {
		r.Required = Authentic
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Result == NotDone && c.excused && slices.Contains(p.RequiredChecks, c.Name) {
			c.excused = false
			c.Detail += "; the policy requires this check"
		}
		switch {
		case c.Result == Fail:
			r.Verdict = Invalid
		case c.Result == NotDone && !c.excused && r.Verdict == Valid:
			r.Verdict = NotChecked
		}
	}
	for i, a := range r.Attempts {
		if i == 0 || r.Outcome == evidence.OutcomeSuccess {
			r.Outcome, r.Claim = a.Record.Outcome, a.Record.Claim
		}
	}
	r.Why = r.short(p)
	r.Reached = r.Why == ""
}

// short says why level or claim isn't reached; empty when both are.
func (r *Report) short(p Policy) string {
	l := r.Required
	if r.Verdict != Valid {
		return "the verdict is " + string(r.Verdict)
	}
	if l == Success && len(r.Attempts) == 0 {
		return "the bundle is about no attempt, so it has no outcome"
	}
	if why := r.unsuccessful(l); why != "" {
		return why
	}
	if why := r.claimsLess(p); why != "" {
		return why
	}
	if (l == Admitted || l == Full) && !r.passed(CheckAdmission) {
		return "admission: " + r.Check(CheckAdmission).Detail
	}
	if l == Full {
		for _, c := range r.Checks {
			if c.Result == NotDone && c.Name != CheckWitness && c.Name != CheckKept {
				return c.Name + ": " + c.Detail
			}
		}
	}
	return ""
}

// unsuccessful says which judged attempt keeps a level from being reached by its outcome. Success is asked of every one.
// An admission counts failures and outlives what it replaced, so that `admitted` and what is above it ask for one success
// in a context that isn't superseded, or for a judged change.
func (r *Report) unsuccessful(l Level) string {
	if l == Authentic || len(r.Attempts) == 0 {
		return ""
	}
	why := ""
	for _, a := range r.Attempts {
		switch {
		case a.Record.Good() && !a.superseded && l != Success:
			return ""
		case !a.Record.Good() && why == "":
			why = fmt.Sprintf("the outcome of %s is %s (%s)", a.Record.Attempt, a.Record.Outcome, a.Record.Detail)
		}
	}
	switch {
	case l != Success && len(r.Changes) > 0:
		return ""
	case r.Outcome != evidence.OutcomeSuccess:
		return "the outcome is " + string(r.Outcome)
	}
	return why
}

// claimsLess says which judged attempt claims less than the policy asks for, or is reduced by what it
// doesn't accept.
func (r *Report) claimsLess(p Policy) string {
	if p.Claim == "" {
		return ""
	}
	for _, a := range r.Attempts {
		if c := a.Record.Claim; c != evidence.ClaimFull && c != p.Claim {
			return fmt.Sprintf("attempt %s claims %s; the policy asks for %s", a.Attempt, c, p.Claim)
		}
		for _, reduced := range a.Record.Reductions {
			if p.Reductions != nil && !slices.Contains(p.Reductions, reduced) {
				return fmt.Sprintf("attempt %s is reduced by %s, which the policy doesn't accept", a.Attempt, reduced)
			}
		}
	}
	return ""
}
