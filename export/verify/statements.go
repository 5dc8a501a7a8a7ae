package verify

import (
	"slices"

	"github.com/baildock/baildock/evidence"
)

// Statement is an entry of the catalogue of what a bundle does and doesn't show (req P4).
type Statement struct {
	ID    string `json:"id"`
	Claim bool   `json:"claim"` // false: a non-claim, something a reader still trusts
	Text  string `json:"text"`
}

// catalogue holds every statement and when it applies. IDs are never reused.
var catalogue = []struct {
	Statement
	when func(*Report) bool
}{
	{Statement{"BD-C1", true, "the events shown are in the ledger's tree at their indexes, signed by the ledger's keys"},
		func(r *Report) bool { return r.Verdict == Valid }},
	{Statement{"BD-C2", true, "outcome and record follow from the events; nothing a worker printed decides them"},
		func(r *Report) bool { return r.passed(CheckRecord) }},
	{Statement{"BD-C3", true, "no event that changes an epoch or a context came before the judgement unseen"},
		func(r *Report) bool { return r.passed(CheckCompleteness) && r.passed(CheckClaim) }},
	{Statement{"BD-C4", true, "as many outside witnesses as the reader's policy asks for cosigned a tree of this history"},
		func(r *Report) bool { return r.passed(CheckWitness) }},
	{Statement{"BD-N1", false, "the controller, its filesystem, the Docker daemon and the image are trusted to have reported what was"},
		func(r *Report) bool { return len(r.Attempts) > 0 }},
	{Statement{"BD-N2", false, "isolation is configuration observed, not a proof against kernel faults or escapes"},
		func(r *Report) bool { return r.any(started) }},
	{Statement{"BD-N3", false, "the seccomp profile is the one the daemon calls its default; its filter bytes are not in evidence"},
		func(r *Report) bool { return r.any(started) }},
	{Statement{"BD-N4", false, "a confirmed removal says nothing of effects the command had on the host before"},
		func(r *Report) bool { return r.any(started) }},
	{Statement{"BD-N5", false, "whoever administers the daemon could read the command's live values"},
		func(r *Report) bool { return r.any(started) }},
	{Statement{"BD-N6", false, "the toolchain is bound by a digest somebody gave, not discovered in the image"},
		func(r *Report) bool { return r.any(func(a Attempt) bool { return a.Record.Toolchain != nil }) }},
	{Statement{"BD-N7", false, "no toolchain is bound; what the image holds is what its ID says"},
		func(r *Report) bool { return r.any(func(a Attempt) bool { return a.Record.Toolchain == nil }) }},
	{Statement{"BD-N8", false, "times are the writer's claim"},
		func(r *Report) bool { return len(r.Attempts) > 0 }},
	{Statement{"BD-N9", false, "the bundle is as of its index; what came later, and whether others were shown the same tree, only an audit and outside witnesses can say"},
		func(r *Report) bool { return r.At != nil }},
	{Statement{"BD-N10", false, "a key that was stolen after it was retired needs a checkpoint trusted from elsewhere to be told apart"},
		func(r *Report) bool { return r.At != nil }},
	{Statement{"BD-N11", false, "the attempt is bound to no change; it admits nothing"},
		func(r *Report) bool { return r.any(func(a Attempt) bool { return a.Record.Binding == nil }) }},
	{Statement{"BD-N12", false, "the claim is reduced; the reasons are listed"},
		func(r *Report) bool {
			return r.any(func(a Attempt) bool { return a.Record.Claim == evidence.ClaimReduced })
		}},
	{Statement{"BD-N13", false, "some blobs are missing; what they hold was not checked"},
		func(r *Report) bool { return len(r.Missing) > 0 }},
	{Statement{"BD-N14", false, "the checkpoint key is known only because the trusted bundle key signed for it"},
		func(r *Report) bool { return r.Keys.Endorsed }},
	{Statement{"BD-N15", false, "freshness, retention and permission are separate facts; none of them is shown"},
		func(r *Report) bool { return len(r.Attempts) > 0 }},
	{Statement{"BD-N16", false, "no canary qualification is evaluated in this bundle"},
		func(r *Report) bool { return r.any(started) }},
}

func started(a Attempt) bool { return a.Record.Claim != evidence.ClaimNone }

func (r *Report) any(f func(Attempt) bool) bool { return slices.ContainsFunc(r.Attempts, f) }

// statements returns what applies to a report, in the order of the catalogue.
func statements(r *Report) []Statement {
	out := []Statement{}
	for _, s := range catalogue {
		if s.when(r) {
			out = append(out, s.Statement)
		}
	}
	return out
}

// Catalogue returns every statement.
func Catalogue() []Statement {
	var out []Statement
	for _, s := range catalogue {
		out = append(out, s.Statement)
	}
	return out
}
