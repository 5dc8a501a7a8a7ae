package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/witness"
)

// ParsePolicy reads a policy as people write it: one JSON object, described by the schema
// `verification-policy`. It must be UTF-8, without members that aren't known, repeated or null, and
// nothing may follow it. An absent member asks for nothing, and a list is never empty: it would read
// as a demand and be none.
func ParsePolicy(text []byte) (Policy, error) {
	p, err := parsePolicy(text)
	if err != nil {
		return Policy{}, fmt.Errorf("verification policy: %w", err)
	}
	return p, nil
}

func parsePolicy(text []byte) (p Policy, err error) {
	if len(text) > MaxPolicy {
		return p, fmt.Errorf("%d bytes; at most %d are allowed", len(text), MaxPolicy)
	}
	m, err := membersOf(text, "version", "trust", "require", "claim", "reductions", "required_checks", "allow_withheld", "checkpoint", "witnesses")
	if err != nil {
		return p, err
	}
	version, ok, err := member[json.Number](m, "version")
	if err != nil || !ok || version != "1" {
		return p, errors.Join(errors.New("version must be there, and 1"), err)
	}
	for _, read := range []func(members, *Policy) error{trustMember, levelMembers, checkMembers, keptMembers} {
		if err := read(m, &p); err != nil {
			return Policy{}, err
		}
	}
	return p, nil
}

func trustMember(m members, p *Policy) error {
	texts, err := list(m, "trust")
	if err != nil {
		return err
	}
	if len(texts) > MaxTrusted {
		return fmt.Errorf("trust names %d; at most %d are allowed", len(texts), MaxTrusted)
	}
	var trusted []Trust
	for i, text := range texts {
		t, err := ParseTrust([]byte(text))
		if err != nil {
			return fmt.Errorf("trust, entry %d: %w", i+1, err)
		}
		trusted = append(trusted, t)
	}
	p.Trust = TrustAny(trusted...)
	return nil
}

func levelMembers(m members, p *Policy) error {
	level, ok, err := member[string](m, "require")
	if err != nil {
		return err
	}
	if ok {
		if p.Require, err = ParseLevel(level); err != nil {
			return fmt.Errorf("require: %w", err)
		}
	}
	claim, ok, err := member[string](m, "claim")
	if err != nil {
		return err
	}
	if p.Claim = evidence.Claim(claim); ok && p.Claim != evidence.ClaimReduced && p.Claim != evidence.ClaimFull {
		return fmt.Errorf("claim %q is none of [%s %s]", claim, evidence.ClaimReduced, evidence.ClaimFull)
	}
	if p.Reductions, err = parsed(m, "reductions", evidence.ParseReduction); err != nil {
		return err
	}
	if len(p.Reductions) > 0 && p.Claim != evidence.ClaimReduced {
		return fmt.Errorf("reductions say which reduced claims are accepted; that needs claim %q", evidence.ClaimReduced)
	}
	return nil
}

func checkMembers(m members, p *Policy) (err error) {
	p.RequiredChecks, err = parsed(m, "required_checks", func(name string) (string, error) {
		if !slices.Contains(Checks(), name) {
			return "", fmt.Errorf("check %q is none of %v", name, Checks())
		}
		return name, nil
	})
	if err != nil {
		return err
	}
	p.AllowWithheld, err = parsed(m, "allow_withheld", bundle.ParseWithholdable)
	return err
}

// keptMembers reads what is trusted beside keys: a checkpoint, and who must have cosigned one. The
// checkpoint's signatures are for the verification to check; that it is one at all is checked here.
func keptMembers(m members, p *Policy) error {
	note, ok, err := member[string](m, "checkpoint")
	if err != nil {
		return err
	}
	if ok {
		if _, err := ledger.ReadCheckpoint([]byte(note)); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		p.Kept = []byte(note)
	}
	raw, ok := m["witnesses"]
	if !ok {
		return nil
	}
	w, err := membersOf(raw, "quorum", "keys")
	if err != nil {
		return fmt.Errorf("witnesses: %w", err)
	}
	quorum, _, err := member[json.Number](w, "quorum")
	if err != nil {
		return fmt.Errorf("witnesses: %w", err)
	}
	n, err := quorum.Int64()
	if err != nil || n < 0 || n > witness.MaxWitnesses {
		return fmt.Errorf("witnesses: quorum %q is no number from 1 to %d", quorum, witness.MaxWitnesses)
	}
	policy := witness.Policy{Quorum: int(n)}
	if policy.Witnesses, err = parsed(w, "keys", witness.ParseKey); err != nil {
		return fmt.Errorf("witnesses: %w", err)
	}
	if _, err := policy.Format(); err != nil { // what can't be met, or would count one witness twice
		return fmt.Errorf("witnesses: %w", err)
	}
	p.Witnesses = &policy
	return nil
}

// members are an object's, by name, each once.
type members map[string]json.RawMessage

// membersOf reads one object with members of these names only, spelled as here: encoding/json alone
// passes over repeated names, and over their case.
func membersOf(text []byte, names ...string) (members, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	open, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if open != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	out := members{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("it is no JSON: %w", err)
		}
		name, ok := t.(string)
		if !ok || !slices.Contains(names, name) {
			return nil, fmt.Errorf("member %q is not known; known are %v", fmt.Sprint(t), names)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("member %q is there twice", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("member %q: %w", name, err)
		}
		out[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return out, nil
}

// member decodes one member; ok is false where it is absent.
func member[T any](m members, name string) (value T, ok bool, err error) {
	raw, ok := m[name]
	if !ok {
		return value, false, nil
	}
	if bytes.Equal(raw, []byte("null")) {
		return value, false, fmt.Errorf("%s is null; leave it out instead", name)
	}
	// A quoted number is no number, though json.Number takes it.
	if _, number := any(value).(json.Number); number && raw[0] == '"' {
		return value, false, fmt.Errorf("%s is text; a number belongs there", name)
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return value, false, fmt.Errorf("%s: %w", name, err)
	}
	return value, true, nil
}

// list is a list of texts that is not empty; nil where it is absent.
func list(m members, name string) ([]string, error) {
	texts, ok, err := member[[]*string](m, name)
	if err != nil || !ok {
		return nil, err
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%s is empty; leave it out instead", name)
	}
	var out []string
	for i, s := range texts {
		if s == nil {
			return nil, fmt.Errorf("%s, entry %d: null is no text", name, i+1)
		}
		if slices.Contains(out, *s) {
			return nil, fmt.Errorf("%s, entry %d is there twice", name, i+1)
		}
		out = append(out, *s)
	}
	return out, nil
}

// parsed is list with each entry parsed.
func parsed[T any](m members, name string, parse func(string) (T, error)) ([]T, error) {
	texts, err := list(m, name)
	var out []T
	for _, s := range texts {
		v, err := parse(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, v)
	}
	return out, err
}
