package export_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/sqlite"
)

var update = flag.Bool("update", false, "rewrite golden files")

var oneAttempt = []evidence.AttemptID{"one"}

func build(t testing.TB) (*exporttest.Fixture, []byte) {
	t.Helper()
	f := exporttest.New(t)
	f.Run(t, evidencetest.Success())
	payload, _ := f.Payload(t, export.Request{Attempts: oneAttempt})
	return f, payload
}

func parsed(t testing.TB, payload []byte) bundle.Payload {
	t.Helper()
	p, err := bundle.Unmarshal(payload)
	require.NoError(t, err)
	return p
}

// req T1: what a bundle holds, and that building it again gives the same bytes, on any backend.
func TestBuild(t *testing.T) {
	f, payload := build(t)
	size, err := f.Ledger.Size(context.Background())
	require.NoError(t, err)
	again, sum, err := export.Build(context.Background(), f.Ledger, export.Request{Attempts: oneAttempt, Checkpoint: f.Signer})
	require.NoError(t, err)
	require.Equal(t, payload, again)
	after, err := f.Ledger.Size(context.Background())
	require.NoError(t, err)
	require.Equal(t, size, after, "building appends nothing")

	p := parsed(t, payload)
	require.Equal(t, size, p.At+1)
	require.Len(t, p.Streams, 2)
	require.Equal(t, []bundle.Role{bundle.Judged, bundle.Basis}, []bundle.Role{p.Streams[0].Role, p.Streams[1].Role})
	require.Empty(t, p.Missing)
	require.Equal(t, export.Summary{
		At: ledger.Index(p.At), Streams: 2, Events: 20, Blobs: len(p.Blobs), Missing: []bundle.Missing(nil), EnvNames: []string{"GREETING"},
		Attempts: []export.Exported{{Attempt: "one", Outcome: evidence.OutcomeSuccess, Detail: "ok", Claim: evidence.ClaimReduced, Index: ledger.Index(p.At - 1)}},
	}, sum)

	store, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "ledger.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	other := exporttest.On(t, store)
	other.Run(t, evidencetest.Success())
	there, _ := other.Payload(t, export.Request{Attempts: oneAttempt})
	require.Equal(t, payload, there, "the same events give the same bundle on another backend")
}

