package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Digest is a SHA-256 with a meaning M, so that a recipe's digest can't stand for a record's.
// Its text form is `sha256:` and 64 lower-case hex digits; in CBOR it is a 32-byte string.
type Digest[M any] [sha256.Size]byte

type (
	recipeMeaning      struct{}
	environmentMeaning struct{}
	toolchainMeaning   struct{}
	profileMeaning     struct{}
	requestMeaning     struct{}
	contextMeaning     struct{}
	recordMeaning      struct{}
	runtimeMeaning     struct{}
	factsMeaning       struct{}
	imageMeaning       struct{}
	containerMeaning   struct{}
	saltedMeaning      struct{}
	descriptorMeaning  struct{}
	plainMeaning       struct{}
	leafMeaning        struct{}
	machineMeaning     struct{}
	manifestMeaning    struct{}
	workspaceMeaning   struct{}
	mutationsMeaning   struct{}
	wsPolicyMeaning    struct{}
	corpusMeaning      struct{}
)

type (
	RecipeDigest      = Digest[recipeMeaning]      // canonical recipe (req A2)
	EnvironmentDigest = Digest[environmentMeaning] // canonical recipe environment (req A4)
	ToolchainDigest   = Digest[toolchainMeaning]   // bound, never discovered (req A8)
	ProfileDigest     = Digest[profileMeaning]     // a profile's table (req C0)
	RequestDigest     = Digest[requestMeaning]     // one execution request (req A3)
	ContextDigest     = Digest[contextMeaning]     // canonical context of a change version
	RecordDigest      = Digest[recordMeaning]      // canonical record of a finished attempt
	RuntimeDigest     = Digest[runtimeMeaning]     // engine ID, machine ID and build: names a runtime stream
	FactsDigest       = Digest[factsMeaning]       // selected facts a daemon reports
	ImageID           = Digest[imageMeaning]       // the daemon's immutable image ID
	ContainerID       = Digest[containerMeaning]   // the daemon's full container ID
	SaltedDigest      = Digest[saltedMeaning]      // SHA-256(salt32 ‖ bytes)
	DescriptorDigest  = Digest[descriptorMeaning]  // canonical Descriptor, which holds its salt
	PlainDigest       = Digest[plainMeaning]       // SHA-256 of bytes, only where withholding is moot
	LeafDigest        = Digest[leafMeaning]        // leaf hash of a ledger event
	MachineID         = Digest[machineMeaning]     // SHA-256(domain ‖ /etc/machine-id): same machine, not linkable
	ManifestDigest    = Digest[manifestMeaning]    // canonical manifest of a source tree (req B5)

	CorpusDigest = Digest[corpusMeaning] // canonical corpus of canaries (req H7)

	WorkspaceDigest       = Digest[workspaceMeaning] // canonical manifest of a workspace (req O1)
	MutationsDigest       = Digest[mutationsMeaning] // canonical list of what changed in a workspace (req O5)
	WorkspacePolicyDigest = Digest[wsPolicyMeaning]  // canonical policy over what changed (req N7)
)

func (d Digest[M]) String() string { return "sha256:" + d.Hex() }

// Hex returns the 64 digits alone.
func (d Digest[M]) Hex() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the text form; JSON uses it.
func (d Digest[M]) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the text form.
func (d *Digest[M]) UnmarshalText(b []byte) error {
	p, err := ParseDigest[M](string(b))
	if err == nil {
		*d = p
	}
	return err
}

// IsZero reports whether no digest was set.
func (d Digest[M]) IsZero() bool { return d == Digest[M]{} }

// ParseDigest reads the text form, with or without the `sha256:` prefix.
func ParseDigest[M any](s string) (Digest[M], error) {
	var d Digest[M]
	h := strings.TrimPrefix(s, "sha256:")
	if len(h) != 2*len(d) || strings.ToLower(h) != h {
		return d, fmt.Errorf("digest %q is not sha256: and 64 lower-case hex digits", s)
	}
	if _, err := hex.Decode(d[:], []byte(h)); err != nil {
		return d, fmt.Errorf("digest %q is not hexadecimal", s)
	}
	return d, nil
}

// Sum hashes canonical bytes to a digest of meaning M.
func Sum[M any](b []byte) Digest[M] { return sha256.Sum256(b) }
