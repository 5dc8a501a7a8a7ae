package evidence_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// req C0
func TestContainedSuccess(t *testing.T) {
	h := evidencetest.Contained()
	a, err := evidence.Fold(h.Finished()...)
	require.NoError(t, err)
	require.Equal(t, evidence.Verdict{Outcome: evidence.OutcomeSuccess, Detail: "ok"}, evidence.VerdictOf(&a))
	r := evidence.RecordOf(&a)
	require.True(t, r.Good())
	require.Equal(t, evidence.PreflightExperimental, r.Preflight)
	require.Equal(t, evidence.WorkspaceChange{Added: 1, Mutations: &h.Mutated.Mutations.Salted}, *r.Workspace)
	require.Equal(t, evidence.WorkspaceVerdict{Policy: h.Policy.Policy, Checks: 2}, *r.Policy)
}

// Each bend takes one thing away that a contained run needs beside the rest.
//
// req N7 req N10 req O5 req M3
func TestWhatAContainedRunLacks(t *testing.T) {
	cases := []struct {
		name    string
		bend    func(*evidencetest.History)
		outcome evidence.Outcome
		detail  string
		exit    int
	}{
		{"no mutations", func(h *evidencetest.History) { h.Mutated, h.Policy = nil, nil }, evidence.OutcomeIncomplete, "mutations_unknown", 5},
		{"mutations could not be captured", func(h *evidencetest.History) {
			h.Mutated, h.Policy = &evidence.WorkspaceMutated{Code: "git_made"}, nil
		}, evidence.OutcomeIncomplete, "mutations_unknown", 5},
		{"policy unchecked", func(h *evidencetest.History) { h.Policy = nil }, evidence.OutcomeIncomplete, "policy_unchecked", 5},
		{"policy violated", func(h *evidencetest.History) { h.Policy.Checks[1].Held = false }, evidence.OutcomeSuccess, "policy_violated", 1},
		{"violated by a failed agent", func(h *evidencetest.History) {
			h.Policy.Checks[1].Held, h.Exited.ExitCode = false, 7
		}, evidence.OutcomeFailed, "exit_nonzero", 1},
		{"workspace too large", func(h *evidencetest.History) {
			h.Stop, h.Exited.ExitCode = stop(evidence.StopWorkspace), 137
		}, evidence.OutcomeOutputLimit, "workspace_limit", 5},
		{"preflight unsafe", func(h *evidencetest.History) { refuse(h, evidence.PreflightUnsafe) }, evidence.OutcomeUnavailable, "preflight_refused", 4},
		{"preflight unavailable", func(h *evidencetest.History) { refuse(h, evidence.PreflightUnavailable) }, evidence.OutcomeUnavailable, "preflight_refused", 4},
		{"reduction of the preflight not accepted", func(h *evidencetest.History) {
			h.Claimed.Accepted = nil
			refuse(h, evidence.PreflightExperimental)
		}, evidence.OutcomeUnavailable, "reduction_not_accepted", 4},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := evidencetest.Contained()
			c.bend(h)
			v := verdict(t, h)
			require.Equal(t, []any{c.outcome, c.detail, c.exit}, []any{v.Outcome, v.Detail, v.Exit})
			a, err := evidence.Fold(h.Events()...)
			require.NoError(t, err)
			require.False(t, evidence.RecordOf(&a).Good())
			require.NotEmpty(t, a.MayDerive().Refused)
		})
	}
	require.Len(t, cases, 9)
}

// refuse ends a history with its preflight.
func refuse(h *evidencetest.History, r evidence.PreflightResult) {
	p := *h.Preflight
	p.Result, p.Checks = r, []evidence.PreflightCheck{{Name: "daemon", Result: r, Code: "x"}}
	*h = evidencetest.History{Registered: h.Registered, Claimed: h.Claimed, Preflight: &p}
}