// The checked-in bundle is rebuilt byte for byte from fixed keys, clock and randomness, and verifies.
// It changes with the profile's table and the schema texts until they are released, never after.
func TestGoldenBundle(t *testing.T) {
	f, payload := build(t)
	file, err := export.Sign(payload, f.Key)
	require.NoError(t, err)
	path := filepath.Join("testdata", "one.bundle")
	if *update {
		require.NoError(t, os.WriteFile(path, file, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, string(want) == string(file), "the bundle built from fixed inputs changed; if a table or schema changed before its release, run with -update")
	require.Equal(t, verify.Valid, verify.Verify(want, verify.Policy{Trust: verify.TrustLedger(f.Identity)}).Verdict)
}

// req T1: an older index gives what it gave then, stores no checkpoint, and later events don't
// change it.
func TestBuildAt(t *testing.T) {
	ctx := context.Background()
	f, payload := build(t)
	at := ledger.Index(parsed(t, payload).At)
	f.Append(t, evidence.PolicyPrefix+"main", evidence.EpochAdvanced{Epoch: 2})
	two := evidencetest.Success()
	two.Registered.Attempt = "two"
	two.Custody.Request = two.Request()
	f.Run(t, two)
	last, kept, err := f.Ledger.LastCheckpoint(ctx)
	require.NoError(t, err)
	require.True(t, kept)

	old, sum, err := export.Build(ctx, f.Ledger, export.Request{Attempts: oneAttempt, At: &at, Checkpoint: f.Signer})
	require.NoError(t, err)
	require.Equal(t, payload, old)
	require.Equal(t, at, sum.At)
	still, _, err := f.Ledger.LastCheckpoint(ctx)
	require.NoError(t, err)
	require.Equal(t, last.Size, still.Size)

	later, _, err := export.Build(ctx, f.Ledger, export.Request{Attempts: oneAttempt, Checkpoint: f.Signer})
	require.NoError(t, err)
	require.NotEqual(t, payload, later, "another tree, other proofs")
}

// req T1: an index before what the bundle must show is refused with the smallest that works.
func TestBuildTooEarly(t *testing.T) {
	ctx := context.Background()
	f, payload := build(t)
	smallest := ledger.Index(parsed(t, payload).At)
	for at := range smallest {
		_, _, err := export.Build(ctx, f.Ledger, export.Request{Attempts: oneAttempt, At: &at, Checkpoint: f.Signer})
		var early *export.TooEarlyError
		require.ErrorAs(t, err, &early)
		require.Equal(t, smallest, early.Smallest)
		require.Equal(t, at, early.At)
	}
	beyond := smallest + 1
	_, _, err := export.Build(ctx, f.Ledger, export.Request{Attempts: oneAttempt, At: &beyond, Checkpoint: f.Signer})
	require.ErrorContains(t, err, "beyond the ledger's last event")
}

func TestBuildRefuses(t *testing.T) {
	ctx := context.Background()
	f := exporttest.New(t)
	h := evidencetest.Success()
	request := export.Request{Attempts: oneAttempt, Checkpoint: f.Signer}

	_, _, err := export.Build(ctx, f.Ledger, export.Request{Checkpoint: f.Signer})
	require.ErrorContains(t, err, "export 0 attempts")

	var absent *export.AbsentError
	_, _, err = export.Build(ctx, f.Ledger, request)
	require.ErrorAs(t, err, &absent)

	f.Keep(t, h)
	events := h.Finished()
	stream := evidence.AttemptPrefix + "one"
	f.Append(t, stream, events[:len(events)-1]...)
	var unfinished *export.UnfinishedError
	_, _, err = export.Build(ctx, f.Ledger, request)
	require.ErrorAs(t, err, &unfinished)

	f.Append(t, stream, events[len(events)-1])
	var unsealed *export.UnsealedError
	_, _, err = export.Build(ctx, f.Ledger, request)
	require.ErrorAs(t, err, &unsealed)
	require.Equal(t, []ledger.StreamID{"ledger"}, unsealed.Streams)
	judgement, streams, err := export.Unsealed(ctx, f.Ledger, oneAttempt)
	require.NoError(t, err)
	require.Equal(t, unsealed.Streams, streams)
	require.Equal(t, ledger.Index(3), judgement, "the claim's")

	f.Seal(t, "one")
	_, streams, err = export.Unsealed(ctx, f.Ledger, oneAttempt)
	require.NoError(t, err)
	require.Empty(t, streams)

	other := exporttest.ECDSA(t, "other")
	key, err := export.NewBundleKey(other)
	require.NoError(t, err)
	payload, _, err := export.Build(ctx, f.Ledger, request)
	require.NoError(t, err)
	_, err = export.Sign(payload, key)
	require.ErrorContains(t, err, "not a live bundle key")
	_, err = export.Sign(append(payload, 0), f.Key)
	require.Error(t, err)

	stranger, err := exporttest.New(t).Checkpoint.Signer("somebody/else")
	require.NoError(t, err)
	_, _, err = export.Build(ctx, f.Ledger, export.Request{Attempts: oneAttempt, Checkpoint: stranger})
	require.Error(t, err)
}

// req T3: for an attempt of a change the bundle holds the change and the policy, each up to the
// first event behind the claim and no further.
func TestBuildBasisStreams(t *testing.T) {
	f := exporttest.New(t)
	h := evidencetest.Success()
	f.Change(t, "fix", h)
	f.Run(t, h)
	payload, _ := f.Payload(t, export.Request{Attempts: oneAttempt})
	f.Append(t, "policy-main", evidence.EpochAdvanced{Epoch: 2}, evidence.EpochAdvanced{Epoch: 3})
	later, _ := f.Payload(t, export.Request{Attempts: oneAttempt})
	for _, b := range [][]byte{payload, later} {
		p := parsed(t, b)
		want := map[string]int{"attempt-one": 18, "change-fix": 5, "ledger": 2, "policy-main": 2}
		require.Len(t, p.Streams, len(want))
		for _, s := range p.Streams {
			require.Len(t, s.Events, want[s.Name], s.Name)
		}
	}
}

// req R6; T9, admission apart: withheld blobs are named, absent ones are said to be absent, and what can't be
// withheld safely is refused.
func TestBuildWithheld(t *testing.T) {
	ctx := context.Background()
	f, _ := build(t)
	payload, sum, err := export.Build(ctx, f.Ledger, export.Request{
		Attempts: oneAttempt, Checkpoint: f.Signer, Withhold: []bundle.Class{bundle.ClassOutput, bundle.ClassRecipe, bundle.ClassEnv},
	})
	require.NoError(t, err)
	p := parsed(t, payload)
	counts := map[bundle.Class]int{}
	for _, m := range p.Missing {
		require.Equal(t, bundle.Withheld, m.Why)
		counts[m.Class]++
		_, held := p.Blob(m.Digest)
		require.False(t, held)
	}
	require.Equal(t, map[bundle.Class]int{bundle.ClassOutput: 4, bundle.ClassRecipe: 1, bundle.ClassEnv: 1, bundle.ClassControls: 4}, counts,
		"the values of controls repeat argv and environment, and go with them")
	require.Empty(t, sum.EnvNames)
	require.NotContains(t, string(payload), "GREETING")
	require.NotContains(t, string(payload), "warning\n")

	_, sum, err = export.Build(ctx, f.Ledger, export.Request{Attempts: oneAttempt, Checkpoint: f.Signer, Withhold: []bundle.Class{bundle.ClassEnv}})
	require.NoError(t, err)
	require.Len(t, sum.Notes, 1, "the recipe shown would confirm guesses of the environment withheld")

	h := evidencetest.Success()
	require.NoError(t, f.Ledger.Forget(ctx, ledger.BlobKey(h.Output.Stdout.Bytes.Salted)))
	payload, _, err = export.Build(ctx, f.Ledger, export.Request{Attempts: oneAttempt, Checkpoint: f.Signer})
	require.NoError(t, err)
	require.Equal(t, []bundle.Missing{{Digest: bundle.BlobDigest(h.Output.Stdout.Bytes.Salted), Class: bundle.ClassOutput, Why: bundle.Absent}}, parsed(t, payload).Missing)

	bare := evidencetest.Success()
	bare.Registered.Attempt = "bare"
	bare.Environment.Nonce, bare.Recipe.Nonce = nil, nil
	bare.Recipe.Environment = bare.Environment.Digest()
	bare.Registered.Environment, bare.Registered.Recipe = bare.Environment.Digest(), bare.Recipe.Digest()
	bare.Custody.Request = bare.Request()
	f.Run(t, bare)
	f.Seal(t, "bare")
	for _, c := range []bundle.Class{bundle.ClassRecipe, bundle.ClassEnv} {
		_, _, err = export.Build(ctx, f.Ledger, export.Request{Attempts: []evidence.AttemptID{"bare"}, Checkpoint: f.Signer, Withhold: []bundle.Class{c}})
		require.ErrorContains(t, err, "no nonce")
	}
}
