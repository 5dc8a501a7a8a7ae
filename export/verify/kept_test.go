package verify_test

import (
	"context"
	"crypto/ed25519"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
)

func checkpointOf(t testing.TB, f *exporttest.Fixture) ledger.Checkpoint {
	t.Helper()
	cp, err := f.Ledger.SignCheckpoint(context.Background(), f.Signer)
	require.NoError(t, err)
	return cp
}

// req R4: a checkpoint that a reader kept is compared with the bundle's tree: the same size at once, another
// one through the proof that export embeds, in both directions; without a proof it is not checked, and
// another history is refused.
func TestKeptCheckpoint(t *testing.T) {
	ctx := context.Background()
	f := exporttest.New(t)
	early := checkpointOf(t, f)
	f.Run(t, evidencetest.Success())
	f.Seal(t, "one")
	same := checkpointOf(t, f)
	at := ledger.Index(same.Size - 1)
	f.Append(t, "policy-main", evidence.EpochAdvanced{Epoch: 2})
	late := checkpointOf(t, f)
	exported := func(note []byte) []byte {
		payload, _, err := export.Build(ctx, f.Ledger, export.Request{Attempts: []evidence.AttemptID{"one"}, At: &at, Checkpoint: f.Signer, ProveFrom: note})
		require.NoError(t, err)
		file, err := export.Sign(payload, f.Key)
		require.NoError(t, err)
		return file
	}
	plain, fromEarly, fromLate := exported(nil), exported(early.Note), exported(late.Note)
	require.Equal(t, plain, exported(same.Note), "a proof to itself is not written")

	other, err := f.Signer.Sign(same.Size, ledger.Hash{1})
	require.NoError(t, err)
	otherEarly, err := f.Signer.Sign(early.Size, ledger.Hash{1})
	require.NoError(t, err)
	empty, err := f.Signer.Sign(0, ledger.EmptyRoot)
	require.NoError(t, err)
	stranger, err := f.Checkpoint.Signer("somebody/else")
	require.NoError(t, err)
	foreign, err := stranger.Sign(same.Size, same.Root)
	require.NoError(t, err)
	for _, c := range []struct {
		name    string
		file    []byte
		note    []byte
		verdict verify.Verdict
		result  verify.Result
	}{
		{"none given", plain, nil, verify.Valid, verify.NotDone},
		{"none given, proof held", fromEarly, nil, verify.Valid, verify.NotDone},
		{"same size", plain, same.Note, verify.Valid, verify.Pass},
		{"same size, proof about another", fromEarly, same.Note, verify.Valid, verify.Pass},
		{"smaller", fromEarly, early.Note, verify.Valid, verify.Pass},
		{"larger", fromLate, late.Note, verify.Valid, verify.Pass},
		{"smaller, no proof", plain, early.Note, verify.NotChecked, verify.NotDone},
		{"larger, no proof", plain, late.Note, verify.NotChecked, verify.NotDone},
		{"smaller, proof about another", fromLate, early.Note, verify.NotChecked, verify.NotDone},
		{"another root", plain, other.Note, verify.Invalid, verify.Fail},
		{"another root of the proof's size", fromEarly, otherEarly.Note, verify.Invalid, verify.Fail},
		{"another origin", plain, foreign.Note, verify.Invalid, verify.Fail},
		{"of nothing", plain, empty.Note, verify.Invalid, verify.Fail},
		{"no note", plain, []byte("hello"), verify.Invalid, verify.Fail},
	} {
		r := verify.Verify(c.file, verify.Policy{Trust: verify.TrustLedger(f.Identity), Kept: c.note})
		require.Equal(t, c.verdict, r.Verdict, "%s: %v", c.name, r.Check(verify.CheckKept))
		require.Equal(t, c.result, r.Check(verify.CheckKept).Result, c.name)
	}

	for name, bend := range map[string]func(*bundle.Kept){
		"root":            func(k *bundle.Kept) { k.Root[0] ^= 1 },
		"size":            func(k *bundle.Kept) { k.Size++ },
		"proof cut":       func(k *bundle.Kept) { k.Proof = k.Proof[1:] },
		"proof emptied":   func(k *bundle.Kept) { k.Proof = nil },
		"proof bent":      func(k *bundle.Kept) { k.Proof[0][0] ^= 1 },
		"proof stretched": func(k *bundle.Kept) { k.Proof = append(k.Proof, ledger.Hash{}) },
	} {
		r := verify.Verify(forge(t, f, fromEarly, func(p *bundle.Payload) { bend(p.Kept) }), verify.Policy{Trust: verify.TrustLedger(f.Identity)})
		require.Equal(t, verify.Invalid, r.Verdict, name)
		require.Equal(t, verify.Fail, r.Check(verify.CheckKept).Result, name)
	}
}

