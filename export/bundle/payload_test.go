package bundle_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/ledger"
)

func oneBundle(t testing.TB) (*exporttest.Fixture, []byte) {
	t.Helper()
	f := exporttest.New(t)
	f.Run(t, evidencetest.Success())
	return f, f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
}

func opened(t testing.TB, file []byte) (bundle.Envelope, bundle.Payload) {
	t.Helper()
	env, err := bundle.UnmarshalEnvelope(file)
	require.NoError(t, err)
	p, err := bundle.Unmarshal(env.Payload)
	require.NoError(t, err)
	return env, p
}

func TestRoundTrip(t *testing.T) {
	_, file := oneBundle(t)
	env, p := opened(t, file)
	require.Equal(t, file, env.Marshal())
	again, err := p.Marshal()
	require.NoError(t, err)
	require.Equal(t, env.Payload, again)
	require.Equal(t, "attempt-one", p.Subject())
}

// T5, the COSE half: the envelope is plain COSE, read here by hand and verified by the standard library
// over a Sig_structure (RFC 9052 §4.4) that is built byte for byte.
func TestSignatureByHand(t *testing.T) {
	f, file := oneBundle(t)
	head := func(major byte, n int) []byte {
		switch {
		case n < 24:
			return []byte{major<<5 | byte(n)}
		case n < 1<<8:
			return []byte{major<<5 | 24, byte(n)}
		case n < 1<<16:
			return binary.BigEndian.AppendUint16([]byte{major<<5 | 25}, uint16(n))
		}
		return binary.BigEndian.AppendUint32([]byte{major<<5 | 26}, uint32(n))
	}
	bstr := func(b []byte) []byte { return append(head(2, len(b)), b...) }
	text := func(s string) []byte { return append(head(3, len(s)), s...) }

	kid := sha256.Sum256(f.Identity.Bundle)
	protected := slices.Concat([]byte{0xa4, 0x01, 0x26, 0x03}, text("application/vnd.baildock.bundle+cbor"), []byte{0x04}, bstr(kid[:]),
		[]byte{0x0f, 0xa2, 0x01}, text(f.Identity.Origin), []byte{0x02}, text("attempt-one"))
	prefix := slices.Concat([]byte{0xd2, 0x84}, bstr(protected), []byte{0xa0})
	require.True(t, bytes.HasPrefix(file, prefix))
	sig := file[len(file)-64:]
	payload := file[len(prefix) : len(file)-66] // with its head; the signature's is two bytes
	require.Equal(t, []byte{0x58, 0x40}, file[len(file)-66:len(file)-64])

	toBeSigned := slices.Concat([]byte{0x84}, text("Signature1"), bstr(protected), bstr(nil), payload)
	digest := sha256.Sum256(toBeSigned)
	r, s := new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])
	require.True(t, ecdsa.Verify(&f.Private.PublicKey, digest[:], r, s))
	require.True(t, bundle.IsLowS(sig))
}

