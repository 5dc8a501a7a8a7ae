package bundle

import (
	"bytes"
	"crypto/elliptic"
	"math/big"
)

// halfOrder is ⌊n/2⌋ of P-256. For every ES256 signature (r, s) the pair (r, n − s) holds too; a
// bundle uses the one with the smaller s, so that nobody can respell a signature.
var halfOrder = new(big.Int).Rsh(elliptic.P256().Params().N, 1)

// LowS returns the spelling of an ES256 signature that a bundle uses.
func LowS(sig []byte) []byte {
	out := bytes.Clone(sig)
	if len(sig) != SignatureSize || IsLowS(sig) {
		return out
	}
	s := new(big.Int).SetBytes(sig[SignatureSize/2:])
	new(big.Int).Sub(elliptic.P256().Params().N, s).FillBytes(out[SignatureSize/2:])
	return out
}

// IsLowS reports whether a signature has the spelling a bundle uses.
func IsLowS(sig []byte) bool {
	return len(sig) == SignatureSize && new(big.Int).SetBytes(sig[SignatureSize/2:]).Cmp(halfOrder) <= 0
}
