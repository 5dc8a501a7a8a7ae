package verify_test

import (
	"context"
	"crypto"
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

func leafOf(t testing.TB, f *exporttest.Fixture, stream string, version ledger.Version) evidence.LeafDigest {
	t.Helper()
	for e, err := range f.Ledger.ReadStream(context.Background(), ledger.StreamID(stream), version) {
		require.NoError(t, err)
		return evidence.LeafDigest(e.Leaf())
	}
	t.Fatalf("stream %s has no version %d", stream, version)
	return evidence.LeafDigest{}
}

// A bundle of another ledger, whole and well signed, is not this one's.
func TestOtherLedger(t *testing.T) {
	f, file := one(t)
	other := f.Identity
	other.ID[3] ^= 1
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(other)})
	require.Equal(t, verify.Invalid, r.Verdict)
	require.Equal(t, verify.Fail, r.Check(verify.CheckIdentity).Result)

	stranger := exporttest.ECDSA(t, "stranger")
	key, err := export.NewBundleKey(stranger)
	require.NoError(t, err)
	r = verify.Verify(file, verify.Policy{Trust: verify.TrustKey(key.SPKI())})
	require.Equal(t, verify.Invalid, r.Verdict)
	require.Equal(t, verify.Fail, r.Check(verify.CheckSignature).Result)
}

// req R4: a bundle signed by a key that a live key added verifies from the genesis keys alone; one
// signed by a retired key doesn't.
func TestKeysAreWalkedFromGenesis(t *testing.T) {
	f := exporttest.New(t)
	second := exporttest.ECDSA(t, "second")
	key, err := export.NewBundleKey(second)
	require.NoError(t, err)
	genesis := f.Key.ID()
	sign := func(msg []byte) []byte {
		sig, err := f.Private.Sign(nil, sum(msg), crypto.SHA256)
		require.NoError(t, err)
		return sig
	}
	added := evidence.KeyAdded{Role: evidence.RoleBundle, Key: key.SPKI(), Endorser: genesis[:]}
	added.Signature = sign(added.Message(f.Identity.ID))
	f.Append(t, evidence.LedgerStream, added)
	f.Run(t, evidencetest.Success())
	payload, _ := f.Payload(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
	file, err := export.Sign(payload, key)
	require.NoError(t, err)
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.Equal(t, key.ID(), *r.Keys.Signed)

	retired := evidence.KeyRetired{Role: evidence.RoleBundle, Key: f.Identity.Bundle, Endorser: genesis[:]}
	retired.Signature = sign(retired.Message(f.Identity.ID))
	f.Append(t, evidence.LedgerStream, retired)
	payload, _ = f.Payload(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
	_, err = export.Sign(payload, f.Key)
	require.ErrorContains(t, err, "not a live bundle key")
	env, err := bundle.UnmarshalEnvelope(file)
	require.NoError(t, err)
	env.Protected.KeyID = genesis
	r = verify.Verify(resign(t, f, env, payload), verify.Policy{Trust: verify.TrustLedger(f.Identity)})
	require.Equal(t, verify.Invalid, r.Verdict)
	require.Equal(t, verify.Fail, r.Check(verify.CheckIdentity).Result)
}

// FuzzVerify: any bytes give a report and no panic, and nothing but the bundle itself is valid.
func FuzzVerify(f *testing.F) {
	fixture, file := one(f)
	env, err := bundle.UnmarshalEnvelope(file)
	require.NoError(f, err)
	seeds := [][]byte{file, env.Payload, file[1:], file[:len(file)-70], {}, {0xd2, 0x84}}
	for _, s := range seeds {
		f.Add(s)
	}
	require.Len(f, seeds, 6)
	f.Fuzz(func(t *testing.T, b []byte) {
		policy := verify.Policy{Trust: verify.TrustLedger(fixture.Identity)}
		require.Equal(t, string(b) == string(file), verify.Verify(b, policy).Verdict == verify.Valid)
		require.NotEqual(t, verify.Valid, verify.Verify(b, verify.Policy{}).Verdict)
		// The payload, signed: what lies behind the signature must not panic either.
		require.Equal(t, string(b) == string(env.Payload), verify.Verify(resign(t, fixture, env, b), policy).Verdict == verify.Valid)
	})
}
