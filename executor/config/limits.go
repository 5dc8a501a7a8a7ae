package config

import "time"

// Limits of the file as YAML.
const (
	MaxFile   = 128 << 10 // bytes; full lists of patterns and a full environment fit twice
	MaxDepth  = 8         // nested lists and mappings; the shape needs four
	MaxNodes  = 4096      // keys and values together
	MaxErrors = 32        // reasons given for one refusal
	maxShown  = 64        // bytes of a refused text that an error repeats
)

// Ranges of what one run may use (req L1, L2), both ends allowed.
const (
	MinNanoCPUs = 100_000_000   // 0.1 cores
	MaxNanoCPUs = 8_000_000_000 // 8 cores
	MinMemory   = 64 << 20      // bytes
	MaxMemory   = 16 << 30
	MinPIDs     = 16
	MaxPIDs     = 4096
	MinTmpfs    = 64 << 10 // bytes
	MaxTmpfs    = 4 << 30
	MinTimeout  = time.Second
	MaxTimeout  = 6 * time.Hour
	MinOutput   = 256 // bytes, as for every other run
	MaxOutput   = 16 << 20
	MaxUserID   = 1<<31 - 1 // the daemon takes no larger UID or GID
)

// Bounds of the environment (req L3).
const (
	MaxVariables    = 32
	MaxVariableName = 64       // bytes
	MaxValue        = 4096     // characters
	MaxEnvironment  = 16 << 10 // bytes of names and values together
)

// Other texts.
const (
	MaxImage    = 512  // bytes of an image reference
	MaxHostPath = 4096 // bytes
)
