package tamper_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/sqlite"
)

// A checkpoint counts only if the key that signed it was live at its size: not before it was added,
// not after it was retired.
//
// req R4 req R5
func TestAuditKnowsWhichKeyWasLive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.NoError(t, err)
	f := exporttest.On(t, store)
	seed := sha256.Sum256([]byte("second checkpoint key"))
	second, err := export.NewCheckpointKey(ed25519.NewKeyFromSeed(seed[:]))
	require.NoError(t, err)
	signer, err := second.Signer(f.Identity.Origin)
	require.NoError(t, err)

	sign := func(s ledger.CheckpointSigner) ledger.Checkpoint {
		c, err := store.SignCheckpoint(t.Context(), s)
		require.NoError(t, err)
		return c
	}
	sign(f.Signer)
	before := f.Append(t, evidence.PolicyPrefix+"main", evidence.EpochAdvanced{Epoch: 2})[0]
	first, id := f.Checkpoint.ID(), second.ID()
	added := evidence.KeyAdded{Role: evidence.RoleCheckpoint, Key: second.SPKI(), Endorser: first[:]}
	added.Signature = ed25519.Sign(f.Checkpoint.Private(), added.Message(f.Identity.ID))
	f.Append(t, evidence.LedgerStream, added)
	sign(signer)
	retired := evidence.KeyRetired{Role: evidence.RoleCheckpoint, Key: f.Checkpoint.SPKI(), Endorser: id[:]}
	retired.Signature = ed25519.Sign(second.Private(), retired.Message(f.Identity.ID))
	f.Append(t, evidence.LedgerStream, retired)
	sign(signer)
	early, err := store.Root(t.Context(), uint64(before.Index)+1)
	require.NoError(t, err)
	require.Equal(t, journal.AuditValid, audit(t, path).Verdict)

	// The new key signs for a size at which it was not known yet.
	forged, err := signer.Sign(uint64(before.Index)+1, early)
	require.NoError(t, err)
	r := audit(t, path, forged)
	require.Equal(t, journal.AuditInvalid, r.Verdict)
	require.Equal(t, "kept checkpoint signature", r.FirstBad.Field)
	require.Equal(t, before.Index, r.FirstBad.Index)

	// The old key signs after it was retired.
	late := f.Append(t, evidence.PolicyPrefix+"main", evidence.EpochAdvanced{Epoch: 3})[0]
	sign(f.Signer)
	require.NoError(t, store.Close())
	r = audit(t, path)
	require.Equal(t, journal.AuditInvalid, r.Verdict)
	require.Equal(t, "checkpoint signature", r.FirstBad.Field)
	require.Equal(t, late.Index, r.FirstBad.Index)
}
