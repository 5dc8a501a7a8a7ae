package evidence

import (
	"fmt"
	"strings"
)

// CanaryName names one canary: lower-case words joined by `-` or `.`.
type CanaryName string

// ParseCanaryName refuses anything but 1 to MaxID lower-case letters, digits, `-` and `.`, beginning with
// a letter.
func ParseCanaryName(s string) (CanaryName, error) {
	if s == "" || len(s) > MaxID || s[0] < 'a' || s[0] > 'z' || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
		return "", fmt.Errorf("canary name %q is not 1 to %d of a-z, 0-9, - and ., beginning with a letter", s, MaxID)
	}
	return CanaryName(s), nil
}

// Canary is one try of a corpus.
type Canary struct {
	Name    CanaryName `cbor:"1,keyasint" json:"name"`
	Outcome Outcome    `cbor:"2,keyasint" json:"outcome"`                     // what its attempt must come to
	Lacking bool       `cbor:"3,keyasint,omitempty" json:"lacking,omitempty"` // a kernel may lack what it tries
}

// Corpus is every canary that must bear a runtime out before it counts as qualified.
type Corpus struct {
	Version    uint        `cbor:"1,keyasint" json:"version"`    // 1
	Canaries   []Canary    `cbor:"2,keyasint" json:"canaries"`   // sorted by name
	Definition PlainDigest `cbor:"3,keyasint" json:"definition"` // of what each tries and must see
}

// Digest is the SHA-256 of the canonical corpus.
func (c Corpus) Digest() CorpusDigest { return Sum[corpusMeaning](Marshal(c)) }

// Check refuses a corpus of no legal shape. An empty one would qualify everything.
func (c Corpus) Check() error {
	if c.Version != 1 {
		return fmt.Errorf("corpus version %d is not 1", c.Version)
	}
	if len(c.Canaries) == 0 || len(c.Canaries) > MaxCanaries {
		return fmt.Errorf("a corpus of %d canaries; 1 to %d are allowed", len(c.Canaries), MaxCanaries)
	}
	if !sortedUnique(c.Canaries, func(c Canary) string { return string(c.Name) }) {
		return fmt.Errorf("the corpus's canaries are not sorted or repeat")
	}
	for _, x := range c.Canaries {
		if _, err := ParseCanaryName(string(x.Name)); err != nil {
			return err
		}
		switch x.Outcome {
		case OutcomeSuccess, OutcomeFailed, OutcomeTimedOut, OutcomeOutputLimit, OutcomeIncomplete:
		default:
			return fmt.Errorf("canary %s must come to %q, which shows nothing", x.Name, x.Outcome)
		}
	}
	return nil
}
