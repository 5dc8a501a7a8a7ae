package evidence

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// Marshal returns the one canonical encoding of v: deterministic CBOR (RFC 8949 §4.2.1).
// It panics on a type that has none, which is a programming error.
func Marshal(v any) []byte {
	b, err := encMode.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("evidence: no canonical encoding for %T: %v", v, err))
	}
	return b
}

// ErrNotCanonical marks bytes that decode but are not the canonical spelling of their value.
var ErrNotCanonical = errors.New("not the canonical encoding")

// Unmarshal decodes exactly one canonical value of at most MaxValue bytes into v. Duplicate keys,
// unknown fields, tags, indefinite lengths, bad UTF-8, NaN and trailing bytes are refused by the
// decoder; every other spelling of the same value is refused by encoding again and comparing.
func Unmarshal(b []byte, v any) error {
	if len(b) > MaxValue {
		return fmt.Errorf("value of %d bytes exceeds %d", len(b), MaxValue)
	}
	if err := decMode.Unmarshal(b, v); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	again, err := encMode.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode again: %w", err)
	}
	if !bytes.Equal(b, again) {
		return fmt.Errorf("decode: %w at byte %d", ErrNotCanonical, firstDifference(b, again))
	}
	return nil
}

func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

var encMode = func() cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.IndefLength = cbor.IndefLengthForbidden
	o.TagsMd = cbor.TagsForbidden
	o.TextMarshaler = cbor.TextMarshalerNone
	o.NilContainers = cbor.NilContainerAsEmpty
	m, err := o.EncMode()
	if err != nil {
		panic(err)
	}
	return m
}()

var decMode = func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		UTF8:              cbor.UTF8RejectInvalid,
		MaxNestedLevels:   MaxNesting,
		MaxArrayElements:  MaxElements,
		MaxMapPairs:       MaxElements,
		NaN:               cbor.NaNDecodeForbidden,
		Inf:               cbor.InfDecodeForbidden,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return m
}()
