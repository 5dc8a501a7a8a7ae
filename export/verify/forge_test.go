package verify_test

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/asn1"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/ledger"
)

// resign signs any payload bytes under the fixture's own key, as an owner gone bad could. It doesn't
// go through package export, which refuses most of what is tried here.
func resign(t testing.TB, f *exporttest.Fixture, env bundle.Envelope, payload []byte) []byte {
	t.Helper()
	env.Payload = payload
	return seal(t, f, env)
}

func seal(t testing.TB, f *exporttest.Fixture, env bundle.Envelope) []byte {
	t.Helper()
	digest := sha256.Sum256(env.ToBeSigned())
	der, err := f.Private.Sign(nil, digest[:], crypto.SHA256)
	require.NoError(t, err)
	var sig struct{ R, S *big.Int }
	_, err = asn1.Unmarshal(der, &sig)
	require.NoError(t, err)
	raw := make([]byte, bundle.SignatureSize)
	sig.R.FillBytes(raw[:32])
	sig.S.FillBytes(raw[32:])
	env.Signature = bundle.LowS(raw)
	return env.Marshal()
}

// forge changes a bundle's payload and signs it again.
func forge(t testing.TB, f *exporttest.Fixture, file []byte, change func(*bundle.Payload)) []byte {
	t.Helper()
	env, err := bundle.UnmarshalEnvelope(file)
	require.NoError(t, err)
	p, err := bundle.Unmarshal(env.Payload)
	require.NoError(t, err)
	change(&p)
	payload, err := p.Marshal()
	require.NoError(t, err)
	env.Protected.Claims.Subject = p.Subject()
	env.Protected.Claims.Issuer = p.Ledger.Origin
	return resign(t, f, env, payload)
}

func sum(b []byte) []byte {
	d := sha256.Sum256(b)
	return d[:]
}

// handmade builds and signs a bundle of whole streams without package export, which refuses what it
// can't read.
func handmade(t testing.TB, f *exporttest.Fixture, streams []string) []byte {
	t.Helper()
	ctx := context.Background()
	cp, err := f.Ledger.SignCheckpoint(ctx, f.Signer)
	require.NoError(t, err)
	p := bundle.Payload{Format: bundle.Format, Ledger: f.Identity, At: cp.Size - 1, Checkpoint: cp.Note}
	for _, name := range streams {
		s := bundle.Stream{Name: name, Role: bundle.Judged}
		if name == evidence.LedgerStream {
			s.Role = bundle.Basis
		}
		for e, err := range f.Ledger.ReadStream(ctx, ledger.StreamID(name), 0) {
			require.NoError(t, err)
			proof, err := f.Ledger.ProveInclusion(ctx, e.Index, cp.Size)
			require.NoError(t, err)
			s.Events = append(s.Events, bundle.Event{Index: uint64(e.Index), Leaf: ledger.MarshalLeaf(e), Proof: proof})
		}
		p.Streams = append(p.Streams, s)
	}
	payload, err := p.Marshal()
	require.NoError(t, err)
	env := bundle.Envelope{Protected: bundle.Protected{
		Alg: bundle.AlgES256, ContentType: bundle.ContentType, KeyID: f.Key.ID(),
		Claims: bundle.Claims{Issuer: p.Ledger.Origin, Subject: p.Subject()},
	}}
	return resign(t, f, env, payload)
}