// Only the one spelling of an envelope is read.
func TestEnvelopeIsStrict(t *testing.T) {
	_, file := oneBundle(t)
	env, _ := opened(t, file)
	whole := func(protected []byte, unprotected any, payload any, sig any) []byte {
		b, err := sortedMode(t).Marshal(cbor.Tag{Number: 18, Content: []any{protected, unprotected, payload, sig}})
		require.NoError(t, err)
		return b
	}
	extra := func(change func(map[int]any)) []byte {
		m := map[int]any{1: -7, 3: bundle.ContentType, 4: env.Protected.KeyID[:], 15: map[int]string{1: env.Protected.Claims.Issuer, 2: env.Protected.Claims.Subject}}
		change(m)
		b, err := sortedMode(t).Marshal(m)
		require.NoError(t, err)
		return b
	}
	protected := extra(func(map[int]any) {})
	require.Equal(t, file, whole(protected, map[int]int{}, env.Payload, env.Signature), "the test's own encoder agrees")

	high := bytes.Clone(env.Signature)
	n := exporttest.ECDSA(t, "x").Params().N
	new(big.Int).Sub(n, new(big.Int).SetBytes(high[32:])).FillBytes(high[32:])
	untagged := file[1:]
	longHead := slices.Concat(file[:1], []byte{0x98, 0x04}, file[2:])
	indefinite := slices.Concat(file[:1], []byte{0x9f}, file[2:], []byte{0xff})
	for name, bad := range map[string][]byte{
		"empty":                              nil,
		"untagged":                           untagged,
		"tagged twice":                       append([]byte{0xd2}, file...),
		"other tag":                          append([]byte{0xd1}, untagged...),
		"trailing byte":                      append(bytes.Clone(file), 0),
		"cut":                                file[:len(file)-1],
		"long array head":                    longHead,
		"indefinite array":                   indefinite,
		"alg in unprotected":                 whole(extra(func(m map[int]any) { delete(m, 1) }), map[int]int{1: -7}, env.Payload, env.Signature),
		"alg in both":                        whole(protected, map[int]int{1: -7}, env.Payload, env.Signature),
		"no alg":                             whole(extra(func(m map[int]any) { delete(m, 1) }), map[int]int{}, env.Payload, env.Signature),
		"no kid":                             whole(extra(func(m map[int]any) { delete(m, 4) }), map[int]int{}, env.Payload, env.Signature),
		"short kid":                          whole(extra(func(m map[int]any) { m[4] = env.Protected.KeyID[:31] }), map[int]int{}, env.Payload, env.Signature),
		"crit":                               whole(extra(func(m map[int]any) { m[2] = []int{1} }), map[int]int{}, env.Payload, env.Signature),
		"unknown header":                     whole(extra(func(m map[int]any) { m[99] = 1 }), map[int]int{}, env.Payload, env.Signature),
		"other content type":                 whole(extra(func(m map[int]any) { m[3] = "application/cbor" }), map[int]int{}, env.Payload, env.Signature),
		"iat":                                whole(extra(func(m map[int]any) { m[15] = map[int]any{1: "o", 2: "s", 6: 1} }), map[int]int{}, env.Payload, env.Signature),
		"no claims":                          whole(extra(func(m map[int]any) { delete(m, 15) }), map[int]int{}, env.Payload, env.Signature),
		"empty protected":                    whole(nil, map[int]int{}, env.Payload, env.Signature),
		"detached payload":                   whole(protected, map[int]int{}, nil, env.Signature),
		"text payload":                       whole(protected, map[int]int{}, "payload", env.Signature),
		"short signature":                    whole(protected, map[int]int{}, env.Payload, env.Signature[:63]),
		"empty signature":                    whole(protected, map[int]int{}, env.Payload, []byte{}),
		"signature with s in the upper half": whole(protected, map[int]int{}, env.Payload, high),
		"unprotected null":                   whole(protected, nil, env.Payload, env.Signature),
	} {
		_, err := bundle.UnmarshalEnvelope(bad)
		require.Error(t, err, name)
	}
}

func sortedMode(t testing.TB) cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.NilContainers = cbor.NilContainerAsEmpty
	m, err := o.EncMode()
	require.NoError(t, err)
	return m
}

