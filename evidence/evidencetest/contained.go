package evidencetest

import (
	"crypto/sha256"
	"time"

	"github.com/baildock/baildock/evidence"
)

// Secret is the value that the environment of Contained commits to. It stands in no event and no blob.
const Secret = "correct-horse-battery"

// Contained is a run of an agent in a copy of a directory: it adds a file, keeps to a policy of two
// checks, and exits 0, under the same runtime and claim as Success.
func Contained() *History {
	h := Success()
	most := uint64(3)
	policy := evidence.WorkspacePolicy{Allowed: []string{"**"}, MaxFiles: &most}.Normal()
	encoded, err := policy.Marshal()
	must(err)
	h.Plain = append(h.Plain, encoded)
	digest, err := policy.Digest()
	must(err)
	env, salts, err := evidence.CommitEnv(h.Recipe.Nonce, []evidence.EnvOpening{{Name: "API_TOKEN", Value: Secret, Salt: salt("API_TOKEN")}})
	must(err)
	h.Environment = env
	h.Recipe.Profile, h.Recipe.Environment = evidence.ProfileContained, env.Digest()
	h.Recipe.Limits = evidence.Limits{Wall: 10 * time.Minute, Output: 1 << 20, Memory: 512 << 20, Scratch: 256 << 20, PIDs: 256, NanoCPUs: 1_000_000_000}
	h.Recipe.Contained = &evidence.ContainedTerms{
		UID: 1000, GID: 1000, Network: evidence.NetworkNone, Platform: evidence.PlatformEngine, Writable: []string{"."}, Policy: &digest,
	}
	must(h.Recipe.Check())
	table, err := h.Recipe.Table()
	must(err)
	ref := h.Keep("salts", evidence.Marshal(salts))
	h.Registered = &evidence.AttemptRegistered{
		Attempt: "one", Subject: evidence.Subject{Kind: evidence.SubjectDirectory},
		Profile: table.Name, Table: table.Digest(), Recipe: h.Recipe.Digest(), Environment: env.Digest(), Policy: &digest, Salts: &ref,
	}
	h.Preflight = &evidence.PreflightObserved{
		Result: evidence.PreflightExperimental, Reductions: []evidence.Reduction{evidence.ReducedCgroupV1},
		Checks: []evidence.PreflightCheck{
			{Name: "user", Result: evidence.PreflightSupported},
			{Name: "daemon", Result: evidence.PreflightExperimental, Code: "cgroup-v1"},
		},
		Identity: h.BeforeCreate.Identity,
	}
	h.workspace()
	h.Custody.Request = h.Request()
	h.Isolation.Controls, h.Isolation.Values = h.controls("isolation", table.Controls, evidence.Observed)
	after := entry("one\n")
	mutations, err := evidence.Mutations{{Path: "new.txt", Kind: evidence.MutationAdded, After: &after}}.Marshal()
	must(err)
	list := h.Keep("mutations", mutations)
	diff := h.Keep("diff", []byte("+one\n"))
	h.Mutated = &evidence.WorkspaceMutated{Added: 1, Mutations: &list, Diff: &diff}
	h.Policy = &evidence.PolicyChecked{Policy: digest, Checks: []evidence.CheckedRule{
		{Name: evidence.CheckAllowedPaths, Held: true}, {Name: evidence.CheckMaxFiles, Held: true}}}
	return h
}

// workspace puts a workspace of one file in the place of the source.
func (h *History) workspace() {
	m, err := evidence.NewWorkspaceManifest([]evidence.WorkspaceEntry{{Path: "a.txt", EntryState: entry("one\n")}})
	must(err)
	encoded, err := m.Marshal()
	must(err)
	digest, err := m.Digest()
	must(err)
	h.Materialized = &evidence.SourceMaterialized{
		Manifest: evidence.ManifestDigest(digest), Files: uint64(len(m.Entries)), Bytes: m.Bytes(), Entries: h.Keep("workspace", encoded),
	}
}

func entry(content string) evidence.EntryState {
	return evidence.EntryState{
		Type: evidence.EntryFile, Mode: 0o644, Size: uint64(len(content)), SHA256: evidence.ContentDigest(sha256.Sum256([]byte(content))),
	}
}

// Violated is Contained under a policy that its one change breaks.
func Violated() *History {
	h := Contained()
	none := uint64(0)
	policy := evidence.WorkspacePolicy{Allowed: []string{"**"}, MaxFiles: &none}.Normal()
	encoded, err := policy.Marshal()
	must(err)
	digest, err := policy.Digest()
	must(err)
	h.Plain = [][]byte{encoded}
	terms := *h.Recipe.Contained
	terms.Policy = &digest
	h.Recipe.Contained, h.Registered.Policy, h.Policy.Policy = &terms, &digest, digest
	h.Registered.Recipe = h.Recipe.Digest()
	h.Custody.Request = h.Request()
	h.Policy.Checks[1].Held = false
	return h
}
