package evidence

// Capability and evidence kinds a context may ask for.
const (
	CapabilityCommand = "checks.command/v1"
	EvidenceCommand   = "command/v1"
	EvidencePaths     = "source-paths/v1"
)

// RequiredEvidence is one kind of evidence a context requires and the digest it must have: the
// recipe's for command/v1, the path policy's for source-paths/v1.
type RequiredEvidence struct {
	Kind   string      `cbor:"1,keyasint" json:"kind"`
	Digest PlainDigest `cbor:"2,keyasint" json:"digest"`
}

// Context says what must be shown before one version of a change may be admitted (req H1).
type Context struct {
	Version          uint               `cbor:"1,keyasint" json:"version"` // 1
	Revision         string             `cbor:"2,keyasint" json:"revision"`
	Capabilities     []string           `cbor:"3,keyasint" json:"capabilities"`
	Required         []RequiredEvidence `cbor:"4,keyasint" json:"required"`
	Toolchain        *ToolchainDigest   `cbor:"5,keyasint,omitempty" json:"toolchain,omitempty"`
	Environment      EnvironmentDigest  `cbor:"6,keyasint" json:"environment"`
	Policy           PolicyID           `cbor:"7,keyasint" json:"policy"`
	Epoch            uint64             `cbor:"8,keyasint" json:"epoch"` // from 1
	Reductions       []Reduction        `cbor:"9,keyasint" json:"reductions"`
	RequireQualified bool               `cbor:"10,keyasint,omitempty" json:"require_qualified,omitempty"`
	AllowPaths       []string           `cbor:"11,keyasint,omitempty" json:"allow_paths,omitempty"`
}

// Digest is the SHA-256 of the canonical context.
func (c Context) Digest() ContextDigest { return Sum[contextMeaning](Marshal(c)) }
