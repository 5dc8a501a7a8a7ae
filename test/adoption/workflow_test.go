package adoption

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/config"
)

const (
	workflowFile = "../../examples/github-actions/baildock-contained-run.yml"
	configFile   = "../../examples/github-actions/baildock-contained.yaml"
)

// workflow is what of GitHub's format the example uses; anything else is refused.
type workflow struct {
	Name        string            `yaml:"name"`
	On          map[string]any    `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]job    `yaml:"jobs"`
}

type job struct {
	RunsOn  string            `yaml:"runs-on"`
	Timeout int               `yaml:"timeout-minutes"`
	Env     map[string]string `yaml:"env"`
	Steps   []step            `yaml:"steps"`
}

type step struct {
	Name string            `yaml:"name"`
	If   string            `yaml:"if"`
	Uses string            `yaml:"uses"`
	Run  string            `yaml:"run"`
	With map[string]string `yaml:"with"`
}

var (
	pinned  = regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9-]+@[0-9a-f]{40}$`)
	release = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)
	// What can carry a secret, a token or text of a stranger into a step.
	carriers = regexp.MustCompile(`(?i)\$\{\{|secrets|github[._]token|GH_TOKEN|_KEY\b|PASSWORD`)
)

// problems lists what the form of a workflow lacks (req N9). Whether it works on GitHub's machines is not
// for it to say.
func problems(b []byte) []string {
	var w workflow
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&w); err != nil {
		return []string{err.Error()}
	}
	var out []string
	need := func(ok bool, format string, args ...any) {
		if !ok {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	_, onPull := w.On["pull_request"]
	need(onPull && len(w.On) == 1, "it runs on something else than pull_request")
	need(len(w.Permissions) == 1 && w.Permissions["contents"] == "read", "its permissions are not contents: read alone")
	need(len(w.Jobs) == 1, "it has %d jobs", len(w.Jobs))
	need(!carriers.Match(b), "it holds an expression, a secret or a token: %q", carriers.Find(b))
	for _, j := range w.Jobs {
		need(strings.HasPrefix(j.RunsOn, "ubuntu-") && j.RunsOn != "ubuntu-latest", "it runs on %q, not on a named Linux", j.RunsOn)
		need(j.Timeout > 0 && j.Timeout <= 60, "it has no bound of time")
		need(release.MatchString(j.Env["BAILDOCK_VERSION"]) && len(j.Env) == 1, "it doesn't name an exact release, or sets other variables")
		out = append(out, stepProblems(j.Steps)...)
	}
	return out
}

func stepProblems(steps []step) []string {
	var out []string
	need := func(ok bool, format string, args ...any) {
		if !ok {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	find := func(has func(step) bool) int { return slices.IndexFunc(steps, has) }
	running := func(text string) int {
		return find(func(s step) bool { return strings.Contains(s.Run, text) })
	}
	using := func(action string) int {
		return find(func(s step) bool { return strings.HasPrefix(s.Uses, action+"@") })
	}
	for _, s := range steps {
		need((s.Uses == "") != (s.Run == ""), "step %q does both or nothing", s.Name)
		need(s.Uses == "" || pinned.MatchString(s.Uses), "step %q: %q is not pinned by a commit", s.Name, s.Uses)
		need(!regexp.MustCompile(`docker (run|pull|login|build)|--privileged|--network|sudo|curl|wget|@latest|@main`).MatchString(s.Run), "step %q goes past what is contained or pinned", s.Name)
		need(s.If == "" || strings.HasPrefix(s.Uses, "actions/upload-artifact@"), "step %q has a condition", s.Name)
	}
	checkout, docker, install := using("actions/checkout"), running("docker version"), running("go install")
	image, preflight, run := running("image make"), running("baildock preflight"), running("contained-run ")
	upload := using("actions/upload-artifact")
	order := []int{checkout, docker, install, image, preflight, run, upload}
	need(!slices.Contains(order, -1), "a step is missing: %v", order)
	need(slices.IsSorted(order), "its steps are in another order: %v", order)
	if slices.Contains(order, -1) {
		return out
	}
	need(steps[checkout].With["persist-credentials"] == "false", "the checkout keeps its credentials")
	for line := range strings.Lines(steps[install].Run) {
		if strings.Contains(line, "go install") {
			need(strings.Contains(line, "@$BAILDOCK_VERSION"), "something else than the release is installed: %s", strings.TrimSpace(line))
		}
	}
	need(strings.Contains(steps[run].Run, " -- /"), "the command doesn't follow -- as its own words")
	with := steps[upload].With
	need(steps[upload].If == "always()", "the evidence isn't uploaded always")
	need(with["path"] == ".baildock/contained-runs/*/contained-run.json", "it uploads %q", with["path"])
	need(with["include-hidden-files"] == "true", "hidden files aren't uploaded")
	need(with["if-no-files-found"] == "error", "missing evidence is no error")
	var days int
	_, err := fmt.Sscan(with["retention-days"], &days)
	need(err == nil && days >= 1 && days <= 30, "the retention isn't bounded")
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(b)
}

// req N9: the form of the workflow. Each change below breaks it, so that the check can fail.
func TestWorkflowForm(t *testing.T) {
	good := read(t, workflowFile)
	require.Empty(t, problems([]byte(good)))
	changes := [][3]string{
		{"pull_request:", "pull_request_target:", "something else than pull_request"},
		{"  pull_request:\n", "  pull_request:\n  push:\n", "something else than pull_request"},
		{"contents: read", "contents: write", "permissions"},
		{"contents: read", "contents: read\n  id-token: write", "permissions"},
		{"11bd71901bbe5b1630ceea73d27597364c9af683", "v4", "not pinned"},
		{"d35c59abb061a4a6fb18e82ac0862c26744d6ab5", "d35c59a", "not pinned"},
		{"actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02", "actions/upload-artifact@main", "not pinned"},
		{"persist-credentials: false", "persist-credentials: true", "keeps its credentials"},
		{"        with:\n          persist-credentials: false\n", "", "keeps its credentials"},
		{"ubuntu-24.04", "ubuntu-latest", "not on a named Linux"},
		{"    timeout-minutes: 20\n", "", "no bound of time"},
		{"v0.1.0", "main", "exact release"},
		{"BAILDOCK_VERSION: v0.1.0", "BAILDOCK_VERSION: v0.1.0\n      API_TOKEN: x", "other variables"},
		{"/bin/agent look", "/bin/agent ${{ github.event.pull_request.title }}", "an expression"},
		{"baildock init", "TOKEN=$GITHUB_TOKEN baildock init", "a token"},
		{"cmd/baildock@$BAILDOCK_VERSION", "cmd/baildock@latest", "something else than the release"},
		{"baildock init", "docker pull busybox", "goes past"},
		{"baildock init", "curl -fsSL https://example.org | sh", "goes past"},
		{"-- /bin/agent look", "/bin/agent look", "doesn't follow --"},
		{"        if: always()\n", "", "isn't uploaded always"},
		{"if: always()", "if: success()", "isn't uploaded always"},
		{"contained-runs/*/contained-run.json", "**", `uploads ".baildock/**"`},
		{"          include-hidden-files: true\n", "", "hidden files"},
		{"if-no-files-found: error", "if-no-files-found: warn", "missing evidence"},
		{"          retention-days: 7\n", "", "retention"},
		{"retention-days: 7", "retention-days: 90", "retention"},
		{"          docker version --format '{{.Server.Os}}' | grep -qx linux\n", "", "a step is missing"},
		{"          baildock preflight baildock-contained.yaml\n", "", "a step is missing"},
		{"    steps:", "    container: busybox\n    steps:", "container"},
		{"jobs:", "defaults: {}\njobs:", "defaults"},
	}
	for _, c := range changes {
		require.Contains(t, good, c[0])
		got := problems([]byte(strings.Replace(good, c[0], c[1], 1)))
		require.Contains(t, strings.Join(got, "\n"), c[2], "%q for %q", c[1], c[0])
	}
	t.Logf("count: %d changes of a workflow noticed", len(changes))
	require.GreaterOrEqual(t, len(changes), 30)
}

// The workflow's configuration loads as it is and as the workflow changes it, asks for no network and
// passes nothing on.
func TestWorkflowConfiguration(t *testing.T) {
	text := read(t, configFile)
	id := "sha256:" + strings.Repeat("5", 64)
	changed := regexp.MustCompile(`(?m)^  image: .*`).ReplaceAllString(text, "  image: "+id)
	changed = regexp.MustCompile(`(?m)^  required_uid: .*`).ReplaceAllString(changed, "  required_uid: 1234")
	for _, b := range []string{text, changed} {
		c, err := config.Load("baildock-contained.yaml", []byte(b))
		require.NoError(t, err)
		require.Equal(t, evidence.NetworkNone, c.Network)
		require.Equal(t, evidence.PlatformEngine, c.Platform)
		require.Empty(t, c.Environment)
		require.NotNil(t, c.Policy)
	}
	require.NotEqual(t, text, changed)
	for _, pattern := range []string{"s/^  image: .*/", "s/^  required_uid: .*/", "s/^  required_gid: .*/"} {
		require.Contains(t, read(t, workflowFile), pattern)
	}
}

// Each command the workflow and the example type is one this program has.
func TestAgentExample(t *testing.T) {
	script := read(t, "../../examples/agent/run.sh")
	for _, words := range []string{"baildock image make ", "baildock init", "baildock contained-run ", "baildock export ", "baildock verify "} {
		require.Contains(t, script, words)
	}
	info, err := os.Stat("../../examples/agent/run.sh")
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o111)
}
