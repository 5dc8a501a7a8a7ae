package evidence

import "time"

// Codec limits.
const (
	MaxValue    = 16 << 20 // one canonical value; the largest is a manifest of 10,000 entries
	MaxNesting  = 8        // deepest structure is a record's list of maps of references
	MaxElements = 131072   // entries of one list or map; above the manifest's bound
)

// Text limits of a recipe (req A5).
const (
	MaxArgs     = 64
	MaxArgBytes = 16 << 10 // all arguments together
	MaxEnv      = 32
	MaxEnvBytes = 16 << 10 // all names and values together
)

// Text limits of events.
const (
	MaxID     = 63  // identifiers people choose
	MaxCode   = 64  // reason codes
	MaxActor  = 128 // who wrote an event
	MaxName   = 128 // names of daemon objects
	MaxBasis  = 8   // streams one judgement may rest on
	MaxOrigin = 255 // a ledger's origin line
	MaxKey    = 256 // a DER public key; P-256 needs 91, Ed25519 44
	MaxGlobs  = 64  // allowed paths of one context
	MaxGlob   = 256 // bytes of one of them

	MaxTouched = 20_000 // paths one check compares: both sides of a snapshot of the largest size
	MaxRelied  = 4      // attempts one decision rests on
	MaxGrounds = 64     // rules of one decision; all of them are fewer
)

// Bounds of the `command/v1` profile (req A7). Both ends are allowed.
const (
	MinWall     = time.Millisecond
	MaxWall     = 5 * time.Minute
	MinOutput   = 256
	MaxOutput   = 1 << 20
	MinMemory   = 16 << 20
	MaxMemory   = 4 << 30
	MinScratch  = 1 << 20
	MaxScratch  = 1 << 30
	MinPIDs     = 1
	MaxPIDs     = 256
	MinNanoCPUs = 100_000_000   // 0.1 core
	MaxNanoCPUs = 4_000_000_000 // 4 cores
)
