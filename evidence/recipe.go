package evidence

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// Limits bounds one run. Zero is never a default here: loaders fill defaults in.
type Limits struct {
	Wall     time.Duration `cbor:"1,keyasint" json:"wall_ns"`   // ns, from the daemon's start reply
	Output   uint64        `cbor:"2,keyasint" json:"output"`    // retained bytes, stdout and stderr together
	Memory   uint64        `cbor:"3,keyasint" json:"memory"`    // bytes, memory = memory + swap
	Scratch  uint64        `cbor:"4,keyasint" json:"scratch"`   // bytes of the writable tmpfs
	PIDs     uint64        `cbor:"5,keyasint" json:"pids"`      // processes and threads
	NanoCPUs uint64        `cbor:"6,keyasint" json:"nano_cpus"` // 10⁹ = one core
}

// Recipe fixes everything that decides how a command runs (req A1). Nothing else influences it.
type Recipe struct {
	Version     uint              `cbor:"1,keyasint" json:"version"` // 1
	Profile     ProfileName       `cbor:"2,keyasint" json:"profile"`
	Image       ImageID           `cbor:"3,keyasint" json:"image"`
	Executable  string            `cbor:"4,keyasint" json:"executable"` // absolute and clean
	Args        []string          `cbor:"5,keyasint" json:"args"`       // after the executable
	Environment EnvironmentDigest `cbor:"6,keyasint" json:"environment"`
	Toolchain   *ToolchainDigest  `cbor:"7,keyasint,omitempty" json:"toolchain,omitempty"`
	Limits      Limits            `cbor:"8,keyasint" json:"limits"`
	Nonce       *Nonce            `cbor:"9,keyasint,omitempty" json:"nonce,omitempty"` // keeps the digest unguessable
}

// Digest is the SHA-256 of the canonical recipe (req A2).
func (r Recipe) Digest() RecipeDigest { return Sum[recipeMeaning](Marshal(r)) }

// Argv is the executable followed by its arguments.
func (r Recipe) Argv() []string { return append([]string{r.Executable}, r.Args...) }

// ParseRecipe decodes a canonical recipe and checks it.
func ParseRecipe(b []byte) (Recipe, error) {
	var r Recipe
	if err := Unmarshal(b, &r); err != nil {
		return Recipe{}, fmt.Errorf("recipe: %w", err)
	}
	if err := r.Check(); err != nil {
		return Recipe{}, err
	}
	return r, nil
}

// Check refuses a recipe outside the shapes and bounds of its profile (req A1, A5, A7).
func (r Recipe) Check() error {
	if r.Version != 1 {
		return fmt.Errorf("recipe version %d is not 1", r.Version)
	}
	if _, err := ProfileByName(r.Profile); err != nil {
		return err
	}
	if r.Image.IsZero() {
		return fmt.Errorf("recipe names no image")
	}
	if !path.IsAbs(r.Executable) || path.Clean(r.Executable) != r.Executable || r.Executable == "/" {
		return fmt.Errorf("executable %q is not an absolute, clean path", r.Executable)
	}
	if len(r.Args)+1 > MaxArgs {
		return fmt.Errorf("command has %d arguments with its executable; at most %d are allowed", len(r.Args)+1, MaxArgs)
	}
	total := 0
	for _, a := range r.Argv() {
		if strings.ContainsRune(a, 0) {
			return fmt.Errorf("argument %q holds a NUL byte", a)
		}
		total += len(a)
	}
	if total > MaxArgBytes {
		return fmt.Errorf("argument text is %d bytes; at most %d are allowed", total, MaxArgBytes)
	}
	return r.Limits.Check()
}

// Check refuses limits outside the `command/v1` ranges, naming the range.
func (l Limits) Check() error {
	if l.Wall < MinWall || l.Wall > MaxWall {
		return fmt.Errorf("wall time %v is outside %v to %v", l.Wall, MinWall, MaxWall)
	}
	for _, b := range []struct {
		name          string
		got, min, max uint64
		unit          string
	}{
		{"output limit", l.Output, MinOutput, MaxOutput, "bytes"},
		{"memory", l.Memory, MinMemory, MaxMemory, "bytes"},
		{"scratch", l.Scratch, MinScratch, MaxScratch, "bytes"},
		{"processes", l.PIDs, MinPIDs, MaxPIDs, "processes"},
		{"CPU rate", l.NanoCPUs, MinNanoCPUs, MaxNanoCPUs, "billionths of a core"},
	} {
		if b.got < b.min || b.got > b.max {
			return fmt.Errorf("%s %d is outside %d to %d %s", b.name, b.got, b.min, b.max, b.unit)
		}
	}
	return nil
}
