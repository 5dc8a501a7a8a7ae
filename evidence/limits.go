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

	MaxCanaries = 128 // of one corpus; a context holds one

	MaxEnvName   = 64  // name of an entry whose value is only committed to
	MaxReference = 512 // a configured image reference
	MaxChecks    = 64  // checks of one preflight, or of one workspace policy
	MaxHostID    = 1<<31 - 1

	MaxCommitted = 4096 // characters of one committed value
)

// commandRanges are the bounds of `command/v1` (req A7). Both ends are allowed.
var commandRanges = LimitRanges{
	Wall:     Range{uint64(time.Millisecond), uint64(5 * time.Minute)},
	Output:   Range{256, 1 << 20},
	Memory:   Range{16 << 20, 4 << 30},
	Scratch:  Range{1 << 20, 1 << 30},
	PIDs:     Range{1, 256},
	NanoCPUs: Range{100_000_000, 4_000_000_000}, // 0.1 to 4 cores
}

// containedRanges are the bounds of `contained/v1` (req L1, L2). Both ends are allowed.
var containedRanges = LimitRanges{
	Wall:     Range{uint64(time.Second), uint64(6 * time.Hour)},
	Output:   Range{256, 16 << 20},
	Memory:   Range{64 << 20, 16 << 30},
	Scratch:  Range{64 << 10, 4 << 30},
	PIDs:     Range{16, 4096},
	NanoCPUs: Range{100_000_000, 8_000_000_000}, // 0.1 to 8 cores
}
