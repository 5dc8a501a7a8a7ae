package evidence

// Record is the evidence of one attempt in one value. It is derived, never stored as such:
// AttemptFinished holds its digest, and whoever has the events derives it again. It holds no
// index and no fact of a backend.
type Record struct {
	Version     uint              `cbor:"1,keyasint" json:"version"` // 1
	Attempt     AttemptID         `cbor:"2,keyasint" json:"attempt"`
	Generation  uint64            `cbor:"3,keyasint" json:"generation"` // the one it ended at
	Binding     *Binding          `cbor:"4,keyasint,omitempty" json:"binding,omitempty"`
	Subject     Subject           `cbor:"5,keyasint" json:"subject"`
	Manifest    *ManifestDigest   `cbor:"6,keyasint,omitempty" json:"manifest,omitempty"`
	Profile     ProfileName       `cbor:"7,keyasint" json:"profile"`
	Table       ProfileDigest     `cbor:"8,keyasint" json:"table"`
	Recipe      RecipeDigest      `cbor:"9,keyasint" json:"recipe"`
	Toolchain   *ToolchainDigest  `cbor:"10,keyasint,omitempty" json:"toolchain,omitempty"`
	Environment EnvironmentDigest `cbor:"11,keyasint" json:"environment"`
	Request     *RequestDigest    `cbor:"12,keyasint,omitempty" json:"request,omitempty"` // none: never claimed, or no source

	Outcome    Outcome     `cbor:"13,keyasint" json:"outcome"`
	Detail     string      `cbor:"14,keyasint" json:"detail"`
	Causes     []string    `cbor:"15,keyasint" json:"causes"` // all that hold, in order of precedence
	Refusals   []string    `cbor:"16,keyasint,omitempty" json:"refusals,omitempty"`
	ExitCode   *int64      `cbor:"17,keyasint,omitempty" json:"exit_code,omitempty"` // the command's own; none: it never ran to an end
	Claim      Claim       `cbor:"18,keyasint" json:"claim"`
	Reductions []Reduction `cbor:"19,keyasint" json:"reductions"`

	Runtime    *RuntimeDigest  `cbor:"20,keyasint,omitempty" json:"runtime,omitempty"`
	Controls   ControlCount    `cbor:"21,keyasint" json:"controls"`
	Stdout     *Stream         `cbor:"22,keyasint,omitempty" json:"stdout,omitempty"`
	Stderr     *Stream         `cbor:"23,keyasint,omitempty" json:"stderr,omitempty"`
	Incomplete bool            `cbor:"24,keyasint,omitempty" json:"incomplete,omitempty"` // capture, whatever the outcome (req D3)
	Duration   uint64          `cbor:"25,keyasint,omitempty" json:"duration_ns,omitempty"`
	Cleanup    []CleanupResult `cbor:"26,keyasint" json:"cleanup"`
	Snapshot   SnapshotState   `cbor:"27,keyasint,omitempty" json:"snapshot,omitempty"`

	// Of contained/v1 alone.
	Preflight PreflightResult   `cbor:"28,keyasint,omitempty" json:"preflight,omitempty"`
	Workspace *WorkspaceChange  `cbor:"29,keyasint,omitempty" json:"workspace,omitempty"`
	Policy    *WorkspaceVerdict `cbor:"30,keyasint,omitempty" json:"policy,omitempty"`
}

// WorkspaceChange sums up how a workspace changed.
type WorkspaceChange struct {
	Modified  uint64        `cbor:"1,keyasint" json:"modified"`
	Added     uint64        `cbor:"2,keyasint" json:"added"`
	Deleted   uint64        `cbor:"3,keyasint" json:"deleted"`
	Renamed   uint64        `cbor:"4,keyasint" json:"renamed"`
	Mutations *SaltedDigest `cbor:"5,keyasint,omitempty" json:"mutations,omitempty"`
	Code      string        `cbor:"6,keyasint,omitempty" json:"code,omitempty"` // why that isn't known
}

// WorkspaceVerdict sums up what a workspace policy came to.
type WorkspaceVerdict struct {
	Policy WorkspacePolicyDigest `cbor:"1,keyasint" json:"policy"`
	Checks uint64                `cbor:"2,keyasint" json:"checks"`
	Broken uint64                `cbor:"3,keyasint" json:"broken"`
}

// Good reports whether the run succeeded and nothing is held against it.
func (r Record) Good() bool { return r.Outcome == OutcomeSuccess && r.Detail == DetailOK }

// ControlCount sums up the controls compared before start and those the kernel showed.
type ControlCount struct {
	Equal       uint64 `cbor:"1,keyasint" json:"equal"`
	Total       uint64 `cbor:"2,keyasint" json:"total"`
	KernelEqual uint64 `cbor:"3,keyasint" json:"kernel_equal"`
	KernelTotal uint64 `cbor:"4,keyasint" json:"kernel_total"`
}

