package evidence

import (
	"fmt"
	"slices"
)

// Reduction is a reason why a run can't claim the full profile (req C8). The list is closed.
type Reduction string

const (
	ReducedCgroupV1    Reduction = "cgroup-v1"          // limits enforced by cgroup v1 controllers
	ReducedDesktop     Reduction = "docker-desktop"     // a desktop-managed VM lies between
	ReducedRootless    Reduction = "rootless"           // the daemon runs in a user namespace
	ReducedUserns      Reduction = "userns-remap"       // containers run in a remapped user namespace
	ReducedNoMachineID Reduction = "machine-id-missing" // the machine can't be told from a clone
	ReducedSeccomp     Reduction = "seccomp-unproven"   // the API can't name the seccomp profile and no probe saw it yet
)

// Reductions returns the closed list in its documented order.
func Reductions() []Reduction {
	return []Reduction{ReducedCgroupV1, ReducedDesktop, ReducedRootless, ReducedUserns, ReducedNoMachineID, ReducedSeccomp}
}

// ParseReduction refuses anything outside the closed list.
func ParseReduction(s string) (Reduction, error) {
	if r := Reduction(s); slices.Contains(Reductions(), r) {
		return r, nil
	}
	return "", fmt.Errorf("reduction %q is none of %v", s, Reductions())
}

// Claim is the level a run claims for its isolation.
type Claim string

const (
	ClaimNone    Claim = "none"    // nothing started
	ClaimFull    Claim = "full"    // every control of the profile, as its table requires
	ClaimReduced Claim = "reduced" // with the reasons accepted by name
)

// StatementID names a statement of the catalogue. IDs are never reused.
type StatementID string

// Statement is an entry of the catalogue of what evidence shows and doesn't show (req P4).
type Statement struct {
	ID    StatementID `json:"id"`
	Claim bool        `json:"claim"` // false: a non-claim, something a reader still trusts
	Text  string      `json:"text"`
}

// Showing is what a report is about, as far as statements depend on it. Each fact is true when it
// holds for any of the attempts shown.
type Showing struct {
	Authentic bool // everything that was checked is good
	Rederived bool // outcome and record were derived again
	Complete  bool // nothing before the judgement was left out
	Witnessed bool // the reader's witness policy is met
	Placed    bool // the evidence is as of an index of a tree
	Endorsed  bool // the checkpoint key is known through the bundle key alone
	Missing   bool // blobs are missing

	Attempts    bool // there are any
	Started     bool // a command was started
	Toolchain   bool // one is bound
	NoToolchain bool // none is
	Unbound     bool // to no change
	Reduced     bool // the claim is
	Contained   bool // a contained run
	Agent       bool // of which the agent was started
	Uncontained bool // a command under another profile
	Bridge      bool // on the daemon's bridge
	Desktop     bool // behind a desktop's virtual machine
	Mutations   bool // what an agent changed is known
	Policy      bool // it was held against a policy
	Qualified   bool // the runtime of a judgement that stands was qualified
	Unqualified bool // a command was started, and no runtime was
}

// ShowAttempt adds the facts of one attempt's record.
func (s *Showing) ShowAttempt(r Record) {
	contained, started := r.Profile == ProfileContained, r.Claim != ClaimNone
	table, _ := ProfileByDigest(r.Table)
	for to, holds := range map[*bool]bool{
		&s.Attempts: true, &s.Started: started, &s.Toolchain: r.Toolchain != nil, &s.NoToolchain: r.Toolchain == nil,
		&s.Unbound: r.Binding == nil, &s.Reduced: r.Claim == ClaimReduced,
		&s.Contained: contained, &s.Agent: contained && started, &s.Uncontained: !contained,
		&s.Bridge: started && table.Network == NetworkBridge, &s.Desktop: slices.Contains(r.Reductions, ReducedDesktop),
		&s.Mutations: r.Workspace != nil && r.Workspace.Code == "", &s.Policy: r.Policy != nil, &s.Unqualified: started,
	} {
		*to = *to || holds
	}
}

