package warden

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/redact"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/fakedaemon"
)

const agentSecret = "correct-horse-battery"

// containedYard is a yard whose agent does something to its workspace, from outside.
type containedYard struct {
	*yard
	policy *evidence.WorkspacePolicy
	terms  evidence.ContainedTerms
	values []evidence.EnvOpening
	run    *ContainedRun
	stages []string
}

func newContained(t testing.TB, agent func(dir string), steps ...fakedaemon.Step) *containedYard {
	y := &containedYard{yard: newYard(t, fakedaemon.Options{})}
	y.terms = evidence.ContainedTerms{UID: 1000, GID: 1000, Network: evidence.NetworkNone, Platform: evidence.PlatformEngine, Writable: evidence.WritablePaths{"."}}
	y.values = []evidence.EnvOpening{{Name: "API_TOKEN", Value: agentSecret, Salt: evidence.Salt{1}}}
	r, err := redact.New([]byte(agentSecret))
	require.NoError(t, err)
	y.run = &ContainedRun{Values: y.values, Redact: r}
	y.warden.user = func() (int, int) { return os.Geteuid(), os.Getegid() }
	if os.Geteuid() != 0 {
		y.terms.UID, y.terms.GID = uint32(os.Geteuid()), uint32(os.Getegid())
	}
	work := fakedaemon.Func(func() {
		if agent != nil {
			agent(y.workspace(t))
		}
	})
	if steps == nil {
		steps = []fakedaemon.Step{fakedaemon.Stdout("done " + agentSecret + "\n"), fakedaemon.Exit(0)}
	}
	y.daemon.Script("/tool", fakedaemon.Program{Steps: append([]fakedaemon.Step{work}, steps...)})
	return y
}

