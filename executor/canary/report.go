package canary

import (
	"fmt"

	"github.com/baildock/baildock/evidence"
)

// Report is what the program saw, step by step.
type Report struct {
	Version uint                `cbor:"1,keyasint" json:"version"` // 1
	Canary  evidence.CanaryName `cbor:"2,keyasint" json:"canary"`
	Steps   []Seen              `cbor:"3,keyasint" json:"steps"`
}

// Seen is what came of one step. Errno is the error's name, empty where there was none, and `errno NUMBER` where
// it has no name here; a failure that is no error of the kernel's is `EUNKNOWN`.
type Seen struct {
	Action Action `cbor:"1,keyasint" json:"action"`
	On     string `cbor:"2,keyasint,omitempty" json:"on,omitempty"`
	Errno  string `cbor:"3,keyasint,omitempty" json:"errno,omitempty"`
	Value  string `cbor:"4,keyasint,omitempty" json:"value,omitempty"`
}

// ParseReport reads exactly one report in its one spelling.
func ParseReport(b []byte) (Report, error) {
	if len(b) > maxReport {
		return Report{}, fmt.Errorf("a report of %d bytes exceeds %d", len(b), maxReport)
	}
	var r Report
	if err := evidence.Unmarshal(b, &r); err != nil {
		return Report{}, fmt.Errorf("canary report: %w", err)
	}
	if r.Version != 1 {
		return Report{}, fmt.Errorf("canary report version %d is not 1", r.Version)
	}
	return r, nil
}
