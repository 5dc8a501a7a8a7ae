package verify_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"slices"
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

// req T3, req T2, admission apart: whoever holds the bundle key and bends a payload is caught, at the check that says so.
func TestForgedPayloads(t *testing.T) {
	f := exporttest.New(t)
	h := evidencetest.Success()
	f.Change(t, "fix", h)
	f.Run(t, h)
	two := evidencetest.Success()
	two.Registered.Attempt = "two"
	two.Custody.Request = two.Request()
	f.Run(t, two)
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one", "two"}})
	policy := verify.Policy{Trust: verify.TrustLedger(f.Identity)}
	require.Equal(t, verify.Valid, verify.Verify(forge(t, f, file, func(*bundle.Payload) {}), policy).Verdict)

	stream := func(p *bundle.Payload, name string) *bundle.Stream {
		i := slices.IndexFunc(p.Streams, func(s bundle.Stream) bool { return s.Name == name })
		require.GreaterOrEqual(t, i, 0)
		return &p.Streams[i]
	}
	drop := func(p *bundle.Payload, name string) {
		p.Streams = slices.DeleteFunc(p.Streams, func(s bundle.Stream) bool { return s.Name == name })
	}
	output := bundle.BlobDigest(h.Output.Stdout.Bytes.Salted)
	blob := func(p *bundle.Payload, d bundle.BlobDigest) *bundle.Blob {
		i := slices.IndexFunc(p.Blobs, func(b bundle.Blob) bool { return b.Digest == d })
		require.GreaterOrEqual(t, i, 0)
		return &p.Blobs[i]
	}
	for _, c := range []struct {
		name, check string
		bend        func(*bundle.Payload)
	}{
		{"first event dropped", verify.CheckStreams, func(p *bundle.Payload) { s := stream(p, "attempt-one"); s.Events = s.Events[1:] }},
		{"middle event dropped", verify.CheckStreams, func(p *bundle.Payload) { s := stream(p, "attempt-one"); s.Events = slices.Delete(s.Events, 5, 6) }},
		{"last event dropped", verify.CheckHistory, func(p *bundle.Payload) { s := stream(p, "attempt-one"); s.Events = s.Events[:len(s.Events)-1] }},
		{"leaves swapped", verify.CheckInclusion, func(p *bundle.Payload) {
			s := stream(p, "attempt-one")
			s.Events[5].Leaf, s.Events[6].Leaf = s.Events[6].Leaf, s.Events[5].Leaf
		}},
		{"spliced from another stream", verify.CheckStreams, func(p *bundle.Payload) {
			s, o := stream(p, "attempt-one"), stream(p, "attempt-two")
			s.Events = append(s.Events, o.Events[len(o.Events)-1])
		}},
		{"proof of another event", verify.CheckInclusion, func(p *bundle.Payload) {
			s := stream(p, "attempt-one")
			s.Events[4].Proof = s.Events[7].Proof
		}},
		{"proof shortened", verify.CheckInclusion, func(p *bundle.Payload) {
			s := stream(p, "attempt-one")
			s.Events[4].Proof = s.Events[4].Proof[1:]
		}},
		{"proof lengthened", verify.CheckInclusion, func(p *bundle.Payload) {
			s := stream(p, "attempt-one")
			s.Events[4].Proof = append(s.Events[4].Proof, ledger.Hash{})
		}},
		{"index moved", verify.CheckInclusion, func(p *bundle.Payload) { s := stream(p, "ledger"); s.Events[1].Index-- }},
		{"at raised", verify.CheckCheckpoint, func(p *bundle.Payload) { p.At++ }},
		{"checkpoint cut", verify.CheckCheckpoint, func(p *bundle.Payload) { p.Checkpoint = p.Checkpoint[:len(p.Checkpoint)-1] }},
		{"checkpoint signed twice", verify.CheckCheckpoint, func(p *bundle.Payload) {
			at := slices.Index(p.Checkpoint, byte(0xe2)) // the em dash that opens a signature line
			p.Checkpoint = slices.Concat(p.Checkpoint, p.Checkpoint[at:])
		}},
		{"output swapped", verify.CheckBlobs, func(p *bundle.Payload) {
			a, b := blob(p, output), blob(p, bundle.BlobDigest(h.Output.Stderr.Bytes.Salted))
			a.Data, b.Data = b.Data, a.Data
		}},
		{"output changed", verify.CheckBlobs, func(p *bundle.Payload) { b := blob(p, output); b.Data = append(slices.Clone(b.Data), '!') }},
		{"recipe changed", verify.CheckBlobs, func(p *bundle.Payload) {
			r := h.Recipe
			r.Args = []string{"other"}
			blob(p, bundle.BlobDigest(h.Registered.Recipe)).Data = evidence.Marshal(r)
		}},
		{"descriptor changed", verify.CheckBlobs, func(p *bundle.Payload) {
			b := blob(p, bundle.BlobDigest(h.Output.Stdout.Bytes.Descriptor))
			b.Data = slices.Clone(b.Data)
			b.Data[len(b.Data)-1] ^= 1
		}},
		{"blob left out", verify.CheckBlobs, func(p *bundle.Payload) {
			p.Blobs = slices.DeleteFunc(p.Blobs, func(b bundle.Blob) bool { return b.Digest == output })
		}},
		{"descriptor alone withheld", verify.CheckBlobs, func(p *bundle.Payload) {
			d := bundle.BlobDigest(h.Output.Stdout.Bytes.Descriptor)
			p.Blobs = slices.DeleteFunc(p.Blobs, func(b bundle.Blob) bool { return b.Digest == d })
			p.Missing = []bundle.Missing{{Digest: d, Class: bundle.ClassOutput, Why: bundle.Withheld}}
		}},
		{"blob smuggled in", verify.CheckBlobs, func(p *bundle.Payload) {
			p.Blobs = slices.Insert(p.Blobs, 0, bundle.Blob{Digest: bundle.BlobDigest{}, Data: []byte("x")})
		}},
		{"missing blob nobody names", verify.CheckBlobs, func(p *bundle.Payload) {
			p.Missing = []bundle.Missing{{Class: bundle.ClassOutput, Why: bundle.Withheld}}
		}},
		{"withheld under another class", verify.CheckBlobs, func(p *bundle.Payload) {
			d := bundle.BlobDigest(h.Registered.Recipe)
			p.Blobs = slices.DeleteFunc(p.Blobs, func(b bundle.Blob) bool { return b.Digest == d })
			p.Missing = []bundle.Missing{{Digest: d, Class: bundle.ClassOutput, Why: bundle.Withheld}}
		}},
		{"change left out", verify.CheckStreams, func(p *bundle.Payload) { drop(p, "change-fix") }},
		{"policy left out", verify.CheckStreams, func(p *bundle.Payload) { drop(p, "policy-main") }},
		{"basis called cited", verify.CheckStreams, func(p *bundle.Payload) { stream(p, "policy-main").Role = bundle.Cited }},
		{"judged called basis", verify.CheckStreams, func(p *bundle.Payload) { stream(p, "attempt-two").Role = bundle.Basis }},
		{"basis called judged", verify.CheckHistory, func(p *bundle.Payload) { stream(p, "policy-main").Role = bundle.Judged }},
		{"basis cut at the judgement", verify.CheckCompleteness, func(p *bundle.Payload) { s := stream(p, "policy-main"); s.Events = s.Events[:1] }},
		{"ledger cut at the judgement", verify.CheckCompleteness, func(p *bundle.Payload) { s := stream(p, "ledger"); s.Events = s.Events[:1] }},
		{"other ledger ID", verify.CheckIdentity, func(p *bundle.Payload) { p.Ledger.ID[5] ^= 1 }},
		{"other origin", verify.CheckIdentity, func(p *bundle.Payload) { p.Ledger.Origin = "other/origin" }},
		{"other checkpoint key", verify.CheckIdentity, func(p *bundle.Payload) {
			pub, _, err := ed25519.GenerateKey(rand.Reader)
			require.NoError(t, err)
			p.Ledger.Checkpoint, err = x509.MarshalPKIXPublicKey(pub)
			require.NoError(t, err)
		}},
	} {
		r := verify.Verify(forge(t, f, file, c.bend), policy)
		require.Equal(t, verify.Invalid, r.Verdict, c.name)
		require.Equal(t, verify.Fail, r.Check(c.check).Result, "%s: %v", c.name, r.Checks)
	}
}