// workspace is where the agent works now.
func (y *containedYard) workspace(t testing.TB) string {
	found, err := filepath.Glob(filepath.Join(y.home, "execution", "*", "*", "*", "workspace"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

func (y *containedYard) registered(t testing.TB, id string) evidence.AttemptID {
	r := y.registration(id)
	env, salts, err := evidence.CommitEnv(r.Recipe.Nonce, y.values)
	require.NoError(t, err)
	opened := evidence.Withhold(evidence.Salt{9}, evidence.Marshal(salts))
	r.Environment, r.Salts = env, &opened
	r.Recipe.Profile, r.Recipe.Environment = evidence.ProfileContained, env.Digest()
	terms := y.terms
	if y.policy != nil {
		b, err := y.policy.Normal().Marshal()
		require.NoError(t, err)
		d, err := y.policy.Normal().Digest()
		require.NoError(t, err)
		r.Policy, terms.Policy = b, &d
	}
	r.Recipe.Contained = &terms
	return y.register(t, r)
}

func (y *containedYard) perform(t testing.TB, ctx context.Context) (Result, error) {
	req := y.request(y.registered(t, "one"))
	req.Contained = y.run
	return y.warden.Run(ctx, req, func(stage, text string) { y.stages = append(y.stages, stage+" "+text) })
}

// edits is an agent that changes, adds and deletes.
func edits(t testing.TB) func(string) {
	return func(dir string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo\n"), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "new.txt"), []byte("token "+agentSecret+"\n"), 0o644))
	}
}

// req N2 req N3 req N5 req O5 req L5
func TestContainedRun(t *testing.T) {
	y := newContained(t, edits(t))
	most := uint64(5)
	y.policy = &evidence.WorkspacePolicy{MaxFiles: &most, Forbidden: []string{"secret/**"}}
	var patch bytes.Buffer
	y.run.Patch = &patch
	res, err := y.perform(t, t.Context())
	require.NoError(t, err)
	require.True(t, res.Finished)
	require.Equal(t, "ok", res.Verdict.Detail, "%v %v", res.Verdict.Causes, y.stages)
	require.Zero(t, res.Verdict.Exit)
	require.Equal(t, evidence.PreflightExperimental, res.Record.Preflight)
	require.EqualValues(t, 1, res.Record.Workspace.Modified)
	require.EqualValues(t, 1, res.Record.Workspace.Added)
	require.Equal(t, evidence.WorkspaceVerdict{Policy: *res.Fold.Registered.Policy, Checks: 2}, *res.Record.Policy)
	require.Equal(t, evidence.SnapshotGone, res.Record.Snapshot)
	require.True(t, res.Record.Stdout.Redacted)
	require.Empty(t, y.snapshots(t))

	original, err := os.ReadFile(filepath.Join(y.source, "a.txt"))
	require.NoError(t, err)
	require.Equal(t, "one\n", string(original))
	require.NoFileExists(t, filepath.Join(y.source, "new.txt"))

	require.Contains(t, patch.String(), "+two")
	require.NotContains(t, patch.String()+string(res.Changes.Diff)+strings.Join(y.stages, "\n"), agentSecret)
	require.Contains(t, string(res.Changes.Diff), "+token "+redact.Marker)

	list, err := y.journal.Kept(t.Context(), *res.Fold.Mutated.Mutations)
	require.NoError(t, err)
	mutations, err := evidence.ParseMutations(list.Bytes)
	require.NoError(t, err)
	require.Equal(t, res.Changes.Mutations, mutations)
	require.Equal(t, []string{"a.txt", "new.txt"}, []string{mutations[0].Path, mutations[1].Path})
	y.nowhere(t, agentSecret)
}

// nowhere searches everything that was appended and kept for a value.
func (y *containedYard) nowhere(t testing.TB, value string) {
	t.Helper()
	events := 0
	for e, err := range y.ledger.ReadAll(t.Context(), 0) {
		require.NoError(t, err)
		require.NotContains(t, string(e.Data), value, "event %d %s", e.Index, e.Type)
		events++
	}
	require.Greater(t, events, 5)
	a, err := y.journal.Attempt(t.Context(), "one")
	require.NoError(t, err)
	for _, ref := range refsOf(a.Fold) {
		kept, err := y.journal.Kept(t.Context(), ref)
		require.NoError(t, err)
		require.NotContains(t, string(kept.Bytes), value)
	}
}

// refsOf are the references of everything kept of a contained attempt.
func refsOf(a evidence.Attempt) []evidence.BlobRef {
	var out []evidence.BlobRef
	add := func(refs ...*evidence.BlobRef) {
		for _, r := range refs {
			if r != nil {
				out = append(out, *r)
			}
		}
	}
	add(a.Registered.Salts)
	if a.Preflight != nil {
		add(a.Preflight.Detail)
	}
	if a.Materialized != nil {
		add(&a.Materialized.Entries, a.Materialized.Detail)
	}
	if a.SourceRefusal != nil {
		add(a.SourceRefusal.Detail)
	}
	if a.Isolation != nil {
		add(&a.Isolation.Values, a.Isolation.Detail)
	}
	if a.Run.Output != nil {
		add(&a.Run.Output.Stdout.Bytes, &a.Run.Output.Stderr.Bytes)
	}
	if a.Mutated != nil {
		add(a.Mutated.Mutations, a.Mutated.Diff, a.Mutated.Detail)
	}
	if a.Policy != nil {
		add(a.Policy.Detail)
	}
	return out
}

// Each way in which a contained run ends, with what is recorded of it; nothing is left behind.
//
// req N2 req N3 req N6 req N7 req O5 req E9
func TestContainedEnds(t *testing.T) {
	none := uint64(0)
	cases := map[string]struct {
		agent    func(t *testing.T) func(string)
		steps    []fakedaemon.Step
		set      func(t *testing.T, y *containedYard)
		detail   string
		exit     int
		created  bool
		snapshot evidence.SnapshotState
	}{
		"agent's own 127": {steps: []fakedaemon.Step{fakedaemon.Exit(127)}, detail: "exit_nonzero", exit: 1, created: true, snapshot: evidence.SnapshotGone},
		"policy broken": {agent: func(t *testing.T) func(string) { return edits(t) }, set: func(_ *testing.T, y *containedYard) {
			y.policy = &evidence.WorkspacePolicy{MaxFiles: &none}
		}, detail: "policy_violated", exit: 1, created: true, snapshot: evidence.SnapshotGone},
		"git made inside": {agent: func(t *testing.T) func(string) {
			return func(dir string) { require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755)) }
		}, detail: "mutations_unknown", exit: 5, created: true, snapshot: evidence.SnapshotGone},
		"a secret as a name": {agent: func(t *testing.T) func(string) {
			return func(dir string) { require.NoError(t, os.WriteFile(filepath.Join(dir, agentSecret), nil, 0o644)) }
		}, detail: "mutations_unknown", exit: 5, created: true, snapshot: evidence.SnapshotGone},
		"another user": {set: func(_ *testing.T, y *containedYard) {
			y.warden.user = func() (int, int) { return 4242, 4242 }
		}, detail: "preflight_refused", exit: 4},
		"no daemon": {set: func(_ *testing.T, y *containedYard) {
			y.daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallInfo, Effect: fakedaemon.Refuse{}, Times: fakedaemon.Always})
		}, detail: "preflight_refused", exit: 4},
		"reduction not accepted": {set: func(_ *testing.T, y *containedYard) {
			y.warden.Preflight = func(ctx context.Context, job executor.Job) executor.Findings {
				f := executor.LookFirst(y.warden.Driver)(ctx, job)
				f.Reductions = append(f.Reductions, evidence.ReducedDesktop)
				return f
			}
		}, detail: "reduction_not_accepted", exit: 4},
		"source refused": {set: func(t *testing.T, y *containedYard) {
			require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(y.source, "link")))
		}, detail: "source_refused", exit: 4},
		"a secret in the source's names": {set: func(t *testing.T, y *containedYard) {
			require.NoError(t, os.WriteFile(filepath.Join(y.source, agentSecret), nil, 0o644))
		}, detail: "source_refused", exit: 4},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var agent func(string)
			if c.agent != nil {
				agent = c.agent(t)
			}
			y := newContained(t, agent, c.steps...)
			if c.set != nil {
				c.set(t, y)
			}
			res, err := y.perform(t, t.Context())
			require.NoError(t, err)
			require.True(t, res.Finished)
			require.Equal(t, c.detail, res.Verdict.Detail, "%v %v", res.Verdict.Causes, y.stages)
			require.Equal(t, c.exit, res.Verdict.Exit)
			require.Equal(t, c.created, y.daemon.Count(fakedaemon.CallCreate) == 1)
			require.Equal(t, c.snapshot, res.Record.Snapshot)
			require.Empty(t, y.snapshots(t))
			y.nowhere(t, agentSecret)
		})
	}
	require.Len(t, cases, 9)
}

