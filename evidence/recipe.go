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
	Executable  string            `cbor:"4,keyasint" json:"executable"` // absolute and clean; in contained/v1 also a bare name
	Args        []string          `cbor:"5,keyasint" json:"args"`       // after the executable
	Environment EnvironmentDigest `cbor:"6,keyasint" json:"environment"`
	Toolchain   *ToolchainDigest  `cbor:"7,keyasint,omitempty" json:"toolchain,omitempty"`
	Limits      Limits            `cbor:"8,keyasint" json:"limits"`
	Nonce       *Nonce            `cbor:"9,keyasint,omitempty" json:"nonce,omitempty"`      // keeps the digest unguessable
	Contained   *ContainedTerms   `cbor:"10,keyasint,omitempty" json:"contained,omitempty"` // of contained/v1, and of no other profile
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
	table, err := r.Table()
	if err != nil {
		return err
	}
	if err := r.checkTerms(); err != nil {
		return err
	}
	if r.Image.IsZero() {
		return fmt.Errorf("recipe names no image")
	}
	if err := r.checkExecutable(); err != nil {
		return err
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
	return r.Limits.Check(table)
}

// checkExecutable wants an absolute, clean path. In contained/v1, whose PATH is fixed by its table, a
// bare name will do: the image's own files decide what it stands for, and the image is pinned.
func (r Recipe) checkExecutable() error {
	if r.Profile == ProfileContained && !strings.Contains(r.Executable, "/") && CheckComponent(r.Executable) == nil {
		return nil
	}
	if !path.IsAbs(r.Executable) || path.Clean(r.Executable) != r.Executable || r.Executable == "/" {
		return fmt.Errorf("executable %q is not an absolute, clean path", r.Executable)
	}
	return nil
}

// Range is what a limit may be. Both ends are allowed.
type Range struct {
	Min uint64 `cbor:"1,keyasint" json:"min"`
	Max uint64 `cbor:"2,keyasint" json:"max"`
}

// LimitRanges says what each of Limits may be, in the same units.
type LimitRanges struct {
	Wall     Range `cbor:"1,keyasint" json:"wall_ns"`
	Output   Range `cbor:"2,keyasint" json:"output"`
	Memory   Range `cbor:"3,keyasint" json:"memory"`
	Scratch  Range `cbor:"4,keyasint" json:"scratch"`
	PIDs     Range `cbor:"5,keyasint" json:"pids"`
	NanoCPUs Range `cbor:"6,keyasint" json:"nano_cpus"`
}

// Ranges says what limits a recipe may have under the table.
func (p Profile) Ranges() LimitRanges {
	if p.Limits != nil {
		return *p.Limits
	}
	return commandRanges
}

// Check refuses limits outside the ranges of a profile's table, naming the range.
func (l Limits) Check(p Profile) error {
	in := p.Ranges()
	if l.Wall < time.Duration(in.Wall.Min) || l.Wall > time.Duration(in.Wall.Max) {
		return fmt.Errorf("wall time %v is outside %v to %v", l.Wall, time.Duration(in.Wall.Min), time.Duration(in.Wall.Max))
	}
	for _, b := range []struct {
		name string
		got  uint64
		in   Range
		unit string
	}{
		{"output limit", l.Output, in.Output, "bytes"},
		{"memory", l.Memory, in.Memory, "bytes"},
		{"scratch", l.Scratch, in.Scratch, "bytes"},
		{"processes", l.PIDs, in.PIDs, "processes"},
		{"CPU rate", l.NanoCPUs, in.NanoCPUs, "billionths of a core"},
	} {
		if b.got < b.in.Min || b.got > b.in.Max {
			return fmt.Errorf("%s %d is outside %d to %d %s", b.name, b.got, b.in.Min, b.in.Max, b.unit)
		}
	}
	return nil
}
