package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/redact"
)

func load(t *testing.T, block string) Config {
	t.Helper()
	c, err := Load("baildock.yaml", []byte(least+block))
	require.NoError(t, err)
	return c
}

const environment = `  environment:
    - {name: AGENT_API_TOKEN, source: host, required: true, allow_sensitive: true}
    - {name: AGENT_MODE, value: batch}
    - {name: OPTIONAL, source: host}
    - {name: EXTRA, source: host, sensitive: true, allow_sensitive: true}
`

func hostOf(vars map[string]string) (lookup func(string) (string, bool), asked *[]string) {
	asked = new([]string)
	return func(name string) (string, bool) {
		*asked = append(*asked, name)
		v, ok := vars[name]
		return v, ok
	}, asked
}

// Only the names listed as the host's are asked for; what is fixed is there and can't be replaced.
func TestResolve(t *testing.T) {
	c := load(t, environment)
	lookup, asked := hostOf(map[string]string{
		"AGENT_API_TOKEN": "tok-0123456789", "EXTRA": "another-secret", "PATH": "/home/me/bin", "HOME": "/home/me", "AGENT_MODE": "host",
	})
	r, err := c.ResolveEnvironment(lookup)
	require.NoError(t, err)
	require.Equal(t, []string{"AGENT_API_TOKEN", "OPTIONAL", "EXTRA"}, *asked)
	require.Equal(t, []string{"OPTIONAL"}, r.Omitted)
	require.Equal(t, []evidence.EnvVar{
		{Name: "AGENT_API_TOKEN", Value: "tok-0123456789"},
		{Name: "AGENT_MODE", Value: "batch"},
		{Name: "EXTRA", Value: "another-secret"},
		{Name: "HOME", Value: "/tmp/baildock-home"},
		{Name: "LANG", Value: "C.UTF-8"},
		{Name: "LC_ALL", Value: "C.UTF-8"},
		{Name: "PATH", Value: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}, r.Environment())
	require.Equal(t, "[redacted] [redacted] batch", r.Redactor.String("tok-0123456789 another-secret batch"))

	// Whatever prints it shows names and no values.
	text, err := json.Marshal(r)
	require.NoError(t, err)
	for _, shown := range []string{string(text), fmt.Sprintf("%v %+v %#v", r, r, r), fmt.Sprintf("%v %+v %#v", c, c, c), string(c.Print())} {
		for _, value := range []string{"tok-0123456789", "another-secret", "batch"} {
			require.NotContains(t, shown, value)
		}
	}
	require.Contains(t, string(c.Print()), "AGENT_API_TOKEN")

	none, err := load(t, "").ResolveEnvironment(func(name string) (string, bool) {
		t.Errorf("%s was asked for", name)
		return "", false
	})
	require.NoError(t, err)
	require.Len(t, none.Variables, 4)
	require.Nil(t, none.Redactor)
}

// req L3: values from the host are held to the same bounds as those of the file; errors name variables
// and repeat no value.
func TestResolveRefused(t *testing.T) {
	c := load(t, environment)
	long := strings.Repeat("x", MaxValue)
	many := load(t, "  environment:\n"+
		"    - {name: A, source: host}\n    - {name: B, source: host}\n    - {name: C, source: host}\n    - {name: D, source: host}\n    - {name: E, source: host}\n")
	for name, tt := range map[string]struct {
		config     Config
		host       map[string]string
		path, want string
	}{
		"missing":   {c, map[string]string{"EXTRA": "Xq3#!7z-and-more"}, "contained_execution.environment[0]", "AGENT_API_TOKEN is required and not set"},
		"short":     {c, map[string]string{"AGENT_API_TOKEN": "Xq3#!7z"}, "contained_execution.environment[0]", "AGENT_API_TOKEN: the value is sensitive and has fewer than 8 bytes"},
		"empty":     {c, map[string]string{"AGENT_API_TOKEN": ""}, "contained_execution.environment[0]", "fewer than 8 bytes"},
		"marker":    {c, map[string]string{"AGENT_API_TOKEN": "Xq3#!7z" + redact.Marker}, "contained_execution.environment[0]", "stands for values"},
		"control":   {c, map[string]string{"AGENT_API_TOKEN": "Xq3#!7z-and-more", "OPTIONAL": "Xq3#!7z\n"}, "contained_execution.environment[2]", "OPTIONAL: the value holds a control character"},
		"nul":       {c, map[string]string{"AGENT_API_TOKEN": "Xq3#!7z\x00more"}, "contained_execution.environment[0]", "control character"},
		"bad UTF-8": {c, map[string]string{"AGENT_API_TOKEN": "Xq3#!7z\xffmore"}, "contained_execution.environment[0]", "not UTF-8"},
		"long":      {c, map[string]string{"AGENT_API_TOKEN": long + "x"}, "contained_execution.environment[0]", "more than 4096 characters"},
		"total":     {many, map[string]string{"A": long, "B": long, "C": long, "D": long}, "contained_execution.environment", "16388 bytes together"},
	} {
		lookup, _ := hostOf(tt.host)
		r, err := tt.config.ResolveEnvironment(lookup)
		var first *Error
		require.ErrorAs(t, err, &first, name)
		require.Equal(t, tt.path, first.Path, name)
		require.Contains(t, first.Reason, tt.want, name)
		require.NotContains(t, err.Error(), "Xq3#!7z", name)
		require.Empty(t, r.Variables)
	}
	lookup, _ := hostOf(map[string]string{"A": long, "B": long, "C": long, "D": long[4:]})
	_, err := many.ResolveEnvironment(lookup)
	require.NoError(t, err, "exactly the bound is allowed")

	lookup, _ = hostOf(map[string]string{"OPTIONAL": "a\x01"})
	_, err = c.ResolveEnvironment(lookup)
	var all *Errors
	require.True(t, errors.As(err, &all))
	require.Len(t, all.All, 2, "every reason is given: %v", err)
}

// req L1: what a file leaves out.
func TestDefaults(t *testing.T) {
	c := load(t, "")
	require.Equal(t, Config{
		Image: c.Image, Platform: "linux-docker-engine", Network: "none", UID: 1000, GID: 1000,
		Limits: evidence.Limits{
			Wall: 10 * time.Minute, Output: 1 << 20, Memory: 512 << 20, Scratch: 256 << 20, PIDs: 256, NanoCPUs: 1e9,
		},
		Writable: evidence.WritablePaths{"."},
	}, c)
	require.True(t, c.Image.Local())
	require.Equal(t, "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", c.Image.ID.String())
	require.Empty(t, c.Platform.Reductions())
	require.Equal(t, []evidence.Reduction{evidence.ReducedDesktop}, load(t, "  platform: docker-desktop-experimental\n").Platform.Reductions())

	require.Equal(t, `sandbox:
  type: docker
  image: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
contained_execution:
  version: 1
  platform: linux-docker-engine
  network: none
  image_provenance: digest-required
  required_uid: 1000
  required_gid: 1000
  cpu_limit: 1.0
  memory_limit: 512m
  pids_limit: 256
  tmpfs_size: 256m
  timeout: 10m
  output_limit: 1m
  require_evidence_outside_agent_repo: true
  allow_privileged: false
  allow_host_network: false
  allow_docker_socket_mount: false
  allow_device_exposure: false
  allow_host_namespace_sharing: false
  writable_paths:
    - .
`, string(c.Print()))
}

func TestValuesOfFields(t *testing.T) {
	c := load(t, `  cpu_limit: 2.125
  memory_limit: "67108864"
  timeout: 90s
  output_limit: 2k
  network: bridge
  writable_paths: [src, docs]
  policy: {forbidden: [b, a], max_files: 3, no_new_links: true}
`)
	require.Equal(t, uint64(2_125_000_000), c.Limits.NanoCPUs)
	require.Equal(t, uint64(64<<20), c.Limits.Memory)
	require.Equal(t, 90*time.Second, c.Limits.Wall)
	require.Equal(t, uint64(2048), c.Limits.Output)
	require.Equal(t, evidence.NetworkBridge, c.Network)
	require.Equal(t, evidence.WritablePaths{"docs", "src"}, c.Writable)
	three := uint64(3)
	require.Equal(t, &evidence.WorkspacePolicy{
		Version: 1, Allowed: []string{}, Forbidden: []string{"a", "b"}, Protected: []string{}, MaxFiles: &three, NoNewLinks: true,
	}, c.Policy)
	require.NoError(t, c.Policy.Validate())
	require.NoError(t, c.Writable.Validate())
}

// Every reason is given at once, in the file's order.
func TestAllReasons(t *testing.T) {
	_, err := Load("f.yaml", []byte(`contained_execution:
  version: 1
  network: host
  pids_limit: 1
  allow_privileged: true
sandbox:
  type: docker
  image: python:3.12
`))
	var all *Errors
	require.ErrorAs(t, err, &all)
	var paths []string
	for _, e := range all.All {
		paths = append(paths, e.Path)
	}
	require.Equal(t, []string{"contained_execution.network", "contained_execution.pids_limit", "contained_execution.allow_privileged", "sandbox.image"}, paths)
	require.Contains(t, err.Error(), "f.yaml: contained_execution.pids_limit: 1 is outside 16 to 4096 (line 4)\n")
	_, err = Load("f", []byte(least+"  a: 1\n"+strings.Repeat("  a: 1\n", 100)))
	require.ErrorAs(t, err, &all)
	require.Len(t, all.All, MaxErrors)
}

// Whatever a recipe's environment may not hold is reserved here too, so that schema and loader need one
// list.
func TestReservedNames(t *testing.T) {
	for _, name := range evidence.RefusedEnvNames() {
		if name == "TMPDIR" {
			require.NoError(t, evidence.CheckCommittedName(name)) // of command/v1 alone
			continue
		}
		require.Regexp(t, reservedNameForm, strings.Replace(name, "*", "X", 1))
	}
	for _, f := range Fixed() {
		require.Regexp(t, reservedNameForm, f.Name)
	}
	for _, name := range []string{"AGENT_MODE", "PATHS", "PATH_PREFIX", "HOMEPAGE", "CI", "TERM", "CONFIGURED", "LDAP_SERVER", "LC_TIME", "TMPDIR", "GIT_AUTHOR_NAME"} {
		require.NotRegexp(t, reservedNameForm, name)
		require.NotRegexp(t, secretLikeForm, name)
	}
}

// req L2: paths a mount may not have.
func TestMountPaths(t *testing.T) {
	for _, p := range []string{"/proc", "/proc/self", "/sys/fs/cgroup", "/dev", "/dev/shm", "/var/run", "/var/run/docker.sock", "/run", "/", "workspace",
		"/a/../b", "/a/", "/a,b", "/a:b", "/a=b", "/a\nb", "/a\xff", "", "/" + strings.Repeat("a", MaxHostPath)} {
		require.Error(t, CheckContainerPath(p), p)
	}
	for _, p := range []string{"/workspace", "/procs", "/var/running", "/home/dev/sys"} {
		require.NoError(t, CheckContainerPath(p))
	}
	for _, p := range []string{"repo", "/a/../b", "/a/", "/a,b", "/a=b", "/a\nb", "/a\x7fb", "/a\u009bb", "/a\xff", "", "/" + strings.Repeat("a", MaxHostPath)} {
		err := CheckHostPath(p)
		require.Error(t, err, p)
		require.True(t, p == "" || !strings.Contains(err.Error(), p), "the path is private")
	}
	for _, p := range []string{"/", "/srv/repo", "/srv/a b:c/ü"} {
		require.NoError(t, CheckHostPath(p))
	}
}

func TestDetect(t *testing.T) {
	var merges strings.Builder // each level a hundred times: looked at once
	merges.WriteString("a0: &a0 {a: 1}\n")
	for i := range 20 {
		fmt.Fprintf(&merges, "a%d: &a%d {<<: [%s]}\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 100), ", "))
	}
	merges.WriteString("<<:\n  <<: *a20\n")
	for _, text := range []string{
		least, "contained_execution:\n", "contained_execution: ~", `{"contained_execution": 1}`, `{"\u0063ontained_execution": {}}`,
		"a: 1\n---\ncontained_execution: {}\n", "? contained_execution\n: {}\n", "'contained_execution' : {}",
		"x: &x {contained_execution: {}}\n<<: *x\n", "<<: [{a: 1}, {contained_execution: {}}]\n",
		"&a contained_execution: 1\n", "k: &k contained_execution\n*k : 1\n",
		"contained_execution:\n  a: [1\n", "\t\ncontained_execution: 1\n: : :", "\"contained_execution\": {\n", "{a: 1, contained_execution: [}",
		strings.Repeat("#", MaxFile) + "\ncontained_execution: {}\n",
		"<<: {<<: {<<: {<<: {<<: {<<: {<<: {<<: {<<: {contained_execution: 1}}}}}}}}}\n", merges.String() + "  contained_execution: 1\n",
	} {
		require.True(t, Detect([]byte(text)), "%q", text)
	}
	for _, text := range []string{
		"", "a: 1\n", "{}", "[contained_execution]", "a: contained_execution\n", "# contained_execution:\na: 1\n", "contained_executions: 1",
		"\xff\xfe", `{"argv": ["contained_execution"]}`, strings.Repeat("#", 2*MaxFile), "<<: *x\n", merges.String(),
	} {
		require.False(t, Detect([]byte(text)), "%q", text)
	}
}