// The fold holds a contained attempt to its order, whoever wrote it (req N2).
//
// req N2 req O6
func TestIllegalContainedHistories(t *testing.T) {
	cases := map[string]func(*evidencetest.History) []evidence.Payload{
		"no preflight": func(h *evidencetest.History) []evidence.Payload { h.Preflight = nil; return h.Events() },
		"preflight after the workspace": func(h *evidencetest.History) []evidence.Payload {
			return []evidence.Payload{*h.Registered, *h.Claimed, *h.Materialized, *h.Preflight}
		},
		"two preflights": func(h *evidencetest.History) []evidence.Payload {
			return []evidence.Payload{*h.Registered, *h.Claimed, *h.Preflight, *h.Preflight}
		},
		"workspace after an unsafe preflight": func(h *evidencetest.History) []evidence.Payload {
			h.Preflight.Result, h.Preflight.Checks[0].Result = evidence.PreflightUnsafe, evidence.PreflightUnsafe
			return h.Events()
		},
		"workspace under a reduction nobody accepted": func(h *evidencetest.History) []evidence.Payload {
			h.Claimed.Accepted = nil
			return h.Events()
		},
		"a result its checks don't give": func(h *evidencetest.History) []evidence.Payload {
			h.Preflight.Result, h.Preflight.Reductions = evidence.PreflightSupported, nil
			return h.Events()
		},
		"supported and reduced": func(h *evidencetest.History) []evidence.Payload {
			h.Preflight.Result, h.Preflight.Checks[1].Result = evidence.PreflightSupported, evidence.PreflightSupported
			return h.Events()
		},
		"no checks": func(h *evidencetest.History) []evidence.Payload { h.Preflight.Checks = nil; return h.Events() },
		"one check twice": func(h *evidencetest.History) []evidence.Payload {
			h.Preflight.Checks[1].Name = "user"
			return h.Events()
		},
		"preflight by none": func(h *evidencetest.History) []evidence.Payload {
			return []evidence.Payload{*h.Registered, *h.Preflight}
		},
		"mutations while the container is there": func(h *evidencetest.History) []evidence.Payload {
			h.Removal, h.Removed, h.Policy, h.Snapshot = nil, nil, nil, nil
			return h.Events()
		},
		"mutations after the workspace": func(h *evidencetest.History) []evidence.Payload {
			m := *h.Mutated
			h.Mutated, h.Policy = nil, nil
			return append(h.Events(), m)
		},
		"mutations twice": func(h *evidencetest.History) []evidence.Payload {
			h.Policy, h.Snapshot = nil, nil
			return append(h.Events(), *h.Mutated)
		},
		"mutations without a list": func(h *evidencetest.History) []evidence.Payload { h.Mutated.Mutations = nil; return h.Events() },
		"mutations and why they aren't known": func(h *evidencetest.History) []evidence.Payload {
			h.Mutated.Code = "git_made"
			return h.Events()
		},
		"policy before mutations": func(h *evidencetest.History) []evidence.Payload { h.Mutated = nil; return h.Events() },
		"policy over what isn't known": func(h *evidencetest.History) []evidence.Payload {
			h.Mutated = &evidence.WorkspaceMutated{Code: "git_made"}
			return h.Events()
		},
		"another policy":             func(h *evidencetest.History) []evidence.Payload { h.Policy.Policy[0]++; return h.Events() },
		"a policy that wasn't asked": func(h *evidencetest.History) []evidence.Payload { h.Registered.Policy = nil; return h.Events() },
		"one policy check twice": func(h *evidencetest.History) []evidence.Payload {
			h.Policy.Checks[1] = h.Policy.Checks[0]
			return h.Events()
		},
		"the table of another profile": func(h *evidencetest.History) []evidence.Payload {
			h.Registered.Profile = evidence.ProfileCommand
			return h.Events()
		},
		"command/v1 with a preflight": func(h *evidencetest.History) []evidence.Payload {
			s := evidencetest.Success()
			s.Preflight = h.Preflight
			return s.Events()
		},
		"command/v1 with salts": func(h *evidencetest.History) []evidence.Payload {
			s := evidencetest.Success()
			s.Registered.Salts = h.Registered.Salts
			return s.Events()
		},
		"after a fence": func(h *evidencetest.History) []evidence.Payload {
			m := *h.Mutated
			h.Mutated, h.Policy, h.Snapshot = nil, nil, nil
			return append(h.Events(), evidence.AttemptFenced{Generation: 2, By: evidence.FencedByRecover}, m)
		},
	}
	for name, events := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := evidence.Fold(events(evidencetest.Contained())...)
			var illegal *evidence.IllegalEventError
			require.ErrorAs(t, err, &illegal)
		})
	}
	require.Len(t, cases, 24)
}

