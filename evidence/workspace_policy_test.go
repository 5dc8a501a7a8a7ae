package evidence

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func bound(n uint64) *uint64 { return &n }

// changed is one of each thing a policy looks at.
func changed() Mutations {
	return Mutations{
		{Path: "docs", Kind: MutationAdded, After: stateDir(0o755)},
		{Path: "docs/a.md", Kind: MutationAdded, After: stateFile("12345", 0o644)},
		{Path: "empty", Kind: MutationAdded, After: stateDir(0o755)},
		{Path: "src/a.go", Kind: MutationModified, Before: stateFile("x", 0o644), After: stateFile("1234567", 0o644)},
		{Path: "src/b.go", Kind: MutationModified, Before: stateFile("x", 0o644), After: stateFile("x", 0o600)},
		{Path: "src/moved.go", Kind: MutationRenamed, From: "test/old_test.go", Before: stateFile("1234567890", 0o644), After: stateFile("1234567890", 0o644)},
		{Path: "src/z", Kind: MutationDeleted, Before: stateFile("gone", 0o755)},
	}
}

func resultOf(t *testing.T, p WorkspacePolicy, l Mutations) PolicyResult {
	t.Helper()
	p = p.Normal()
	require.NoError(t, p.Validate())
	require.NoError(t, l.Validate())
	got := p.Check(l)
	require.Len(t, got, 1)
	return got[0]
}

// req N7
func TestWorkspacePolicyChecks(t *testing.T) {
	file := func(kind MutationKind, before, after *EntryState) Mutations {
		return Mutations{{Path: "p", Kind: kind, Before: before, After: after}}
	}
	counted := map[PolicyCheck]int{}
	for _, tc := range []struct {
		name   string
		policy WorkspacePolicy
		l      Mutations
		check  PolicyCheck
		broken string // empty: it holds
	}{
		{"all allowed", WorkspacePolicy{Allowed: []string{"src/**", "docs/**", "test/**", "empty"}}, changed(), CheckAllowedPaths, ""},
		{"an empty directory outside", WorkspacePolicy{Allowed: []string{"src/**", "docs/**", "test/**"}}, changed(), CheckAllowedPaths, `"empty"`},
		{"a rename out of the allowed", WorkspacePolicy{Allowed: []string{"src/**", "docs/**", "empty"}}, changed(), CheckAllowedPaths, `"test/old_test.go"`},
		{"nothing changed", WorkspacePolicy{Allowed: []string{"nowhere"}}, nil, CheckAllowedPaths, ""},
		{"a directory's mode outside", WorkspacePolicy{Allowed: []string{"src/**"}},
			Mutations{{Path: "d", Kind: MutationModified, Before: stateDir(0o755), After: stateDir(0o700)}, {Path: "src/a", Kind: MutationAdded, After: stateFile("x", 0o644)}}, CheckAllowedPaths, `"d"`},
		{"not forbidden", WorkspacePolicy{Forbidden: []string{".github/**", "go.mod"}}, changed(), CheckForbiddenPaths, ""},
		{"forbidden deletion", WorkspacePolicy{Forbidden: []string{"src/z"}}, changed(), CheckForbiddenPaths, `"src/z"`},
		{"forbidden wins at any depth", WorkspacePolicy{Forbidden: []string{"**/*.md"}}, changed(), CheckForbiddenPaths, `"docs/a.md"`},
		{"tests untouched", WorkspacePolicy{Protected: []string{"test/new_test.go"}}, changed(), CheckProtectedTests, ""},
		{"a test moved away", WorkspacePolicy{Protected: []string{"**/*_test.go"}}, changed(), CheckProtectedTests, `"test/old_test.go"`},
		{"a test added", WorkspacePolicy{Protected: []string{"p"}}, file(MutationAdded, nil, stateFile("", 0o644)), CheckProtectedTests, `"p"`},
		{"as many files", WorkspacePolicy{MaxFiles: bound(5)}, changed(), CheckMaxFiles, ""},
		{"one file more", WorkspacePolicy{MaxFiles: bound(4)}, changed(), CheckMaxFiles, "5 files and links changed; at most 4"},
		{"no file at all", WorkspacePolicy{MaxFiles: bound(0)}, changed()[:1], CheckMaxFiles, ""},
		{"as many bytes", WorkspacePolicy{MaxBytes: bound(12)}, changed(), CheckMaxBytes, ""},
		{"one byte more", WorkspacePolicy{MaxBytes: bound(11)}, changed(), CheckMaxBytes, "12 bytes of new content; at most 11"},
		{"a link's target counts", WorkspacePolicy{MaxBytes: bound(3)}, file(MutationAdded, nil, stateLink("1234")), CheckMaxBytes, "4 bytes"},
		{"read and write bits", WorkspacePolicy{NoExecutableChanges: true}, changed(), CheckExecutableBits, ""},
		{"gained a bit", WorkspacePolicy{NoExecutableChanges: true}, file(MutationModified, stateFile("x", 0o644), stateFile("x", 0o654)), CheckExecutableBits, `"p"`},
		{"lost a bit", WorkspacePolicy{NoExecutableChanges: true}, file(MutationModified, stateFile("x", 0o755), stateFile("y", 0o644)), CheckExecutableBits, `"p"`},
		{"new and executable", WorkspacePolicy{NoExecutableChanges: true}, file(MutationAdded, nil, stateFile("x", 0o744)), CheckExecutableBits, `"p"`},
		{"link became executable", WorkspacePolicy{NoExecutableChanges: true}, file(MutationModified, stateLink("x"), stateFile("x", 0o755)), CheckExecutableBits, `"p"`},
		{"a directory's bits", WorkspacePolicy{NoExecutableChanges: true}, file(MutationModified, stateDir(0o755), stateDir(0o700)), CheckExecutableBits, ""},
		{"no links", WorkspacePolicy{NoNewLinks: true}, changed(), CheckNewLinks, ""},
		{"a new link", WorkspacePolicy{NoNewLinks: true}, file(MutationAdded, nil, stateLink("x")), CheckNewLinks, `"p"`},
		{"a link elsewhere", WorkspacePolicy{NoNewLinks: true}, file(MutationModified, stateLink("x"), stateLink("y")), CheckNewLinks, `"p"`},
		{"a file became a link", WorkspacePolicy{NoNewLinks: true}, file(MutationModified, stateFile("x", 0o644), stateLink("x")), CheckNewLinks, `"p"`},
		{"a link went", WorkspacePolicy{NoNewLinks: true}, file(MutationDeleted, stateLink("x"), nil), CheckNewLinks, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := resultOf(t, tc.policy, tc.l)
			require.Equal(t, tc.check, got.Name)
			require.Equal(t, tc.broken == "", got.Held, got.Detail)
			require.Contains(t, got.Detail, tc.broken)
			counted[tc.check]++
		})
	}
	require.Len(t, counted, 7)
	for name, n := range counted {
		require.GreaterOrEqual(t, n, 2, "%s holds and breaks", name)
	}
}

