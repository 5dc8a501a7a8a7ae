package verify_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/witness"
)

// onlooker is a witness with its own clock.
func onlooker(name string, at int64) witness.Cosigner {
	seed := sha256.Sum256([]byte("verify test " + name))
	return witness.Cosigner{Name: name + ".example", Private: ed25519.NewKeyFromSeed(seed[:]), Now: func() time.Time { return time.Unix(at, 0) }}
}

func cosignedBy(t testing.TB, f *exporttest.Fixture, note []byte, by ...witness.Cosigner) []byte {
	t.Helper()
	key, err := evidence.ParseCheckpointKey(f.Identity.Checkpoint)
	require.NoError(t, err)
	keys, err := ledger.Ed25519Verifiers(f.Identity.Origin, key)
	require.NoError(t, err)
	for _, c := range by {
		c.Dir = t.TempDir() // each asks a witness that has seen nothing yet
		note, err = c.Cosign(witness.Request{Note: note}, f.Identity.Origin, keys)
		require.NoError(t, err)
	}
	return note
}

func quorumOf(t testing.TB, n int, of ...witness.Cosigner) *witness.Policy {
	t.Helper()
	p := &witness.Policy{Quorum: n}
	for _, c := range of {
		k, err := c.Key()
		require.NoError(t, err)
		p.Witnesses = append(p.Witnesses, k)
	}
	return p
}

// req T10: the earliest cosignature by a trusted witness says by when what the bundle is about existed,
// if as many as the policy asks for cosigned a tree of the same history that holds it.
func TestWitnesses(t *testing.T) {
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
	const first = 1_767_300_000
	alice, bob, carol := onlooker("alice", first+100), onlooker("bob", first), onlooker("carol", first+50)
	mallory := onlooker("mallory", 1)
	two := quorumOf(t, 2, alice, bob, carol)
	plain := exported(nil)
	both := cosignedBy(t, f, same.Note, mallory, alice, bob)
	bent := []byte(strings.Replace(string(both), "— bob.example ", "— bob.example", 1))
	forged := func() []byte { // bob's line under alice's tree: a cosignature that doesn't hold
		other, err := f.Signer.Sign(same.Size, ledger.Hash{1})
		require.NoError(t, err)
		theirs := string(cosignedBy(t, f, other.Note, onlooker("bob", first)))
		_, line, ok := strings.Cut(theirs, "— bob.example ")
		require.True(t, ok)
		return append(append([]byte{}, same.Note...), "— bob.example "+line...)
	}()
	for _, c := range []struct {
		name    string
		file    []byte
		note    []byte
		policy  *witness.Policy
		verdict verify.Verdict
		witness verify.Result
		times   string
	}{
		{"no policy", plain, both, nil, verify.Valid, verify.NotDone, "no outside witness"},
		{"quorum", plain, both, two, verify.Valid, verify.Pass, "2026-01-01T20:40:00Z (cosigned by bob.example); the quorum of 2 by 2026-01-01T20:41:40Z"},
		{"one is enough", plain, both, quorumOf(t, 1, alice), verify.Valid, verify.Pass, "2026-01-01T20:41:40Z (cosigned by alice.example)"},
		{"later tree", exported(late.Note), cosignedBy(t, f, late.Note, alice, carol), two, verify.Valid, verify.Pass, "2026-01-01T20:40:50Z (cosigned by carol.example); the quorum of 2 by 2026-01-01T20:41:40Z"},
		{"tree before the attempt", exported(early.Note), cosignedBy(t, f, early.Note, alice, bob), two, verify.Valid, verify.Pass,
			"no outside witness of how it ended; the first 2 events: 2026-01-01T20:40:00Z (cosigned by bob.example); the quorum of 2 by 2026-01-01T20:41:40Z"},
		{"too few", plain, cosignedBy(t, f, same.Note, mallory, alice), two, verify.NotChecked, verify.NotDone, "no outside witness"},
		{"a stranger only", plain, cosignedBy(t, f, same.Note, mallory), two, verify.NotChecked, verify.NotDone, "no outside witness"},
		{"nobody", plain, same.Note, two, verify.NotChecked, verify.NotDone, "no outside witness"},
		{"no checkpoint", plain, nil, two, verify.NotChecked, verify.NotDone, "no outside witness"},
		{"later tree without a proof", plain, cosignedBy(t, f, late.Note, alice, bob), two, verify.NotChecked, verify.NotDone, "no outside witness"},
		{"a cosignature that doesn't hold", plain, forged, two, verify.Invalid, verify.Fail, "no outside witness"},
		{"a line that is bent", plain, bent, two, verify.Invalid, verify.NotDone, "no outside witness"},
		{"an empty policy", plain, both, &witness.Policy{}, verify.Invalid, verify.Fail, "no outside witness"},
	} {
		r := verify.Verify(c.file, verify.Policy{Trust: verify.TrustLedger(f.Identity), Kept: c.note, Witnesses: c.policy})
		require.Equal(t, c.verdict, r.Verdict, "%s: %v", c.name, r.Check(verify.CheckWitness))
		require.Equal(t, c.witness, r.Check(verify.CheckWitness).Result, c.name)
		require.Equal(t, "times: the writer's claim; existed by: "+c.times, r.Times, c.name)
		require.Equal(t, c.witness == verify.Pass, r.Witnessed != nil, c.name)
		if r.Witnessed != nil {
			require.Equal(t, !strings.Contains(c.times, "no outside"), r.Witnessed.Covers, c.name)
		}
	}
}
