package export_test

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
)

// req T5: the Sigstore bundle beside a bundle has exactly the fields its readers know, one signature without a
// key ID over the statement's PAE, and a statement about the file's SHA-256. Other tools check it in
// test/interop.
func TestAttest(t *testing.T) {
	f, payload := build(t)
	file, err := export.Sign(payload, f.Key)
	require.NoError(t, err)
	out, err := export.Attest(file, "one.cbor", f.Key)
	require.NoError(t, err)
	again, err := export.Attest(file, "one.cbor", f.Key)
	require.NoError(t, err)
	require.Equal(t, out, again)

	var doc struct {
		MediaType            string `json:"mediaType"`
		VerificationMaterial struct {
			PublicKey struct {
				Hint string `json:"hint"`
			} `json:"publicKey"`
		} `json:"verificationMaterial"`
		DSSEEnvelope struct {
			Payload     []byte `json:"payload"`
			PayloadType string `json:"payloadType"`
			Signatures  []struct {
				Sig   []byte `json:"sig"`
				KeyID string `json:"keyid"`
			} `json:"signatures"`
		} `json:"dsseEnvelope"`
	}
	strict := json.NewDecoder(strings.NewReader(string(out)))
	strict.DisallowUnknownFields()
	require.NoError(t, strict.Decode(&doc))
	require.Equal(t, "application/vnd.dev.sigstore.bundle.v0.3+json", doc.MediaType)
	kid := f.Key.ID()
	require.Equal(t, base64.StdEncoding.EncodeToString(kid[:]), doc.VerificationMaterial.PublicKey.Hint)
	require.Equal(t, "application/vnd.in-toto+json", doc.DSSEEnvelope.PayloadType)
	require.Len(t, doc.DSSEEnvelope.Signatures, 1)
	require.Empty(t, doc.DSSEEnvelope.Signatures[0].KeyID)
	digest := sha256.Sum256(export.PAE(doc.DSSEEnvelope.PayloadType, doc.DSSEEnvelope.Payload))
	require.True(t, ecdsa.VerifyASN1(&f.Private.PublicKey, digest[:], doc.DSSEEnvelope.Signatures[0].Sig))

	fileDigest := sha256.Sum256(file)
	var s export.Statement
	require.NoError(t, json.Unmarshal(doc.DSSEEnvelope.Payload, &s))
	require.Equal(t, "https://in-toto.io/Statement/v1", s.Type)
	require.Equal(t, export.PredicateType, s.PredicateType)
	require.Equal(t, []export.Subject{{Name: "one.cbor", Digest: map[string]string{"sha256": hex.EncodeToString(fileDigest[:])}}}, s.Subject)
	require.Equal(t, []export.PredicateAttempt{{Attempt: "one", Outcome: evidence.OutcomeSuccess, Claim: evidence.ClaimReduced, Record: s.Predicate.Attempts[0].Record}}, s.Predicate.Attempts)
	require.Equal(t, f.Identity.ID, s.Predicate.Ledger)
	require.Equal(t, kid, s.Predicate.Key)

	less, _ := f.Payload(t, export.Request{Attempts: oneAttempt, Withhold: []bundle.Class{bundle.ClassOutput, bundle.ClassRecipe}})
	file, err = export.Sign(less, f.Key)
	require.NoError(t, err)
	out, err = export.Attest(file, "one.cbor", f.Key)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &doc))
	require.NoError(t, json.Unmarshal(doc.DSSEEnvelope.Payload, &s))
	require.Equal(t, map[string][]bundle.Class{"withheld": {bundle.ClassControls, bundle.ClassOutput, bundle.ClassRecipe}}, s.Predicate.Missing)

	other, err := export.NewBundleKey(exporttest.ECDSA(t, "other"))
	require.NoError(t, err)
	_, err = export.Attest(file, "one.cbor", other)
	require.ErrorContains(t, err, "signed it")
	_, err = export.Attest(file[1:], "one.cbor", f.Key)
	require.Error(t, err)
}

// The PAE of the DSSE protocol's own example.
func TestPAE(t *testing.T) {
	require.Equal(t, "DSSEv1 29 http://example.com/HelloWorld 11 hello world", string(export.PAE("http://example.com/HelloWorld", []byte("hello world"))))
}