// Each check of a policy that asks for everything has its own result, in the documented order.
func TestWorkspacePolicyOrder(t *testing.T) {
	p := WorkspacePolicy{Allowed: []string{"**"}, Forbidden: []string{"src/z"}, Protected: []string{"no"}, MaxFiles: bound(1), MaxBytes: bound(100), NoExecutableChanges: true, NoNewLinks: true}.Normal()
	var names []PolicyCheck
	var held []bool
	for _, r := range p.Check(changed()) {
		names = append(names, r.Name)
		held = append(held, r.Held)
	}
	require.Equal(t, []PolicyCheck{CheckAllowedPaths, CheckForbiddenPaths, CheckProtectedTests, CheckMaxFiles, CheckMaxBytes, CheckExecutableBits, CheckNewLinks}, names)
	require.Equal(t, []bool{true, false, true, false, true, true, true}, held)
	require.Empty(t, WorkspacePolicy{}.Normal().Check(changed()))
}

// What a hostile name does to a detail: it stays one bounded printable line.
func TestPolicyDetailIsBounded(t *testing.T) {
	var l Mutations
	for i := range 50 {
		l = append(l, Mutation{Path: fmt.Sprintf("%02d\n\x1b[2J\u202e%s", i, strings.Repeat("\xff", 200)), Kind: MutationAdded, After: stateFile("x", 0o644)})
	}
	got := resultOf(t, WorkspacePolicy{Allowed: []string{"no"}}, l)
	require.False(t, got.Held)
	require.Less(t, len(got.Detail), MaxPolicyDetailPaths*(MaxPolicyDetailQuoted+4)+20)
	require.Contains(t, got.Detail, "and 42 more")
	for _, c := range got.Detail {
		require.True(t, c >= ' ' && c < 0x7f || c == '…', "%q", c)
	}
}

const (
	policyGolden       = "a80101028166" + "7372632f2a2a" + "038166" + "676f2e6d6f64" + "0480" + "0500" + "061903e8" + "07f5" + "08f5"
	policyGoldenDigest = "sha256:b95d7368b516498649282eef12c858100710436a1063416621caba895541cda3"
)

func TestWorkspacePolicyGolden(t *testing.T) {
	p := WorkspacePolicy{Allowed: []string{"src/**", "src/**"}, Forbidden: []string{"go.mod"}, MaxFiles: bound(0), MaxBytes: bound(1000), NoExecutableChanges: true, NoNewLinks: true}.Normal()
	b, err := p.Marshal()
	require.NoError(t, err)
	require.Equal(t, policyGolden, hex.EncodeToString(b))
	digest, err := p.Digest()
	require.NoError(t, err)
	require.Equal(t, policyGoldenDigest, digest.String())
	back, err := ParseWorkspacePolicy(b)
	require.NoError(t, err)
	require.Equal(t, p, back)
	for i := range len(b) * 8 {
		bad := append([]byte(nil), b...)
		bad[i/8] ^= 1 << (i % 8)
		if q, err := ParseWorkspacePolicy(bad); err == nil {
			require.NotEqual(t, p, q)
		}
	}
}

func TestWorkspacePolicyRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		p    WorkspacePolicy
		want string
	}{
		"version":  {WorkspacePolicy{Version: 2}, "version 2"},
		"unsorted": {WorkspacePolicy{Version: 1, Allowed: []string{"b", "a"}}, "allowed paths are not sorted"},
		"repeated": {WorkspacePolicy{Version: 1, Forbidden: []string{"a", "a"}}, "forbidden paths are not sorted"},
		"glob":     {WorkspacePolicy{Version: 1, Protected: []string{"/a"}}, "protected"},
		"bracket":  {WorkspacePolicy{Version: 1, Allowed: []string{"[ab]"}}, "bracket"},
		"too many": {WorkspacePolicy{Version: 1, Allowed: make([]string, MaxGlobs+1)}, "65 allowed paths"},
	} {
		_, err := tc.p.Marshal()
		require.ErrorContains(t, err, tc.want, name)
	}
	_, err := ParseWorkspacePolicy(make([]byte, MaxWorkspacePolicy+1))
	require.ErrorContains(t, err, "exceeds 65536")
}
