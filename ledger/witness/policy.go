package witness

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"github.com/baildock/baildock/ledger"
)

// Policy says whose cosignatures count and how many there must be. The zero Policy is no policy:
// Check refuses it.
type Policy struct {
	Witnesses []Key // no two of one name or one key
	Quorum    int   // 1..len(Witnesses)
}

// Cosignature is a believed cosigner's word for having seen a checkpoint.
type Cosignature struct {
	Name string
	Time time.Time // the cosigner's clock, in whole seconds
}

// QuorumError says that too few of the policy's witnesses cosigned.
type QuorumError struct {
	Have, Want int
}

func (e *QuorumError) Error() string {
	return fmt.Sprintf("%d of the policy's witnesses cosigned the checkpoint; %d are required", e.Have, e.Want)
}

const policyHeader = "baildock-witness-policy/v1"

// check refuses a policy that can't be met or would count one witness twice.
func (p Policy) check() error {
	if len(p.Witnesses) == 0 || len(p.Witnesses) > MaxWitnesses {
		return fmt.Errorf("witness policy names %d witnesses; 1 to %d are allowed", len(p.Witnesses), MaxWitnesses)
	}
	if p.Quorum < 1 || p.Quorum > len(p.Witnesses) {
		return fmt.Errorf("witness policy requires %d of %d witnesses", p.Quorum, len(p.Witnesses))
	}
	for i, a := range p.Witnesses {
		for _, b := range p.Witnesses[:i] {
			if a.name == b.name || a.public.Equal(b.public) {
				return fmt.Errorf("witness policy counts %q twice, as %q and as %q", a.name, b.name, a.name)
			}
		}
	}
	return nil
}

// IsPolicy reports whether a text claims to be a witness policy.
func IsPolicy(text []byte) bool {
	for l := range strings.Lines(string(text)) {
		if !strings.HasPrefix(l, "#") {
			return strings.TrimSuffix(l, "\n") == policyHeader
		}
	}
	return false
}

// ParsePolicy reads a policy's text.
func ParsePolicy(text []byte) (Policy, error) {
	if len(text) > MaxPolicy {
		return Policy{}, fmt.Errorf("witness policy has %d bytes; at most %d are allowed", len(text), MaxPolicy)
	}
	var lines []string
	for _, l := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if !strings.HasPrefix(l, "#") {
			lines = append(lines, l)
		}
	}
	if len(lines) < 2 || lines[0] != policyHeader {
		return Policy{}, fmt.Errorf("witness policy doesn't start with the line %q, then quorum and witnesses", policyHeader)
	}
	quorum, ok := strings.CutPrefix(lines[1], "quorum: ")
	n, err := strconv.Atoi(quorum)
	if !ok || err != nil || strconv.Itoa(n) != quorum {
		return Policy{}, errors.New("witness policy: the second line must be `quorum: ` and a number")
	}
	p := Policy{Quorum: n}
	for _, l := range lines[2:] {
		vkey, ok := strings.CutPrefix(l, "witness: ")
		if !ok {
			return Policy{}, fmt.Errorf("witness policy: line %q is no `witness: ` and key", l)
		}
		k, err := ParseKey(vkey)
		if err != nil {
			return Policy{}, fmt.Errorf("witness policy: %w", err)
		}
		p.Witnesses = append(p.Witnesses, k)
	}
	return p, p.check()
}

// Format returns the policy's text.
func (p Policy) Format() (string, error) {
	if err := p.check(); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nquorum: %d\n", policyHeader, p.Quorum)
	for _, k := range p.Witnesses {
		fmt.Fprintf(&b, "witness: %s\n", k)
	}
	return b.String(), nil
}

// Check opens a checkpoint under its ledger's keys and counts the cosignatures of the policy's
// witnesses. Those found are returned also with *QuorumError. It fails as ledger.OpenCheckpoint
// does, and when a believed witness's signature doesn't hold.
func (p Policy) Check(msg []byte, origin string, keys note.Verifiers) (ledger.Checkpoint, []Cosignature, error) {
	if err := p.check(); err != nil {
		return ledger.Checkpoint{}, nil, err
	}
	cp, err := ledger.OpenCheckpoint(msg, origin, keys)
	if err != nil {
		return ledger.Checkpoint{}, nil, err
	}
	var verifiers []note.Verifier
	for _, k := range p.Witnesses {
		// The ledger's own name would make its own word look like another's.
		if k.name == origin {
			return ledger.Checkpoint{}, nil, fmt.Errorf("witness %q is the ledger itself; it can't witness its own checkpoints", k.name)
		}
		v, err := k.verifier()
		if err != nil {
			return ledger.Checkpoint{}, nil, err
		}
		verifiers = append(verifiers, v)
	}
	// A pass of its own: nobody's key counts in two roles.
	n, err := note.Open(msg, note.VerifierList(verifiers...))
	var none *note.UnverifiedNoteError
	if errors.As(err, &none) {
		return cp, nil, &QuorumError{Want: p.Quorum}
	}
	if err != nil {
		return ledger.Checkpoint{}, nil, fmt.Errorf("cosignatures: %w", err)
	}
	var seen []Cosignature
	for _, s := range n.Sigs { // one a key: the note package leaves out repetitions
		at, err := formats.CoSigV1Timestamp(s)
		if err != nil {
			return ledger.Checkpoint{}, nil, fmt.Errorf("cosignature of %q: %w", s.Name, err)
		}
		seen = append(seen, Cosignature{Name: s.Name, Time: at.UTC()})
	}
	if len(seen) < p.Quorum {
		return cp, seen, &QuorumError{Have: len(seen), Want: p.Quorum}
	}
	return cp, seen, nil
}