// CleanupResult is the end of one daemon object. An abandoned one keeps its container ID.
type CleanupResult struct {
	Handle    HandleKey    `cbor:"1,keyasint" json:"handle"`
	State     CleanupState `cbor:"2,keyasint" json:"state"`
	Container *ContainerID `cbor:"3,keyasint,omitempty" json:"container,omitempty"`
	Abandoned bool         `cbor:"4,keyasint,omitempty" json:"abandoned,omitempty"`
}

// Digest is the SHA-256 of the canonical record.
func (r Record) Digest() RecordDigest { return Sum[recordMeaning](Marshal(r)) }

// RecordOf derives the record of an attempt from its events before AttemptFinished. It is total
// and pure.
func RecordOf(a *Attempt) Record {
	v := VerdictOf(a)
	g := a.Registered
	r := Record{
		Version: 1, Attempt: g.Attempt, Generation: a.Generation, Binding: g.Binding, Subject: g.Subject,
		Profile: g.Profile, Table: g.Table, Recipe: g.Recipe, Toolchain: g.Toolchain, Environment: g.Environment,
		Outcome: v.Outcome, Detail: v.Detail, Causes: v.Causes, Refusals: a.refusals(),
		Claim: a.claimLevel(), Snapshot: a.Snapshot,
	}
	if req, ok := a.Request(); ok {
		d := req.Digest()
		r.Request = &d
	}
	if a.Materialized != nil {
		r.Manifest = &a.Materialized.Manifest
	}
	if a.Preflight != nil {
		r.Reductions = a.Preflight.Reductions
	}
	if o := a.BeforeCreate; o != nil {
		r.Reductions = o.Reductions
		if o.Identity != nil {
			d := o.Identity.Digest()
			r.Runtime = &d
		}
	}
	if a.Isolation != nil {
		r.Controls.Equal, r.Controls.Total = countEqual(a.Isolation.Controls)
	}
	if a.Run.Kernel != nil {
		r.Controls.KernelEqual, r.Controls.KernelTotal = countEqual(a.Run.Kernel.Controls)
	}
	if x := a.Run.Exited; x != nil {
		r.Duration = x.Duration
		if a.Run.Started && x.Status == "exited" {
			r.ExitCode = &x.ExitCode
		}
	}
	if o := a.Run.Output; o != nil {
		r.Stdout, r.Stderr, r.Incomplete = &o.Stdout, &o.Stderr, o.incomplete()
	}
	r.contained(a)
	for _, c := range a.Custodies {
		r.Cleanup = append(r.Cleanup, CleanupResult{Handle: c.Handle, State: c.State, Container: c.Container, Abandoned: c.Abandoned})
	}
	return r
}

// Request is what the attempt's execution is bound to; ok is false before a claim and, for a
// directory, before its manifest is known.
func (a *Attempt) Request() (req Request, ok bool) {
	g := a.Registered
	rev := Revision{Commit: g.Subject.Revision}
	if g.Subject.Kind == SubjectDirectory {
		if a.Materialized == nil {
			return Request{}, false
		}
		rev = Revision{Manifest: &a.Materialized.Manifest}
	}
	if a.Claimed == nil {
		return Request{}, false
	}
	return Request{
		Attempt: g.Attempt, Generation: a.Claimed.Generation, Binding: g.Binding, Revision: rev,
		Recipe: g.Recipe, Toolchain: g.Toolchain, Environment: g.Environment, Profile: g.Table,
	}, true
}

// claimLevel is what the run may claim for its isolation: nothing unless a start was ordered,
// which the fold allows only under an accepted runtime with every control equal.
func (a *Attempt) claimLevel() Claim {
	switch {
	case !a.Run.Ordered:
		return ClaimNone
	case len(a.BeforeCreate.Reductions) > 0:
		return ClaimReduced
	}
	return ClaimFull
}

func (a *Attempt) refusals() []string {
	var codes []string
	for _, o := range []*RuntimeObserved{a.BeforeCreate, a.BeforeStart, a.AfterExit} {
		if o != nil {
			codes = append(codes, o.Refusals...)
		}
	}
	if a.SourceRefusal != nil {
		codes = append(codes, a.SourceRefusal.Code)
	}
	if a.Isolation != nil {
		codes = append(codes, a.Isolation.Refusals...)
	}
	if a.Run.StartFailed != nil {
		codes = append(codes, a.Run.StartFailed.Code)
	}
	return codes
}

func countEqual(cs []Control) (equal, total uint64) {
	for _, c := range cs {
		if c.Equal {
			equal++
		}
	}
	return equal, uint64(len(cs))
}

// contained fills in what only contained/v1 has.
func (r *Record) contained(a *Attempt) {
	if a.Preflight != nil {
		r.Preflight = a.Preflight.Result
	}
	if m := a.Mutated; m != nil {
		r.Workspace = &WorkspaceChange{Modified: m.Modified, Added: m.Added, Deleted: m.Deleted, Renamed: m.Renamed, Code: m.Code}
		if m.Mutations != nil {
			r.Workspace.Mutations = &m.Mutations.Salted
		}
	}
	if p := a.Policy; p != nil {
		r.Policy = &WorkspaceVerdict{Policy: p.Policy, Checks: uint64(len(p.Checks)), Broken: p.broken()}
	}
}