// req T2, admission apart: the envelope's own lies: algorithms, keys, and who is spoken for.
func TestForgedEnvelopes(t *testing.T) {
	f, file := one(t)
	policy := verify.Policy{Trust: verify.TrustLedger(f.Identity)}
	env, err := bundle.UnmarshalEnvelope(file)
	require.NoError(t, err)
	for _, c := range []struct {
		name, check string
		bend        func(*bundle.Envelope)
	}{
		{"no algorithm", verify.CheckSignature, func(e *bundle.Envelope) { e.Protected.Alg = 0 }},
		{"EdDSA named", verify.CheckSignature, func(e *bundle.Envelope) { e.Protected.Alg = -8 }},
		{"ESP256 named", verify.CheckSignature, func(e *bundle.Envelope) { e.Protected.Alg = -9 }},
		{"HMAC named", verify.CheckSignature, func(e *bundle.Envelope) { e.Protected.Alg = 5 }},
		{"unknown algorithm", verify.CheckSignature, func(e *bundle.Envelope) { e.Protected.Alg = -65535 }},
		{"another key's ID", verify.CheckIdentity, func(e *bundle.Envelope) { e.Protected.KeyID[0] ^= 1 }},
		{"checkpoint key's ID", verify.CheckIdentity, func(e *bundle.Envelope) { e.Protected.KeyID = f.Checkpoint.ID() }},
		{"other issuer", verify.CheckPayload, func(e *bundle.Envelope) { e.Protected.Claims.Issuer = "other/origin" }},
		{"other subject", verify.CheckPayload, func(e *bundle.Envelope) { e.Protected.Claims.Subject = "attempt-other" }},
		{"no subject", verify.CheckPayload, func(e *bundle.Envelope) { e.Protected.Claims.Subject = "" }},
		{"empty payload", verify.CheckPayload, func(e *bundle.Envelope) { e.Payload = []byte{} }},
	} {
		bent := env
		c.bend(&bent)
		r := verify.Verify(seal(t, f, bent), policy)
		require.Equal(t, verify.Invalid, r.Verdict, c.name)
		require.Equal(t, verify.Fail, r.Check(c.check).Result, "%s: %v", c.name, r.Checks)
	}
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