// A payload that breaks a rule of shape is neither written nor read.
func TestPayloadIsStrict(t *testing.T) {
	_, file := oneBundle(t)
	for name, breaks := range map[string]func(*bundle.Payload){
		"format":               func(p *bundle.Payload) { p.Format = 2 },
		"origin":               func(p *bundle.Payload) { p.Ledger.Origin = "a b" },
		"key of another kind":  func(p *bundle.Payload) { p.Ledger.Bundle = p.Ledger.Checkpoint },
		"no checkpoint":        func(p *bundle.Payload) { p.Checkpoint = nil },
		"huge checkpoint":      func(p *bundle.Payload) { p.Checkpoint = make([]byte, ledger.MaxNote+1) },
		"no streams":           func(p *bundle.Payload) { p.Streams = nil },
		"streams out of order": func(p *bundle.Payload) { slices.Reverse(p.Streams) },
		"stream twice":         func(p *bundle.Payload) { p.Streams = append(p.Streams, p.Streams[1]) },
		"bad stream name":      func(p *bundle.Payload) { p.Streams[0].Name = "A" },
		"unknown role":         func(p *bundle.Payload) { p.Streams[0].Role = "boss" },
		"nothing judged":       func(p *bundle.Payload) { p.Streams[0].Role = bundle.Basis },
		"empty stream":         func(p *bundle.Payload) { p.Streams[1].Events = nil },
		"index above at":       func(p *bundle.Payload) { p.At-- },
		"index out of range":   func(p *bundle.Payload) { p.At = 1 << 62 },
		"indexes out of order": func(p *bundle.Payload) { p.Streams[0].Events[1].Index = p.Streams[0].Events[0].Index },
		"deep proof":           func(p *bundle.Payload) { p.Streams[0].Events[0].Proof = make([]ledger.Hash, bundle.MaxProof+1) },
		"huge leaf":            func(p *bundle.Payload) { p.Streams[0].Events[0].Leaf = make([]byte, ledger.MaxLeaf+1) },
		"blobs out of order":   func(p *bundle.Payload) { slices.Reverse(p.Blobs) },
		"blob twice":           func(p *bundle.Payload) { p.Blobs = append(p.Blobs, p.Blobs[len(p.Blobs)-1]) },
		"held and missing": func(p *bundle.Payload) {
			p.Missing = []bundle.Missing{{p.Blobs[0].Digest, bundle.ClassOutput, bundle.Withheld}}
		},
		"unknown class": func(p *bundle.Payload) { p.Missing = []bundle.Missing{{bundle.BlobDigest{}, "x", bundle.Withheld}} },
		"unknown reason": func(p *bundle.Payload) {
			p.Missing = []bundle.Missing{{bundle.BlobDigest{}, bundle.ClassOutput, "lost"}}
		},
		"missing twice": func(p *bundle.Payload) {
			m := bundle.Missing{Class: bundle.ClassOutput, Why: bundle.Absent}
			p.Missing = []bundle.Missing{m, m}
		},
		"schemas out of order":   func(p *bundle.Payload) { slices.Reverse(p.Schemas) },
		"schema without a name":  func(p *bundle.Payload) { p.Schemas[0].Name = "" },
		"kept of nothing":        func(p *bundle.Payload) { p.Kept = &bundle.Kept{} },
		"kept of this very size": func(p *bundle.Payload) { p.Kept = &bundle.Kept{Size: p.At + 1} },
		"kept out of range":      func(p *bundle.Payload) { p.Kept = &bundle.Kept{Size: 1 << 62} },
		"kept proof too long":    func(p *bundle.Payload) { p.Kept = &bundle.Kept{Size: 1, Proof: make([]ledger.Hash, bundle.MaxProof+2)} },
		"too many schemas":       func(p *bundle.Payload) { p.Schemas = make([]bundle.Schema, bundle.MaxSchemas+1) },
		"too many streams":       func(p *bundle.Payload) { p.Streams = make([]bundle.Stream, bundle.MaxStreams+1) },
	} {
		_, p := opened(t, file)
		raw, err := sortedMode(t).Marshal(p)
		require.NoError(t, err)
		_, err = bundle.Unmarshal(raw)
		require.NoError(t, err)
		breaks(&p)
		_, err = p.Marshal()
		require.Error(t, err, name)
		raw, err = sortedMode(t).Marshal(p)
		require.NoError(t, err)
		_, err = bundle.Unmarshal(raw)
		require.Error(t, err, name)
	}
}

