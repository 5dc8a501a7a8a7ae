package evidence

import (
	"fmt"
	"slices"
	"strings"
)

// EnvVar is one declared environment entry of a recipe.
type EnvVar struct {
	Name  string `cbor:"1,keyasint" json:"name"`
	Value string `cbor:"2,keyasint" json:"value"`
}

// Environment is a recipe's declared environment, sorted by name. With the recipe's nonce it is a
// canonical value of its own, so that it can be bound while being withheld.
type Environment struct {
	Version uint     `cbor:"1,keyasint" json:"version"` // 1
	Nonce   *Nonce   `cbor:"2,keyasint,omitempty" json:"nonce,omitempty"`
	Vars    []EnvVar `cbor:"3,keyasint" json:"vars"`

	// Committed takes the place of Vars in contained/v1, whose values are never kept (req L5).
	Committed []EnvCommitment `cbor:"4,keyasint,omitempty" json:"committed,omitempty"` // sorted by name
}

// Digest is the SHA-256 of the canonical environment.
func (e Environment) Digest() EnvironmentDigest { return Sum[environmentMeaning](Marshal(e)) }

// Check refuses an environment outside req A5 and A6 or out of order.
func (e Environment) Check() error {
	if e.Version != 1 {
		return fmt.Errorf("environment version %d is not 1", e.Version)
	}
	if len(e.Vars) > MaxEnv {
		return fmt.Errorf("environment has %d entries; at most %d are allowed", len(e.Vars), MaxEnv)
	}
	if len(e.Committed) > 0 {
		return e.checkCommitted()
	}
	total := 0
	for i, v := range e.Vars {
		if err := CheckEnvName(v.Name); err != nil {
			return err
		}
		if strings.ContainsRune(v.Value, 0) {
			return fmt.Errorf("environment value of %s holds a NUL byte", v.Name)
		}
		if i > 0 && e.Vars[i-1].Name >= v.Name {
			return fmt.Errorf("environment entry %s is repeated or out of order", v.Name)
		}
		total += len(v.Name) + len(v.Value)
	}
	if total > MaxEnvBytes {
		return fmt.Errorf("environment text is %d bytes; at most %d are allowed", total, MaxEnvBytes)
	}
	return nil
}

// refusedEnv lists every environment name a recipe may not set, with its reason (req A6). A name
// ending in * stands for the prefix.
var refusedEnv = []struct{ name, why string }{
	{"LD_*", "steers the dynamic loader"},
	{"DYLD_*", "steers the dynamic loader"},
	{"GLIBC_TUNABLES", "steers the C library before main"},
	{"GCONV_PATH", "loads code into the C library"},
	{"LOCPATH", "loads locale data into the C library"},
	{"NLSPATH", "loads message catalogues into the C library"},
	{"MALLOC_*", "steers the C library's allocator"},
	{"BASH_ENV", "runs code when a shell starts"},
	{"BASH_FUNC_*", "defines shell functions"},
	{"ENV", "runs code when a shell starts"},
	{"PROMPT_COMMAND", "runs code in a shell"},
	{"SHELLOPTS", "changes how a shell behaves"},
	{"BASHOPTS", "changes how a shell behaves"},
	{"PS4", "runs code when a shell traces"},
	{"IFS", "changes how a shell splits words"},
	{"CDPATH", "changes how a shell resolves paths"},
	{"ZDOTDIR", "runs code when a shell starts"},
	{"PERL5OPT", "runs code when perl starts"},
	{"PERL5LIB", "loads code into perl"},
	{"PYTHONSTARTUP", "runs code when python starts"},
	{"PYTHONPATH", "loads code into python"},
	{"PYTHONHOME", "loads code into python"},
	{"RUBYOPT", "runs code when ruby starts"},
	{"NODE_OPTIONS", "runs code when node starts"},
	{"JAVA_TOOL_OPTIONS", "loads code into java"},
	{"_JAVA_OPTIONS", "loads code into java"},
	{"DOCKER_*", "steers a Docker client"},
	{"COMPOSE_*", "steers a Docker client"},
	{"BUILDKIT_*", "steers a Docker client"},
	{"CONTAINER_HOST", "steers a container client"},
	{"BAILDOCK_*", "belongs to baildock"},
	{"HOME", "is fixed by the profile"},
	{"TMPDIR", "is fixed by the profile"},
	{"HOSTNAME", "is fixed by the profile"},
}

// RefusedEnvNames returns the documented list of refused names and prefixes (ending in *).
func RefusedEnvNames() []string {
	names := make([]string, len(refusedEnv))
	for i, r := range refusedEnv {
		names[i] = r.name
	}
	return names
}

// CheckEnvName refuses names that aren't portable or that steer a loader, a shell or Docker.
func CheckEnvName(name string) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("environment name %q is empty or longer than %d bytes", name, MaxName)
	}
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return fmt.Errorf("environment name %q is not a letter or _ followed by letters, digits and _", name)
		}
	}
	upper := strings.ToUpper(name)
	for _, r := range refusedEnv {
		prefix, isPrefix := strings.CutSuffix(r.name, "*")
		if upper == r.name || isPrefix && strings.HasPrefix(upper, prefix) {
			return fmt.Errorf("environment name %s is refused: it %s", name, r.why)
		}
	}
	return nil
}

// SortEnv orders entries by name, as the canonical form wants them.
func SortEnv(vars []EnvVar) {
	slices.SortFunc(vars, func(a, b EnvVar) int { return strings.Compare(a.Name, b.Name) })
}
