package faults

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/ledger"
)

const theChange = evidence.ChangeID("change")

// bound makes the racer an attempt of a change on a repository.
func bound(t testing.TB, s *site) {
	s.source = filepath.Join(t.TempDir(), "repository")
	repo, err := git.PlainInit(s.source, false)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.source, "a.txt"), []byte("one\n"), 0o644))
	tree, err := repo.Worktree()
	require.NoError(t, err)
	_, err = tree.Add("a.txt")
	require.NoError(t, err)
	rev, err := tree.Commit("one", &git.CommitOptions{Author: &object.Signature{Name: "test", Email: "test@example.org", When: time.Unix(1_700_000_000, 0)}})
	require.NoError(t, err)

	ctx := t.Context()
	j := journal.New(journal.Config{Ledger: s.memory, Actor: "author"})
	require.NoError(t, j.OpenChange(ctx, theChange, evidence.RepositoryID{9}))
	_, err = j.AddVersion(ctx, theChange, rev.String())
	require.NoError(t, err)
	r := s.registration("two")
	_, err = j.SetContext(ctx, theChange, requirement(r))
	require.NoError(t, err)
	r.Change, r.Subject = theChange, evidence.Subject{Kind: evidence.SubjectCommit, Revision: rev.String()}
	_, err = j.Register(ctx, r)
	require.NoError(t, err)
	s.racer = "two"
}

func requirement(r journal.Registration) journal.Requirement {
	return journal.Requirement{Recipe: &r.Recipe, Environment: &r.Environment, Reductions: accepted}
}

// moves is a participant that changes what a claim may rest on.
func moves(do func(p *participant, ctx context.Context, j *journal.Journal) error) func(*participant) {
	return func(p *participant) {
		if err := do(p, context.Background(), p.as("author")); err != nil {
			panic(err)
		}
	}
}

func advances(_ *participant, ctx context.Context, j *journal.Journal) error {
	_, err := j.AdvanceEpoch(ctx, evidence.DefaultPolicy)
	return err
}

func setsContext(p *participant, ctx context.Context, j *journal.Journal) error {
	r := requirement(p.registration("two"))
	r.Reductions = nil
	_, err := j.SetContext(ctx, theChange, r)
	return err
}

func addsVersion(_ *participant, ctx context.Context, j *journal.Journal) error {
	_, err := j.AddVersion(ctx, theChange, "1111111111111111111111111111111111111111")
	return err
}

// opensAttempt writes to the change's stream too, and changes nothing that a claim rests on.
func opensAttempt(p *participant, ctx context.Context, j *journal.Journal) error {
	a, err := j.Attempt(ctx, "two")
	if err != nil {
		return err
	}
	r := p.registration("six")
	r.Change, r.Subject = theChange, a.Fold.Registered.Subject
	r.Recipe.Nonce, r.Environment.Nonce = p.registration("two").Recipe.Nonce, p.registration("two").Environment.Nonce
	_, err = j.Register(ctx, r)
	return err
}

var claimRaces = []race{
	{name: "epoch against a claim", begin: bound, parts: []func(*participant){runs(""), moves(advances)}, bound: [2]int{1, 2}, least: [2]int{80, 900}, ends: moved, check: judged},
	{name: "context against a claim", begin: bound, parts: []func(*participant){runs(""), moves(setsContext)}, bound: [2]int{1, 2}, least: [2]int{80, 900}, ends: moved, check: judged},
	{name: "version against a claim", begin: bound, parts: []func(*participant){runs(""), moves(addsVersion)}, bound: [2]int{0, 2}, least: [2]int{3, 900}, check: judged},
	{name: "epoch and context against a claim", begin: bound, lead: "append AttemptClaimed", parts: []func(*participant){runs(""), moves(advances), moves(setsContext)}, bound: [2]int{0, 1}, least: [2]int{10, 100}, ends: []string{"ok", "void_claim"}, check: judged},
	{name: "another attempt against a claim", begin: bound, parts: []func(*participant){runs(""), moves(opensAttempt)}, bound: [2]int{0, 1}, least: [2]int{3, 80}, ends: []string{"ok"}, check: judged},
}

var moved = []string{"ok", "void_claim", "pending"}

// judged holds a claim against what was stored between the heads that it read and itself (req H5): it
// is void if that changes an epoch or a context, whatever its runner knew, and then nothing was created.
func judged(t testing.TB, s *site, a journal.Attempt, said []answer) {
	var all []ledger.Event
	for e, err := range s.memory.ReadAll(t.Context(), 0) {
		require.NoError(t, err)
		all = append(all, e)
	}
	require.Len(t, said, 1)
	last := all[len(all)-1]
	if a.Fold.State == evidence.StatePending { // req G2: what moved before the claim was read refuses it
		require.Equal(t, "AttemptRegistered", a.Events[len(a.Events)-1].Type)
		var stale *journal.NotCurrentError
		require.ErrorAs(t, said[0].err, &stale)
		require.True(t, evidence.ChangesBasis(last.Type), last.Type)
		return
	}
	var claim ledger.Event
	for _, e := range a.Events {
		if e.Type == "AttemptClaimed" {
			claim = e
		}
	}
	require.Len(t, a.Fold.Claimed.Basis, 2)
	var breaking *ledger.Event
	for _, b := range a.Fold.Claimed.Basis {
		for _, e := range all[:claim.Index] {
			if string(e.Stream) != b.Stream {
				continue
			}
			if uint64(e.Version) == b.Version {
				require.EqualValues(t, b.Leaf, e.Leaf())
			}
			if uint64(e.Version) > b.Version && evidence.ChangesBasis(e.Type) && (breaking == nil || e.Index < breaking.Index) {
				breaking = &e
			}
		}
	}
	decision, err := journal.New(journal.Config{Ledger: s.memory, Actor: "reader"}).Decide(context.Background(), theChange, false)
	require.NoError(t, err)
	if breaking == nil {
		require.Nil(t, a.Fold.Voided)
		require.Equal(t, "ok", evidence.VerdictOf(&a.Fold).Detail)
		still := true
		for _, e := range all[claim.Index:] {
			still = still && !evidence.ChangesBasis(e.Type)
		}
		require.Equal(t, still, decision.Admitted, "%v", decision.Broken())
		return
	}
	require.False(t, decision.Admitted)
	require.NotNil(t, a.Fold.Voided, "%s %s", breaking.Type, types(a))
	require.Equal(t, evidence.Basis{Stream: string(breaking.Stream), Version: uint64(breaking.Version), Leaf: evidence.LeafDigest(breaking.Leaf())}, a.Fold.Voided.Breaking)
	require.Empty(t, s.requests(fakedaemon.CallCreate))
	require.Empty(t, s.snapshots(t))
	v := evidence.VerdictOf(&a.Fold)
	require.Equal(t, "void_claim", v.Detail)
	require.Equal(t, 4, v.Exit)
	require.NoError(t, said[0].err)
	require.True(t, said[0].res.Finished)
}
