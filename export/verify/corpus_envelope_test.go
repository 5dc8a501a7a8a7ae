package verify_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/asn1"
	"math/big"
	"slices"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
)

func (c *corpus) cbor(v any) []byte {
	b, err := unchecked.Marshal(v)
	require.NoError(c.t, err)
	return b
}

// message is a COSE message of any parts under any tag.
func (c *corpus) message(tag uint64, parts ...any) []byte {
	return c.cbor(cbor.Tag{Number: tag, Content: parts})
}

func (c *corpus) protected() []byte { return c.cbor(c.env.Protected) }

// sign signs any bytes with the bundle key, as r ‖ s with the smaller s.
func (c *corpus) sign(key *ecdsa.PrivateKey, hash crypto.Hash, message []byte) []byte {
	h := hash.New()
	h.Write(message)
	der, err := key.Sign(rand.Reader, h.Sum(nil), hash)
	require.NoError(c.t, err)
	var sig struct{ R, S *big.Int }
	_, err = asn1.Unmarshal(der, &sig)
	require.NoError(c.t, err)
	raw := make([]byte, bundle.SignatureSize)
	n := key.Params().N
	if sig.S.Cmp(new(big.Int).Rsh(n, 1)) > 0 {
		sig.S.Sub(n, sig.S)
	}
	sig.R.FillBytes(raw[:32])
	sig.S.FillBytes(raw[32:])
	return raw
}

// sealed signs a protected header and payload of any bytes.
func (c *corpus) sealed(protected, payload []byte) []byte {
	toSign := c.cbor([]any{"Signature1", protected, []byte{}, payload})
	return c.message(18, protected, map[int]int{}, payload, c.sign(c.f.Private, crypto.SHA256, toSign))
}

func envelopeAttacks(c *corpus) {
	good, e := c.protected(), c.env
	require.Equal(c.t, c.file, c.message(18, good, map[int]int{}, e.Payload, e.Signature), "the attacker's encoder agrees")
	signature := []any{good, map[int]int{}, e.Signature}
	for name, file := range map[string][]byte{
		"empty file":                          {},
		"one byte":                            {0xd2},
		"text":                                []byte("baildock"),
		"untagged":                            c.file[1:],
		"tagged as self-described CBOR":       append([]byte{0xd9, 0xd9, 0xf7}, c.file...),
		"tagged as a CWT":                     append([]byte{0xd8, 0x3d}, c.file...),
		"tagged twice":                        append([]byte{0xd2}, c.file...),
		"long tag":                            append([]byte{0xd8, 0x12}, c.file[1:]...),
		"COSE_Mac0":                           c.message(17, good, map[int]int{}, e.Payload, e.Signature),
		"COSE_Encrypt0":                       c.message(16, good, map[int]int{}, e.Payload),
		"COSE_Sign with one signature":        c.message(98, []byte{}, map[int]int{}, e.Payload, []any{signature}),
		"COSE_Sign with two signatures":       c.message(98, []byte{}, map[int]int{}, e.Payload, []any{signature, signature}),
		"several signatures in a Sign1":       c.message(18, good, map[int]int{}, e.Payload, []any{e.Signature, e.Signature}),
		"two signatures in a row":             c.message(18, good, map[int]int{}, e.Payload, slices.Concat(e.Signature, e.Signature)),
		"five parts":                          c.message(18, good, map[int]int{}, e.Payload, e.Signature, e.Signature),
		"three parts":                         c.message(18, good, map[int]int{}, e.Payload),
		"no signature":                        c.message(18, good, map[int]int{}, e.Payload, []byte{}),
		"null signature":                      c.message(18, good, map[int]int{}, e.Payload, nil),
		"detached payload":                    c.message(18, good, map[int]int{}, nil, e.Signature),
		"payload as text":                     c.message(18, good, map[int]int{}, string(bytes.ToValidUTF8(e.Payload, nil)), e.Signature),
		"payload not wrapped":                 c.message(18, good, map[int]int{}, cbor.RawMessage(e.Payload), e.Signature),
		"header not wrapped":                  c.message(18, e.Protected, map[int]int{}, e.Payload, e.Signature),
		"empty protected header":              c.message(18, []byte{}, map[int]int{}, e.Payload, e.Signature),
		"alg in the unprotected header too":   c.message(18, good, map[int]int{1: -7}, e.Payload, e.Signature),
		"other alg in the unprotected header": c.message(18, good, map[int]int{1: -8}, e.Payload, e.Signature),
		"kid in the unprotected header too":   c.message(18, good, map[int]any{4: e.Protected.KeyID[:]}, e.Payload, e.Signature),
		"certificate chain":                   c.message(18, good, map[int]any{33: []byte{1}}, e.Payload, e.Signature),
		"countersignature":                    c.message(18, good, map[int]any{11: signature}, e.Payload, e.Signature),
		"abbreviated countersignature":        c.message(18, good, map[int]any{12: e.Signature}, e.Payload, e.Signature),
		"receipt":                             c.message(18, good, map[int]any{394: [][]byte{e.Signature}}, e.Payload, e.Signature),
		"text label in the unprotected":       c.message(18, good, map[string]any{"x": 1}, e.Payload, e.Signature),
		"null unprotected header":             c.message(18, good, nil, e.Payload, e.Signature),
		"trailing byte":                       append(bytes.Clone(c.file), 0),
		"a second bundle behind":              append(bytes.Clone(c.file), c.file...),
		"half of it":                          c.file[:len(c.file)/2],
		"last byte cut":                       c.file[:len(c.file)-1],
		"first byte cut":                      c.file[1:],
		"JSON":                                []byte(`{"payload":"","signatures":[]}`),
		"PEM":                                 bundle.FormatKey(c.f.Identity.Bundle),
	} {
		c.add("envelope: "+name, file, verify.CheckEnvelope)
	}
}