// What a contained attempt needs and isn't given claims nothing.
//
// req L4 req L5
func TestContainedRefusedBeforeClaim(t *testing.T) {
	for name, set := range map[string]func(y *containedYard){
		"no values at all": func(y *containedYard) { y.run = nil },
		"another value": func(y *containedYard) {
			y.run.Values = []evidence.EnvOpening{{Name: "API_TOKEN", Value: "other", Salt: evidence.Salt{1}}}
		},
		"none": func(y *containedYard) { y.run.Values = nil },
	} {
		t.Run(name, func(t *testing.T) {
			y := newContained(t, nil)
			set(y)
			_, err := y.perform(t, t.Context())
			require.Error(t, err)
			a, err := y.journal.Attempt(t.Context(), "one")
			require.NoError(t, err)
			require.Equal(t, evidence.StatePending, a.Fold.State)
			require.Empty(t, y.daemon.Requests())
		})
	}
	y := newYard(t, fakedaemon.Options{})
	req := y.request(y.register(t, y.registration("one")))
	req.Contained = &ContainedRun{}
	_, err := y.warden.Run(t.Context(), req, nil)
	require.ErrorContains(t, err, "runs a command")
}

// A cancelled run ends before or after its start, and leaves no workspace.
func TestContainedCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	y := newContained(t, func(string) { cancel() }, fakedaemon.Never())
	res, err := y.perform(t, ctx)
	require.NoError(t, err)
	require.Equal(t, "cancelled", res.Verdict.Detail, res.Verdict.Causes)
	require.NotNil(t, res.Record.Workspace)
	require.Empty(t, y.snapshots(t))

	ctx, cancel = context.WithCancel(t.Context())
	y = newContained(t, nil)
	y.warden.Preflight = func(context.Context, executor.Job) executor.Findings { cancel(); return executor.Findings{} }
	res, err = y.perform(t, ctx)
	require.NoError(t, err)
	require.Equal(t, "cancelled_before_start", res.Verdict.Detail, res.Verdict.Causes)
	require.Empty(t, y.snapshots(t))
}

// A container that is not confirmed gone keeps its workspace; a supervisor that finds it gone removes
// the workspace by its recorded place and nothing else.
//
// req O6 req G7
func TestContainedWorkspaceIsKeptUnderOpenCustody(t *testing.T) {
	y := newContained(t, edits(t))
	y.daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallRemove, Effect: fakedaemon.Refuse{}, Times: fakedaemon.Always})
	res, err := y.perform(t, t.Context())
	require.NoError(t, err)
	require.False(t, res.Finished)
	require.Equal(t, 6, res.Verdict.Exit)
	require.Nil(t, res.Fold.Mutated, "it may still write")
	kept := y.workspace(t)
	beside := filepath.Join(y.home, "execution", "another")
	require.NoError(t, os.Mkdir(beside, 0o700))

	y.daemon.ClearFaults()
	res, err = y.warden.Recover(t.Context(), RecoverRequest{Attempt: "one", Generation: res.Fold.Generation, By: evidence.FencedByRecover}, func(string, string) {})
	require.NoError(t, err)
	require.True(t, res.Finished)
	require.Equal(t, "recovered", res.Verdict.Detail)
	require.Equal(t, evidence.SnapshotGone, res.Record.Snapshot)
	require.NoDirExists(t, filepath.Dir(kept))
	require.DirExists(t, beside)
	require.FileExists(t, filepath.Join(y.source, "a.txt"))
}

// req G8: the deadline leaves room for the workspace.
func TestContainedDeadline(t *testing.T) {
	y := newContained(t, nil)
	res, err := y.perform(t, t.Context())
	require.NoError(t, err)
	now, err := bootTime()
	require.NoError(t, err)
	require.Greater(t, res.Fold.Claimed.Deadline, now+uint64(Allowance+workspaceAllowance))
}
