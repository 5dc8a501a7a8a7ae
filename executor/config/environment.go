package config

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/redact"
)

// The name patterns below stand in the schema too; a test holds them equal.
const (
	variableName = `^[A-Z_][A-Z0-9_]*$`
	// secretLike names what is probably a secret. It is wide on purpose: whoever means it writes
	// allow_sensitive.
	secretLike = `TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|COOKIE|APIKEY|(^|_)(KEY|KEYS|AUTH|AUTHORIZATION|CREDS|JWT|BEARER|PASS|SESSION)(_|$)`
	// reservedName steers a loader, a client, a daemon or what the profile fixes.
	reservedName = `^(DOCKER|COMPOSE|BUILDKIT|DYLD|LD|BAILDOCK|MALLOC|BASH_FUNC)_` +
		`|(PATH|CONFIG|CONFIG_FILE|CONFIG_DIR|SOCKET|SOCK|RUNTIME|RUNTIME_DIR|HOME|CREDENTIAL_STORE|CREDENTIALS_STORE|CREDSTORE|CREDS_STORE|CA_BUNDLE|CA_CERTS)$` +
		`|^(LANG|LC_ALL|HOSTNAME|KUBECONFIG|CONTAINER_HOST|SSL_CERT_FILE|SSL_CERT_DIR|GIT_SSL_CAINFO` +
		`|GLIBC_TUNABLES|BASH_ENV|ENV|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|PS4|IFS|ZDOTDIR|PERL5OPT|PERL5LIB|PYTHONSTARTUP|RUBYOPT|NODE_OPTIONS` +
		`|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS)$`
)

var (
	variableNameForm = regexp.MustCompile(variableName)
	secretLikeForm   = regexp.MustCompile(secretLike)
	reservedNameForm = regexp.MustCompile(reservedName)
)

// environment reads the allow-list of variables (req L3).
func (r *reader) environment(n *yaml.Node, path string) []Variable {
	var all []Variable
	taken := map[string]bool{}
	total := 0
	r.list(n, path, 0, MaxVariables, func(n *yaml.Node, path string) {
		v, ok := r.variable(n, path)
		if !ok {
			return
		}
		if taken[v.Name] {
			r.refuse(n, member(path, "name"), "%s is listed twice", v.Name)
			return
		}
		taken[v.Name] = true
		total += len(v.Name) + len(v.Value.s)
		all = append(all, v)
	})
	if total > MaxEnvironment {
		r.refuse(n, path, "names and values have %d bytes together; at most %d are allowed", total, MaxEnvironment)
	}
	return all
}

func (r *reader) variable(n *yaml.Node, path string) (Variable, bool) {
	before := len(r.errs)
	v := Variable{Source: SourceLiteral, path: path}
	var value *yaml.Node
	flag := func(to *bool) func(n *yaml.Node, path string) {
		return func(n *yaml.Node, path string) { *to, _ = r.boolean(n, path) }
	}
	r.mapping(n, path, []field{
		{"name", true, func(n *yaml.Node, path string) { v.Name = r.variableName(n, path) }},
		{"source", false, func(n *yaml.Node, path string) {
			s, _ := r.oneOf(n, path, string(SourceLiteral), string(SourceHost))
			v.Source = Source(s)
		}},
		{"value", false, func(n *yaml.Node, path string) {
			value = n
			if s, ok := r.text(n, path); ok {
				v.Value = Value{s}
			}
		}},
		{"required", false, flag(&v.Required)},
		{"sensitive", false, flag(&v.Sensitive)},
		{"allow_sensitive", false, flag(&v.Allowed)},
	})
	if len(r.errs) > before {
		return v, false
	}
	at := member(path, "value")
	switch {
	case v.Source == SourceHost && value != nil:
		r.refuse(value, at, "a host's variable has its value from there; leave it out")
	case v.Source == SourceLiteral && value == nil:
		r.refuse(n, at, "a literal needs a value; source: host takes it from where baildock runs")
	}
	if !v.Allowed {
		switch {
		case v.Sensitive:
			r.refuse(n, member(path, "allow_sensitive"), "%s is marked sensitive; write allow_sensitive: true to pass it on", v.Name)
		case secretLikeForm.MatchString(v.Name):
			r.refuse(n, member(path, "allow_sensitive"), "%s is named like a secret; write allow_sensitive: true to pass it on", v.Name)
		}
	}
	v.Sensitive = v.Sensitive || secretLikeForm.MatchString(v.Name)
	if v.Source == SourceLiteral && value != nil {
		if reason := badValue(v.Value.s, v.Sensitive); reason != "" {
			r.refuse(value, at, "%s", reason)
		}
	}
	return v, len(r.errs) == before
}

func (r *reader) variableName(n *yaml.Node, path string) string {
	s, ok := r.text(n, path)
	if !ok {
		return ""
	}
	switch {
	case len(s) > MaxVariableName:
		r.refuse(n, path, "the name has more than %d characters", MaxVariableName)
	case !variableNameForm.MatchString(s):
		r.refuse(n, path, "%q is no name of a variable: upper-case letters, digits and _, no digit first", shorten(s))
	case reservedNameForm.MatchString(s):
		r.refuse(n, path, "%s is reserved: it is fixed, or it steers a client, a loader or a path of the host", s)
	default:
		if err := evidence.CheckCommittedName(s); err != nil {
			r.refuse(n, path, "%v", err)
		}
	}
	return s
}

// badValue says what is wrong with a value without repeating any of it; nothing if it is fine.
func badValue(s string, sensitive bool) string {
	switch {
	case !utf8.ValidString(s):
		return "the value is not UTF-8"
	case utf8.RuneCountInString(s) > MaxValue:
		return "the value has more than 4096 characters"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "the value holds a control character"
	case sensitive && len(s) < redact.MinSecret:
		return "the value is sensitive and has fewer than 8 bytes: so short a text can't be redacted from everything"
	case sensitive && strings.Contains(s, redact.Marker):
		return "the value is sensitive and holds " + redact.Marker + ", which stands for values that were taken out"
	}
	return ""
}
