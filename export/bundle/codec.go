package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/fxamacker/cbor/v2"

	"github.com/baildock/baildock/evidence"
)

// ErrNotCanonical marks bytes that decode but aren't the one spelling of their value.
var ErrNotCanonical = evidence.ErrNotCanonical

var decMode = func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		UTF8:              cbor.UTF8RejectInvalid,
		MaxNestedLevels:   MaxDepth,
		MaxArrayElements:  MaxElements,
		MaxMapPairs:       MaxElements,
		NaN:               cbor.NaNDecodeForbidden,
		Inf:               cbor.InfDecodeForbidden,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return m
}()

// encode writes the one canonical encoding, the same as evidence's; limits are the decoder's matter.
func encode(v any) []byte { return evidence.Marshal(v) }

// decode reads exactly one canonical value.
func decode(b []byte, v any) error {
	if err := scan(b); err != nil {
		return err
	}
	if err := decMode.Unmarshal(b, v); err != nil {
		return err
	}
	if !bytes.Equal(encode(v), b) {
		return ErrNotCanonical
	}
	return nil
}

// scan walks the heads of one CBOR value without allocating. It refuses what would make a decoder
// allocate out of proportion: too many items, too deep nesting, lengths beyond the input. It also
// refuses what no bundle holds: tags, simple values, floats, indefinite lengths and heads longer
// than they need be (RFC 8949 §4.2.1).
func scan(b []byte) error {
	type level struct{ left uint64 }
	var stack [MaxDepth]level
	depth, items := 0, 0
	for pos := 0; ; {
		if items++; items > MaxItems {
			return fmt.Errorf("more than %d items", MaxItems)
		}
		major, n, next, err := head(b, pos)
		if err != nil {
			return err
		}
		pos = next
		children := uint64(0)
		switch major {
		case 0, 1:
		case 2, 3:
			if n > uint64(len(b)-pos) {
				return fmt.Errorf("a string at byte %d is longer than what follows", pos)
			}
			pos += int(n)
		case 4, 5:
			if n > MaxElements {
				return fmt.Errorf("a list at byte %d has %d entries; at most %d are allowed", pos, n, MaxElements)
			}
			if children = n; major == 5 {
				children = 2 * n
			}
		default:
			return fmt.Errorf("item of major type %d before byte %d; a bundle has only numbers, strings, lists and maps", major, pos)
		}
		if children > 0 {
			if depth == MaxDepth {
				return fmt.Errorf("nested deeper than %d", MaxDepth)
			}
			stack[depth].left = children
			depth++
			continue
		}
		for depth > 0 {
			if stack[depth-1].left--; stack[depth-1].left > 0 {
				break
			}
			depth--
		}
		if depth == 0 {
			if pos != len(b) {
				return fmt.Errorf("%d bytes behind the value", len(b)-pos)
			}
			return nil
		}
	}
}

// head reads an item's head at pos (RFC 8949 §3).
func head(b []byte, pos int) (major byte, n uint64, next int, err error) {
	if pos >= len(b) {
		return 0, 0, 0, errors.New("it ends too early")
	}
	major, info := b[pos]>>5, b[pos]&0x1f
	pos++
	if info < 24 {
		return major, uint64(info), pos, nil
	}
	if info > 27 {
		return 0, 0, 0, fmt.Errorf("indefinite or reserved length at byte %d", pos-1)
	}
	width := 1 << (info - 24)
	if width > len(b)-pos {
		return 0, 0, 0, errors.New("it ends too early")
	}
	for _, c := range b[pos : pos+width] {
		n = n<<8 | uint64(c)
	}
	least := [...]uint64{24, math.MaxUint8 + 1, math.MaxUint16 + 1, math.MaxUint32 + 1}[info-24]
	if n < least {
		return 0, 0, 0, fmt.Errorf("%w: a length or number at byte %d is longer than it need be", ErrNotCanonical, pos-1)
	}
	return major, n, pos + width, nil
}
