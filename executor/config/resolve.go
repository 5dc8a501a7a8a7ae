package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/redact"
)

// Resolved is the environment one run will have, values in memory only.
type Resolved struct {
	Variables []ResolvedVariable // fixed ones included, sorted by name
	Omitted   []string           // optional ones the host hasn't set, sorted
	Redactor  *redact.Redactor   // of all sensitive values; nil without any
}

// Origin says why a variable is there.
type Origin string

const (
	OriginFixed   Origin = "fixed"
	OriginLiteral Origin = "literal"
	OriginHost    Origin = "host"
)

// ResolvedVariable is one variable with its value.
type ResolvedVariable struct {
	Name      string
	Value     Value
	Origin    Origin
	Sensitive bool
}

// ResolveEnvironment takes values from lookup (os.LookupEnv's shape) for exactly the names listed as
// the host's, and from nowhere else (req L4). It fails, naming the variables, when a required one is
// missing or a value can't be passed on; nothing may be prepared before it succeeded. The error is an
// *Errors.
func (c Config) ResolveEnvironment(lookup func(string) (string, bool)) (Resolved, error) {
	var out Resolved
	var errs []*Error
	for _, f := range Fixed() {
		out.Variables = append(out.Variables, ResolvedVariable{Name: f.Name, Value: Value{f.Value}, Origin: OriginFixed})
	}
	total := 0
	var secrets [][]byte
	for _, v := range c.Environment {
		value, origin := v.Value, OriginLiteral
		if v.Source == SourceHost {
			s, set := lookup(v.Name)
			if !set && v.Required {
				errs = append(errs, &Error{Path: v.path, Reason: fmt.Sprintf("%s is required and not set where baildock runs; set it, or drop required", v.Name)})
				continue
			}
			if !set {
				out.Omitted = append(out.Omitted, v.Name)
				continue
			}
			if reason := badValue(s, v.Sensitive); reason != "" {
				errs = append(errs, &Error{Path: v.path, Reason: fmt.Sprintf("%s: %s", v.Name, reason)})
				continue
			}
			value, origin = Value{s}, OriginHost
		}
		total += len(v.Name) + len(value.s)
		if v.Sensitive {
			secrets = append(secrets, []byte(value.s))
		}
		out.Variables = append(out.Variables, ResolvedVariable{Name: v.Name, Value: value, Origin: origin, Sensitive: v.Sensitive})
	}
	at := member(Block, "environment")
	if total > MaxEnvironment {
		errs = append(errs, &Error{Path: at, Reason: fmt.Sprintf("names and values have %d bytes together; at most %d are allowed", total, MaxEnvironment)})
	}
	var err error
	if out.Redactor, err = redact.New(secrets...); err != nil && len(errs) == 0 {
		errs = append(errs, &Error{Path: at, Reason: err.Error()})
	}
	if len(errs) > 0 {
		return Resolved{}, &Errors{Name: "environment", All: errs}
	}
	slices.SortFunc(out.Variables, func(a, b ResolvedVariable) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(out.Omitted)
	return out, nil
}

// Environment returns names and values, sorted by name, for the create request.
func (r Resolved) Environment() []evidence.EnvVar {
	all := make([]evidence.EnvVar, len(r.Variables))
	for i, v := range r.Variables {
		all[i] = evidence.EnvVar{Name: v.Name, Value: v.Value.Reveal()}
	}
	return all
}
