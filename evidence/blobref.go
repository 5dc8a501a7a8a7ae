package evidence

import "crypto/sha256"

// BlobRef is what an event holds of bytes that may be withheld: two digests that reveal nothing,
// each naming a blob.
type BlobRef struct {
	Salted     SaltedDigest     `cbor:"1,keyasint" json:"salted"`     // SHA-256(salt32 ‖ bytes): the blob of the bytes
	Descriptor DescriptorDigest `cbor:"2,keyasint" json:"descriptor"` // SHA-256 of the canonical Descriptor: a blob too
}

// Salt is 32 random bytes that keep short or guessable bytes from being guessed.
type Salt [32]byte

// Descriptor opens a BlobRef: withheld together with the bytes, it keeps length and plain
// digests from those who may not have them. Its own salt keeps its digest unguessable.
type Descriptor struct {
	Salt      Salt        `cbor:"1,keyasint"`
	Length    uint64      `cbor:"2,keyasint"`           // bytes stored
	Stored    PlainDigest `cbor:"3,keyasint"`           // SHA-256 of the bytes stored
	Received  PlainDigest `cbor:"4,keyasint"`           // SHA-256 of all bytes after the redactor
	Truncated bool        `cbor:"5,keyasint,omitempty"` // fewer bytes are stored than were received
	Redacted  bool        `cbor:"6,keyasint,omitempty"` // the redactor replaced something
}

// Withholdable is a byte string ready to be kept, with what opens it.
type Withholdable struct {
	Ref        BlobRef
	Bytes      []byte
	Descriptor Descriptor
}

// Withhold prepares complete bytes under a salt: stored equals received.
func Withhold(salt Salt, b []byte) Withholdable {
	plain := PlainDigest(sha256.Sum256(b))
	return WithholdCaptured(b, Descriptor{Salt: salt, Length: uint64(len(b)), Stored: plain, Received: plain})
}

// WithholdCaptured prepares captured bytes whose descriptor was filled while they arrived.
func WithholdCaptured(b []byte, d Descriptor) Withholdable {
	return Withholdable{
		Ref:        BlobRef{Salted: SaltedSum(d.Salt, b), Descriptor: Sum[descriptorMeaning](Marshal(d))},
		Bytes:      b,
		Descriptor: d,
	}
}

// SaltedSum is SHA-256(salt32 ‖ b).
func SaltedSum(salt Salt, b []byte) SaltedDigest {
	h := sha256.New()
	h.Write(salt[:])
	h.Write(b)
	return SaltedDigest(h.Sum(nil))
}