// req L4 req L5
func TestCommittedEnvironment(t *testing.T) {
	nonce := evidence.Nonce{1}
	openings := []evidence.EnvOpening{{Name: "B", Value: "two", Salt: evidence.Salt{2}}, {Name: "A", Value: "", Salt: evidence.Salt{1}}}
	env, salts, err := evidence.CommitEnv(&nonce, openings)
	require.NoError(t, err)
	require.Equal(t, "A", env.Committed[0].Name)
	require.Equal(t, []evidence.EnvSalt{{Name: "A", Salt: evidence.Salt{1}}, {Name: "B", Salt: evidence.Salt{2}}}, salts)
	require.NotContains(t, string(evidence.Marshal(env)), "two")
	require.NoError(t, env.Opens(openings))
	for name, bad := range map[string][]evidence.EnvOpening{
		"missing":    openings[:1],
		"other":      {openings[1], {Name: "B", Value: "three", Salt: evidence.Salt{2}}},
		"other salt": {openings[1], {Name: "B", Value: "two", Salt: evidence.Salt{3}}},
		"other name": {openings[1], {Name: "C", Value: "two", Salt: evidence.Salt{2}}},
	} {
		err := env.Opens(bad)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "three")
	}
	for _, name := range []string{"PATH", "HOME", "LANG", "LC_ALL", "LD_PRELOAD", "DOCKER_HOST", "HOSTNAME", "lower", "1A", "A-B", "", strings.Repeat("A", 65)} {
		_, _, err := evidence.CommitEnv(&nonce, []evidence.EnvOpening{{Name: name, Value: "quiet-value"}})
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "quiet-value")
	}
	for _, value := range []string{"a\x00", "a\nb", "a\x1b", strings.Repeat("v", 4097)} {
		_, _, err := evidence.CommitEnv(&nonce, []evidence.EnvOpening{{Name: "A", Value: value}})
		require.Error(t, err)
		require.NotContains(t, err.Error(), value)
	}
	_, _, err = evidence.CommitEnv(&nonce, []evidence.EnvOpening{{Name: "TMPDIR", Value: "/workspace/tmp"}})
	require.NoError(t, err)
	require.Equal(t, "A=(withheld)", openings[1].String())
}

// req A1 req L2 req O2
func TestContainedTerms(t *testing.T) {
	good := evidencetest.Contained().Recipe
	require.NoError(t, good.Check())
	bad := map[string]func(*evidence.Recipe){
		"no terms":          func(r *evidence.Recipe) { r.Contained = nil },
		"terms of another":  func(r *evidence.Recipe) { r.Profile = evidence.ProfileCommand },
		"root":              func(r *evidence.Recipe) { r.Contained.UID = 0 },
		"root's group":      func(r *evidence.Recipe) { r.Contained.GID = 0 },
		"host network":      func(r *evidence.Recipe) { r.Contained.Network = "host" },
		"no network":        func(r *evidence.Recipe) { r.Contained.Network = "" },
		"platform":          func(r *evidence.Recipe) { r.Contained.Platform = "podman" },
		"nothing writable":  func(r *evidence.Recipe) { r.Contained.Writable = nil },
		"dot beside others": func(r *evidence.Recipe) { r.Contained.Writable = []string{".", "a"} },
		"nested":            func(r *evidence.Recipe) { r.Contained.Writable = []string{"a", "a/b"} },
		"nested apart":      func(r *evidence.Recipe) { r.Contained.Writable = []string{"a", "a-b", "a/c"} },
		"twice":             func(r *evidence.Recipe) { r.Contained.Writable = []string{"a", "a"} },
		"escaping":          func(r *evidence.Recipe) { r.Contained.Writable = []string{"../a"} },
		"absolute":          func(r *evidence.Recipe) { r.Contained.Writable = []string{"/a"} },
		"reserved":          func(r *evidence.Recipe) { r.Contained.Writable = []string{"a/.GIT"} },
		"reserved prefix":   func(r *evidence.Recipe) { r.Contained.Writable = []string{".baildock-x"} },
		"reference":         func(r *evidence.Recipe) { r.Contained.Reference = "a\nb" },
		"relative program":  func(r *evidence.Recipe) { r.Executable = "bin/tool" },
		"no program":        func(r *evidence.Recipe) { r.Executable = "" },
		"too little memory": func(r *evidence.Recipe) { r.Limits.Memory = 32 << 20 },
		"too long":          func(r *evidence.Recipe) { r.Limits.Wall = 7 * 3600e9 },
		"too many CPUs":     func(r *evidence.Recipe) { r.Limits.NanoCPUs = 9e9 },
		"too few processes": func(r *evidence.Recipe) { r.Limits.PIDs = 15 },
	}
	for name, bend := range bad {
		r := good
		terms := *good.Contained
		r.Contained = &terms
		bend(&r)
		require.Error(t, r.Check(), name)
	}
	require.Len(t, bad, 23)
	bare := good
	bare.Executable = "python3"
	require.NoError(t, bare.Check())
	_, err := evidence.ParseRecipe(evidence.Marshal(good))
	require.NoError(t, err)
}

// A contained run is no evidence of kind command/v1, whatever its recipe's digest.
//
// req H1 req N7
func TestContainedRecipeFitsNoContext(t *testing.T) {
	r := evidencetest.Contained().Recipe
	ctx := evidence.Context{Required: []evidence.RequiredEvidence{{Kind: evidence.EvidenceCommand, Digest: evidence.PlainDigest(r.Digest())}}, Environment: r.Environment}
	require.ErrorContains(t, ctx.FitsRecipe(r), "contained/v1")
}
