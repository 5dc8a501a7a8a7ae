package config

import (
	"github.com/baildock/baildock/evidence"
)

// Config is a contained run as its file asks for it, defaults filled in (req L1). What the file may
// only say in one way (no privileges, no sockets, no devices, no host namespaces, evidence outside
// the copy) has no field.
type Config struct {
	Image       Image
	Platform    evidence.Platform
	Network     evidence.Network
	UID, GID    uint32 // from 1
	Limits      evidence.Limits
	Writable    evidence.WritablePaths // what the agent may write to in its copy
	Environment []Variable             // in the file's order
	Policy      *evidence.WorkspacePolicy
}

// Source says where a variable's value comes from.
type Source string

const (
	SourceLiteral Source = "literal" // the file
	SourceHost    Source = "host"    // exactly the variable of that name where baildock runs
)

// Variable is one entry of the environment list (req L3).
type Variable struct {
	Name      string
	Source    Source
	Value     Value // of a literal; zero for the host's
	Required  bool  // a host's variable must be set
	Sensitive bool  // marked so, or named like a secret: redacted from everything that is kept
	Allowed   bool  // allow_sensitive

	path string
}

// Value is the value of a variable. It prints as a marker; only Reveal shows it.
type Value struct{ s string }

// Reveal returns the value itself, for the one place that hands it to the container.
func (v Value) Reveal() string { return v.s }

func (v Value) String() string   { return hidden }
func (v Value) GoString() string { return hidden }

// MarshalText keeps encoders from showing it.
func (v Value) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Fixed are the variables every contained run gets, sorted by name; a file can't change them (req L4).
func Fixed() []evidence.EnvVar {
	profile, err := evidence.ProfileByName(evidence.ProfileContained)
	if err != nil {
		panic(err) // built in
	}
	return profile.Environment
}
