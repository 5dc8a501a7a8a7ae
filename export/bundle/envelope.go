package bundle

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// ContentType is the content type in the protected header.
const ContentType = "application/vnd.baildock.bundle+cbor"

// AlgES256 is ECDSA with SHA-256 (RFC 9053 §2.1), here always over P-256.
const AlgES256 int64 = -7

// SignatureSize is the length of an ES256 signature: r ‖ s, 32 bytes each, big-endian
// (RFC 9053 §2.1).
const SignatureSize = 64

// Claims are CWT claims (RFC 9597): who speaks and about what.
type Claims struct {
	Issuer  string `cbor:"1,keyasint"` // the ledger's origin
	Subject string `cbor:"2,keyasint"` // the judged streams' names, joined by commas
}

// Protected is the protected header (RFC 9052 §3.1): exactly these four parameters.
type Protected struct {
	Alg         int64          `cbor:"1,keyasint"`
	ContentType string         `cbor:"3,keyasint"`
	KeyID       evidence.KeyID `cbor:"4,keyasint"` // SHA-256 of the signing key's SubjectPublicKeyInfo
	Claims      Claims         `cbor:"15,keyasint"`
}

// Envelope is a tagged COSE_Sign1 (RFC 9052 §4.2) with an empty unprotected header.
type Envelope struct {
	Protected Protected
	Payload   []byte
	Signature []byte
}

// sign1 is the array under tag 18.
type sign1 struct {
	_           struct{} `cbor:",toarray"`
	Protected   []byte
	Unprotected map[int64]int64
	Payload     []byte
	Signature   []byte
}

// tagSign1 is CBOR tag 18.
const tagSign1 = 0xd2

// Marshal returns the bundle's bytes.
func (e Envelope) Marshal() []byte {
	body := encode(sign1{Protected: encode(e.Protected), Unprotected: map[int64]int64{}, Payload: e.Payload, Signature: e.Signature})
	return append([]byte{tagSign1}, body...)
}

// UnmarshalEnvelope is the inverse of Marshal. It accepts exactly the bytes Marshal writes. It
// checks no signature; whether Alg is allowed is for the verifier to say.
func UnmarshalEnvelope(b []byte) (Envelope, error) {
	if len(b) > MaxBundle {
		return Envelope{}, fmt.Errorf("bundle has more than %d bytes; at most so many are allowed", MaxBundle)
	}
	if len(b) == 0 || b[0] != tagSign1 {
		return Envelope{}, errors.New("not a bundle: it doesn't start with the tag of a COSE_Sign1 message")
	}
	var s sign1
	if err := decode(b[1:], &s); err != nil {
		return Envelope{}, fmt.Errorf("bundle envelope: %w", err)
	}
	if len(s.Unprotected) != 0 {
		return Envelope{}, errors.New("bundle envelope: the unprotected header is not empty")
	}
	if len(s.Signature) != SignatureSize {
		return Envelope{}, fmt.Errorf("bundle envelope: signature of %d bytes; expected %d", len(s.Signature), SignatureSize)
	}
	if !IsLowS(s.Signature) {
		return Envelope{}, fmt.Errorf("bundle envelope: %w: the signature's s is in the upper half", ErrNotCanonical)
	}
	if len(s.Protected) > MaxProtected {
		return Envelope{}, fmt.Errorf("bundle envelope: protected header of %d bytes; at most %d are allowed", len(s.Protected), MaxProtected)
	}
	e := Envelope{Payload: s.Payload, Signature: s.Signature}
	if err := decode(s.Protected, &e.Protected); err != nil {
		return Envelope{}, fmt.Errorf("bundle protected header: %w", err)
	}
	if e.Protected.ContentType != ContentType {
		return Envelope{}, fmt.Errorf("bundle protected header: content type %q; expected %q", e.Protected.ContentType, ContentType)
	}
	if err := ledger.CheckOrigin(e.Protected.Claims.Issuer); err != nil {
		return Envelope{}, fmt.Errorf("bundle protected header: issuer: %w", err)
	}
	if !bytes.Equal(e.Marshal(), b) {
		return Envelope{}, fmt.Errorf("bundle envelope: %w", ErrNotCanonical)
	}
	return e, nil
}

// ToBeSigned returns the bytes a signature covers: the Sig_structure (RFC 9052 §4.4) of this
// protected header and payload, with no external data.
func (e Envelope) ToBeSigned() []byte {
	return encode(struct {
		_         struct{} `cbor:",toarray"`
		Context   string
		Protected []byte
		External  []byte
		Payload   []byte
	}{Context: "Signature1", Protected: encode(e.Protected), External: []byte{}, Payload: e.Payload})
}
