package evidence

import (
	"encoding/hex"
	"fmt"
	"regexp"
)

// Identifiers people choose: 1..63 bytes of [a-z0-9._-], starting with a letter or digit.
type (
	AttemptID string // one run of one command under one recipe
	ChangeID  string // one proposed change
	PolicyID  string // one policy, with its epoch
)

var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

func parseID[T ~string](kind, s string) (T, error) {
	if !idPattern.MatchString(s) {
		return "", fmt.Errorf("%s ID %q is not 1 to %d of a-z 0-9 . _ - starting with a letter or digit", kind, s, MaxID)
	}
	return T(s), nil
}

func ParseAttemptID(s string) (AttemptID, error) { return parseID[AttemptID]("attempt", s) }
func ParseChangeID(s string) (ChangeID, error)   { return parseID[ChangeID]("change", s) }
func ParsePolicyID(s string) (PolicyID, error)   { return parseID[PolicyID]("policy", s) }

// ProbePrefix begins the ID of an attempt that is baildock's own probe of a runtime; a nonce's text
// form follows it.
const ProbePrefix = "probe-"

// ProbeID is the ID of a probe.
func ProbeID(n Nonce) AttemptID { return AttemptID(ProbePrefix + n.String()) }

// Nonce is 128 random bits. Its text form is 32 lower-case hex digits.
type Nonce [16]byte

func (n Nonce) String() string { return hex.EncodeToString(n[:]) }

// MarshalText writes the text form; JSON uses it.
func (n Nonce) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads the text form.
func (n *Nonce) UnmarshalText(b []byte) error {
	if len(b) != 2*len(n) {
		return fmt.Errorf("%q is not 32 hex digits", b)
	}
	if _, err := hex.Decode(n[:], b); err != nil {
		return fmt.Errorf("%q is not 32 hex digits", b)
	}
	return nil
}

type (
	RepositoryID = Nonce // random, given by ChangeOpened; binds attempts of one repository
	LedgerID     = Nonce // random, given by LedgerOpened
	HomeID       = Nonce // random, given by init; tells a home from its copy together with its inode
	HandleKey    = Nonce // names one custody; every later custody event carries it
)

// Streams of the product. Anything else belongs to users.
const (
	LedgerStream  = "ledger"
	AttemptPrefix = "attempt-"
	ChangePrefix  = "change-"
	PolicyPrefix  = "policy-"
	RuntimePrefix = "runtime-"
	TrialPrefix   = "trial-"
)

// DefaultPolicy is opened by init and named by contexts that name no other.
const DefaultPolicy PolicyID = "main"
