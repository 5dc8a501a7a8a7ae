package evidence

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// EnvCommitment is an entry whose value is nowhere kept: a salted digest that an auditor can open
// with the value and its salt (req L5).
type EnvCommitment struct {
	Name  string       `cbor:"1,keyasint" json:"name"`
	Value SaltedDigest `cbor:"2,keyasint" json:"value"` // SHA-256(salt32 ‖ value)
}

// EnvOpening is what opens one commitment. It lives in memory; only its salt is ever kept, apart.
type EnvOpening struct {
	Name  string
	Value string
	Salt  Salt
}

// String keeps the value out of whatever prints an opening.
func (o EnvOpening) String() string { return o.Name + "=(withheld)" }

// GoString is String.
func (o EnvOpening) GoString() string { return o.String() }

// EnvSalt opens one commitment to whoever knows the value. The list of them, sorted by name, is the
// blob that AttemptRegistered names.
type EnvSalt struct {
	Name string `cbor:"1,keyasint" json:"name"`
	Salt Salt   `cbor:"2,keyasint" json:"salt"`
}

// CommitEnv makes the environment and the salts of a contained run out of its openings, in any order.
func CommitEnv(nonce *Nonce, openings []EnvOpening) (Environment, []EnvSalt, error) {
	e := Environment{Version: 1, Nonce: nonce, Vars: []EnvVar{}}
	sorted := slices.Clone(openings)
	slices.SortFunc(sorted, func(a, b EnvOpening) int { return strings.Compare(a.Name, b.Name) })
	total := 0
	var salts []EnvSalt
	for _, o := range sorted {
		if err := checkCommittedValue(o.Value); err != nil {
			return Environment{}, nil, fmt.Errorf("environment value of %s %w", o.Name, err)
		}
		total += len(o.Name) + len(o.Value)
		e.Committed = append(e.Committed, EnvCommitment{Name: o.Name, Value: SaltedSum(o.Salt, []byte(o.Value))})
		salts = append(salts, EnvSalt{Name: o.Name, Salt: o.Salt})
	}
	if total > MaxEnvBytes {
		return Environment{}, nil, fmt.Errorf("environment text is %d bytes; at most %d are allowed", total, MaxEnvBytes)
	}
	return e, salts, e.Check()
}

// checkCommittedValue says what is wrong with a value, never the value (req L3).
func checkCommittedValue(v string) error {
	switch {
	case utf8.RuneCountInString(v) > MaxCommitted:
		return fmt.Errorf("is %d characters; at most %d are allowed", utf8.RuneCountInString(v), MaxCommitted)
	case strings.ContainsFunc(v, unicode.IsControl):
		return fmt.Errorf("holds a control character")
	}
	return nil
}

// Opens refuses values other than exactly those committed to.
func (e Environment) Opens(openings []EnvOpening) error {
	if len(openings) != len(e.Committed) {
		return fmt.Errorf("%d environment values are given for %d commitments", len(openings), len(e.Committed))
	}
	for _, o := range openings {
		i := slices.IndexFunc(e.Committed, func(c EnvCommitment) bool { return c.Name == o.Name })
		if i < 0 || e.Committed[i].Value != SaltedSum(o.Salt, []byte(o.Value)) {
			return fmt.Errorf("the environment value given for %s is not the one committed to", o.Name)
		}
	}
	return nil
}

func (e Environment) checkCommitted() error {
	switch {
	case len(e.Vars) > 0:
		return fmt.Errorf("the environment holds both values and commitments")
	case len(e.Committed) > MaxEnv:
		return fmt.Errorf("environment has %d entries; at most %d are allowed", len(e.Committed), MaxEnv)
	case !sortedUnique(e.Committed, func(c EnvCommitment) string { return c.Name }):
		return fmt.Errorf("environment entries are repeated or out of order")
	}
	for _, c := range e.Committed {
		if err := CheckCommittedName(c.Name); err != nil {
			return err
		}
	}
	return nil
}

// CheckCommittedName refuses names that contained/v1 fixes itself, or that steer a loader, a shell
// or Docker. A configuration refuses more (req L3).
func CheckCommittedName(name string) error {
	if len(name) > MaxEnvName {
		return fmt.Errorf("environment name %q is longer than %d bytes", name, MaxEnvName)
	}
	for i, c := range []byte(name) {
		if c != '_' && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return fmt.Errorf("environment name %q is not an upper-case letter or _ followed by upper-case letters, digits and _", name)
		}
	}
	if slices.ContainsFunc(profiles[1].Environment, func(v EnvVar) bool { return v.Name == name }) {
		return fmt.Errorf("environment name %s is refused: it is fixed by the profile", name)
	}
	if name == "TMPDIR" { // command/v1 fixes it; here the workspace may be the better place
		return nil
	}
	return CheckEnvName(name)
}

// Fits refuses an environment that isn't the recipe's, or of another profile's form.
func (e Environment) Fits(r Recipe) error {
	if err := e.Check(); err != nil {
		return err
	}
	contained := r.Profile == ProfileContained
	switch {
	case contained && len(e.Vars) > 0:
		return fmt.Errorf("profile %s keeps no environment values", r.Profile)
	case !contained && len(e.Committed) > 0:
		return fmt.Errorf("profile %s commits to no environment values", r.Profile)
	case (r.Nonce == nil) != (e.Nonce == nil) || r.Nonce != nil && *r.Nonce != *e.Nonce:
		return fmt.Errorf("the environment does not carry the recipe's nonce")
	case e.Digest() != r.Environment:
		return fmt.Errorf("environment %s is not the recipe's %s", e.Digest(), r.Environment)
	}
	return nil
}
