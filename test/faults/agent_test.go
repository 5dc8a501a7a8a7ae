package faults

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/evidence/redact"
	"github.com/baildock/baildock/executor/warden"
)

// agentSecret is a value that no event and no blob may hold.
const agentSecret = "fault-table-secret-value"

// contained makes a registration one of an agent in a workspace, with one sensitive value and a policy.
func contained(t testing.TB, r journal.Registration) (journal.Registration, *warden.ContainedRun) {
	values := []evidence.EnvOpening{{Name: "API_TOKEN", Value: agentSecret, Salt: evidence.Salt{1}}}
	env, salts, err := evidence.CommitEnv(r.Recipe.Nonce, values)
	require.NoError(t, err)
	opened := evidence.Withhold(evidence.Salt{2}, evidence.Marshal(salts))
	most := uint64(2)
	policy := evidence.WorkspacePolicy{MaxFiles: &most}.Normal()
	r.Policy, err = policy.Marshal()
	require.NoError(t, err)
	digest, err := policy.Digest()
	require.NoError(t, err)
	terms := evidence.ContainedTerms{
		UID: 1000, GID: 1000, Network: evidence.NetworkNone, Platform: evidence.PlatformEngine,
		Writable: evidence.WritablePaths{evidence.WholeWorkspace}, Policy: &digest,
	}
	if os.Geteuid() != 0 {
		terms.UID, terms.GID = uint32(os.Geteuid()), uint32(os.Getegid())
	}
	r.Environment, r.Salts = env, &opened
	r.Recipe.Profile, r.Recipe.Environment, r.Recipe.Contained = evidence.ProfileContained, env.Digest(), &terms
	hidden, err := redact.New([]byte(agentSecret))
	require.NoError(t, err)
	return r, &warden.ContainedRun{Values: values, Redact: hidden}
}

// edit is what the agent does to its workspace.
func (s *site) edit(t testing.TB) {
	found, err := filepath.Glob(filepath.Join(s.home, "execution", "one", "1", "*", "workspace"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, os.WriteFile(filepath.Join(found[0], "new.txt"), []byte(agentSecret), 0o644))
}

// trulyEdited holds what is said of a successful agent's changes against what it did, and everything
// that was written against its secret.
//
// req N5 req N7 req L5
func (s *site) trulyEdited(t testing.TB, f *evidence.Attempt, j *journal.Journal) {
	t.Helper()
	require.NotNil(t, f.Preflight)
	require.NotNil(t, f.Mutated)
	kept, err := j.Kept(context.Background(), *f.Mutated.Mutations)
	require.NoError(t, err)
	mutations, err := evidence.ParseMutations(kept.Bytes)
	require.NoError(t, err)
	require.Len(t, mutations, 1)
	require.Equal(t, "new.txt", mutations[0].Path)
	require.Equal(t, []evidence.CheckedRule{{Name: evidence.CheckMaxFiles, Held: true}}, f.Policy.Checks)
	diff, err := j.Kept(context.Background(), *f.Mutated.Diff)
	require.NoError(t, err)
	require.Contains(t, string(diff.Bytes), redact.Marker)
	for e, err := range s.memory.ReadAll(context.Background(), 0) {
		require.NoError(t, err)
		require.NotContains(t, string(e.Data), agentSecret)
	}
	original, err := os.ReadDir(s.source)
	require.NoError(t, err)
	require.Len(t, original, 1)
}