// A ledger that is behind a checkpoint its own key signed, or differs from it, says so when it exports.
func TestExportRefusesOtherHistory(t *testing.T) {
	ctx := context.Background()
	f := exporttest.New(t)
	f.Run(t, evidencetest.Success())
	f.Seal(t, "one")
	size := checkpointOf(t, f).Size
	build := func(note []byte) error {
		_, _, err := export.Build(ctx, f.Ledger, export.Request{Attempts: []evidence.AttemptID{"one"}, Checkpoint: f.Signer, ProveFrom: note})
		return err
	}
	var behind *export.BehindError
	for _, s := range []uint64{size + 1, size, 1} {
		cp, err := f.Signer.Sign(s, ledger.Hash{1})
		require.NoError(t, err)
		require.ErrorAs(t, build(cp.Note), &behind)
		require.Equal(t, export.BehindError{Kept: s, Size: size, Rewritten: s <= size}, *behind)
	}
	var foreign *export.ForeignError
	require.ErrorAs(t, build([]byte("hello")), &foreign)
	stranger, err := f.Checkpoint.Signer("somebody/else")
	require.NoError(t, err)
	cp, err := stranger.Sign(1, ledger.Hash{})
	require.NoError(t, err)
	require.ErrorAs(t, build(cp.Note), &foreign)
}

// A bundle of an older index, and a newer honest checkpoint signed by a key that was added in between: the
// bundle can't tell whose it is, so the comparison isn't done, with a proof or without.
//
// req R4
func TestKeptByAKeyAddedSince(t *testing.T) {
	f := exporttest.New(t)
	f.Run(t, evidencetest.Success())
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
	size, err := f.Ledger.Size(t.Context())
	require.NoError(t, err)
	at := ledger.Index(size - 1)

	key, err := export.NewCheckpointKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	require.NoError(t, err)
	added := evidence.KeyAdded{Role: evidence.RoleCheckpoint, Key: key.SPKI()}
	endorser := evidence.KeyIDOf(f.Checkpoint.SPKI())
	added.Endorser = endorser[:]
	added.Signature, err = f.Checkpoint.Endorse(added.Message(f.Identity.ID))
	require.NoError(t, err)
	f.Append(t, evidence.LedgerStream, added)
	size, err = f.Ledger.Size(t.Context())
	require.NoError(t, err)
	root, err := f.Ledger.Root(t.Context(), size)
	require.NoError(t, err)
	signer, err := key.Signer(f.Identity.Origin)
	require.NoError(t, err)
	kept, err := signer.Sign(size, root)
	require.NoError(t, err)

	policy := verify.Policy{Trust: verify.TrustLedger(f.Identity), Kept: kept.Note}
	proved := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}, At: &at, ProveFrom: kept.Note})
	for _, b := range [][]byte{file, proved} {
		r := verify.Verify(b, policy)
		require.Equal(t, verify.NotChecked, r.Verdict, r.Check(verify.CheckKept).Detail)
		require.Equal(t, verify.NotDone, r.Check(verify.CheckKept).Result)
		require.Contains(t, r.Check(verify.CheckKept).Detail, "a key added since may have")
	}

	// A note of another origin is nobody's of this ledger.
	foreign, err := key.Signer("example.org/another")
	require.NoError(t, err)
	note, err := foreign.Sign(size, root)
	require.NoError(t, err)
	policy.Kept = note.Note
	require.Equal(t, verify.Invalid, verify.Verify(file, policy).Verdict)
}
