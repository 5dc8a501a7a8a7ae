package verify

import (
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger/witness"
)

// Policy is what a reader trusts and asks for. The zero value trusts nobody and asks that nothing fails.
type Policy struct {
	Trust          Trust
	Require        Level                // empty: Authentic
	Claim          evidence.Claim       // the least that every judged attempt must claim: ClaimReduced or ClaimFull; empty: any
	Reductions     []evidence.Reduction // with ClaimReduced: the only ones accepted; nil: all
	RequiredChecks []string             // names of Checks that must pass, also where leaving one out would be no fault
	AllowWithheld  []bundle.Class       // what may be missing, with what bundle.WithThem adds
	Kept           []byte               // note of a checkpoint of the ledger that the reader kept; nil: none
	Witnesses      *witness.Policy      // whose cosignatures Kept must have; nil: none are asked for
}

// Trust is whom a reader trusts: a ledger, a bundle key alone, any of several, or nobody.
type Trust struct {
	identity *bundle.Identity
	key      []byte  // DER SubjectPublicKeyInfo
	others   []Trust // of TrustAny, behind the first
}

// TrustLedger trusts a ledger by its genesis.
func TrustLedger(i bundle.Identity) Trust { return Trust{identity: &i, key: i.Bundle} }

// TrustKey trusts a bundle key. What it signed speaks for the ledger, its checkpoint key included.
func TrustKey(spki []byte) Trust { return Trust{key: spki} }

// TrustAny trusts each of several; a bundle is verified under one of them alone. It is nobody without any.
func TrustAny(trusted ...Trust) Trust {
	if len(trusted) == 0 {
		return Trust{}
	}
	var all []Trust
	for _, t := range trusted {
		others := t.others
		t.others = nil
		all = append(append(all, t), others...)
	}
	first := all[0]
	if len(all) > 1 {
		first.others = all[1:]
	}
	return first
}

// each is every one that is trusted, by itself. Those whose own key signed a bundle come first, then those
// whose name it bears. That order only saves work: each is held to the same rules.
func (t Trust) each(p bundle.Protected) []Trust {
	first := t
	first.others = nil
	all := append([]Trust{first}, t.others...)
	rank := func(t Trust) int {
		switch {
		case t.signs(p.KeyID):
			return 0
		case t.identity != nil && t.identity.Origin == p.Claims.Issuer:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b Trust) int { return rank(a) - rank(b) })
	return all
}

// ParseTrust reads a ledger.pub, or a bare PEM block of a bundle key.
func ParseTrust(text []byte) (Trust, error) {
	if bundle.IsIdentity(text) {
		i, err := bundle.ParseIdentity(text)
		if err != nil {
			return Trust{}, err
		}
		return TrustLedger(i), nil
	}
	spki, err := bundle.ParseKey(text)
	if err != nil {
		return Trust{}, err
	}
	return TrustKey(spki), nil
}

// None reports whether nobody is trusted.
func (t Trust) None() bool { return len(t.key) == 0 }

// Level is what a reader asks of a bundle beyond being consistent. Each includes the ones before.
type Level string

const (
	Authentic Level = "authentic" // every check that isn't excused passes
	Success   Level = "success"   // and every judged attempt succeeded
	Admitted  Level = "admitted"  // and a valid approval admits it
	Full      Level = "full"      // and nothing is withheld or unchecked, absent witnesses apart
)

// Levels lists the levels, weakest first.
func Levels() []Level { return []Level{Authentic, Success, Admitted, Full} }

// ParseLevel refuses anything else.
func ParseLevel(s string) (Level, error) {
	if l := Level(s); slices.Contains(Levels(), l) {
		return l, nil
	}
	return "", fmt.Errorf("level %q is none of %v", s, Levels())
}

// allows reports whether a blob of a class may be missing.
func (p Policy) allows(c bundle.Class) bool {
	// Salts of a committed environment are shown only where they are named, and no check needs them.
	return c == bundle.ClassSalts || slices.Contains(bundle.WithThem(p.AllowWithheld), c)
}

// signs reports whether the trusted key itself has this ID.
func (t Trust) signs(kid evidence.KeyID) bool { return !t.None() && evidence.KeyIDOf(t.key) == kid }