func headerAttacks(c *corpus) {
	header := func(change func(map[any]any)) []byte {
		p := c.env.Protected
		m := map[any]any{1: p.Alg, 3: p.ContentType, 4: p.KeyID[:], 15: map[any]any{1: p.Claims.Issuer, 2: p.Claims.Subject}}
		change(m)
		return c.sealed(c.cbor(m), c.env.Payload)
	}
	claims := func(m map[any]any) map[any]any { return m[15].(map[any]any) }
	require.Equal(c.t, verify.Valid, verify.Verify(header(func(map[any]any) {}), verify.Policy{Trust: verify.TrustLedger(c.f.Identity)}).Verdict)
	for name, change := range map[string]func(map[any]any){
		"no alg":                   func(m map[any]any) { delete(m, 1) },
		"alg none as text":         func(m map[any]any) { m[1] = "none" },
		"alg as text":              func(m map[any]any) { m[1] = "ES256" },
		"alg null":                 func(m map[any]any) { m[1] = nil },
		"alg out of range":         func(m map[any]any) { m[1] = uint64(1 << 63) },
		"no content type":          func(m map[any]any) { delete(m, 3) },
		"other content type":       func(m map[any]any) { m[3] = "application/cbor" },
		"content type with spaces": func(m map[any]any) { m[3] = bundle.ContentType + " " },
		"content type as a number": func(m map[any]any) { m[3] = 60 },
		"no kid":                   func(m map[any]any) { delete(m, 4) },
		"short kid":                func(m map[any]any) { m[4] = c.env.Protected.KeyID[:31] },
		"long kid":                 func(m map[any]any) { m[4] = append(bytes.Clone(c.env.Protected.KeyID[:]), 0) },
		"kid as text":              func(m map[any]any) { m[4] = "key" },
		"no claims":                func(m map[any]any) { delete(m, 15) },
		"no issuer":                func(m map[any]any) { delete(claims(m), 1) },
		"no subject":               func(m map[any]any) { delete(claims(m), 2) },
		"issued at":                func(m map[any]any) { claims(m)[6] = 1 },
		"expires":                  func(m map[any]any) { claims(m)[4] = 1 },
		"malformed issuer":         func(m map[any]any) { claims(m)[1] = "a b" },
		"empty issuer":             func(m map[any]any) { claims(m)[1] = "" },
		"critical parameter":       func(m map[any]any) { m[2] = []int{1} },
		"empty crit":               func(m map[any]any) { m[2] = []int{} },
		"unknown parameter":        func(m map[any]any) { m[99] = 1 },
		"text label":               func(m map[any]any) { m["x"] = 1 },
		"IV":                       func(m map[any]any) { m[5] = []byte{1} },
		"nonce as a huge header":   func(m map[any]any) { m[99] = make([]byte, bundle.MaxProtected) },
	} {
		c.add("header: "+name, header(change), verify.CheckEnvelope)
	}
	for name, alg := range map[string]int64{
		"none": 0, "EdDSA": -8, "Ed25519": -19, "ESP256": -9, "ES384": -35, "ES512": -36, "ES256K": -47, "PS256": -37,
		"RS256": -257, "HMAC 256": 5, "SHA-256": -16, "A256GCM": 3, "unknown": -65535, "positive 7": 7,
	} {
		c.add("header: algorithm "+name, header(func(m map[any]any) { m[1] = alg }), verify.CheckSignature)
	}
	for name, claim := range map[string]func(map[any]any){
		"another issuer":         func(m map[any]any) { claims(m)[1] = "other/origin" },
		"another subject":        func(m map[any]any) { claims(m)[2] = "attempt-other" },
		"empty subject":          func(m map[any]any) { claims(m)[2] = "" },
		"subjects reordered":     func(m map[any]any) { claims(m)[2] = "attempt-one,attempt-failed,attempt-alone" },
		"one subject of several": func(m map[any]any) { claims(m)[2] = "attempt-one" },
		"a subject more":         func(m map[any]any) { claims(m)[2] = c.env.Protected.Claims.Subject + ",attempt-zzz" },
		"subjects with a space":  func(m map[any]any) { claims(m)[2] = "attempt-alone, attempt-failed,attempt-one" },
	} {
		c.add("header: "+name, header(claim), verify.CheckPayload)
	}
}