// catalogue holds every statement and when it applies.
var catalogue = []struct {
	Statement
	when func(Showing) bool
}{
	{Statement{"BD-C1", true, "the events shown are in the ledger's tree at their indexes, signed by the ledger's keys"},
		func(s Showing) bool { return s.Authentic }},
	{Statement{"BD-C2", true, "outcome and record follow from the events; nothing a worker printed decides them"},
		func(s Showing) bool { return s.Rederived }},
	{Statement{"BD-C3", true, "no event that changes an epoch or a context came before the judgement unseen"},
		func(s Showing) bool { return s.Complete }},
	{Statement{"BD-C4", true, "as many outside witnesses as the reader's policy asks for cosigned a tree of this history"},
		func(s Showing) bool { return s.Witnessed }},
	{Statement{"BD-C5", true, "a control that is called held was observed, and equal, on the container that ran"},
		func(s Showing) bool { return s.Rederived && s.Started }},
	{Statement{"BD-C6", true, "what changed in the workspace was compared with a baseline taken before, once the container was proved gone"},
		func(s Showing) bool { return s.Rederived && s.Mutations }},
	{Statement{"BD-C7", true, "canaries bore out the runtime of the attempt relied on, for its profile only, as of the judgement"},
		func(s Showing) bool { return s.Qualified }},
	{Statement{"BD-N1", false, "the controller, its filesystem, the Docker daemon and the image are trusted to have reported what was"},
		func(s Showing) bool { return s.Attempts }},
	{Statement{"BD-N2", false, "isolation is configuration observed, not a proof against kernel faults or escapes"},
		func(s Showing) bool { return s.Started }},
	{Statement{"BD-N3", false, "the seccomp profile is the one the daemon calls its default; its filter bytes are not in evidence"},
		func(s Showing) bool { return s.Started }},
	{Statement{"BD-N4", false, "a confirmed removal says nothing of effects the command had on the host before"},
		func(s Showing) bool { return s.Started }},
	{Statement{"BD-N5", false, "whoever administers the daemon could read the command's live values"},
		func(s Showing) bool { return s.Started }},
	{Statement{"BD-N6", false, "the toolchain is bound by a digest somebody gave, not discovered in the image"},
		func(s Showing) bool { return s.Toolchain }},
	{Statement{"BD-N7", false, "no toolchain is bound; what the image holds is what its ID says"},
		func(s Showing) bool { return s.NoToolchain }},
	{Statement{"BD-N8", false, "times are the writer's claim"},
		func(s Showing) bool { return s.Attempts }},
	{Statement{"BD-N9", false, "the bundle is as of its index; what came later, and whether others were shown the same tree, only an audit and outside witnesses can say"},
		func(s Showing) bool { return s.Placed }},
	{Statement{"BD-N10", false, "a key that was stolen after it was retired needs a checkpoint trusted from elsewhere to be told apart"},
		func(s Showing) bool { return s.Placed }},
	{Statement{"BD-N11", false, "the attempt is bound to no change; it admits nothing"},
		func(s Showing) bool { return s.Unbound }},
	{Statement{"BD-N12", false, "the claim is reduced; the reasons are listed"},
		func(s Showing) bool { return s.Reduced }},
	{Statement{"BD-N13", false, "some blobs are missing; what they hold was not checked"},
		func(s Showing) bool { return s.Missing }},
	{Statement{"BD-N14", false, "the checkpoint key is known only because the trusted bundle key signed for it"},
		func(s Showing) bool { return s.Endorsed }},
	{Statement{"BD-N15", false, "freshness, retention and permission are separate facts; none of them is shown"},
		func(s Showing) bool { return s.Attempts }},
	{Statement{"BD-N16", false, "no canary qualification is evaluated in this bundle"},
		func(s Showing) bool { return s.Unqualified }},
	{Statement{"BD-N17", false, "values of the environment are in no evidence; that they were the intended ones is the configuration's word"},
		func(s Showing) bool { return s.Contained }},
	{Statement{"BD-N18", false, "a sensitive value is taken out of output in its usual encodings; compressed or transformed copies are not found"},
		func(s Showing) bool { return s.Agent }},
	{Statement{"BD-N19", false, "the network was the daemon's ordinary bridge; nothing restricted where it leads"},
		func(s Showing) bool { return s.Bridge }},
	{Statement{"BD-N20", false, "a desktop's virtual machine lies between host and container; it is not in evidence"},
		func(s Showing) bool { return s.Desktop }},
	{Statement{"BD-N21", false, "a policy that was kept makes neither the agent nor what it wrote safe"},
		func(s Showing) bool { return s.Policy }},
	{Statement{"BD-N22", false, "what the agent changed and undid, or did elsewhere than in its workspace, is not listed"},
		func(s Showing) bool { return s.Agent }},
	{Statement{"BD-N23", false, "the command was no contained run; what is shown of its isolation is its own profile's"},
		func(s Showing) bool { return s.Uncontained }},
	{Statement{"BD-N24", false, "a qualification says nothing of escapes through the kernel or runc, of side channels, or of another runtime or profile; that its canaries ran from the image named is the writer's word"},
		func(s Showing) bool { return s.Qualified }},
}

// Statements returns what applies, in the order of the catalogue.
func (s Showing) Statements() []Statement {
	out := []Statement{}
	for _, c := range catalogue {
		if c.when(s) {
			out = append(out, c.Statement)
		}
	}
	return out
}

// Catalogue returns every statement.
func Catalogue() []Statement {
	out := make([]Statement, len(catalogue))
	for i, c := range catalogue {
		out[i] = c.Statement
	}
	return out
}