// Other spellings of the same payload are refused, and so is what would cost memory out of
// proportion to its size.
func TestPayloadSpellings(t *testing.T) {
	_, file := oneBundle(t)
	env, _ := opened(t, file)
	good := env.Payload
	require.Equal(t, []byte{0xa8, 0x01, 0x01, 0x02}, good[:4])
	for name, bad := range map[string][]byte{
		"trailing byte":     append(bytes.Clone(good), 0),
		"cut":               good[:len(good)-1],
		"long map head":     slices.Concat([]byte{0xb8, 0x08}, good[1:]),
		"long integer":      slices.Concat(good[:2], []byte{0x18, 0x01}, good[3:]),
		"indefinite map":    slices.Concat([]byte{0xbf}, good[1:], []byte{0xff}),
		"duplicate key":     slices.Concat([]byte{0xa9, 0x01, 0x01}, good[1:]),
		"unsorted keys":     slices.Concat([]byte{0xa8}, good[3:], []byte{0x01, 0x01}),
		"unknown key":       slices.Concat([]byte{0xa9}, good[1:], []byte{0x09, 0x00}),
		"null":              {0xf6},
		"float":             slices.Concat(good[:2], []byte{0xf9, 0x3c, 0x00}, good[3:]),
		"tag":               append([]byte{0xc1}, good...),
		"huge array claim":  {0xa1, 0x05, 0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"huge string claim": {0xa1, 0x04, 0x5b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"nested deep":       bytes.Repeat([]byte{0x81}, 1000),
		"too many items":    manyItems(),
	} {
		_, err := bundle.Unmarshal(bad)
		require.Error(t, err, name)
	}
}

// manyItems is a list of lists with more items than allowed, of one byte each.
func manyItems() []byte {
	inner := slices.Concat([]byte{0x9a, 0x00, 0x01, 0xff, 0xff}, bytes.Repeat([]byte{0x40}, 0x1ffff))
	return slices.Concat([]byte{0x89}, bytes.Repeat(inner, 9))
}

// A stream opens only as itself: from version 0, without a gap, chained.
func TestStreamOpen(t *testing.T) {
	_, file := oneBundle(t)
	for name, breaks := range map[string]func(s, other *bundle.Stream){
		"first dropped":  func(s, _ *bundle.Stream) { s.Events = s.Events[1:] },
		"middle dropped": func(s, _ *bundle.Stream) { s.Events = slices.Delete(s.Events, 3, 4) },
		"swapped":        func(s, _ *bundle.Stream) { s.Events[3].Leaf, s.Events[4].Leaf = s.Events[4].Leaf, s.Events[3].Leaf },
		"of another":     func(s, o *bundle.Stream) { s.Events[0] = o.Events[0] },
		"renamed":        func(s, _ *bundle.Stream) { s.Name = "attempt-two" },
		"leaf cut":       func(s, _ *bundle.Stream) { s.Events[2].Leaf = s.Events[2].Leaf[1:] },
		"bit flipped": func(s, _ *bundle.Stream) {
			s.Events[2].Leaf = bytes.Clone(s.Events[2].Leaf)
			s.Events[2].Leaf[len(s.Events[2].Leaf)-1] ^= 1
		},
	} {
		_, p := opened(t, file)
		_, err := p.Streams[0].Open()
		require.NoError(t, err)
		breaks(&p.Streams[0], &p.Streams[1])
		_, err = p.Streams[0].Open()
		require.Error(t, err, name)
	}
}

// FuzzUnmarshal: whatever is accepted is spelled as it would be written, envelope and payload.
func FuzzUnmarshal(f *testing.F) {
	_, file := oneBundle(f)
	env, _ := opened(f, file)
	seeds := [][]byte{file, env.Payload, file[:len(file)/2], {0xd2, 0x84, 0x40, 0xa0, 0x40, 0x40}, manyItems()[:4096], {}}
	for _, s := range seeds {
		f.Add(s)
	}
	require.Len(f, seeds, 6)
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := bundle.UnmarshalEnvelope(b); err == nil {
			require.Equal(t, b, e.Marshal())
			b = e.Payload
		}
		p, err := bundle.Unmarshal(b)
		if err != nil {
			return
		}
		again, err := p.Marshal()
		require.NoError(t, err)
		require.Equal(t, b, again)
		for _, s := range p.Streams {
			_, _ = s.Open() // must not panic
		}
	})
}
