package verify

import (
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger/witness"
)

// Policy is what a reader trusts and asks for. The zero value trusts nobody.
type Policy struct {
	Trust         Trust
	Require       Level           // empty: Authentic
	AllowWithheld []bundle.Class  // what may be missing, with what bundle.WithThem adds
	Kept          []byte          // note of a checkpoint of the ledger that the reader kept; nil: none
	Witnesses     *witness.Policy // whose cosignatures Kept must have; nil: none are asked for
}

// Trust is whom a reader trusts: a ledger, a bundle key alone, or nobody.
type Trust struct {
	identity *bundle.Identity
	key      []byte // DER SubjectPublicKeyInfo
}

// TrustLedger trusts a ledger by its genesis.
func TrustLedger(i bundle.Identity) Trust { return Trust{identity: &i, key: i.Bundle} }

// TrustKey trusts a bundle key. What it signed speaks for the ledger, its checkpoint key included.
func TrustKey(spki []byte) Trust { return Trust{key: spki} }

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
	return slices.Contains(bundle.WithThem(p.AllowWithheld), c)
}

// signs reports whether the trusted key itself has this ID.
func (t Trust) signs(kid evidence.KeyID) bool { return !t.None() && evidence.KeyIDOf(t.key) == kid }
