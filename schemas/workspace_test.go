package schemas_test

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// T8, CDDL: a workspace with one entry of each type, every kind of mutation and a full policy.
func TestWorkspaceTexts(t *testing.T) {
	g := parse(t)
	file := evidence.EntryState{Type: evidence.EntryFile, Mode: 0o644, Size: 2, SHA256: sha256.Sum256([]byte("hi"))}
	directory := evidence.EntryState{Type: evidence.EntryDirectory, Mode: 0o755}
	link := evidence.EntryState{Type: evidence.EntryLink, Size: 1, Target: "d"}
	m, err := evidence.NewWorkspaceManifest([]evidence.WorkspaceEntry{{Path: "d", EntryState: directory}, {Path: "d/f", EntryState: file}, {Path: "l", EntryState: link}})
	require.NoError(t, err)
	b, err := m.Marshal()
	require.NoError(t, err)
	require.NoError(t, g.check(t, "workspace", b))

	b, err = evidence.Mutations{
		{Path: "a", Kind: evidence.MutationModified, Before: &file, After: &link},
		{Path: "b", Kind: evidence.MutationAdded, After: &directory},
		{Path: "c", Kind: evidence.MutationDeleted, Before: &link},
		{Path: "d", Kind: evidence.MutationRenamed, From: "e", Before: &file, After: &file},
	}.Marshal()
	require.NoError(t, err)
	require.NoError(t, g.check(t, "mutations", b))

	none, some := uint64(0), uint64(1<<20)
	for _, p := range []evidence.WorkspacePolicy{{}, {
		Allowed: []string{"src/**"}, Forbidden: []string{"go.mod"}, Protected: []string{"**/*_test.go"},
		MaxFiles: &none, MaxBytes: &some, NoExecutableChanges: true, NoNewLinks: true,
	}} {
		b, err := p.Normal().Marshal()
		require.NoError(t, err)
		require.NoError(t, g.check(t, "workspace-policy", b))
	}
}