func signatureAttacks(c *corpus) {
	e := c.env
	n := elliptic.P256().Params().N
	with := func(sig []byte) []byte { return c.message(18, c.protected(), map[int]int{}, e.Payload, sig) }
	pair := func(r, s *big.Int) []byte {
		out := make([]byte, 64)
		r.FillBytes(out[:32])
		s.FillBytes(out[32:])
		return out
	}
	r, s := new(big.Int).SetBytes(e.Signature[:32]), new(big.Int).SetBytes(e.Signature[32:])
	toSign := e.ToBeSigned()
	stranger := exporttest.ECDSA(c.t, "stranger")
	der, err := c.f.Private.Sign(nil, sum(toSign), crypto.SHA256)
	require.NoError(c.t, err)
	mac := hmac.New(sha256.New, c.f.Identity.Bundle)
	mac.Write(toSign)
	long := sha512.Sum512(toSign)
	zero, one := big.NewInt(0), big.NewInt(1)
	for name, sig := range map[string][]byte{
		"r zero":                       pair(zero, s),
		"s zero":                       pair(r, zero),
		"both zero":                    pair(zero, zero),
		"both one":                     pair(one, one),
		"r the order":                  pair(n, s),
		"r above the order":            pair(new(big.Int).Add(n, one), s),
		"r and s swapped":              pair(new(big.Int).Rsh(s, 1), new(big.Int).Rsh(r, 1)),
		"by another key":               c.sign(stranger, crypto.SHA256, toSign),
		"under SHA-512":                c.sign(c.f.Private, crypto.SHA512, toSign),
		"under SHA-384":                c.sign(c.f.Private, crypto.SHA384, toSign),
		"over the payload alone":       c.sign(c.f.Private, crypto.SHA256, e.Payload),
		"over the whole file":          c.sign(c.f.Private, crypto.SHA256, c.file),
		"over the context Signature":   c.sign(c.f.Private, crypto.SHA256, c.cbor([]any{"Signature", c.protected(), []byte{}, []byte{}, e.Payload})),
		"over a countersignature":      c.sign(c.f.Private, crypto.SHA256, c.cbor([]any{"CounterSignature", c.protected(), []byte{}, []byte{}, e.Payload})),
		"over external data":           c.sign(c.f.Private, crypto.SHA256, c.cbor([]any{"Signature1", c.protected(), []byte("x"), e.Payload})),
		"over an empty header":         c.sign(c.f.Private, crypto.SHA256, c.cbor([]any{"Signature1", []byte{}, []byte{}, e.Payload})),
		"over a digest of the payload": c.sign(c.f.Private, crypto.SHA256, c.cbor([]any{"Signature1", c.protected(), []byte{}, sum(e.Payload)})),
		"HMAC keyed by the public key": append(mac.Sum(nil), make([]byte, 32)...),
		"a hash":                       append(long[:32], make([]byte, 32)...),
		"the checkpoint's":             c.checkpointSignature(),
	} {
		c.add("signature: "+name, with(sig), verify.CheckSignature)
	}
	for name, sig := range map[string][]byte{
		"ASN.1":             der,
		"the larger s":      pair(r, new(big.Int).Sub(n, s)),
		"s above the order": pair(r, new(big.Int).Add(n, one)),
		"a byte short":      e.Signature[:63],
		"a byte long":       append(bytes.Clone(e.Signature), 0),
		"all ones":          bytes.Repeat([]byte{0xff}, 64),
	} {
		c.add("signature: "+name, with(sig), verify.CheckEnvelope)
	}
	c.add("signature: of another bundle", with(c.sign(c.f.Private, crypto.SHA256, append(bytes.Clone(toSign), 0))), verify.CheckSignature)

	trust := c.f.Identity
	trust.ID[3] ^= 1
	c.attacks = append(c.attacks,
		attack{name: "trust: another ledger with these keys", file: c.file, trust: &trust, checks: []string{verify.CheckIdentity}})
	strangerKey := c.identityWith(stranger)
	c.attacks = append(c.attacks,
		attack{name: "trust: this ledger with another bundle key", file: c.file, trust: &strangerKey, checks: []string{verify.CheckIdentity}})
	origin := c.f.Identity
	origin.Origin = "other/origin"
	c.attacks = append(c.attacks,
		attack{name: "trust: this ledger under another origin", file: c.file, trust: &origin, checks: []string{verify.CheckIdentity}})
}

func (c *corpus) identityWith(key *ecdsa.PrivateKey) bundle.Identity {
	i := c.f.Identity
	i.Bundle = c.spki(key.Public())
	return i
}
